"""How a broadsheet is put together, of whatever its figures were read from: live results, or frozen cards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, JSON, ColumnElement, FromClause, Label, Text, cast, func, literal_column, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

Column = ColumnElement[Any]

NONE_LISTED: Column = literal_column("'[]'::json")
NO_MEMBERS: Column = literal_column("'{}'::json")


def broadsheet_of(
    *, students: CTE, results: CTE, taught: FromClause, printed: bool = False
) -> tuple[Label[Any], ...]:
    """Columns `subjects`, `students` and `summary` of a broadsheet, whatever its figures were read from.

    `students` has a row for each student: `student_id`, `student`, `total`, `average`, `grade`, `position`, `tied`,
    `cohort_position`, `graded`, `status`, `passed`, their order `by_name`, and the class figures of their averages
    (`class_average`, `class_lowest`, `class_highest`); `results` one for each subject of a student: `student_id`, `id`,
    `percent`, `grade`, `position`, `status`, `passed`, and the class figures of the subject; `taught` one for each
    subject: `id`, `base`, `name`, `code`, `elective`, `submitted`, `submitted_by`, `teachers`.

    `printed`: each is a text of JSON, in which a result has `passed`, too, a subject `passes` and `submitted_by`, and
    a student `averages`, where `students` has them: by the name of the term.
    """
    figures = (
        select(
            results.c.id,
            func.count().label("takers"),
            func.count(results.c.percent).label("graded"),
            func.max(results.c.class_average).label("average"),
            func.max(results.c.class_lowest).label("lowest"),
            func.max(results.c.class_highest).label("highest"),
            func.count().filter(results.c.passed).label("passes"),
        )
        .group_by(results.c.id)
        .cte(f"{results.name}_figures")
        .prefix_with("MATERIALIZED")
    )
    subject = func.json_build_object(
        *members(taught, "id", "base", "name", "code", "elective", "submitted", "teachers"),
        *members(figures, "takers", "graded", "average", "lowest", "highest"),
        *((*members(taught, "submitted_by"), *members(figures, "passes")) if printed else ()),
    )
    subjects = (
        select(listed(subject, taught.c.name, taught.c.id))
        .select_from(taught)
        .join(figures, figures.c.id == taught.c.id)
    )
    shown = ("percent", "grade", "position", "status", *(("passed",) if printed else ()))
    result = func.json_build_object(*members(results, *shown))
    of_student = (
        select(results.c.student_id, func.json_object_agg(results.c.id, result, type_=JSON).label("results"))
        .group_by(results.c.student_id)
        .cte(f"{results.name}_of_student")
        .prefix_with("MATERIALIZED")
    )
    row = func.json_build_object(
        "student", students.c.student,
        "results", func.coalesce(of_student.c.results, NO_MEMBERS),
        *members(
            students, "total", "average", "grade", "position", "tied", "cohort_position", "graded", "status"
        ),
        *(members(students, "averages") if printed and "averages" in students.c else ()),
    )  # fmt: skip
    rows = (
        select(listed(row, students.c.position.nulls_last(), students.c.by_name))
        .select_from(students)
        .outerjoin(of_student, of_student.c.student_id == students.c.student_id)
    )
    is_ranked = students.c.position.is_not(None)
    summary = select(
        func.json_build_object(
            "students", func.count(),
            "ranked", func.count(students.c.position),
            "average", func.max(students.c.class_average),
            "highest", func.max(students.c.class_highest),
            "lowest", func.max(students.c.class_lowest),
            "passed", func.count().filter(is_ranked, students.c.passed),
            type_=JSON,
        )
    ).select_from(students)  # fmt: skip
    columns = {"subjects": subjects, "students": rows, "summary": summary}
    return tuple(
        # What is printed comes as text: the driver would read numbers as floats.
        (cast(found.scalar_subquery(), Text) if printed else found.scalar_subquery()).label(name)
        for name, found in columns.items()
    )


def members(found: FromClause, *names: str) -> list[Any]:
    """What `json_build_object` takes, of columns of these names."""
    return [part for name in names for part in (name, found.c[name])]


def listed(document: Any, *order: Any) -> Any:
    """Gather documents as an array, in order."""
    return func.coalesce(func.json_agg(aggregate_order_by(document, *order)), NONE_LISTED)
