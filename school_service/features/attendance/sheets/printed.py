"""The register of a class in a term, as a workbook to be printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import orjson

from school_service.core.database import current_school
from school_service.core.statements import fetch_one
from school_service.core.texts import full_name, term_title
from school_service.features.attendance.models import DAY, DAY_PARTS
from school_service.features.attendance.sheets import reads
from school_service.features.attendance.sheets.register_layout import (
    PrintedDay,
    PrintedMark,
    PrintedRegister,
    PrintedStudent,
    register_sheet,
)
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.school.cohorts.class_sheets import find_batch, find_term
from school_service.sheets.workbook_writer import write_sheets


def download(*, batch: UUID, term: str) -> tuple[str, bytes]:
    """Write the register of a batch in a term, to be printed: the file's name and the workbook.

    `term` is FIRST, SECOND or THIRD of the batch's session, or the id of a term. Only submitted registers stand in it,
    so its totals are the students' sums. Raises Invalid for an unknown batch or term, and for a term of another
    session.
    """
    arm = find_batch(batch, field="batch")
    of_term = find_term(term, arm)
    stored = fetch_one(reads.term(arm.id, of_term.id))
    students = [_student(student, arm.name_order) for student in orjson.loads(stored["students"])]
    taken = frozenset((date.fromisoformat(day), part) for day, part in orjson.loads(stored["taken"]))
    parts = _parts(stored["parts"], taken, students)
    school = current_school().name
    titled = term_title(of_term.display_name, arm.session)
    teacher = stored["form_teacher"]
    register = PrintedRegister(
        lines=[
            school,
            f"Attendance register of {arm.class_name}, {titled}",
            *([f"Form teacher: {teacher}"] if teacher else []),
        ],
        page_header=(f"{school}, {arm.class_name}", titled),
        parts=parts,
        days=[_day(day, parts) for day in orjson.loads(stored["days"])],
        taken=taken,
        students=students,
        codes=[(code, name) for code, name in orjson.loads(stored["codes"])],
    )
    audit_change(EXPORT, arm.id, new={"sheet": "printed-register", "students": len(students)})
    name = f"{arm.class_name} {term_title(of_term.display_name, arm.session, ' ')} register.xlsx"
    return name, write_sheets([register_sheet(register)])


def _student(student: Mapping[str, Any], name_order: str) -> PrintedStudent:
    marks = {
        (date.fromisoformat(day), part): PrintedMark(code, kind) for day, part, code, kind in student["marks"]
    }
    return PrintedStudent(
        student["admission_number"], full_name(student, name_order), student["gender"], marks
    )


def _parts(
    of_school: Sequence[str], taken: frozenset[tuple[date, str]], students: Sequence[PrintedStudent]
) -> list[str]:
    """Find the parts of a day in this term: in its registers, else in the school's settings now."""
    marked = {part for _, part in taken}.union(part for student in students for _, part in student.marks)
    parts = marked or set(of_school)
    if parts - {DAY}:
        parts |= set(DAY_PARTS) - {DAY}
    return [part for part in DAY_PARTS if part in parts]


def _day(day: Mapping[str, Any], parts: Sequence[str]) -> PrintedDay:
    """Make a day; if a term was marked once a day and the school now marks halves, it is open with either."""
    is_open = frozenset(day["parts"])
    if is_open and not is_open.issuperset({DAY}) and DAY in parts:
        is_open |= {DAY}
    if DAY in is_open:
        is_open |= frozenset(parts)
    return PrintedDay(date.fromisoformat(day["date"]), is_open, day["name"])
