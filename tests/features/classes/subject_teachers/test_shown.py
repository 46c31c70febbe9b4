"""The teachers of a subject, wherever they are shown: submissions, broadsheets, score sheets, cards, OneRoster."""

from __future__ import annotations

import csv
from datetime import date, timedelta
from io import BytesIO, TextIOWrapper
from zipfile import ZipFile

import pytest
from openpyxl import load_workbook

from tests.features.reach.conftest import Own, make_arms
from tests.features.results.report_cards.papers import needs_poppler, text_of
from tests.prepared import prepared_for_each

IN_A, IN_B = ["Dr. Ngozi Abah", "Mrs. Ada Òkóró"], ["Mr. Chidi Zubairu"]
EVERYBODY = [*IN_A, *IN_B]


def teach(make):
    """Assign to arm A, to all arms, and some that are not of today; every student has a score of the subject."""
    arms, own = make_arms(make), Own(make)
    day = date.fromisoformat(own.today())
    yesterday, tomorrow = str(day - timedelta(days=1)), str(day + timedelta(days=1))
    # By their category none of them teaches.
    category = make.employee_category()["id"]
    people = {
        name: make.employee(title=title, first_name=first, last_name=name, category=category)
        for title, first, name in (
            ("Mr.", "Chidi", "Zubairu"),
            ("Mrs.", "Ada", "Òkóró"),
            ("Dr.", "Ngozi", "Abah"),
            ("Mr.", "No", "Longer"),
            ("Mr.", "Not", "Yet"),
            ("Mr.", "Has", "Left"),
        )
    }
    own.assign(people["Zubairu"], arms.subject, None)
    own.assign(people["Òkóró"], arms.subject, arms.a, starts_on=own.today(), ends_on=own.today())
    own.assign(people["Abah"], arms.subject, arms.a)
    own.assign(people["Longer"], arms.subject, arms.a, ends_on=yesterday)
    own.assign(people["Yet"], arms.subject, arms.b, starts_on=tomorrow)
    own.assign(people["Left"], arms.subject, arms.b)
    make.api.ok(make.api.delete(f"/employees/{people['Left']['id']}?release=true"))
    arms.people = people
    arms.paper = make.assessment(arms.subject, arms.term, category="EXAM", total_points=100)
    for batch, students in ((arms.a, arms.in_a), (arms.b, arms.in_b)):
        for student in students:
            make.entry(arms.paper, student, batch, 60)
    return arms


original, taught = prepared_for_each(teach)


def of_term(arms, path, **query):
    return f"{path}?term={arms.term['id']}&" + "&".join(f"{name}={value}" for name, value in query.items())


def subject_of(subjects, arms):
    (subject,) = [each for each in subjects if each.get("id") == arms.subject["id"]]
    return subject


class TestSubmissions:
    def test_each_arm_has_its_own_teachers_or_else_the_teachers_of_all(self, api, taught):
        submissions = api.ok(api.get(of_term(taught, "/submissions", cohort=taught.cohort["id"])))

        counting = [row for row in submissions if row["state"] != "NOTHING_COUNTS"]
        assert [(row["batch"], row["teachers"]) for row in counting] == [(taught.a, IN_A), (taught.b, IN_B)]
        of_a = next(
            row
            for row in api.ok(api.get(of_term(taught, "/submissions", batch=taught.a)))
            if row["cohort_subject"] == taught.subject["id"]
        )
        assert of_a["teachers"] == IN_A

    def test_a_submission_of_all_arms_has_every_teacher_once(self, api, taught, own, make):
        own.assign(taught.people["Abah"], taught.subject, taught.b)
        path = f"/cohort-subjects/{taught.subject['id']}/submission"

        assert api.ok(api.post(path, {"term": "FIRST"}))["teachers"] == EVERYBODY
        assert api.ok(api.post(path, {"term": "FIRST", "batch": taught.a}))["teachers"] == IN_A
        # Nobody teaches the other.
        make.assessment(taught.other, taught.term, category="EXAM")
        other = f"/cohort-subjects/{taught.other['id']}/submission"
        assert api.ok(api.post(other, {"term": "FIRST", "blanks": "ABSENT"}))["teachers"] == []


class TestScoreSheet:
    def details(self, api, taught, query=""):
        answer = api.get(f"/assessments/{taught.paper['id']}/download-sheet{query}")
        sheet = load_workbook(BytesIO(answer.data))["Details"]
        return answer.data, {row[0].value: row[1].value for row in sheet.iter_rows()}

    def test_the_details_name_the_teachers(self, api, taught, make):
        for query, names in (("", EVERYBODY), (f"?batch={taught.a}", IN_A), (f"?batch={taught.b}", IN_B)):
            assert self.details(api, taught, query)[1]["Teacher"] == ", ".join(names)
        taught.paper = make.assessment(taught.other, taught.term)
        assert self.details(api, taught)[1]["Teacher"] is None

    def test_a_teacher_in_the_details_is_ignored_on_upload(self, api, taught):
        content, _ = self.details(api, taught)
        workbook = load_workbook(BytesIO(content))
        (cell,) = [row[1] for row in workbook["Details"].iter_rows() if row[0].value == "Teacher"]
        cell.value = "Somebody else, entirely"
        changed = BytesIO()
        workbook.save(changed)
        changed.seek(0)

        answer = api.post(
            f"/assessments/{taught.paper['id']}/scoresheet",
            data={"scoresheet": (changed, "scores.xlsx")},
            content_type="multipart/form-data",
        )

        assert api.ok(answer)["unchanged"] == 3


class TestResults:
    def test_live_results_have_the_teachers_of_today(self, api, taught):
        for batch, names in ((taught.a, IN_A), (taught.b, IN_B)):
            sheet = api.ok(api.get(of_term(taught, "/broadsheets", batch=batch)))
            assert subject_of(sheet["subjects"], taught)["teachers"] == names
            workbook = load_workbook(
                BytesIO(api.get(of_term(taught, "/broadsheets/download", batch=batch)).data)
            )
            header, row = workbook["Subjects"].iter_rows(values_only=True)
            assert row[header.index("Teacher")] == ", ".join(names)
        for student, names in ((taught.in_a[0], IN_A), (taught.in_b[0], IN_B)):
            result = api.ok(api.get(of_term(taught, f"/students/{student}/results")))
            assert result["subjects"][0]["subject"]["teachers"] == names
        of_subject = api.ok(api.get(of_term(taught, f"/cohort-subjects/{taught.subject['id']}/results")))
        assert sorted(row["subject"]["teachers"] for row in of_subject) == [IN_A, IN_A, IN_B]

    def publish(self, api, taught):
        api.ok(api.post(f"/cohort-subjects/{taught.subject['id']}/submission", {"term": "FIRST"}))
        body = {"term": "FIRST", "batches": [taught.a], "without_subjects": [taught.other["id"]]}
        (made,) = api.ok(api.post("/publications", body))
        return made["id"]

    def read_result(self, api, taught, **query):
        result = api.ok(api.get(of_term(taught, f"/students/{taught.in_a[0]}/results", **query)))
        return result["subjects"][0]["subject"]["teachers"]

    def read(self, api, taught, **query):
        """The names that a result and a broadsheet of arm A have, and the workbook."""
        sheet = api.ok(api.get(of_term(taught, "/broadsheets", batch=taught.a, **query)))
        downloaded = api.get(of_term(taught, "/broadsheets/download", batch=taught.a, **query))
        workbook = load_workbook(BytesIO(downloaded.data))
        header, row = workbook["Subjects"].iter_rows(values_only=True)
        return [
            self.read_result(api, taught, **query),
            subject_of(sheet["subjects"], taught)["teachers"],
            row[header.index("Teacher")].split(", "),
        ]

    def test_a_publication_keeps_its_teachers_and_other_teachers_change_no_card(self, api, taught, own, make):
        first = self.publish(api, taught)
        session = f"/broadsheets?batch={taught.a}&session={taught.session['id']}"
        new = make.employee(title="Ms.", first_name="Ruth", last_name="Aa")
        own.assign(new, taught.subject, taught.a)
        now = ["Ms. Ruth Aa", *IN_A]

        assert self.read(api, taught) == [IN_A] * 3
        assert subject_of(api.ok(api.get(session))["subjects"], taught)["teachers"] == IN_A
        assert self.read(api, taught, live="true") == [now] * 3

        api.ok(api.post(f"/publications/{first}/reopening", {"reason": "A mistake"}))
        (second,) = api.ok(api.post("/publications", {"term": "FIRST", "batches": [taught.a]}))
        assert self.read(api, taught) == [now] * 3
        assert (second["changed"], second["class_figures_changed"]) == (0, 0)
        assert api.ok(api.get(f"/publications/{second['id']}/changes")) == []
        assert self.read_result(api, taught, version=1) == IN_A

    @needs_poppler
    def test_paper_names_them_where_the_school_has_chosen_that_when_it_was_published(self, api, taught):
        card = of_term(taught, f"/students/{taught.in_a[0]}/report-card")
        draft = text_of(api.get(card + "draft=true").data)
        api.ok(api.patch("/result-settings", {"show_teachers": True}))
        with_names = text_of(api.get(card + "draft=true").data)
        self.publish(api, taught)
        api.ok(api.patch("/result-settings", {"show_teachers": False}))
        published = text_of(api.get(card).data)

        for name in IN_A:
            assert name not in draft
            assert name in with_names
            assert name in published


class TestOneRoster:
    @pytest.fixture
    def exported(self, api, taught):
        def exported():
            with ZipFile(BytesIO(api.get(f"/oneroster/csv?session={taught.session['id']}").data)) as files:
                return {
                    name: list(csv.DictReader(TextIOWrapper(files.open(f"{name}.csv"), "utf-8")))
                    for name in ("enrollments", "users", "roles")
                }

        return exported

    def test_each_teacher_is_enrolled_in_the_class(self, api, taught, exported, make, own):
        year = taught.session["start_date"][:4]
        okoro = taught.people["Òkóró"]
        own.assign(okoro, taught.subject, taught.b, starts_on="1999-01-01", ends_on=f"{int(year) + 9}-01-01")
        before = make.employee(last_name="Before")
        own.assign(before, taught.subject, None, ends_on=f"{int(year) - 1}-12-31")
        accounts = {
            name: make.account_of(person)["id"] for name, person in taught.people.items() if name != "Left"
        }

        files = exported()

        rows = {
            row["userSourcedId"]: row
            for row in files["enrollments"]
            if row["classSourcedId"] == taught.subject["id"] and row["role"] == "teacher"
        }
        # A teacher who has left is not there, nor one whose assignment ended before the session began.
        assert rows.keys() == set(accounts.values())
        assert len({row["sourcedId"] for row in rows.values()}) == len(rows)
        assert [name for name, account in accounts.items() if rows[account]["primary"] == "true"] == [
            "Zubairu"
        ]
        days = {
            name: (rows[account]["beginDate"], rows[account]["endDate"]) for name, account in accounts.items()
        }
        assert days["Zubairu"] == ("", "")
        # Of two assignments the first and last day of both, within the session; an end is the day after.
        assert days["Òkóró"] == (f"{year}-01-01", f"{int(year) + 1}-01-01")
        assert days["Longer"] == ("", own.today())
        for file, column in (("users", "sourcedId"), ("roles", "userSourcedId")):
            assert rows.keys() <= {row[column] for row in files[file]}
        assert {row["role"] for row in files["roles"] if row["userSourcedId"] in rows} == {"teacher"}

    def test_without_one_of_all_arms_the_oldest_is_primary(self, api, taught, exported, make, own):
        first, second = make.employee(), make.employee()
        own.assign(first, taught.other, taught.b)
        own.assign(second, taught.other, taught.a)

        primary = {
            row["userSourcedId"]: row["primary"]
            for row in exported()["enrollments"]
            if row["classSourcedId"] == taught.other["id"] and row["role"] == "teacher"
        }

        assert primary == {make.account_of(first)["id"]: "true", make.account_of(second)["id"]: "false"}
