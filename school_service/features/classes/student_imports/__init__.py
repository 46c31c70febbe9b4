"""The import of students from a sheet, who may be enrolled in their classes at once."""
