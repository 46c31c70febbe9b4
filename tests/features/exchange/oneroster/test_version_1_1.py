"""The export in the form of OneRoster 1.1, held against its tables and against the export in the form of 1.2."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from zipfile import ZipFile

import pytest

from school_service.features.exchange.oneroster import standard
from school_service.features.exchange.oneroster.service import derived_id
from tests.features.exchange.oneroster.csv_binding import TABLES_1_1, columns_of, read_zip
from tests.features.exchange.oneroster.test_export import PATH, account_of, publish, taught_physics
from tests.features.exchange.oneroster.test_export import export as export_1_2
from tests.prepared import prepared_for_each

original, taught = prepared_for_each(taught_physics)


@pytest.fixture
def scored(api, make, taught):
    """A school that has rows for each file: classes with teachers, a score, an absence, a published result."""
    _, cohort, subject, term, (first, second) = taught
    api.ok(api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": make.employee()["id"]}))
    assessment = make.assessment(subject, term)
    make.entry(assessment, first, cohort["id"], score=0.5)
    api.ok(make.absences(assessment, {second: "EXCUSED"}))
    publish(api, taught, {first: (76.5, "A1")})
    return taught


def export(api):
    answer = api.get(f"{PATH}?version=1.1")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return read_zip(answer.data, "1.1")


def test_the_table_of_the_standard_is_the_programs():
    assert {
        name: tuple(column for column, _, _ in columns_of(name, "1.1")) for name in TABLES_1_1
    } == standard.COLUMNS_1_1


def test_headers_vocabularies_types_and_references_are_the_standards_for_an_empty_school_too(
    api, other_api, scored
):
    _, full = export(api)  # reading a set holds it against the standard
    _, empty = export(other_api)

    assert set(full) == set(empty) == set(TABLES_1_1)
    assert all(full.values())
    assert not any(empty.values())


WRONG = (
    ("manifest", "oneroster.version,1.1", "oneroster.version,1.2"),
    ("manifest", "file.users,bulk", "file.users,absent"),
    ("users", ",student,", ",siteAdministrator,"),
    ("users", "orgSourcedIds,role", "role,orgSourcedIds"),
    ("lineItems", "gradingPeriodSourcedId", "academicSessionSourcedId"),
    ("results", ",0.5,", ",,"),
    ("classes", 'Science",,', 'Science",JSS 1,'),
)


def test_a_set_against_1_1_is_recognised(api, scored):
    with ZipFile(BytesIO(api.get(f"{PATH}?version=1.1").data)) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    for file, old, new in WRONG:
        assert old in texts[f"{file}.csv"]
        changed = {**texts, f"{file}.csv": texts[f"{file}.csv"].replace(old, new)}
        content = BytesIO()
        with ZipFile(content, "w") as archive:
            for name, text in changed.items():
                archive.writestr(name, text)

        with pytest.raises((AssertionError, ValueError, KeyError, csv.Error)):
            read_zip(content.getvalue(), "1.1")


def test_a_record_has_the_same_id_and_the_same_values_as_in_1_2(api, scored):
    _, of_1_2 = export_1_2(api)
    _, of_1_1 = export(api)

    for file, rows in of_1_1.items():
        others = {row["sourcedId"]: row for row in of_1_2[file]}
        if file == "results":
            others = {name: row for name, row in others.items() if row["score"]}
        assert {row["sourcedId"] for row in rows} == set(others), file
        for row in rows:
            same = (set(row) & set(others[row["sourcedId"]])) - {"grades"}
            assert len(same) >= 3
            assert {name: row[name] for name in same} == {
                name: others[row["sourcedId"]][name] for name in same
            }
            assert not row.get("grades")


def test_two_exports_have_the_same_ids(api, scored):
    first, second = (export(api)[1] for _ in range(2))

    assert first == second


def test_an_absence_is_no_result(api, scored):
    _, files = export(api)

    assert sorted(row["score"] for row in files["results"]) == ["0.5", "76.5"]
    assert {row["scoreStatus"] for row in files["results"]} == {"fully graded"}


def test_a_user_has_their_primary_role_and_the_school(api, make, taught):
    employee = make.employee()
    teacher = make.account_of(employee)["id"]
    api.ok(api.patch(f"/teachers/{taught[1]['id']}/add_to_batch", {"teacher_id": employee["id"]}))
    (role,) = [each for each in api.ok(api.get("/roles")) if each["name"] == "Administrator"]
    api.ok(api.put(f"/users/{teacher}/roles", {"role": role["id"]}))

    users = {row["sourcedId"]: row for row in export(api)[1]["users"]}

    assert users[teacher]["role"] == "teacher"
    assert users[account_of(api, taught[4][0])]["role"] == "student"
    assert {row["orgSourcedIds"] for row in users.values()} == {str(api.school)}
    assert "administrator" in {row["role"] for row in users.values()}


def test_a_term_is_the_grading_period(api, scored):
    _, files = export(api)

    assert {row["gradingPeriodSourcedId"] for row in files["lineItems"]} == {scored[3]["id"]}


def test_files_follow_the_permissions(api, make, scored):
    manifest, files = export(make.caller("read:users", "read:students"))

    assert set(files) == {"orgs", "users", "demographics"}
    assert manifest["file.results"] == manifest["file.enrollments"] == "absent"
    assert {row["email"] for row in files["users"]} == {""}


def test_nothing_is_of_the_other_school(api, other_api, scored):
    ids = {row["sourcedId"] for rows in export(api)[1].values() for row in rows}
    others = {row["sourcedId"] for rows in export(other_api)[1].values() for row in rows}

    assert ids
    assert ids.isdisjoint(others)
    assert api.using(school=other_api.school).get(f"{PATH}?version=1.1").status_code == 403


@pytest.mark.parametrize("version", ["1.0", "1", "1.1.1", "2.0", "", "1.2 "])
def test_a_version_that_is_not_written_is_refused(api, taught, version):
    answer = api.get(PATH, query_string={"version": version})

    assert answer.status_code == (200 if version.strip() == "1.2" else 422)


def test_an_export_is_a_statement_a_file_and_its_version_is_in_the_audit_log(api, taught, messages):
    with messages() as sent:
        export(api)

    assert sum(message.startswith("COPY (") for message in sent) == len(TABLES_1_1)
    (entry,) = api.ok(api.get("/audit?entity=export"))["data"]
    assert entry["new"]["format"] == "OneRoster 1.1"
    assert set(entry["new"]["files"]) == set(TABLES_1_1)


@pytest.mark.parametrize(
    ("others", "made"),
    [
        (b"/student", b"1a58daa4-2a89-5fa3-a9a2-c0d56c2325be"),
        (b"/5b6c2ad0-4d51-4d39-9f0e-2f0c5ce3b6a1", b"64d03d60-14b0-52e2-9bc2-5e43813a047f"),
        (
            b"/5b6c2ad0-4d51-4d39-9f0e-2f0c5ce3b6a1/c0a8f0de-3c1f-4f8e-9b1e-5a0f6f5f7d22",
            b"ef1a9c31-3488-52fe-ba4f-1bfb7ee4450a",
        ),
    ],
)
def test_an_id_that_is_made_of_others_is_the_same_in_every_release(others, made):
    assert derived_id(b"0b0f3a3e-8b1f-4a77-8f5a-9b6c8a0b9d11", others) == made


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_a_name_that_begins_as_a_formula_is_as_it_is(api, make, taught, version):
    names = {f"{sign}1+1" for sign in "=+-@"}
    make.enrolled(taught[1], *(make.student(first_name=name) for name in names))

    with ZipFile(BytesIO(api.get(f"{PATH}?version={version}").data)) as archive:
        rows = list(csv.DictReader(StringIO(archive.read("users.csv").decode(), newline="")))

    assert names <= {row["givenName"] for row in rows}


# The files that the plugin enrol_oneroster of Moodle reads.
NAMED = ("academicSessions", "orgs", "classes", "users", "enrollments")


def contents(api, **query):
    """The files of a zip as they are, and the manifest's states by file."""
    answer = api.get(PATH, query_string={"version": "1.1", **query})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    with ZipFile(BytesIO(answer.data)) as archive:
        files = {name.removesuffix(".csv"): archive.read(name) for name in archive.namelist()}
    rows = csv.reader(StringIO(files.pop("manifest").decode(), newline=""))
    return {name[5:]: state for name, state in rows if name.startswith("file.")}, files


def test_the_named_files_are_as_in_the_whole_export_and_all_others_are_absent(api, scored, messages):
    states, whole = contents(api)

    with messages() as sent:
        named, files = contents(api, file=NAMED)

    assert sum(message.startswith("COPY (") for message in sent) == len(NAMED)
    assert files == {name: whole[name] for name in NAMED}
    assert named == {name: "bulk" if name in NAMED else "absent" for name in states}
    entries = api.ok(api.get("/audit?entity=export"))["data"]
    assert sorted(sorted(entry["new"]["files"]) for entry in entries) == sorted(
        [sorted(NAMED), sorted(TABLES_1_1)]
    )


@pytest.mark.parametrize(
    ("version", "names", "there"),
    [
        ("1.2", ["roles", "users", "users"], {"roles", "users"}),
        ("1.1", ["roles"], set()),
        ("1.1", ["results"], {"results"}),
    ],
)
def test_a_name_is_given_once_or_more_and_a_file_that_the_version_has_not_is_not_there(
    api, taught, version, names, there
):
    states, files = contents(api, version=version, file=names)

    assert set(files) == {name for name, state in states.items() if state == "bulk"} == there


def test_a_named_file_needs_its_permission(api, make, scored):
    _, files = contents(make.caller("read:users"), file=["users", "results", "demographics"])

    assert set(files) == {"users"}


@pytest.mark.parametrize("names", [["manifest"], ["users", "Users"], [""], ["users.csv"], ["users"] * 12])
def test_a_file_that_no_version_has_and_too_many_are_refused(api, taught, names):
    answer = api.get(PATH, query_string={"version": "1.1", "file": names})

    assert (answer.status_code, list(answer.json["errors"]["query"])) == (422, ["file"])
