"""How PostgreSQL answers the lists of a large school: by index, never by reading a whole table of records."""

from __future__ import annotations

import json
import re

import pytest

from school_service.core import read_models
from school_service.core.database import db
from school_service.core.deletion import deleting as deletion_of
from school_service.core.read_models import CompiledStatement
from school_service.core.records import array_text, new_ids
from school_service.features.audit import service as audit
from school_service.features.classes.cohort_subjects import reads as cohort_subjects
from school_service.features.classes.cohort_subjects import service as taught
from school_service.features.observations.metrics import reads as metrics
from school_service.features.people.students import reads as students
from school_service.features.people.students import service as students_service
from school_service.features.people.users import reads as users
from school_service.features.personal_data import reads as personal_data
from school_service.features.school.cohorts import service as cohorts
from school_service.features.school.sessions import service as sessions
from school_service.features.school.subjects import service as subjects
from school_service.features.scores.assessments import reads as assessments
from school_service.features.scores.gradebooks import reads as gradebooks
from school_service.features.scores.gradebooks import service as entering
from school_service.features.scores.scoresheets import class_scores, sheet
from school_service.features.scores.scoresheets import reads as scoresheets
from school_service.web import rendering
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tests.conftest import make_place

ENTRIES = 50_000
NAMES = {"Relation Name", "Index Name"}
LARGE = {
    "assessments",
    "audit_entries",
    "cohort_subjects",
    "enrollments",
    "gradebook_entries",
    "metric_scores",
    "metrics",
    "students",
    "subject_enrollments",
    "users",
}

# Twenty sessions of eight cohorts, each of eight students and ten subjects with four assessments a year, metrics
# of both types in both terms, and others who have left long ago. Ids are the hashes of texts that tell them apart.
# Foreign keys are not checked meanwhile.
SCHOOL = """
SET LOCAL search_path TO {schema};
SET LOCAL session_replication_role TO replica;
CREATE FUNCTION pg_temp.key(VARIADIC texts text[]) RETURNS uuid IMMUTABLE LANGUAGE sql
    AS $$ SELECT md5(array_to_string(texts, '/'))::uuid $$;
CREATE TEMPORARY TABLE a_session ON COMMIT DROP AS SELECT y::text AS y FROM generate_series(2001, 2020) y;
CREATE TEMPORARY TABLE a_cohort ON COMMIT DROP AS
    SELECT y, c::text AS c, pg_temp.key('cohort', y, c::text) AS id FROM a_session, generate_series(1, 8) c;
CREATE TEMPORARY TABLE a_taught ON COMMIT DROP AS
    SELECT y, c, s::text AS s, id AS cohort, pg_temp.key('taught', y, c, s::text) AS id
    FROM a_cohort, generate_series(1, 10) s;
CREATE TEMPORARY TABLE a_student ON COMMIT DROP AS
    SELECT c::text AS c, n::text AS n, pg_temp.key('student', c::text, n::text) AS id, 8 * c + n AS number
    FROM generate_series(1, 2000) c, generate_series(1, 8) n;

INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number, created_at)
    SELECT id, 'U' || number, 'u' || number, 'Ada', 'Eze ' || n, '', 0, now() FROM a_student;
INSERT INTO students (id, number, user_id, admission_number, status, created_at)
    SELECT id, number, id, 'A/' || number, 'ACTIVE', now() FROM a_student;
INSERT INTO classrooms (id, name, level)
    SELECT pg_temp.key('room', c::text), 'JSS ' || c, 'Junior' FROM generate_series(1, 8) c;
INSERT INTO subjects (id, name, code)
    SELECT pg_temp.key('subject', s::text), 'Subject ' || s, 'S' || s FROM generate_series(1, 10) s;
INSERT INTO sessions (id, name, start_date, end_date, current)
    SELECT pg_temp.key('session', y), y, make_date(y::int, 9, 8), make_date(y::int + 1, 7, 24), false
    FROM a_session;
INSERT INTO terms (id, session_id, term, display_name)
    SELECT pg_temp.key('term', y, t), pg_temp.key('session', y), t, t
    FROM a_session, unnest(ARRAY['FIRST', 'SECOND']) t;
INSERT INTO cohorts (id, classroom_id, session_id)
    SELECT id, pg_temp.key('room', c), pg_temp.key('session', y) FROM a_cohort;
INSERT INTO batches (id, number, cohort_id, name)
    SELECT id, row_number() OVER (), id, 'A' FROM a_cohort;
INSERT INTO cohort_subjects (id, cohort_id, subject_id, elective)
    SELECT id, cohort, pg_temp.key('subject', s), false FROM a_taught;
INSERT INTO enrollments (id, student_id, batch_id, cohort_id, session_id, started_at)
    SELECT gen_random_uuid(), a_student.id, a_cohort.id, a_cohort.id, pg_temp.key('session', y), now()
    FROM a_cohort JOIN a_student USING (c);
INSERT INTO subject_enrollments (cohort_subject_id, student_id, created_at)
    SELECT a_taught.id, a_student.id, now() FROM a_taught JOIN a_student USING (c);
INSERT INTO assessments (id, cohort_subject_id, cohort_id, session_id, term_id, name, abbreviation, due_date,
        total_points, description, category, file_name, include_in_final, publish_scores, created_at)
    SELECT gen_random_uuid(), id, cohort, pg_temp.key('session', y), pg_temp.key('term', y, t), k, k,
        make_date(y::int, 10, 10), 20, '', k, k, true, true, now()
    FROM a_taught, unnest(ARRAY['FIRST', 'SECOND']) t, unnest(ARRAY['CA1', 'EXAM']) k;
INSERT INTO gradebook_entries (id, assessment_id, student_id, batch_id, score, created_at, updated_at)
    SELECT gen_random_uuid(), a.id, e.student_id, a.cohort_id, 12.5, now(), now()
    FROM assessments a JOIN subject_enrollments e USING (cohort_subject_id);
INSERT INTO metrics (id, student_id, batch_id, cohort_id, session_id, term_id, metric_type, sheet, created_at,
        updated_at)
    SELECT gen_random_uuid(), e.student_id, e.batch_id, e.cohort_id, e.session_id, t.id, k, '', now(), now()
    FROM enrollments e JOIN terms t USING (session_id), unnest(ARRAY['AFFECTIVE', 'PSYCHOMOTOR']) k;
INSERT INTO metric_scores (metric_id, definition_id, score)
    SELECT m.id, d.id, 4 FROM metrics m JOIN metric_definitions d USING (metric_type);
INSERT INTO audit_entries (id, at, actor, actor_name, action, entity, entity_id, new)
    SELECT gen_random_uuid(), now(), 'somebody', 'Somebody', 'create', 'gradebook', id, '{{}}' FROM gradebook_entries;
"""

IDS = """
SELECT t.id AS taught, t.cohort_id AS cohort, t.subject_id AS subject, c.session_id AS session, m.id AS term,
    (SELECT id FROM {schema}.gradebook_entries LIMIT 1) AS entry,
    (SELECT student_id FROM {schema}.gradebook_entries LIMIT 1) AS student,
    (SELECT id FROM {schema}.assessments WHERE cohort_subject_id = t.id LIMIT 1) AS assessment
FROM {schema}.cohort_subjects t JOIN {schema}.cohorts c ON c.id = t.cohort_id
JOIN {schema}.terms m ON m.session_id = c.session_id AND m.term = 'SECOND' LIMIT 1
"""


@pytest.fixture(scope="module")
def school(app, tenancy):
    """A school with a long past; answers its id and ids of some of its records."""
    place = make_place(app, tenancy, "King's College, Lagos")
    schema = f"school_{place.id.hex}"
    with tenancy.admin.begin() as connection:
        connection.exec_driver_sql(SCHOOL.format(schema=schema))
    with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in LARGE | {"cohorts", "batches", "terms", "sessions", "subjects", "metric_definitions"}:
            connection.exec_driver_sql(f"ANALYZE {schema}.{table}")
        count = connection.exec_driver_sql(f"SELECT count(*) FROM {schema}.gradebook_entries").scalar_one()
        ids = connection.exec_driver_sql(IDS.format(schema=schema)).one()
    assert count >= ENTRIES
    return place.id, ids


READS = {
    "score sheet": (lambda ids: scoresheets.scoresheet(ids.taught), rendering._record),
    "score sheet of a term": (lambda ids: scoresheets.scoresheet(ids.taught, ids.term), rendering._record),
    "score sheet to fill in": (lambda ids: sheet._score_sheet(ids.assessment), read_models.unwrapped),
    "class list of an assessment": (
        lambda ids: class_scores._class_list(ids.assessment),
        read_models.unwrapped,
    ),
    "who changed entries": (
        lambda ids: audit._newest_changes("gradebook", array_text([ids.entry, *new_ids(199)]), 1, "score"),
        read_models.unwrapped,
    ),
    "entries of a batch": (lambda ids: gradebooks.entries(ids.cohort), rendering._page),
    "an entry": (lambda ids: gradebooks.entry(ids.entry), rendering._record),
    "assessments": (
        lambda ids: assessments.assessments_of_subject(ids.cohort, ids.taught, ids.term),
        rendering._page,
    ),
    "assessments by base subject": (
        lambda ids: assessments.assessments_of_subject(ids.cohort, ids.subject, ids.term),
        rendering._page,
    ),
    "subjects of a cohort": (lambda ids: cohort_subjects.cohort_subjects(ids.cohort), rendering._page),
    "cohorts of a subject": (
        lambda ids: cohort_subjects.cohort_subjects(None, ids.subject),
        rendering._page,
    ),
    "users by name": (lambda ids: users.users(search="da u159 eze"), rendering._page),
    "metrics of a batch": (lambda ids: metrics.metrics(ids.cohort), rendering._record),
}


@pytest.mark.parametrize("name", READS)
def test_no_list_reads_a_whole_table(app, school, name):
    school_id, ids = school
    read, make = READS[name]

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        reading = read(ids)
        statement = reading.template.statement(make)
        page = {"page_number": 0, "page_size": 50, "page_offset": 0}
        scanned, answer = explain(statement, {**reading.values, **page})

    assert answer
    assert not scanned & LARGE, scanned


def test_the_copy_of_a_student_reads_no_large_table_as_a_whole(app, school):
    school_id, ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        reading = personal_data.student_data(ids.student)
        scanned, answer = explain(reading.template.statement(rendering._record), reading.values)

    assert len(json.loads(answer[0][0])["audit"]) > 100
    # Subjects and assessments are not the student's, and few beside the rows of all students.
    assert not scanned & (LARGE - {"assessments", "cohort_subjects"}), scanned


def test_a_metric_sheet_reads_no_large_table_as_a_whole(app, school):
    school_id, ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        statement = CompiledStatement(metrics.class_list(ids.cohort, ids.term, "AFFECTIVE"))
        scanned, answer = explain(statement, {})

    assert len(answer) == 8
    assert all(len(row.scores) == 10 for row in answer)
    assert not scanned & LARGE, scanned


ENTRY_IDS = array_text(new_ids(200))
STORED = {
    "changed": lambda ids, moment: entering._change(
        ids.assessment, ENTRY_IDS, array_text([5] * 200), "a.xlsx", moment
    ),
    "log of changes": lambda ids, moment: entering._log_change(
        ids.assessment, ENTRY_IDS, array_text([5] * 200), ENTRY_IDS, array_text([False] * 200), "{}", moment
    ),
    "removed": lambda ids, _moment: entering._remove(ids.assessment, ENTRY_IDS),
    "log of removals": lambda ids, moment: entering._log_removal(
        ids.assessment, ENTRY_IDS, ENTRY_IDS, moment
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_the_entries_of_a_sheet_are_found_by_their_assessment(app, school, name):
    """However many they are: by their ids alone, all entries of the school would be read for the sheet of a class."""
    school_id, ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id)):
        storing = STORED[name](ids, now())
        statement = storing.template.statement(read_models.unwrapped)
        nodes = plan(statement, statement.parameters(storing.values))

    assert "uq_gradebook_entries_assessment_id_student_id" in {node.get("Index Name") for node in nodes}
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


def test_the_newest_changes_are_read_from_the_end_of_an_index(app, school):
    school_id, ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        reading, _ = READS["who changed entries"]
        read = reading(ids)
        statement = read.template.statement(read_models.unwrapped)
        nodes = plan(statement, statement.parameters(read.values))

    (node,) = [node for node in nodes if node.get("Relation Name") == "audit_entries"]
    assert (node["Scan Direction"], node["Index Name"]) == ("Backward", "ix_audit_entries_entity_id_at_id")


DELETIONS = {
    "session": (sessions.DELETION, "session"),
    "term": (sessions.TERM_DELETION, "term"),
    "cohort": (cohorts.DELETION, "cohort"),
    "batch": (cohorts.BATCH_DELETION, "cohort"),
    "subject": (subjects.DELETION, "subject"),
    "cohort subject": (taught.DELETION, "taught"),
    "student": (students_service.DELETION, "student"),
}


@pytest.mark.parametrize("name", DELETIONS)
def test_deleting_a_record_reads_no_large_table_as_a_whole(app, school, name):
    """Counting the rows that refer to it, and the statements that would delete it with the rows that go along."""
    school_id, ids = school
    deletion, which = DELETIONS[name]
    record_id = getattr(ids, which)

    with app.app_context(), in_transaction(SchoolBinding(school_id)):
        counting = deletion._counted(record_id)
        scanned, (counts,) = explain(counting.template.statement(read_models.unwrapped), counting.values)
        for deleting in deletion_of(deletion.model, record_id):
            statement = deleting.template.statement(read_models.unwrapped)
            nodes = plan(statement, statement.parameters(deleting.values))
            scanned |= {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}

    assert any(counts._mapping[table] for table in deletion._counting)
    assert not scanned & LARGE, scanned


@pytest.mark.parametrize("search", ["dá A/159 Eze", "/15999", "eze 8 a/777", "u15999"])
def test_a_search_of_students_reads_both_indexes(app, school, search):
    school_id, _ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        reading = students.students(search=search)
        statement = reading.template.statement(rendering._page)
        given = {**reading.values, "page_number": 0, "page_size": 50, "page_offset": 0}
        indexes = {node.get("Index Name") for node in plan(statement, statement.parameters(given))}
        answer = db.session.connection().exec_driver_sql(statement.sql, statement.parameters(given)).first()

    assert {"ix_students_search", "ix_users_search"} <= indexes
    names = [f"ada eze {n} a/{8 * c + n}" for c in range(1, 2001) for n in range(1, 9)]
    words = search.lower().replace("á", "a").split()
    matches = [name for name in names if all(word in name for word in words)]
    assert json.loads(answer[0])["total"] == len(matches)


@pytest.mark.parametrize(
    ("read", "index"),
    [(students.students, "ix_users_name_sort_key"), (users.users, "ix_users_username_sort_key")],
)
@pytest.mark.parametrize("number", [0, 2])
def test_a_page_of_people_is_read_in_the_order_of_an_index(app, school, read, index, number):
    school_id, _ids = school

    with app.app_context(), in_transaction(SchoolBinding(school_id, read_only=True)):
        reading = read()
        statement = reading.template.statement(rendering._page)
        page = {"page_number": number, "page_size": 50, "page_offset": 50 * number}
        nodes = plan(statement, statement.parameters({**reading.values, **page}))

    assert index in {node.get("Index Name") for node in nodes}
    # Only people of one name are sorted.
    whole = [node["Sort Key"] for node in nodes if node["Node Type"] == "Sort"]
    assert not any("sort_key" in key for keys in whole for key in keys), whole


def explain(statement, given):
    """Return the tables that a statement reads as a whole, and its rows."""
    values = statement.parameters(given)
    scans = {"Seq Scan", "Parallel Seq Scan"}
    tables = {node["Relation Name"] for node in plan(statement, values) if node["Node Type"] in scans}
    return tables, db.session.connection().exec_driver_sql(statement.sql, values).all()


def plan(statement, values):
    """List the nodes of a statement's plan."""
    explained = db.session.connection().exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement.sql}", values)
    nodes = [explained.scalar_one()[0]["Plan"]]
    for node in nodes:
        # On a node of Citus, the names of shards.
        node.update({name: re.sub(r"_\d+$", "", node[name]) for name in NAMES & node.keys()})
        nodes.extend(node.get("Plans", ()))
    return nodes
