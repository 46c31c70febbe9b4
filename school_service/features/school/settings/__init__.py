"""Settings of a school: departments, employee categories, positions and grade configurations."""
