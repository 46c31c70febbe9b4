"""Assessments and scores, as a subject teacher and a form teacher reach them."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own, error_of, ids, make_arms
from tests.threads import run_concurrently

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")


@pytest.fixture
def teacher(arms, own):
    """A teacher of the subject in arm A."""
    return own.subject_teacher(arms.subject, arms.a)


@pytest.fixture
def assessment(arms, make):
    return make.assessment(arms.subject, arms.term)


def fields_of(arms):
    """The body of a new assessment."""
    return {
        "category": "CA1",
        "subject": arms.subject["id"],
        "name": "Test",
        "abbreviation": "T",
        "due_date": "2025-10-17",
        "total_points": 20,
        "term": arms.term["id"],
        "description": "Fractions",
        "file_name": "test.xlsx",
        "include_in_final": True,
        "publish_scores": False,
    }


def many_of(arms):
    """The body of the same for several subjects."""
    fields = fields_of(arms)
    return {**{name: fields[name] for name in fields if name != "subject"}, "subjects": [fields["subject"]]}


def body_of(assessment, student, batch, score=12.5):
    return {"assessment": assessment["id"], "score": score, "student": student, "batch": batch}


class TestAssessments:
    def test_assessments_of_subjects_in_reach_are_listed_alone(self, arms, make, own, teacher, assessment):
        other = make.assessment(arms.other, arms.term)
        query = f"/assessments?cohort={arms.a}&term={arms.term['id']}&subject="

        assert ids(teacher, query + arms.subject["id"]) == {assessment["id"]}
        assert error_of(teacher.get(query + arms.other["id"])) == error_of(teacher.get(query + UNKNOWN_ID))
        assert error_of(teacher.get(f"/assessments/{other['id']}")) == error_of(
            teacher.get(f"/assessments/{UNKNOWN_ID}")
        )
        assert ids(own.form_teacher(arms.b), query.replace(arms.a, arms.b) + arms.other["id"]) == {
            other["id"]
        }

    @pytest.mark.parametrize("relation", ["subject teacher", "form teacher"])
    def test_a_teacher_of_the_second_arm_lists_them_by_the_id_shown_for_the_cohort(
        self, arms, make, own, assessment, relation
    ):
        elsewhere = make.cohort(session=arms.session)
        in_b = (
            own.subject_teacher(arms.subject, arms.b)
            if relation == "subject teacher"
            else own.form_teacher(arms.b)
        )
        (shown,) = ids(in_b, "/cohorts")
        query = f"/assessments?subject={arms.subject['id']}&term={arms.term['id']}&cohort="

        assert shown == arms.cohort["id"] == arms.a
        assert ids(in_b, query + shown) == ids(in_b, query + arms.b) == {assessment["id"]}
        # Of another cohort, whose first arm nobody of these teaches, nothing is known.
        unknown = error_of(in_b.get(query + UNKNOWN_ID))
        assert unknown[0] == 422
        assert error_of(in_b.get(query + elsewhere["id"])) == unknown
        # Nor is another arm's id an id of the cohort.
        third = make.batch(arms.cohort, name="C")["id"]
        assert error_of(in_b.get(query + third)) == unknown

    def test_of_a_cohort_whose_subject_has_no_assessment_a_teacher_of_another_arm_gets_an_empty_page(
        self, arms, own
    ):
        in_b = own.subject_teacher(arms.subject, arms.b)
        query = f"/assessments?term={arms.term['id']}&cohort={arms.cohort['id']}&subject="

        assert ids(in_b, query + arms.subject["id"]) == set()
        assert error_of(in_b.get(query + arms.other["id"])) == error_of(in_b.get(query + UNKNOWN_ID))

    def test_a_teacher_of_any_arm_adds_one_and_changes_and_deletes_it_while_it_is_empty(
        self, arms, own, teacher
    ):
        made = teacher.ok(teacher.post("/assessments", fields_of(arms)))
        (many,) = teacher.ok(teacher.post("/assessments/many", many_of(arms)))

        for assessment in (made, many):
            path = f"/assessments/{assessment['id']}"
            assert teacher.ok(teacher.patch(path, {"name": "Another"}))["name"] == "Another"
            teacher.ok(teacher.delete(path))
        of_both, form_teacher = own.subject_teacher(arms.subject, None), own.form_teacher(arms.a)
        elsewhere, unknown = (
            error_of(of_both.post("/assessments", {**fields_of(arms), "subject": subject}))
            for subject in (arms.other["id"], UNKNOWN_ID)
        )
        assert elsewhere == unknown
        assert form_teacher.post("/assessments", fields_of(arms)).status_code == 422
        assert form_teacher.post("/assessments/many", many_of(arms)).status_code == 422

    @pytest.mark.parametrize("entered", ["score", "absence"])
    @pytest.mark.parametrize("arm", ["a", "b"])
    def test_one_that_is_not_empty_needs_a_teacher_of_every_arm(
        self, arms, make, own, teacher, assessment, entered, arm
    ):
        student, batch = (arms.in_a[0], arms.a) if arm == "a" else (arms.in_b[0], arms.b)
        if entered == "score":
            make.entry(assessment, student, batch)
        else:
            make.api.ok(make.absences(assessment, {student: "ABSENT"}))
        path = f"/assessments/{assessment['id']}"
        of_both, of_all = own.subject_teacher(arms.subject, None), own.teacher()
        for each in (arms.a, arms.b):
            own.assign(of_all[0], arms.subject, each)

        for refused in (teacher.patch(path, {"name": "Another"}), teacher.delete(path)):
            assert refused.status_code == 403
            assert "every arm" in refused.get_json()["message"]
        assert make.api.ok(make.api.get(path))["name"] == assessment["name"]
        of_both.ok(of_both.patch(path, {"name": "Another"}))
        of_all[1].ok(of_all[1].delete(path))

    def test_none_is_added_changed_or_deleted_once_an_arm_is_submitted(self, arms, make, own, teacher):
        empty = make.assessment(arms.subject, arms.term, include_in_final=False)
        second = make.term(arms.session, term="SECOND")
        later = make.assessment(arms.subject, second)
        make.entry(make.assessment(arms.subject, arms.term), arms.in_b[0], arms.b)
        body = {"term": "FIRST", "batch": arms.b, "blanks": "EXCUSED"}
        make.api.ok(make.api.post(f"/cohort-subjects/{arms.subject['id']}/submission", body))
        in_b = own.subject_teacher(arms.subject, arms.b)

        def refused(client):
            yield client.post("/assessments", fields_of(arms))
            yield client.post("/assessments/many", many_of(arms))
            yield client.patch(f"/assessments/{later['id']}", {"term": "FIRST"})
            yield client.patch(f"/assessments/{empty['id']}", {"name": "Another"})
            yield client.delete(f"/assessments/{empty['id']}")

        told = "are submitted: reopen them first."
        for answer in refused(teacher):
            assert answer.status_code == 409
            # Nothing is named of the arm that is out of reach.
            assert answer.get_json()["message"].endswith(told)
        for answer in refused(in_b):
            assert answer.status_code == 409
            assert "submitted for B: reopen" in answer.get_json()["message"]

    def test_a_score_that_comes_while_a_teacher_of_one_arm_deletes_is_seen(self, committing):
        """The deletion waits for the score's lock, and judges by the scores that are there then."""
        arms = make_arms(committing)
        paper = committing.assessment(arms.subject, arms.term)
        own = Own(committing)
        in_a, in_b = own.subject_teacher(arms.subject, arms.a), own.subject_teacher(arms.subject, arms.b)
        entry = body_of(paper, arms.in_b[0], arms.b)

        def race(number):
            if number:
                return in_a.using().delete(f"/assessments/{paper['id']}").status_code
            return in_b.using().post("/gradebooks", entry).status_code

        statuses = tuple(run_concurrently(2, race))

        assert statuses in {(200, 403), (404, 200), (422, 200)}, statuses

    def test_a_teacher_takes_a_score_away_where_they_teach(self, arms, make, teacher, assessment):
        own_entry, other = (
            make.entry(assessment, student, batch)["id"]
            for student, batch in ((arms.in_a[0], arms.a), (arms.in_b[0], arms.b))
        )

        teacher.ok(teacher.delete(f"/gradebooks/{own_entry}"))
        assert error_of(teacher.delete(f"/gradebooks/{other}")) == error_of(
            teacher.delete(f"/gradebooks/{UNKNOWN_ID}")
        )


class TestSubmissions:
    def test_a_teacher_of_one_arm_submits_that_arm(self, arms, make, own, teacher, assessment):
        path = f"/cohort-subjects/{arms.subject['id']}/submission"
        body = {"term": arms.term["id"], "blanks": "ABSENT"}
        of_both = own.subject_teacher(arms.subject, None)

        assert teacher.post(path, body).status_code == 403
        assert "every arm" in teacher.post(path, body).get_json()["message"]
        other, unknown = (teacher.post(path, {**body, "batch": batch}) for batch in (arms.b, UNKNOWN_ID))
        assert error_of(other) == error_of(unknown)
        assert teacher.ok(teacher.post(path, {**body, "batch": arms.a}))["state"] == "SUBMITTED"
        assert of_both.ok(of_both.post(path, body))["state"] == "SUBMITTED"

    def test_a_position_is_among_the_whole_class(self, arms, make, own, teacher, assessment):
        for student, batch, score in (
            (arms.in_a[0], arms.a, 5),
            (arms.in_a[1], arms.a, 15),
            (arms.in_b[0], arms.b, 20),
        ):
            make.entry(assessment, student, batch, score)
        path = f"/cohort-subjects/{arms.subject['id']}/results?term={arms.term['id']}"

        seen, whole = teacher.ok(teacher.get(path)), make.api.ok(make.api.get(path))

        assert {row["student"]["id"] for row in seen} == set(arms.in_a)
        assert seen == [row for row in whole if row["student"]["id"] in arms.in_a]
        assert {row["cohort"]["position"] for row in seen} == {2, 3}


class TestAbsencesAndSheets:
    def test_students_out_of_reach_are_unknown(self, arms, make, teacher, assessment):
        path, (other,) = f"/assessments/{assessment['id']}/absences", arms.in_b

        def put(student):
            return error_of(teacher.put(path, {"absences": [{"student": student, "status": "ABSENT"}]}))

        assert put(other)[0] == 422
        assert put(other)[1]["message"] == put(UNKNOWN_ID)[1]["message"].replace(UNKNOWN_ID, other)
        make.api.ok(make.absences(assessment, {other: "ABSENT"}))
        assert teacher.ok(teacher.get(path)) == []
        assert error_of(teacher.delete(f"{path}/{other}")) == error_of(teacher.delete(f"{path}/{UNKNOWN_ID}"))

    def test_taking_an_absence_away_costs_no_more_messages_than_to_the_whole_school(
        self, arms, make, teacher, assessment, messages
    ):
        make.api.ok(make.absences(assessment, dict.fromkeys(arms.in_a, "ABSENT")))

        def sent(client, student):
            with messages() as counted:
                client.ok(client.delete(f"/assessments/{assessment['id']}/absences/{student}"))
            return len(counted)

        assert sent(teacher, arms.in_a[0]) == sent(make.api, arms.in_a[1])

    def test_a_submission_is_in_the_way_of_absences_of_students_in_reach_alone(
        self, arms, make, teacher, assessment
    ):
        make.api.ok(make.absences(assessment, {arms.in_a[0]: "ABSENT", arms.in_b[0]: "ABSENT"}))
        path, body = (
            f"/cohort-subjects/{arms.subject['id']}/submission",
            {"term": "FIRST", "blanks": "ABSENT"},
        )
        make.api.ok(make.api.post(path, body))
        absence = f"/assessments/{assessment['id']}/absences"

        assert teacher.delete(f"{absence}/{arms.in_a[0]}").status_code == 409
        assert error_of(teacher.delete(f"{absence}/{arms.in_b[0]}")) == error_of(
            teacher.delete(f"{absence}/{UNKNOWN_ID}")
        )
        assert len(make.api.ok(make.api.get(absence))) == 3

    def test_a_sheet_has_students_in_reach_and_refuses_others(self, arms, make, teacher, assessment):
        api, path = make.api, f"/assessments/{assessment['id']}"
        numbers = {
            each: api.ok(api.get(f"/students/{each}"))["admission_number"]
            for each in (*arms.in_a, *arms.in_b)
        }

        def uploaded(number):
            csv = BytesIO(f"admission_number,score\n{number},7\n".encode())
            data = {"scoresheet": (csv, "scores.csv")}
            return teacher.post(f"{path}/scoresheet", data=data, content_type="multipart/form-data")

        for mine in arms.in_a:
            assert uploaded(numbers[mine]).status_code == 200
        refused, unknown = error_of(uploaded(numbers[arms.in_b[0]])), error_of(uploaded("QC/unknown"))
        assert refused[0] == 422
        assert str(refused).replace(numbers[arms.in_b[0]], "QC/unknown") == str(unknown)
        shown = teacher.ok(teacher.get(f"/scoresheets/{arms.subject['id']}/scoresheet"))
        assert {row["student"]["id"] for row in shown} == set(arms.in_a)
        other_arm = teacher.get(f"{path}/download-sheet?batch={arms.b}")
        assert error_of(other_arm) == error_of(teacher.get(f"{path}/download-sheet?batch={UNKNOWN_ID}"))

    def test_a_subject_teacher_who_is_form_teacher_of_another_arm_can_send_the_sheet_back(
        self, arms, make, own, assessment
    ):
        path = f"/assessments/{assessment['id']}"
        employee, client = own.teacher()
        own.assign(employee, arms.subject, arms.b)
        make.api.ok(make.api.patch(f"/teachers/{arms.a}/add_to_batch", {"teacher_id": employee["id"]}))

        def downloaded(query=""):
            return load_workbook(BytesIO(client.get(f"{path}/download-sheet{query}").data))

        def names_in(book):
            return [row[2].value for row in book["Scores"].iter_rows(min_row=2)]

        book = downloaded()
        assert names_in(book) == ["Bassey"]
        book["Scores"]["D2"] = 7
        file = BytesIO()
        book.save(file)
        data = {"scoresheet": (BytesIO(file.getvalue()), "scores.xlsx")}
        sent = client.post(f"{path}/scoresheet", data=data, content_type="multipart/form-data")
        assert client.ok(sent)["created"] == 1
        # Students of the form teacher's own arm are read by its sheet, and by the sheet of a subject not taught.
        assert names_in(downloaded(f"?batch={arms.a}")) == ["Abara", "Adeyemi"]
        path = f"/assessments/{make.assessment(arms.other, arms.term)['id']}"
        assert names_in(downloaded()) == ["Abara", "Adeyemi"]


class TestHeldByASubmission:
    """A teacher of one arm learns nothing of the other, once this is submitted, their own, or both."""

    @pytest.fixture(params=["of their own arm", "of the other", "of both"])
    def submitted(self, request, arms, make, assessment):
        """The subject as an arm or both have handed it in; the students of both have an entry, but one of each."""
        second = make.enrolled(arms.cohort, make.student(last_name="Bello"), batch=arms.b)[0]
        arms.in_b = [*arms.in_b, second]
        path = f"/cohort-subjects/{arms.subject['id']}/submission"
        batches = {"of their own arm": [arms.a], "of the other": [arms.b], "of both": [arms.a, arms.b]}
        for student, batch in ((arms.in_a[0], arms.a), (arms.in_b[0], arms.b)):
            make.entry(assessment, student, batch)
        for batch in batches[request.param]:
            body = {"term": "FIRST", "batch": batch, "blanks": "EXCUSED"}
            make.api.ok(make.api.post(path, body))
        return assessment

    def test_a_student_out_of_reach_is_unknown_to_every_write(self, arms, make, teacher, submitted):
        path = f"/assessments/{submitted['id']}"
        (entry,) = make.api.ok(make.api.get(f"/gradebooks?student={arms.in_b[0]}"))["data"]
        (scored, blank), unknown = arms.in_b, UNKNOWN_ID

        def absent(student):
            return teacher.put(f"{path}/absences", {"absences": [{"student": student, "status": "ABSENT"}]})

        def sheet(number):
            csv = BytesIO(f"admission_number,score\n{number},7\n".encode())
            data = {"scoresheet": (csv, "scores.csv")}
            return teacher.post(f"{path}/scoresheet", data=data, content_type="multipart/form-data")

        def number(student):
            return make.api.ok(make.api.get(f"/students/{student}"))["admission_number"]

        for student in (scored, blank):
            for wrong, as_unknown, name in (
                *(
                    (
                        teacher.post("/gradebooks", body_of(submitted, student, batch)),
                        teacher.post("/gradebooks", body_of(submitted, unknown, batch)),
                        student,
                    )
                    for batch in (arms.a, arms.b, unknown)
                ),
                (absent(student), absent(unknown), student),
                (
                    teacher.delete(f"{path}/absences/{student}"),
                    teacher.delete(f"{path}/absences/{unknown}"),
                    student,
                ),
                (
                    teacher.put(f"{path}/scores", [{"student": student, "score": 7}]),
                    teacher.put(f"{path}/scores", [{"student": unknown, "score": 7}]),
                    student,
                ),
                (sheet(number(student)), sheet("QC/unknown"), number(student)),
            ):
                told = str(error_of(wrong)).replace(name, unknown).replace("QC/unknown", unknown)
                assert told == str(error_of(as_unknown)).replace("QC/unknown", unknown)
        for method, body in (("patch", [{"score": 1}]), ("delete", [])):
            assert error_of(getattr(teacher, method)(f"/gradebooks/{entry['id']}", *body)) == error_of(
                getattr(teacher, method)(f"/gradebooks/{unknown}", *body)
            )

    def test_a_teacher_of_nobody_is_told_of_no_arm(self, arms, make, own, submitted):
        empty = make.batch(arms.cohort, name="C")["id"]
        teacher = own.subject_teacher(arms.subject, empty)
        scores = [{"student": UNKNOWN_ID, "score": 7}]

        refused = teacher.put(f"/assessments/{submitted['id']}/scores", scores)

        assert refused.status_code == 422

    def test_a_score_of_a_student_in_reach_is_held(self, arms, make, teacher, submitted):
        reopened = {"term": "FIRST", "reason": "A paper was found"}
        of_own = teacher.post("/gradebooks", body_of(submitted, arms.in_a[1], arms.a))
        if of_own.status_code == 409:
            assert "are submitted" in of_own.get_json()["message"]
            make.api.ok(make.api.post(f"/cohort-subjects/{arms.subject['id']}/reopening", reopened))
            teacher.ok(teacher.post("/gradebooks", body_of(submitted, arms.in_a[1], arms.a)))


class TestGradebooks:
    def test_entering_correcting_and_removing_a_score(self, arms, teacher, assessment):
        (student, _) = arms.in_a

        entry = teacher.ok(teacher.post("/gradebooks", body_of(assessment, student, arms.a)))

        assert ids(teacher, "/gradebooks") == {entry["id"]}
        path = f"/gradebooks/{entry['id']}"
        assert teacher.ok(teacher.patch(path, {"score": 15}))["score"] == 15
        tag = teacher.get(path).headers["ETag"]
        assert teacher.patch(path, {"score": 16}, headers={"If-Match": tag}).status_code == 200
        teacher.ok(teacher.delete(path))

    def test_records_out_of_reach_are_unknown(self, arms, make, teacher, assessment):
        (student,) = arms.in_b
        other = make.assessment(arms.other, arms.term)

        for wrong, unknown in (
            (body_of(assessment, student, arms.a), body_of(assessment, UNKNOWN_ID, arms.a)),
            (body_of(assessment, arms.in_a[0], arms.b), body_of(assessment, arms.in_a[0], UNKNOWN_ID)),
            (body_of(other, arms.in_a[0], arms.a), body_of({"id": UNKNOWN_ID}, arms.in_a[0], arms.a)),
        ):
            assert error_of(teacher.post("/gradebooks", wrong)) == error_of(
                teacher.post("/gradebooks", unknown)
            )

    def test_entries_out_of_reach_are_not_there(self, arms, make, own, teacher, assessment):
        of_b = make.entry(assessment, arms.in_b[0], arms.b)
        of_other = make.entry(make.assessment(arms.other, arms.term), arms.in_a[0], arms.a)

        assert ids(teacher, "/gradebooks") == set()
        for entry in (of_b, of_other):
            for method in ("get", "delete"):
                path = f"/gradebooks/{entry['id']}"
                assert error_of(getattr(teacher, method)(path)) == error_of(
                    getattr(teacher, method)(f"/gradebooks/{UNKNOWN_ID}")
                )
            assert error_of(teacher.patch(path, {"score": 1})) == error_of(
                teacher.patch(f"/gradebooks/{UNKNOWN_ID}", {"score": 1})
            )
        for query in (f"batch={arms.b}", f"student={arms.in_b[0]}", f"assessment={of_other['assessment']}"):
            name = query.partition("=")[0]
            assert error_of(teacher.get(f"/gradebooks?{query}")) == error_of(
                teacher.get(f"/gradebooks?{name}={UNKNOWN_ID}")
            )
        form_teacher = own.form_teacher(arms.a)
        assert ids(form_teacher, "/gradebooks") == {of_other["id"]}
        assert form_teacher.patch(f"/gradebooks/{of_other['id']}", {"score": 1}).status_code == 404

    def test_a_score_costs_no_more_messages_than_to_the_whole_school(
        self, arms, make, teacher, assessment, messages
    ):
        def sent(client, student):
            with messages() as counted:
                client.ok(client.post("/gradebooks", body_of(assessment, student, arms.a)))
            return len(counted)

        assert sent(teacher, arms.in_a[0]) == sent(make.api, arms.in_a[1])


class TestMarks:
    """The marks of an arm, in all assessments of a subject."""

    @staticmethod
    def path(arms, what="scores", batch=None):
        return f"/cohort-subjects/{arms.subject['id']}/{what}?batch={batch or arms.a}&term=FIRST"

    def test_an_arm_out_of_reach_is_as_an_unknown_one(self, arms, own, teacher, assessment):
        form_teacher = own.form_teacher(arms.a)
        body = [{"student": arms.in_b[0], "assessment": assessment["id"], "score": 1}]

        for api, method, what in (
            (teacher, "GET", "scores"),
            (teacher, "GET", "mark-sheet"),
            (teacher, "PUT", "scores"),
            (form_teacher, "GET", "scores"),
            (form_teacher, "GET", "mark-sheet"),
        ):
            options = {"json": body} if method == "PUT" else {}
            answer, unknown = (
                api.request(method, self.path(arms, what, batch), **options) for batch in (arms.b, UNKNOWN_ID)
            )
            assert error_of(answer) == error_of(unknown), (method, what)
            assert answer.status_code == 422

    def test_a_teacher_of_another_subject_in_the_arm_has_no_marks_there(self, arms, own, assessment):
        user, api = own.teacher()
        own.assign(user, arms.subject, arms.b)
        own.assign(user, arms.other, arms.a)

        assert error_of(api.get(self.path(arms))) == error_of(api.get(self.path(arms, batch=UNKNOWN_ID)))
        assert api.get(self.path(arms, batch=arms.b)).status_code == 200

    def test_a_teacher_enters_no_mark_of_a_student_out_of_reach(self, arms, teacher, assessment):
        def refused(student):
            record = {"student": student, "assessment": assessment["id"], "score": 1}
            answer = teacher.put(self.path(arms), [record])
            return answer.status_code, answer.get_data(as_text=True).replace(student, "")[:200]

        assert refused(arms.in_b[0]) == refused(UNKNOWN_ID)
        record = {"student": arms.in_a[0], "assessment": assessment["id"], "score": 1}
        shown = teacher.ok(teacher.put(self.path(arms), [record]))
        assert {score["student"]["id"] for score in shown["scores"]} == {*arms.in_a}

    def test_a_form_teacher_reads_marks_and_enters_none(self, arms, own, assessment):
        form_teacher = own.form_teacher(arms.a)
        record = {"student": arms.in_a[0], "assessment": assessment["id"], "score": 1}

        assert len(form_teacher.ok(form_teacher.get(self.path(arms)))["scores"]) == 2
        assert form_teacher.put(self.path(arms), [record]).status_code == 404

    def test_a_mark_sheet_has_no_row_of_a_student_out_of_reach(self, arms, make, teacher, assessment):
        def refused(number):
            csv = f"admission_number,{assessment['abbreviation']} (20)\n{number},7\n".encode()
            data = {"mark_sheet": (BytesIO(csv), "marks.csv")}
            answer = teacher.post(
                self.path(arms, "mark-sheet"), data=data, content_type="multipart/form-data"
            )
            assert answer.status_code == 422
            return answer.get_json()["errors"]["rows"][0]["message"].replace(number, "")

        number = make.api.ok(make.api.get(f"/students/{arms.in_b[0]}"))["admission_number"]
        assert refused(number) == refused("X/404")
