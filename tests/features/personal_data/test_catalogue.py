"""The document of a person has every row, and every column, that the database has of them.

Asked is the catalogue: a table that refers to a person, directly or through others, and is not in the document fails
here, and so does a column.
"""

from __future__ import annotations

from base64 import b64encode
from uuid import uuid4

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.core.facts import BY_SERVICE, EMPTIED, STAYS, fact_of, stored_in
from school_service.features.personal_data.stored import OF_THE_ACTOR
from tenants.registry.schools import schema_name
from tests.features.personal_data.people import make_employee, make_graduate, make_guardian, make_student

# Where the document has the rows of a table.
PLACES = {
    "users": lambda told: [told["user"]],
    "user_roles": lambda told: told["roles"],
    "contacts": lambda told: told["contacts"],
    "user_sessions": lambda told: told["sessions"],
    "user_identities": lambda told: told["identities"],
    "invitations": lambda told: told["invitations"],
    "user_photos": lambda told: told["photos"],
    "students": lambda told: [told["student"]] if "student" in told else [],
    "enrollments": lambda told: told.get("enrollments", []),
    "subject_enrollments": lambda told: told.get("subject_enrollments", []),
    "gradebook_entries": lambda told: told.get("gradebook_entries", []),
    "absences": lambda told: told.get("absences", []),
    "marks": lambda told: told.get("marks", []),
    "metrics": lambda told: told.get("metrics", []),
    "term_comments": lambda told: told.get("term_comments", []),
    "report_cards": lambda told: told.get("report_cards", []),
    "issued_transcripts": lambda told: told.get("issued_transcripts", []),
    "left_out_students": lambda told: told.get("left_out_students", []),
    "promotion_decisions": lambda told: told.get("promotion_decisions", []),
    "promotion_amendments": lambda told: [
        amendment for decision in told.get("promotion_decisions", []) for amendment in decision["amended"]
    ],
    "metric_scores": lambda told: [score for metric in told.get("metrics", []) for score in metric["scores"]],
    "graduates": lambda told: [told["graduate"]] if told.get("graduate") else [],
    "employees": lambda told: [told["employee"]] if "employee" in told else [],
    "bank_accounts": lambda told: [told["bank_account"]] if "bank_account" in told else [],
    "next_of_kin": lambda told: [told["next_of_kin"]] if "next_of_kin" in told else [],
    "form_teachers": lambda told: told.get("form_teachers", []),
    "guardians": lambda told: [told["guardian"]] if "guardian" in told else [],
    "student_guardians": lambda told: [*told.get("guardians", []), *told.get("children", [])],
    "subject_teachers": lambda told: told.get("subject_teachers", []),
}

FOREIGN_KEYS = text("""
SELECT c.conrelid::regclass::text AS child, c.confrelid::regclass::text AS parent, a.attname AS column, b.attname AS key
FROM pg_constraint c
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1]
WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace
ORDER BY 1, 2, 3
""")


@pytest.fixture
def catalogue(committing, tenancy):
    """A connection of the operator's in the school."""
    with tenancy.admin.connect() as connection:
        connection.execute(
            text(f'SET search_path TO "{schema_name(committing.api.school)}"; SET TimeZone TO UTC')
        )
        yield connection
        connection.rollback()
        connection.execute(text("RESET ALL"))


def rows_of_person(connection, table, person):
    """Read all rows that belong to a person, by table: those that refer to them, and those that refer to these."""
    account = f"SELECT user_id FROM {table} WHERE id = '{person}'"
    conditions = {"users": f"id IN ({account})", table: f"id = '{person}'"}
    keys = connection.execute(FOREIGN_KEYS).all()
    while True:
        more = {
            key.child: f"{key.column} IN (SELECT {key.key} FROM {key.parent} WHERE {conditions[key.parent]})"
            for key in keys
            if key.parent in conditions and key.child not in conditions
        }
        if not more:
            break
        conditions |= more
    return {
        name: connection.execute(text(f"SELECT row_to_json(t) FROM {name} t WHERE {condition}"))
        .scalars()
        .all()
        for name, condition in conditions.items()
    }


def as_told(value):
    """Write a value as the document tells it: bytes in base64."""
    is_bytes = isinstance(value, str) and value.startswith("\\x")
    return b64encode(bytes.fromhex(value[2:])).decode() if is_bytes else value


def untold(rows, told):
    """Name the rows of a person that are missing in the document."""
    faults = []
    for table, stored in rows.items():
        if table not in PLACES:
            faults.append(
                f"the table {table} refers to a person: tell of it in features/personal_data/reads.py"
            )
            continue
        shown = PLACES[table](told)
        columns = db.metadata.tables[table].columns
        for row in stored:
            # A column outside the metadata was added to the table by the test.
            wanted = {
                name: as_told(value)
                for name, value in row.items()
                if name not in columns or (said := fact_of(columns[name])) is None or said.told
            }
            if not any(
                wanted.items() <= {name: row.get(name, ...) for name in wanted}.items() for row in shown
            ):
                faults.append(f"a row of {table} is not told as it is: {wanted}")
        if len(shown) != len(stored):
            faults.append(f"{table} has {len(stored)} rows of the person, the document {len(shown)}")
    return faults


@pytest.fixture
def people(committing, catalogue):
    """Persons who together have a row in every table: their rows, and their document."""
    made = [
        ("students", make_student(committing)),
        ("students", make_graduate(committing)),
        ("employees", make_employee(committing)),
        ("guardians", make_guardian(committing)),
    ]
    api = committing.api

    def read():
        catalogue.rollback()
        return [
            (rows_of_person(catalogue, kind, person["id"]), api.ok(api.get(f"/{kind}/{person['id']}/data")))
            for kind, person in made
        ]

    catalogue.commit()
    return read


def test_every_row_and_every_column_is_told(people):
    documents = people()

    for rows, told in documents:
        assert untold(rows, told) == []
    with_rows = {table for rows, _ in documents for table, stored in rows.items() if stored}
    assert with_rows == {table for rows, _ in documents for table in rows} == PLACES.keys()


def test_entries_of_the_audit_log_of_these_records_are_told(people, catalogue):
    for rows, told in people():
        ids = {row["id"] for stored in rows.values() for row in stored if "id" in row}
        query = text(
            "SELECT row_to_json(e) FROM audit_entries e WHERE entity_id = ANY(CAST(:ids AS uuid[]))"
            # The id of an absence is its assessment's.
            " OR new ->> 'student' = ANY(CAST(:ids AS text[]))"
            # The id of a link is its student's.
            " OR new ->> 'guardian' = ANY(CAST(:ids AS text[])) ORDER BY at, id"
        )
        logged = catalogue.execute(query, {"ids": sorted(ids)}).scalars().all()

        assert logged
        # An administrator did all of it, and the person is told nothing of them.
        shown = [{name: entry[name] for name in entry if name != "change_set"} for entry in logged]
        by_another = [{**entry, **dict.fromkeys(OF_THE_ACTOR & entry.keys())} for entry in shown]
        # The last says that the copy was made, and was written after it.
        *before, copied = by_another
        assert told["audit"] == before
        assert copied["entity"] == "export"


def test_a_new_table_is_missed(people, catalogue):
    for statement in (
        "CREATE TABLE loans (id uuid PRIMARY KEY, student_id uuid REFERENCES students (id))",
        "CREATE TABLE reminders (id uuid PRIMARY KEY, loan_id uuid REFERENCES loans (id))",
    ):
        catalogue.execute(text(statement))
    catalogue.commit()

    (rows, told), *_ = people()

    missed = [line.split(" refers")[0] for line in untold(rows, told)]
    assert missed == ["the table loans", "the table reminders"]


def test_a_new_column_is_missed(people, catalogue):
    catalogue.execute(text("ALTER TABLE students ADD COLUMN club text DEFAULT 'Chess'"))
    catalogue.commit()

    (rows, told), *_ = people()

    (line,) = untold(rows, told)
    assert line.startswith("a row of students is not told as it is")


def test_a_new_row_is_missed(people, catalogue):
    (rows, told), *_ = people()
    assert untold(rows, told) == []

    rows["contacts"].append({**rows["contacts"][0], "id": str(uuid4())})

    assert len(untold(rows, told)) == 2


def test_hidden_columns_are_these():
    hidden = {
        f"{table}.{column.name}"
        for table in PLACES
        for column in db.metadata.tables[table].columns
        if (fact := fact_of(column)) and not fact.told
    }

    # Hashes and codes, another's name, and values that may harm somebody else: see features/personal_data/stored.py.
    assert hidden == {
        "users.password_hash",
        *(f"user_sessions.{name}" for name in ("handle", "nonce", "code_hash", "code_challenge")),
        *(f"user_sessions.{name}" for name in ("token_hash", "previous_hash", "salt")),
        *("invitations.code_hash", "report_cards.code", "issued_transcripts.code"),
        *("marks.corrected_by", "marks.corrected_by_name"),
        *(f"promotion_amendments.{name}" for name in ("amended_by", "amended_by_name", "ended")),
        *(f"student_guardians.{name}" for name in ("stopped_by", "stopped_by_name", "stop_reason")),
        *(f"students.guardian_{name}" for name in ("full_name", "relationship")),
        *(f"students.guardian_{name}" for name in ("phone_number", "email_address")),
    }


# Erasing: each column says whether it stays.


def erased(table, *ways):
    """Name the columns of a table that erasing treats in one of these ways."""
    columns = db.metadata.tables[table].columns
    return {column.name for column in columns if (fact := fact_of(column)) and fact.erased in ways}


GONE = {table for table in PLACES if not erased(table, STAYS, EMPTIED)}
CHANGES = {table: erased(table, EMPTIED, BY_SERVICE) for table in PLACES if table not in GONE}


def test_rows_of_these_tables_are_gone_with_the_person():
    assert {
        *("user_roles", "bank_accounts", "next_of_kin", "user_sessions"),
        *("user_identities", "invitations", "user_photos"),
        *("form_teachers", "subject_teachers", "student_guardians"),
    } == GONE


def test_every_column_of_a_table_has_its_fact():
    tables = db.metadata.tables
    # Of these no column has anything from its table.
    assert {table for table in PLACES if stored_in(tables[table]).fact is None} == {
        *("users", "contacts", "students", "guardians", "student_guardians", "employees", "next_of_kin"),
    }
    for table in PLACES:
        columns = db.metadata.tables[table].columns

        assert [column.name for column in columns if fact_of(column) is None] == [], (
            "say in its info what it is, with school_service.core.facts.fact"
        )


@pytest.mark.parametrize(("kind", "make"), [("students", make_student), ("employees", make_employee)])
def test_erasing_changes_these_columns_and_no_other(committing, catalogue, kind, make):
    api, person = committing.api, make(committing)
    if kind == "employees":
        api.ok(api.delete(f"/employees/{person['id']}?release=true"))
        # Columns that a school can't set by the API, or that a deletion has changed already.
        catalogue.execute(text(f"UPDATE users SET deleted_at = NULL WHERE id = '{person['user']}'"))
    else:
        removed = {"student_ids": [person["id"]]}
        api.ok(api.patch(f"/cohorts/{person['cohort_id']}/remove_students", removed))
    known = "photo = 'https://example.com/x', password_given_by = 'somebody'"
    catalogue.execute(text(f"UPDATE users SET {known} WHERE id = '{person['user']}'"))
    catalogue.execute(text("UPDATE report_cards SET photo = 'a photo'"))
    catalogue.commit()
    before = rows_of_person(catalogue, kind, person["id"])
    catalogue.rollback()

    api.ok(api.delete(f"/{kind}/{person['id']}/data"))

    after = rows_of_person(catalogue, kind, person["id"])
    for table in GONE & before.keys():
        assert after[table] == [], table
    for table in before.keys() - GONE - {"contacts"}:
        assert len(after[table]) == len(before[table])
        for old, new in zip(before[table], after[table], strict=True):
            changed = {name for name in old if old[name] != new[name]}
            assert changed == CHANGES[table], table
    # An employee refers to their contact, which is emptied.
    contacts = [{contact[name] for name in CHANGES["contacts"]} for contact in after["contacts"]]
    assert contacts == ([{""}] if kind == "employees" else [])


def test_erasing_a_guardian_changes_these_columns_and_leaves_no_link(committing, catalogue):
    guardian = make_guardian(committing)
    before = rows_of_person(catalogue, "guardians", guardian["id"])
    catalogue.commit()

    committing.api.ok(committing.api.delete(f"/guardians/{guardian['id']}/data"))

    after = rows_of_person(catalogue, "guardians", guardian["id"])

    ((old,), (new,)) = before["guardians"], after["guardians"]
    assert {name for name in old if old[name] != new[name]} == CHANGES["guardians"]
    assert (len(before["student_guardians"]), after["student_guardians"]) == (2, [])
