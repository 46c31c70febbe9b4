"""The names of students as refusals have them."""

from __future__ import annotations


def name_with_number(api, student):
    """Name a student by the id, as errors do: `Ngọzi Eze (QAC/2022/014)`."""
    record = api.ok(api.get(f"/students/{student}"))
    return f"{record['first_name']} {record['last_name']} ({record['admission_number']})"
