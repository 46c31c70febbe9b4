"""The import of students from a sheet, with enrollment in their classes at once."""
