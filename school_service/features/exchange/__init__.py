"""Exchange with other systems.

- `oneroster`: the school's records as OneRoster 1.2 has them, in CSV
"""
