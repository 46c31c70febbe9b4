"""The submissions of all classes of the current session, in one list."""

from __future__ import annotations

from datetime import date, timedelta

from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own, make_arms
from tests.prepared import prepared_for_each


class School:
    """A cohort of two arms in the current session, one of a session before it, and a subject in each of two terms."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.arms = make_arms(make)
        self.api.ok(self.api.patch(f"/sessions/{self.arms.session['id']}", {"current": True}))
        self.second = make.term(self.arms.session, term="SECOND", display_name="Second term")
        self.other = make.cohort(session=self.arms.session)
        self.others = make.cohort_subject(self.other)
        make.enrolled(self.other)
        elsewhere = make.taught()
        make.assessment(elsewhere.subject, elsewhere.term)
        for term in (self.arms.term, self.second):
            paper = make.assessment(self.arms.subject, term)
            make.entry(paper, self.arms.in_a[0], self.arms.a)
            make.assessment(self.others, term)
        self.submit(self.arms.a)

    def submit(self, batch):
        path = f"/cohort-subjects/{self.arms.subject['id']}/submission"
        self.api.ok(self.api.post(path, {"term": "FIRST", "batch": batch, "blanks": "EXCUSED"}))

    def listed(self, client=None, **query):
        client = client or self.api
        return client.ok(client.get("/submissions", query_string=query))

    def of_class(self, cohort, term):
        """The submissions of one class, as they are listed with the others."""
        rows = self.listed(cohort=cohort["id"], term=term)
        return [{**row, "cohort": cohort["id"], "classroom": cohort["classroom"]} for row in rows]

    def calendar(self, term, start, end):
        body = {"start_date": start, "end_date": end, "times_opened": None, "next_term_begins": None}
        self.api.ok(self.api.put(f"/terms/{term['id']}/calendar", {**body, "notice": None}))

    @property
    def all(self):
        """All of them, class by class, and term by term."""
        classes = sorted((self.arms.cohort, self.other), key=lambda cohort: cohort["classroom"])
        return [
            row for cohort in classes for term in ("FIRST", "SECOND") for row in self.of_class(cohort, term)
        ]


original, school = prepared_for_each(School)


def test_without_a_batch_submissions_of_all_classes_of_the_current_session_are_listed(school):
    listed = school.listed()

    assert listed == school.all
    assert {row["cohort"] for row in listed} == {school.arms.cohort["id"], school.other["id"]}
    assert len([row for row in listed if row["state"] != "NOTHING_COUNTS"]) == 6
    assert all("classroom" not in row for row in school.listed(batch=school.arms.a, term="FIRST"))


def test_submissions_of_a_term_by_name_or_id_and_in_a_state_are_listed(school):
    first = [row for row in school.all if row["term"]["term"] == "FIRST"]

    assert school.listed(term="FIRST") == school.listed(term=school.arms.term["id"]) == first
    submitted = school.listed(state="SUBMITTED")
    assert [(row["batch"], row["state"]) for row in submitted] == [(school.arms.a, "SUBMITTED")]
    assert school.listed(state="OPEN", term="FIRST") == [row for row in first if row["state"] == "OPEN"]
    assert school.listed(state="SUBMITTED", batch=school.arms.a, term="FIRST")
    assert school.listed(state="SUBMITTED", batch=school.arms.b, term="FIRST") == []


def test_without_a_term_submissions_of_the_term_of_today_by_its_calendar_are_listed(school):
    today = date.fromisoformat(Own.today())
    start = school.arms.session["start_date"]
    yesterday, tomorrow = (str(today + timedelta(days=days)) for days in (-1, 1))

    school.calendar(school.arms.term, start, yesterday)
    assert school.listed() == school.all
    school.calendar(school.second, str(today), str(today))
    assert {row["term"]["term"] for row in school.listed()} == {"SECOND"}
    school.calendar(school.second, tomorrow, tomorrow)
    assert school.listed() == school.all


def test_teachers_see_their_own_submissions_and_so_does_mine(school):
    arms, own = school.arms, Own(school.make)
    teacher, form_teacher = own.subject_teacher(arms.subject, arms.b), own.form_teacher(arms.a)
    of_class = [row for row in school.all if row["cohort"] == arms.cohort["id"]]

    taught = (arms.subject["id"], arms.b)
    assert school.listed(teacher) == [
        row for row in of_class if (row["cohort_subject"], row["batch"]) == taught
    ]
    assert school.listed(form_teacher) == of_class
    assert school.listed(own.teacher()[1]) == []
    wide = own.form_teacher(arms.a)
    school.api.ok(
        school.api.put(f"/users/{wide.user['id']}/roles", {"role": school.make.role("read:results")["id"]})
    )
    assert school.listed(wide) == school.all
    assert school.listed(wide, mine="true") == of_class


def test_wrong_filters_and_a_missing_permission_are_refused(school, make_other):
    for query in (
        {"term": "FOURTH"},
        {"term": UNKNOWN_ID},
        {"term": ""},
        {"state": "DONE"},
        {"batch": school.arms.a},
        {"cohort": school.arms.cohort["id"]},
        {"batch": school.arms.a, "cohort": school.arms.cohort["id"], "term": "FIRST"},
        {"term": make_other.term()["id"]},
        # Of another session.
        {"term": school.make.term()["id"]},
    ):
        assert school.api.get("/submissions", query_string=query).status_code == 422, query
    assert school.make.caller("read:students").get("/submissions").status_code == 403


def test_without_a_current_session_the_list_is_empty(school):
    school.api.ok(school.api.patch(f"/sessions/{school.arms.session['id']}", {"current": False}))

    assert school.listed() == []
    assert school.api.get("/submissions?term=FIRST").status_code == 422


def test_the_number_of_messages_does_not_depend_on_the_number_of_classes(school, messages):
    def sent():
        with messages() as counted:
            listed = school.listed()
        return len(counted), len(listed)

    number, few = sent()
    for _ in range(4):
        cohort = school.make.cohort(session=school.arms.session)
        school.make.assessment(school.make.cohort_subject(cohort), school.second)
    more, many = sent()
    assert (number, many - few) == (more, 4)
    assert number <= 4


def test_another_school_sees_none_of_the_submissions(school, other_api):
    assert other_api.ok(other_api.get("/submissions")) == []
