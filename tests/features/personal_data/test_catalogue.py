"""The document of a person has every row, and every column, that the database has of them.

Asked is the catalogue: a table that refers to a person, directly or through others, and is not in the document fails
here, and so does a column.
"""

from __future__ import annotations

from base64 import b64encode
from uuid import uuid4

import pytest
from sqlalchemy import text

from school_service.features.personal_data.stored import NOT_TOLD, OF_THE_ACTOR
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
        found = {
            key.child: f"{key.column} IN (SELECT {key.key} FROM {key.parent} WHERE {conditions[key.parent]})"
            for key in keys
            if key.parent in conditions and key.child not in conditions
        }
        if not found:
            break
        conditions |= found
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
    """Say what the database has of a person and the document has not."""
    found = []
    for table, stored in rows.items():
        if table not in PLACES:
            found.append(
                f"the table {table} refers to a person: tell of it in features/personal_data/reads.py"
            )
            continue
        shown = PLACES[table](told)
        hidden = NOT_TOLD.get(table, frozenset())
        for row in stored:
            wanted = {name: as_told(value) for name, value in row.items() if name not in hidden}
            if not any(
                wanted.items() <= {name: one.get(name, ...) for name in wanted}.items() for one in shown
            ):
                found.append(f"a row of {table} is not told as it is: {wanted}")
        if len(shown) != len(stored):
            found.append(f"{table} has {len(stored)} rows of the person, the document {len(shown)}")
    return found


@pytest.fixture
def people(committing, catalogue):
    """Persons of whom together there is a row in every table: their rows, and their document."""
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
            (rows_of_person(catalogue, kind, one["id"]), api.ok(api.get(f"/{kind}/{one['id']}/data")))
            for kind, one in made
        ]

    catalogue.commit()
    return read


def test_every_row_and_every_column_is_told(people):
    found = people()

    for rows, told in found:
        assert untold(rows, told) == []
    with_rows = {table for rows, _ in found for table, stored in rows.items() if stored}
    assert with_rows == {table for rows, _ in found for table in rows} == PLACES.keys()


def test_what_the_audit_log_says_of_these_records_is_told(people, catalogue):
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
        # An administrator did all of it, of whom the person is told nothing.
        by_another = [{**entry, **dict.fromkeys(OF_THE_ACTOR & entry.keys())} for entry in logged]
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


def test_what_is_not_told_is_a_column_that_is_there(catalogue):
    for table, names in NOT_TOLD.items():
        found = catalogue.execute(text(f"SELECT * FROM {table} LIMIT 0"))
        assert names <= set(found.keys())


# Erasing: of each column it is decided whether it stays.

GONE = {
    *("user_roles", "bank_accounts", "next_of_kin", "user_sessions"),
    *("user_identities", "invitations", "user_photos"),
    *("form_teachers", "subject_teachers", "student_guardians"),
}
STAYS = {
    "users": {"id", "created_at", "password_given_at"},
    "contacts": {"id", "owner_id", "created_at"},
    "students": {"id", "number", "user_id", "created_at"}
    # They are empty.
    | {f"guardian_{name}" for name in ("full_name", "relationship", "phone_number", "email_address")},
    "guardians": {"id", "created_at"},
    "employees": {"id", "user_id", "contact_id", "department_id", "category_id", "position_id"}
    | {"created_at", "deleted_at"},
    # Results: who reads them learns nothing of whose they are but their pseudonym.
    "enrollments": {"id", "student_id", "batch_id", "cohort_id", "session_id", "started_at", "ended_at"},
    "subject_enrollments": {"cohort_subject_id", "student_id", "created_at"},
    "gradebook_entries": {"id", "assessment_id", "student_id", "batch_id", "score", "sheet"}
    | {"created_at", "updated_at"},
    "absences": {"assessment_id", "student_id", "status", "created_at"},
    "marks": {"register_id", "student_id", "code", "kind", "arrived", "version"}
    | {"correction_code", "correction_kind", "corrected_at", "corrected_by"},
    "term_comments": {
        "student_id",
        "term_id",
        "batch_id",
        "cohort_id",
        "session_id",
        "times_present",
        "sheet",
    }
    | {"created_at", "updated_at"},
    "report_cards": {"id", "publication_id", "student_id", "term_id", "code", "average", "position"}
    | {"in_force", "changed", "class_figures_changed"},
    "issued_transcripts": {"id", "student_id", "code", "digest", "issued_at", "card_ids"},
    "left_out_students": {"student_id", "batch_id", "term_id"},
    "promotion_decisions": {
        "promotion_id",
        "student_id",
        "from_batch_id",
        "average",
        "terms",
        "by_rule",
        "outcome",
    }
    | {"reasons", "to_batch_id", "enrollment_id", "before"},
    "metrics": {"id", "student_id", "batch_id", "cohort_id", "session_id", "term_id", "metric_type", "sheet"}
    | {"created_at", "updated_at"},
    "metric_scores": {"metric_id", "definition_id", "score"},
    "graduates": {"id", "number", "student_id", "graduation_class", "created_at"},
}
CHANGES = {
    "users": {"username", "username_key", "password_hash", "first_name", "last_name", "gender", "photo"}
    | {"session_number", "deleted_at", "erased_at", "name_sort_key", "username_sort_key"}
    | {"password_given_by", "password_given_by_name"},
    "contacts": {"email_address", "phone_number", "physical_address"},
    "students": {"admission_number", "middle_name", "dob", "status"},
    "guardians": {"user_id", "full_name", "phone_number", "email_address", "physical_address", "erased_at"},
    "absences": {"note"},
    # In the tests it was the student themselves who corrected.
    "marks": {"note", "reason", "corrected_by_name"},
    "term_comments": {"form_teacher_comment", "principal_comment"},
    # Of the card who it is of, and what was said of them: the figures stay.
    "report_cards": {"card"},
    "issued_transcripts": {"transcript"},
    "promotion_decisions": {"reason"},
    "employees": {"middle_name", "title", "dob", "join_date", "marital_status", "blood_group"}
    | {"lga_id", "state_id", "nationality_id", "religion", "status"},
}


def test_of_every_column_it_is_decided_whether_erasing_leaves_it(catalogue):
    for table in PLACES.keys() - GONE:
        columns = set(catalogue.execute(text(f"SELECT * FROM {table} LIMIT 0")).keys())

        assert columns == STAYS[table] | CHANGES.get(table, set()), table


@pytest.mark.parametrize(("kind", "make"), [("students", make_student), ("employees", make_employee)])
def test_erasing_changes_these_columns_and_no_other(committing, catalogue, kind, make):
    api, person = committing.api, make(committing)
    if kind == "employees":
        api.ok(api.delete(f"/employees/{person['id']}"))
        # What a school can't set by the API, and what a deletion has changed already.
        catalogue.execute(text(f"UPDATE users SET deleted_at = NULL WHERE id = '{person['user']}'"))
    else:
        removed = {"student_ids": [person["id"]]}
        api.ok(api.patch(f"/cohorts/{person['cohort_id']}/remove_students", removed))
    known = "photo = 'https://example.com/x', password_given_by = 'somebody'"
    catalogue.execute(text(f"UPDATE users SET {known} WHERE id = '{person['user']}'"))
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
            assert changed == CHANGES.get(table, set()), table
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
