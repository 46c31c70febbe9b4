"""Students, cohorts, arms and subjects, as a form teacher and a student reach them."""

from __future__ import annotations

from csv import DictReader

import pytest

from school_service.auth.tokens import issue_client_token
from tests.auth.conftest import grant
from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import error_of, ids

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")

__all__ = ["grant"]


class TestFormTeachers:
    def test_they_reach_the_present_students_of_their_batch(self, arms, own, make):
        teacher = own.form_teacher(arms.a)
        make.student()

        assert ids(teacher, "/students") == set(arms.in_a)
        assert ids(teacher, f"/cohorts/{arms.a}/students") == set(arms.in_a)
        page = teacher.ok(teacher.get("/students?pageSize=1"))
        assert (page["total"], page["total_pages"]) == (2, 2)

    def test_a_student_is_shown_whole(self, arms, own, make):
        teacher = own.form_teacher(arms.a)
        (student, _) = arms.in_a

        assert teacher.ok(teacher.get(f"/students/{student}")) == make.api.ok(
            make.api.get(f"/students/{student}")
        )

    def test_the_class_list_has_their_batch_without_reasons_for_leaving(self, arms, own, make):
        teacher = own.form_teacher(arms.a)
        (student, _) = arms.in_a
        leaving = {"status": "WITHDRAWN", "left_on": "2025-10-01", "leaving_reason": "moved away"}
        make.api.ok(make.api.patch(f"/students/{student}", {**leaving, "former_school": "Hill School"}))

        def listed(api, **place):
            answer = api.get("/students/update-sheet", query_string={**place, "format": "csv"})
            return {row["id"]: row for row in DictReader(answer.data.decode("utf-8-sig").splitlines())}

        for place in (
            {"batch": arms.a},
            {"cohort": arms.cohort["id"]},
            {"session": arms.cohort["session"]},
        ):
            assert set(listed(teacher, **place)) == set(arms.in_a)
        of_school, shown = (listed(api, batch=arms.a) for api in (make.api, teacher))
        assert of_school[student]["leaving_reason"] == "moved away"
        of_school[student]["leaving_reason"] = ""
        assert shown == of_school

    def test_a_record_out_of_reach_is_answered_as_an_unknown_id(self, arms, own):
        teacher = own.form_teacher(arms.a)
        for path in (
            "/students/{}",
            "/cohorts/{}",
            "/cohort-subjects/{}",
            "/teachers/{}",
            "/cohorts/{}/batches",
        ):
            other, unknown = (teacher.get(path.format(record)) for record in (arms.in_b[0], UNKNOWN_ID))
            assert error_of(other) == error_of(unknown)
            assert other.status_code == 404
        for query in ("/students?batch={}", "/cohort-subjects?batch={}", "/students/update-sheet?batch={}"):
            other, unknown = (teacher.get(query.format(record)) for record in (arms.b, UNKNOWN_ID))
            assert error_of(other) == error_of(unknown)
            assert other.status_code == 422

    def test_they_reach_their_arm_and_its_subjects(self, arms, own, make):
        teacher = own.form_teacher(arms.a)
        make.cohort_subject()

        assert ids(teacher, "/cohorts") == {arms.cohort["id"]}
        assert ids(teacher, f"/cohorts/{arms.a}/batches") == {arms.a}
        assert ids(teacher, "/cohort-subjects") == {arms.subject["id"], arms.other["id"]}
        assert teacher.ok(teacher.get(f"/teachers/{arms.a}"))["batch_id"] == arms.a
        assert teacher.get(f"/teachers/{arms.b}").status_code == 404

    def test_a_student_who_leaves_the_batch_is_out_of_reach(self, arms, own, make):
        teacher = own.form_teacher(arms.a)
        first, second = arms.in_a
        make.enrolled(arms.cohort, {"id": first}, batch=arms.b)

        assert ids(teacher, "/students") == {second}


class TestSubjectTeachers:
    def test_they_reach_the_takers_of_the_subject_in_their_arm(self, arms, own, make):
        of_a, of_all = own.subject_teacher(arms.subject, arms.a), own.subject_teacher(arms.subject, None)
        elective = make.cohort_subject(arms.cohort, elective=True)
        make.api.ok(make.api.patch(f"/cohort-subjects/{elective['id']}/students", arms.in_b))
        of_elective = own.subject_teacher(elective, None)

        assert ids(of_a, "/students") == set(arms.in_a)
        assert ids(of_all, "/students") == {*arms.in_a, *arms.in_b}
        assert ids(of_elective, "/students") == set(arms.in_b)
        assert ids(of_a, "/cohort-subjects") == {arms.subject["id"]}
        assert ids(of_a, f"/cohorts/{arms.a}/batches") == {arms.a}
        assert ids(of_all, f"/cohorts/{arms.a}/batches") == {arms.a, arms.b}
        assert ids(of_a, "/subject-teachers") < ids(make.api, "/subject-teachers")

    def test_neither_birthday_nor_guardian_is_told_them(self, arms, own, make):
        student = arms.in_a[0]
        api = make.api
        guardian = {
            "full_name": "Ngozi Abara",
            "relationship": "mother",
            "phone_number": "+234 803 1",
            "email_address": "ngozi@example.com",
        }
        api.ok(api.patch(f"/students/{student}", {"guardian": guardian, "dob": "2012-03-04"}))
        teacher = own.subject_teacher(arms.subject, arms.a)

        shown = teacher.ok(teacher.get(f"/students/{student}"))

        assert shown == {**api.ok(api.get(f"/students/{student}")), "dob": None, "guardian": None}

    def test_the_reason_for_leaving_is_the_schools_and_the_former_school_no_subject_teachers(
        self, arms, own, make
    ):
        api, student = make.api, arms.in_a[0]
        facts = {"admitted_on": "2020-09-14", "former_school": "Corona School", "left_on": "2026-03-27"}
        guardian = make.guardian({"id": student})
        callers = {
            "T": own.subject_teacher(arms.subject, arms.a),
            "F": own.form_teacher(arms.a),
            "S": own.student(student, "read:students", "read:cohorts"),
            "G": own.guardian(guardian["id"], "read:students", "read:cohorts"),
        }
        left = {**facts, "status": "WITHDRAWN", "leaving_reason": "Fees"}
        assert api.ok(api.patch(f"/students/{student}", left))["leaving_reason"] == "Fees"

        for relation, caller in callers.items():
            for path in (f"/students/{student}", "/students", f"/cohorts/{arms.a}/students"):
                body = caller.ok(caller.get(path))
                listed = body.get("data", [body]) if isinstance(body, dict) else body
                (shown,) = [row for row in listed if row["id"] == student]
                assert {name: shown[name] for name in facts} == {
                    **facts,
                    **({"former_school": None} if relation == "T" else {}),
                }, (relation, path)
                assert shown["leaving_reason"] is None, (relation, path)


class TestStudents:
    def test_they_reach_themselves(self, arms, own, make):
        student = own.student(arms.in_a[0])

        assert ids(student, "/students") == {arms.in_a[0]}
        assert ids(student, "/cohorts") == {arms.cohort["id"]}
        assert ids(student, f"/cohorts/{arms.a}/batches") == {arms.a}
        assert ids(student, "/cohort-subjects") == {arms.subject["id"], arms.other["id"]}
        assert student.get(f"/students/{arms.in_a[1]}").status_code == 404

    def test_their_guardian_is_not_shown_to_them(self, arms, own, make):
        api, student_id = make.api, arms.in_a[0]
        guardian = {
            "full_name": "Ngozi Abara",
            "relationship": "mother",
            "phone_number": "+234 803 1",
            "email_address": "ngozi@example.com",
        }
        api.ok(api.patch(f"/students/{student_id}", {"guardian": guardian, "dob": "2012-03-04"}))

        shown = own.student(student_id)
        shown = shown.ok(shown.get(f"/students/{student_id}"))

        assert (shown["dob"], shown["guardian"]) == ("2012-03-04", None)


def test_a_caller_without_relation_reaches_nothing(arms, own):
    _, nobody = own.teacher()

    for path in ("/students", "/cohorts", "/cohort-subjects"):
        assert ids(nobody, path) == set()


def test_reference_data_are_everybodys(arms, own, make):
    _, nobody = own.teacher()

    for path in ("/classrooms", "/sessions", "/terms", "/templates", "/departments", "/settings"):
        assert nobody.ok(nobody.get(path)) == make.api.ok(make.api.get(path))


@pytest.mark.parametrize("path", ["/graduates", "/audit", "/roles", "/permissions", "/letterhead/signature"])
def test_an_operation_without_a_meaning_of_own_is_refused(own, path):
    _, teacher = own.teacher()

    answer = teacher.get(path)

    assert answer.status_code == 403
    assert answer.get_json()["message"].endswith("for the whole school.")


def test_a_permission_for_the_whole_school_is_the_wider_one(arms, own, make):
    employee, teacher = own.teacher("read:students", "read:cohorts")
    assert ids(teacher, "/students") == set()

    user = make.account_of(employee)
    role = make.role("read:students")
    make.api.ok(make.api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

    assert ids(teacher, "/students") >= {*arms.in_a, *arms.in_b}
    assert ids(teacher, "/cohorts") == set()

    make.api.ok(make.api.delete(f"/users/{user['id']}/roles/{role['id']}"))
    assert ids(teacher, "/students") == set()


def test_of_several_permissions_one_that_is_own_makes_the_operation_own(arms, make, own):
    user = make.user()["user"]
    own.caller(user, "write:students", reach="SCHOOL")
    clerk = own.caller(user, "write:users")

    answer = clerk.delete(f"/students/{arms.in_a[0]}/data")

    words = "This needs the permission write:users for the whole school."
    assert (answer.status_code, answer.get_json()["message"]) == (403, words)


class TestMine:
    def test_a_caller_who_reaches_the_whole_school_may_ask_for_their_own(self, arms, own, make, messages):
        employee = make.employee()
        own.assign(employee, arms.subject, arms.a)
        teacher = own.caller(make.account_of(employee), "read:students", "read:cohorts", reach="SCHOOL")
        make.cohort()

        assert ids(teacher, "/students?mine=true") == set(arms.in_a)
        assert ids(teacher, "/students?mine=false") >= {*arms.in_a, *arms.in_b}
        assert ids(teacher, "/cohorts?mine=true") == {arms.cohort["id"]}
        assert ids(teacher, "/cohorts") > {arms.cohort["id"]}
        assert teacher.get("/cohort-subjects?mine=true").status_code == 403
        with messages() as sent:
            teacher.ok(teacher.get("/students?mine=true"))
        assert len(sent) == 1
        for wrong in ("maybe", "", "TRUE"):
            assert teacher.get(f"/students?mine={wrong}").status_code == 422

    def test_mine_changes_nothing_for_a_caller_whose_permission_is_own(self, arms, own):
        teacher = own.subject_teacher(arms.subject, arms.a)

        assert ids(teacher, "/students?mine=true") == ids(teacher, "/students") == set(arms.in_a)

    def test_a_client_has_no_records_of_its_own(self, api, grant, place):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:students"])
        key = api.app.extensions["school-service"].verifier.key
        client = api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])

        assert client.get("/students?mine=true").status_code == 422
        assert client.get("/students?mine=false").status_code == 200


class TestTheIdOfACohort:
    """Its first arm has the same id; a teacher of another arm alone knows the cohort by it, from GET /cohorts."""

    # Parameters of each list beside the cohort.
    QUERIES = {
        "/students": "",
        "/students/update-sheet": "&format=csv",
        "/assessments": "&term={term}&subject={subject}",
        "/attendance/days": "&date=2025-10-06",
        "/attendance/chronic": "&term={term}",
        "/submissions": "&term={term}",
        "/publications": "&term={term}",
    }

    OF_FORM_TEACHERS = (
        "/students/update-sheet",
        "/attendance/days",
        "/attendance/chronic",
        "/publications",
    )

    @pytest.fixture(params=["subject teacher", "form teacher"])
    def relation(self, request):
        return request.param

    @pytest.fixture
    def in_b(self, relation, arms, own):
        if relation == "form teacher":
            return own.form_teacher(arms.b)
        return own.subject_teacher(arms.subject, arms.b)

    def test_every_list_of_a_cohort_is_tried(self, document):
        taking = {
            path
            for (method, path), operation in document.operations().items()
            if method == "GET"
            and "cohort" in {parameter.get("name") for parameter in operation.get("parameters", [])}
            and operation["x-own"] != "REFUSED"
        }
        assert taking == set(self.QUERIES)

    @pytest.mark.parametrize("path", QUERIES)
    def test_lists_take_it_as_the_cohort_from_a_teacher_of_another_arm(
        self, arms, make, in_b, relation, path
    ):
        (shown,) = ids(in_b, "/cohorts")
        assessment = make.assessment(arms.subject, arms.term)
        rest = self.QUERIES[path].format(term=arms.term["id"], subject=arms.subject["id"])
        other = make.cohort(session=arms.session)["id"]

        response = in_b.get(f"{path}?cohort={shown}{rest}")

        unknown = error_of(in_b.get(f"{path}?cohort={UNKNOWN_ID}{rest}"))
        if path in self.OF_FORM_TEACHERS and relation != "form teacher":
            assert error_of(response) == unknown
            return
        assert response.status_code == 200
        text = response.get_data(as_text=True)
        assert not any(student in text for student in arms.in_a), path
        if path == "/students":
            assert {row["id"] for row in response.get_json()["data"]} == set(arms.in_b)
        if path == "/assessments":
            assert [row["id"] for row in response.get_json()["data"]] == [assessment["id"]]
        assert error_of(in_b.get(f"{path}?cohort={other}{rest}")) == unknown

    def test_the_paths_of_a_cohort_do_likewise(self, arms, in_b):
        (shown,) = ids(in_b, "/cohorts")

        assert in_b.ok(in_b.get(f"/cohorts/{shown}"))["id"] == shown
        assert ids(in_b, f"/cohorts/{shown}/batches") == {arms.b}
        assert ids(in_b, f"/cohorts/{shown}/students") == set(arms.in_b)
        # Where an arm is meant it is the first one.
        assert error_of(in_b.get(f"/teachers/{shown}")) == error_of(in_b.get(f"/teachers/{UNKNOWN_ID}"))
