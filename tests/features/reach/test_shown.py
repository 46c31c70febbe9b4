"""A read model with a reach shows a column of a person to those relations alone that its fact names.

Every such read model is built once, for all relations, which notes by which of them its conditions lead to rows. A
column that one of these may not see stands in `facts.shown`, or in a stored document, which has a list of its own.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any

import pytest
from sqlalchemy import Column, Table, false, func, literal, literal_column, select
from sqlalchemy.orm import aliased
from sqlalchemy.sql.selectable import Alias, FromClause, Join, SelectBase

import school_service.features
from school_service.core.database import db
from school_service.core.facts import EMPTIED, Shown, fact, fact_of, shown, stored_in
from school_service.core.reach import RELATIONS, Reach
from school_service.core.read_models import ReadModel, read_model
from school_service.features.people.models import Student, StudentGuardian
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import STUDENT
from school_service.features.results.computing.stored import OF_STUDENT
from tests.client import Document

COMPILER = false()._default_compiler()


class Noting(str):
    """Letters of relations, which note those that are asked for."""

    __slots__ = ("asked",)

    def __init__(self, _letters: str) -> None:
        self.asked: set[str] = set()

    def __contains__(self, letter: str) -> bool:
        self.asked.add(letter)
        return super().__contains__(letter)


def read_models() -> dict[str, ReadModel[Any]]:
    """Find the read models with a reach, by their names."""
    models = {}
    for module in pkgutil.walk_packages(school_service.features.__path__, "school_service.features."):
        for name, value in vars(import_module(module.name)).items():
            if not isinstance(value, ReadModel) or "reach" not in signature(value.query).parameters:
                continue
            if value.query.__module__ == module.name:
                models[f"{module.name.removeprefix('school_service.features.')}.{name}"] = value
    return models


def build(model: ReadModel[Any]) -> tuple[Any, str]:
    """Build a read model for all relations; answers its query, and by which of them it asks."""
    letters = Noting("".join(RELATIONS))
    filters = frozenset(signature(model.query).parameters) - {"reach"}
    query = model._make(filters, Reach(letters)).query
    return query, "".join(letter for letter in RELATIONS if letter in letters.asked)


def selected(part: Any, seen: set[int]) -> Iterator[Column[Any]]:
    """Find the columns of tables that a query, or an expression, selects plainly, also through subqueries and CTEs."""
    if id(part) in seen or isinstance(part, Shown):
        return
    seen.add(id(part))
    if isinstance(part, SelectBase):
        selects = getattr(part, "selects", (part,))
        for each in selects:
            for column in each.selected_columns:
                yield from selected(column, seen)
            for source in final_froms(each):
                yield from within(source, seen)
        return
    table = getattr(part, "table", None)
    if isinstance(table, Alias) and isinstance(table.element, Table):
        yield table.element.c[part.key]
    elif isinstance(table, Table):
        yield table.c[part.key]
    elif isinstance(table, FromClause):
        for base in (*part.base_columns, *getattr(part, "_proxies", ())):
            yield from selected(base, seen)
    else:
        for child in part.get_children():
            yield from selected(child, seen)


def final_froms(query: Any) -> list[FromClause]:
    """Do as `get_final_froms`, which compiles the whole of a query first and uses nothing of it."""
    if not hasattr(query, "get_final_froms"):
        return []
    froms: list[FromClause] = query._compile_state_factory(query, COMPILER)._get_display_froms()
    return froms


def within(source: Any, seen: set[int]) -> Iterator[Column[Any]]:
    """Find the columns that subqueries of a FROM select: a row as a whole may be made JSON."""
    if isinstance(source, Join):
        yield from within(source.left, seen)
        yield from within(source.right, seen)
    elif isinstance(getattr(source, "element", None), SelectBase):
        yield from selected(source.element, seen)


@cache
def of_people(model: ReadModel[Any]) -> tuple[list[Column[Any]], str]:
    """Find the columns of people that a read model selects plainly; answers also by which relations it asks."""
    query, asked = build(model)
    return [column for column in selected(query, set()) if stored_in(column.table)], asked


def plain(model: ReadModel[Any], relations: str = "".join(RELATIONS)) -> list[str]:
    """Name the columns of people that a read model shows plainly, although not all of these relations may see them."""
    columns, asked = of_people(model)
    letters = set(asked) & set(relations)
    # A column that says nothing is seen by nobody.
    seen_by = {str(column): set(said.own if (said := fact_of(column)) else "") for column in columns}
    return sorted(name for name, own in seen_by.items() if not letters <= own)


# Conditions lead to rows by more relations than these operations serve: x-own of the document says by which.
SENT_BY = {
    "attendance.overviews.reads.absences_of_day": ("GET", "/attendance/absences"),
    "identities.reads.identities": ("GET", "/users/{id}/identities"),
    "invitations.reads.invitee": ("DELETE", "/invitations/{id}"),
    "people.contacts.service.contacts": ("GET", "/contacts"),
    "people.contacts.service.newest_contact": ("GET", "/contacts"),
    "people.guardians.reads.guardians": ("GET", "/guardians"),
    "people.guardians.reads.guardian": ("GET", "/guardians/{id}"),
    "people.guardians.reads.guardians_of_student": ("GET", "/students/{id}/guardians"),
    "people.users.reads.users": ("GET", "/users"),
    "people.users.reads.user": ("GET", "/users/{id}"),
    "results.figures.reads.student_in_term": ("GET", "/students/{id}/results"),
    "results.report_cards.reads.drafted_of_student": ("GET", "/students/{id}/report-card"),
    "results.report_cards.reads.printed_of_student": ("GET", "/students/{id}/report-card"),
    "results.transcripts.reads.transcript": ("GET", "/students/{id}/transcript"),
}
# They load a class for figures to be computed of it: loaded columns that they do not answer are shown to nobody.
LOADED = {
    "results.figures.reads.subject_in_term": ("GET", "/cohort-subjects/{id}/results"),
    "results.submissions.reads.of_class": ("GET", "/submissions"),
    "results.submissions.reads.submitting": ("POST", "/cohort-subjects/{id}/submission"),
}
OF_ONESELF = {
    "me.reads.me": "of the caller alone: its parts of others are narrowed by the read models of these"
}


def operation_of(document: Document, method: str, path: str) -> dict[str, Any]:
    """Find an operation of the document."""
    operation: dict[str, Any] = document.spec["paths"][path][method.lower()]
    return operation


def relations_of(document: Document, operation: tuple[str, str]) -> str:
    """Give the letters by which an operation serves OWN."""
    return operation_of(document, *operation)["x-own"].replace(" ", "")


def members_in(document: Document, schema: Any) -> set[str]:
    """Name all members of an answer by its schema, at any depth."""
    if isinstance(schema, list):
        return {name for part in schema for name in members_in(document, part)}
    if not isinstance(schema, dict):
        return set()
    if "$ref" in schema:
        _, _, kind, name = schema["$ref"].split("/")
        schema = document.spec["components"][kind][name]
    of_parts = {name for part in schema.values() for name in members_in(document, part)}
    return of_parts | set(schema.get("properties", ()))


def test_a_column_of_a_person_is_plain_to_permitted_relations_alone(document):
    shown_columns, models = {}, read_models()
    assert len(models) > 60
    for name, model in models.items():
        relations = relations_of(document, SENT_BY[name]) if name in SENT_BY else "".join(RELATIONS)
        shown = [] if name in OF_ONESELF else plain(model, relations)
        if name in LOADED:
            answer = operation_of(document, *LOADED[name])["responses"]
            shown = [column for column in shown if column.partition(".")[2] in members_in(document, answer)]
        shown_columns[name] = shown

    assert {name: columns for name, columns in shown_columns.items() if columns} == {}, (
        "select it with school_service.core.facts.shown, or name more relations in the info of the column"
    )


def test_each_exception_is_a_read_model_that_needs_it():
    models = read_models()

    assert [name for name in (*SENT_BY, *LOADED, *OF_ONESELF) if not plain(models[name])] == []


@read_model
def _of_students(reach: Reach | None = None) -> Any:
    """Select columns that a subject teacher may see, and others, in every way in which a column is selected."""
    everybody = select(Student.id, Student.dob.label("born")).cte("everybody")
    twin, row = aliased(Student), select(Student.dob).subquery("row")
    return select(
        Student.middle_name,
        everybody.c.born,
        func.json_build_object("status", twin.status, "dob", twin.dob),
        select(func.row_to_json(literal_column("row"))).select_from(row).scalar_subquery(),
    ).where(scopes.students_in_reach(reach, everybody.c.id))


@read_model
def _birthdays(reach: Reach | None = None) -> Any:
    """Select a column that a subject teacher may not see as it is to be selected."""
    is_by = partial(scopes.is_student_by, student_id=Student.id)
    value = shown(Student.dob, reach, lambda reach, relations: is_by(reach, relations=relations))
    return select(Student.middle_name, value).where(scopes.students_in_reach(reach, Student.id))


def test_a_column_that_is_plain_is_named_however_it_is_selected():
    assert plain(_of_students, "TF") == ["students.dob"]
    assert plain(_of_students, "FSG") == []
    assert plain(_birthdays, "TF") == []


def test_a_column_that_says_nothing_is_seen_by_nobody(monkeypatch):
    for name in ("middle_name", "dob"):
        monkeypatch.setattr(Student.__table__.c[name], "info", {})

    # The date of birth is selected by `shown`.
    assert plain(_birthdays, "F") == ["students.middle_name"]


def test_a_column_is_null_to_relations_that_may_not_see_it():
    for relations, text in (("FSG", "students.dob"), ("TF", "CASE WHEN"), ("T", "CASE WHEN false")):
        value = shown(
            Student.dob, Reach(relations), lambda reach, by: scopes.is_student_by(reach, Student.id, by)
        )

        assert f"SELECT {text}" in str(select(value)), relations
        assert value.key == "dob"
    assert shown(Student.dob, None, lambda _reach, _by: false()) is Student.dob


def test_a_value_of_several_columns_is_shown_to_relations_that_may_see_all():
    both = StudentGuardian.relationship + Student.middle_name

    column = shown(both, Reach("TFSG"), lambda _reach, by: literal(by) == "FG")

    assert column.compile().params == {"param_1": "FG", "param_2": "FG"}


def test_all_readers_of_a_stored_card_may_see_its_members(document):
    readers = set(relations_of(document, ("GET", "/students/{id}/report-card")))
    written = [*STUDENT.clauses]
    members = {name.value for name in written[::2]} | {"dob"}

    columns = {
        name: db.metadata.tables[table].c[column]
        for name, (table, column) in ((name, of.split(".")) for name, of in OF_STUDENT.items())
    }

    assert columns.keys() == members
    assert {name for name, column in columns.items() if not readers <= set(fact_of(column).own)} == set()
    for name, value in zip(written[::2], written[1::2], strict=True):
        assert [*selected(value, set())] == [columns[name.value]]


def test_a_letter_of_no_relation_is_refused():
    with pytest.raises(ValueError, match="no relation"):
        fact("club", EMPTIED, own="X")
