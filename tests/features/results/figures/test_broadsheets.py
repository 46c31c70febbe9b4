"""Broadsheets: students by subjects; live, as published, and of a session."""

from __future__ import annotations

import pytest

from tests.factories import UNKNOWN_ID

# Every test finds the class, whether it asks for it or not.
pytestmark = pytest.mark.usefixtures("small")


def rows(sheet):
    """Figures of each student: name, percents by code, total, average, position, tied, of the cohort, status."""
    codes = {subject["id"]: subject["code"] for subject in sheet["subjects"]}
    return [
        (
            row["student"]["first_name"],
            {codes[subject]: cell["percent"] for subject, cell in row["results"].items()},
            row["total"], row["average"], row["position"], row["tied"], row["cohort_position"], row["status"],
        )
        for row in sheet["students"]
    ]  # fmt: skip


def test_a_broadsheet_is_by_position_and_then_by_name(small):
    sheet = small.broadsheet()

    assert rows(sheet) == [
        (
            "Ada",
            {"MAT": "80.00", "ENG": "70.00", "MUS": "60.00"},
            "210.00",
            "70.00",
            "1",
            True,
            "1",
            "COMPLETE",
        ),
        ("Bọ́lá", {"MAT": "80.00", "ENG": "60.00"}, "140.00", "70.00", "1", True, "1", "COMPLETE"),
        (
            "Chidi",
            {"MAT": "50.00", "ENG": "60.00", "MUS": "40.00"},
            "150.00",
            "50.00",
            "3",
            False,
            "4",
            "COMPLETE",
        ),
    ]
    assert sheet["summary"] == {
        "students": "3", "ranked": "3", "average": "63.33", "highest": "70.00", "lowest": "50.00", "passed": "3",
    }  # fmt: skip
    assert [subject["name"] for subject in sheet["subjects"]] == ["English", "Mathematics", "Music"]
    assert sheet["subjects"][2] == {
        "id": small.subjects["Music"]["id"], "base": small.subjects["Music"]["base"], "name": "Music", "code": "MUS",
        "elective": True, "submitted": False, "takers": "2", "graded": "2", "average": "50.00", "lowest": "40.00",
        "highest": "60.00", "teachers": [],
    }  # fmt: skip
    mathematics = sheet["students"][2]["results"][small.subjects["Mathematics"]["id"]]
    assert mathematics == {"percent": "50.00", "grade": "C6", "position": "3", "status": "GRADED"}


def test_a_student_without_a_mark_is_last_and_in_no_figure(small):
    sheet = small.broadsheet("B")

    assert rows(sheet) == [
        ("Ɗanladi", {"MAT": "90.00", "ENG": "50.00"}, "140.00", "70.00", "1", False, "1", "COMPLETE"),
        ("Ẹfẹ́", {"MAT": "35.00", "ENG": None}, "35.00", "35.00", None, False, None, "INCOMPLETE"),
    ]
    assert sheet["summary"] == {
        "students": "2", "ranked": "1", "average": "70.00", "highest": "70.00", "lowest": "70.00", "passed": "1",
    }  # fmt: skip
    assert [(subject["code"], subject["takers"], subject["graded"]) for subject in sheet["subjects"]] == [
        ("ENG", "2", "1"), ("MAT", "2", "2"),
    ]  # fmt: skip


def test_a_broadsheet_names_its_class_and_term(small):
    sheet = small.broadsheet("B", term=small.terms["FIRST"]["id"].upper())

    assert sheet["session"]["id"] == small.session["id"]
    assert sheet["term"] == {"id": small.terms["FIRST"]["id"], "term": "FIRST"}
    head = ("batch", "batch_name", "cohort", "classroom", "state", "version", "published_at")
    assert [sheet[name] for name in head] == [
        small.batches["B"], "B", small.cohort["id"], "SSS 2", "PROVISIONAL", None, None,
    ]  # fmt: skip


def test_a_term_without_anything_that_counts_has_no_subjects(small):
    sheet = small.broadsheet(term="SECOND")

    assert sheet["subjects"] == []
    assert {(row["status"], row["average"], row["total"]) for row in sheet["students"]} == {
        ("NONE", None, "0")
    }


def test_a_broadsheet_of_a_batch_without_students_is_empty(small, make):
    empty = small.make.batch(small.cohort, name="C")["id"]

    sheet = small.get("/broadsheets", batch=empty, term="FIRST")

    assert (sheet["students"], sheet["subjects"]) == ([], [])
    assert sheet["summary"] == {
        "students": "0", "ranked": "0", "average": None, "highest": None, "lowest": None, "passed": "0",
    }  # fmt: skip


def test_a_published_broadsheet_says_the_same_as_the_live_one(small):
    live = small.broadsheet()
    small.publish(arms="A")

    published = small.broadsheet()

    # Published subjects have been submitted, which is not part of this publication made by hand.
    for subject in live["subjects"]:
        subject["submitted"] = True
    assert published == {
        **live, "state": "PUBLISHED", "version": "1", "published_at": "2025-09-08T08:00:00+00:00",
    }  # fmt: skip
    assert small.broadsheet("B")["state"] == "PROVISIONAL"


def test_a_published_broadsheet_stays_while_the_live_one_goes_on(small):
    small.publish(state="REOPENED")
    before = small.broadsheet()
    small.score(small.paper("Mathematics", category="CA1"), {"Ada": 0, "Bọ́lá": 100, "Chidi": 100})
    small.api.ok(small.api.patch(f"/students/{small.students['Ada']}", {"last_name": "Ògúnlẹ́yẹ"}))

    assert small.broadsheet() == before
    assert before["state"] == "REOPENED"
    live = small.broadsheet(term="FIRST", live="true")
    assert [row[0] for row in rows(live)] == ["Bọ́lá", "Chidi", "Ada"]
    assert live["students"][2]["student"]["last_name"] == "Ògúnlẹ́yẹ"
    assert (live["state"], live["version"]) == ("PROVISIONAL", None)


def test_a_broadsheet_of_a_session_goes_until_the_latest_published_term(small):
    small.publish("FIRST")
    for name in ("Mathematics", "English"):
        small.score(small.paper(name, "SECOND"), {"Ada": 61, "Bọ́lá": 72.5, "Chidi": 50})
    small.publish("SECOND", arms="A")

    sheet = small.broadsheet(session=small.session["id"])

    # Music was not taught in the second term: shown, and not averaged.
    assert rows(sheet) == [
        ("Bọ́lá", {"MAT": "76.25", "ENG": "66.25"}, "142.50", "71.25", "1", False, "1", "COMPLETE"),
        (
            "Ada",
            {"MAT": "70.50", "ENG": "65.50", "MUS": "60.00"},
            "136.00",
            "68.00",
            "2",
            False,
            "2",
            "COMPLETE",
        ),
        (
            "Chidi",
            {"MAT": "50.00", "ENG": "55.00", "MUS": "40.00"},
            "105.00",
            "52.50",
            "3",
            False,
            "3",
            "COMPLETE",
        ),
    ]
    assert (sheet["term"], sheet["state"], sheet["version"]) == (None, "PUBLISHED", "1")
    assert sheet["summary"] == {
        "students": "3", "ranked": "3", "average": "63.92", "highest": "71.25", "lowest": "52.50", "passed": "3",
    }  # fmt: skip
    (english, mathematics, music) = sheet["subjects"]
    assert (english["average"], mathematics["lowest"], music["takers"]) == ("62.25", "50.00", "2")
    assert music["id"] == small.subjects["Music"]["id"]


def test_a_withdrawn_term_is_in_no_session(small):
    small.publish("FIRST")
    small.publish("SECOND", state="WITHDRAWN")

    sheet = small.broadsheet(session=small.session["id"])

    assert sheet["students"][0]["average"] == "70.00"
    # The term's own broadsheet is there for staff, and says so.
    assert small.broadsheet(term="SECOND")["state"] == "WITHDRAWN"


@pytest.mark.parametrize("path", ["/broadsheets", "/broadsheets/download"])
class TestRefused:
    def refused(self, small, path, status, field=None, **query):
        answer = small.api.get(path, query_string={"batch": small.batches["A"], **query})
        assert answer.status_code == status, answer.get_data(as_text=True)
        if field is not None:
            (place,) = answer.get_json()["errors"].values()
            assert [*place] == [field]

    def test_unknown_batch_and_term(self, small, path):
        self.refused(small, path, 422, "batch", batch=UNKNOWN_ID, term="FIRST")
        self.refused(small, path, 422, "term", term=UNKNOWN_ID)
        self.refused(small, path, 422, "term", term="THIRD")
        self.refused(small, path, 422, "term", term="first")

    def test_a_term_of_another_session(self, small, path):
        self.refused(small, path, 422, "term", term=small.make.term()["id"])

    def test_a_session_that_is_not_the_batchs(self, small, path):
        self.refused(small, path, 422, "session", session=small.make.session()["id"])
        self.refused(small, path, 422, "session", session="1066/1067")

    def test_a_session_without_published_results(self, small, path):
        self.refused(small, path, 404, session=small.session["id"])

    def test_a_term_and_a_session_or_neither(self, small, path):
        self.refused(small, path, 422, "term")
        self.refused(small, path, 422, "term", term="FIRST", session=small.session["id"])
        self.refused(small, path, 422, "live", live="true", session=small.session["id"])
        self.refused(small, path, 422, "live", live="perhaps", term="FIRST")
        # One that is not valid is given, and no other is asked for.
        self.refused(small, path, 422, "session", session="x" * 121)
        answer = small.api.get(path, query_string={"batch": small.batches["A"], "term": "x" * 121})
        assert answer.get_json()["errors"]["query"] == {"term": ["Length must be between 1 and 120."]}

    def test_of_the_other_school(self, small, make_other, path):
        cohort = make_other.cohort()
        term = make_other.term({"id": cohort["session"]})

        self.refused(small, path, 422, "batch", batch=cohort["id"], term="FIRST")
        self.refused(small, path, 422, "term", term=term["id"])
        self.refused(small, path, 422, "session", session=cohort["session"])
        # The refused records are there.
        there = {"batch": cohort["id"], "term": term["id"]}
        assert make_other.api.get(path, query_string=there).status_code == 200
        strangers = small.api.using(school=make_other.api.school)
        assert strangers.get(path, query_string=there).status_code == 403
