"""Permission, reach and the record are judged before a file is read: for every operation that takes one."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest

from school_service.features.photos import service as photos
from school_service.features.school.letterheads import service as letterheads
from school_service.sheets import uploads

# By operation, the name of the file in the form, the permission, and the address with the record that it is of.
TAKING_FILES = {
    "POST /registers/upload-sheet": (
        "register_sheet",
        "write:attendance",
        "/registers/upload-sheet?batch={}",
    ),
    "POST /metrics/upload-sheet": ("metric_sheet", "write:metrics", "/metrics/upload-sheet?batchId={}"),
    "POST /comments/upload-sheet": ("comments_sheet", "write:metrics", "/comments/upload-sheet?batch={}"),
    "POST /assessments/{id}/scoresheet": ("scoresheet", "write:gradebooks", "/assessments/{}/scoresheet"),
    "POST /cohort-subjects/{id}/mark-sheet": (
        "mark_sheet",
        "write:gradebooks",
        "/cohort-subjects/{}/mark-sheet?batch={arm}&term=FIRST",
    ),
    "PUT /users/{id}/photo": ("image", "write:users", "/users/{}/photo"),
    "POST /employees/import-sheet": ("sheet", "write:employees", "/employees/import-sheet"),
    "POST /students/import-sheet": ("sheet", "write:students", "/students/import-sheet"),
    "POST /students/update-sheet": ("sheet", "write:students", "/students/update-sheet"),
    "PUT /letterhead/logo": ("image", "write:settings", "/letterhead/logo"),
    "PUT /letterhead/signature": ("image", "write:settings", "/letterhead/signature"),
}
OF_A_RECORD = [operation for operation, (*_, address) in TAKING_FILES.items() if "{}" in address]


@pytest.fixture
def was_read(monkeypatch):
    """The places that have begun to read a file; reading goes on as it would."""
    modules = []
    for module, name in ((uploads, "open_sheets"), (photos, "read_format"), (letterheads, "read_format")):
        original = getattr(module, name)

        def noticed(*arguments, original=original, module=module):
            modules.append(module.__name__)
            return original(*arguments)

        monkeypatch.setattr(module, name, noticed)
    return modules


def send(api, operation, record="", *, arm="", query="", content=b"no file of any kind"):
    name, _, address = TAKING_FILES[operation]
    return api.request(
        operation.split()[0],
        f"{address.format(record, arm=arm or record)}{query}",
        data={name: (BytesIO(content), "file")},
        content_type="multipart/form-data",
    )


def error_of(answer):
    return answer.status_code, {**answer.get_json(), "request_id": None}


def test_every_operation_that_takes_a_file_is_here(document):
    taking = {
        f"{method} {path}"
        for (method, path), operation in document.operations().items()
        if "multipart/form-data" in operation.get("requestBody", {}).get("content", {})
    }

    assert taking == {*TAKING_FILES}


@pytest.mark.parametrize("operation", TAKING_FILES)
def test_a_file_is_read_for_a_caller_who_may_send_it(make, arms, was_read, operation):
    record = {
        "assessments": make.assessment(arms.subject, arms.term)["id"],
        "cohort-subjects": arms.subject["id"],
        "users": make.user()["user"]["id"],
    }

    answer = send(make.api, operation, record.get(operation.split("/")[1], arms.a), arm=arms.a)

    assert (answer.status_code, len(was_read)) == (422, 1)


@pytest.mark.parametrize("operation", TAKING_FILES)
def test_without_the_permission_no_file_is_read(make, arms, was_read, operation):
    every = {permission for _, permission, _ in TAKING_FILES.values()}

    answer = send(make.caller(*every - {TAKING_FILES[operation][1]}), operation, arms.a)

    assert (answer.status_code, was_read) == (403, [])


@pytest.mark.parametrize("operation", OF_A_RECORD)
def test_for_a_record_that_is_not_there_no_file_is_read(make, make_other, was_read, operation):
    theirs = make_other.taught()
    foreign = {
        "assessments": make_other.assessment(theirs.subject, theirs.term)["id"],
        "cohort-subjects": theirs.subject["id"],
        "users": make_other.user()["user"]["id"],
    }

    unknown = send(make.api, operation, uuid4())

    assert unknown.status_code in {404, 422}
    assert "no such" in unknown.get_json()["message"].casefold()
    of_other_school = foreign.get(operation.split("/")[1], make_other.cohort()["id"])
    assert error_of(send(make.api, operation, of_other_school)) == error_of(unknown)
    assert was_read == []


@pytest.mark.parametrize("operation", [operation for operation in OF_A_RECORD if "users" not in operation])
def test_for_a_record_out_of_reach_no_file_is_read(make, arms, own, was_read, operation):
    teacher = own.subject_teacher(arms.other, arms.b)
    records = {
        "assessments": make.assessment(arms.subject, arms.term)["id"],
        "cohort-subjects": arms.subject["id"],
    }

    answer = send(teacher, operation, records.get(operation.split("/")[1], arms.a))

    assert error_of(answer) == error_of(send(teacher, operation, uuid4()))
    assert was_read == []


def test_for_an_arm_of_another_cohort_no_score_sheet_is_read(make, arms, was_read):
    assessment = make.assessment(arms.subject, arms.term)["id"]
    other = make.cohort()["id"]

    answer = send(make.api, "POST /assessments/{id}/scoresheet", assessment, query=f"?batch={other}")

    assert answer.get_json()["message"] == "batch: is not of the assessment's cohort"
    assert was_read == []


def test_the_photo_of_a_user_with_more_permissions_is_not_read(make, was_read):
    administrator = make.caller("write:users", "delete:settings").user["id"]

    answer = send(make.caller("write:users"), "PUT /users/{id}/photo", administrator)

    assert (answer.status_code, was_read) == (403, [])


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_caller_who_may_enroll_nobody_is_told_so_before_any_error_of_the_rows(make, query):
    rows = b"first_name,last_name,admission_number,gender,class\nAda,,X/1,neither,JSS 1\n"

    answer = send(make.caller("write:students"), "POST /students/import-sheet", query=query, content=rows)

    assert answer.status_code == 403
    assert answer.get_json()["message"] == "Enrolling students needs the permission write:cohorts."
