"""Records of an export equal the answers of the GETs, byte for byte; members left out are named here."""

from __future__ import annotations

import json

import pytest

from school_service.features.exchange.copies.resources import NAMES, RESOURCES
from school_service.features.scores.models import OF_LEVEL
from tests.features.attendance.classes import Kept
from tests.features.observations.comments.sheets import Said
from tests.features.personal_data.people import make_employee, make_graduate, make_guardian, make_student
from tests.features.results.promotions.ends import End

# The GET that shows a record, of the members of the record.
PATHS = {
    "roles": "/roles/{id}",
    "users": "/users/{id}",
    "sessions": "/sessions/{id}",
    "terms": "/terms/{id}",
    "school-days": "/school-days?from={date}&to={date}",
    "classrooms": "/classrooms/{id}",
    "subjects": "/templates",
    "cohorts": "/cohorts/{id}",
    "batches": "/batches/{id}",
    "cohort-subjects": "/cohort-subjects?batch={cohort}",
    "students": "/students/{id}",
    "guardians": "/guardians/{id}",
    "student-guardians": "/students/{student}/guardians",
    "contacts": "/contacts?user_id={owner}",
    "employees": "/employees/{id}",
    "bank-accounts": "/employees/{employee}/bank-account",
    "next-of-kin": "/employees/{employee}/nextofkin",
    "form-teachers": "/teachers/{batch}",
    "subject-teachers": "/subject-teachers?cohort_subject={cohort_subject}",
    "assessments": "/assessments/{id}",
    "scores": "/gradebooks/{id}",
    "absences": "/assessments/{assessment}/absences",
    "registers": "/registers?batch={batch}&date={date}&part={part}",
    "metric-definitions": "/metric-definitions/{id}",
    "metrics": "/metrics/{id}",
    "comments": "/comments?batch={batch}&term={term}",
    "publications": "/publications/{id}",
    "report-cards": "/publications/{publication}/cards",
    "promotions": "/promotions/{id}",
    "graduates": "/graduates",
}
# The member of a record that is the list of the GET.
LISTS = {
    "student-guardians": "guardians",
    "subject-teachers": "teachers",
    "absences": "absences",
}
# No GET shows these as they are stored, but among other things.
WITHOUT_GET = {"enrollments", "subject-enrollments", "submissions"}
SETTINGS = {
    "letterhead": "/letterhead",
    "level-settings": "/result-settings?level=Nursery",
    "grade-scales": "/grade-configs?level=Nursery",
}

# Members of a GET that no record has, by resource, nested ones too: they are another record's, an actor's, computed, or
# of the day or the request. Names of others stand in place of their ids in `cohorts`, `metrics` and `graduates`.
LEFT_OUT = {
    "users": {"photo", "school", "student"},
    "classrooms": {"school"},
    "school-days": {"parts", "term"},
    "subjects": {"school"},
    "cohorts": {"classroom"},
    "cohort-subjects": {"subject", "code"},
    "students": {"batch", "cohort", "guardian", "photo"},
    "guardians": {"children"},
    "student-guardians": {"full_name", "phone_number", "email_address", "physical_address", "user"},
    "employees": {"bank_details", "next_of_kin", "username", "role"},
    "form-teachers": {"batch_id", "first_name", "last_name", "image_url"},
    "subject-teachers": {
        *(
            "cohort_subject",
            "base",
            "subject",
            "code",
            "cohort",
            "classroom",
            "session",
            "batch_name",
            "title",
        ),
        *("first_name", "last_name"),
    },
    "scores": {"assessment_category", "subject"},
    "registers": {
        *("batch_name", "subject", "changed_by_name", "by", "counts"),
        *("enrolled", "present", "late", "absent", "excused", "unmarked"),
    },
    "metrics": {"student_name", "admission_number", "term", "metric_scores"},
    "publications": {
        *("batch_name", "published_by", "published_by_name", "reopened_by_name"),
        *("students", "changed", "class_figures_changed"),
    },
    "report-cards": {"version"},
    "promotions": {"committed_by_name", "undone_by_name", "counts", "by_name"},
    "graduates": {"student", "school"},
}


def read(text):
    """Read JSON, with each number as it is written."""
    return json.loads(text, parse_float=str, parse_int=str)


def got(api, path):
    response = api.get(path)
    assert response.status_code == 200, (path, response.get_data(as_text=True))
    body = read(response.get_data(as_text=True))
    return body["data"] if isinstance(body, dict) and "data" in body else body


def differing(shown, record, left_out, place):
    """Say which members of a GET are not the same in a record, where an object of another record is its id."""
    if isinstance(shown, dict) and isinstance(record, str):
        shown = shown.get("id", shown)
    if isinstance(shown, dict) and isinstance(record, dict):
        return [
            difference
            for name in shown.keys() - left_out
            for difference in differing(shown[name], record.get(name, ...), left_out, f"{place}.{name}")
        ]
    if isinstance(shown, list) and isinstance(record, list):
        unlike = [
            member for member in shown if all(differing(member, each, left_out, place) for each in record)
        ]
        return [(place, shown, record)] if unlike or len(shown) != len(record) else []
    return [] if shown == record else [(place, shown, record)]


def of_record(name, shown, record):
    """Find the record in the answer of its GET; None if the answer is of another one."""
    if isinstance(shown, dict):
        same = name != "contacts" or shown["id"] == record["id"]
        return shown if same else None
    if name in LISTS:
        return {LISTS[name]: shown}
    key = {"comments": "student", "report-cards": "student", "school-days": "date"}.get(name, "id")
    return next(row for row in shown if differing(row[key], record[key], set(), name) == [])


def everything(make):
    """Make records of every resource."""
    api = make.api
    for build in (make_student, make_employee, make_guardian, make_graduate):
        build(make)
    end = End(make, 2, 1)
    end.published()
    promotion = end.promoted()
    api.ok(end.amend(promotion, end.everybody[0], "GRADUATED"))
    said = Said(make, 2)
    api.ok(said.put(*({"student": student, "times_present": 3} for student in said.students.values())))
    kept = Kept(make, 2)
    kept.take()
    kept.close(1, name="A day of rest")
    make.classroom(level="Nursery")
    api.ok(api.patch("/result-settings?level=Nursery", {"pass_mark": 50.5, "marks": False}))
    band = {"lower_threshold": 0, "upper_threshold": 100, "letter_grade": "P", "remarks": "x"}
    api.ok(api.put("/grade-configs?level=Nursery", [band]))
    api.ok(api.put("/promotion-rules", [{"minimum_average": 45}]))
    for name in ("departments", "positions"):
        api.ok(api.post(f"/{name}", {"name": "Latin"}))


@pytest.fixture
def records(committing):
    """All records of an export."""
    everything(committing)
    lines = committing.api.get("/export").get_data(as_text=True).splitlines()[1:]
    return [(line["resource"], line["id"], line["record"]) for line in map(read, lines)]


def test_each_member_equals_the_member_of_the_get(committing, records):
    wrong, compared = [], set()
    for name, _, record in records:
        if name in WITHOUT_GET or name == "settings":
            continue
        shown = of_record(name, got(committing.api, PATHS[name].format(**record)), record)
        if shown is not None:
            compared.add(name)
            part = record["teachers"][-1] if name == "form-teachers" else record
            wrong += differing(shown, part, LEFT_OUT.get(name, set()), name)
    assert wrong == []
    assert compared == set(NAMES) - WITHOUT_GET - {"settings"} == PATHS.keys()


def test_each_member_of_settings_equals_the_member_of_the_get(committing, records):
    settings = {key: record for name, key, record in records if name == "settings"}

    assert settings.keys() == {resource.only for resource in RESOURCES if resource.only is not None}
    for name, record in settings.items():
        shown = got(committing.api, SETTINGS.get(name, f"/{name}"))
        if name == "level-settings":
            assert record == [{"level": "Nursery", **{name: shown[name] for name in OF_LEVEL}}]
        elif name == "grade-scales":
            bands = [{member: each[member] for member in each if member != "id"} for each in shown]
            assert [(scale["level"], len(scale["bands"])) for scale in record] == [("Nursery", 1)]
            assert differing(bands, record[0]["bands"], set(), name) == []
        else:
            assert differing(shown, record, {"logo", "signature"}, name) == []


def test_lists_and_submissions_are_as_they_are_stored(committing, records):
    api, cohorts = (
        committing.api,
        {key: subject["cohort"] for name, key, subject in records if name == "cohort-subjects"},
    )
    for name, key, record in records:
        if name == "enrollments":
            stored = api.ok(api.get(f"/students/{key}/data"))["enrollments"]
            assert [enrollment["id"] for enrollment in record["enrollments"]] == [
                enrollment["id"] for enrollment in stored
            ]
        elif name == "subject-enrollments":
            stored = api.ok(api.get(f"/students/{key}/data"))["subject_enrollments"]
            taken = {subject["cohort_subject"] for subject in record["subjects"]}
            assert taken == {subject["cohort_subject_id"] for subject in stored}
        elif name == "submissions":
            assert key == f"{record['cohort_subject']}:{record['term']}"
            query = {"cohort": cohorts[record["cohort_subject"]], "term": record["term"]}
            shown = [
                (submission["batch"], submission["submitted_at"])
                for submission in api.ok(api.get("/submissions", query_string=query))
                if submission["cohort_subject"] == record["cohort_subject"]
                and submission["state"] == "SUBMITTED"
            ]
            assert sorted(shown) == [(batch["batch"], batch["submitted_at"]) for batch in record["batches"]]


def test_no_actor_and_no_picture_is_in_a_record(records):
    text = json.dumps([record for _, _, record in records if "card" not in record])

    assert "_by_name" not in text
    assert "/photo?v=" not in text
