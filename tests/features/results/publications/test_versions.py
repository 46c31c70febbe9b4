"""A new version replaces papers, and every version stays readable to staff as it was."""

from __future__ import annotations

from io import BytesIO
from uuid import UUID, uuid4

import pytest
from openpyxl import load_workbook
from sqlalchemy import cast, select, update
from sqlalchemy.dialects.postgresql import JSONB

from school_service.auth.login_throttle import limiter
from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms
from tests.features.results.publications.test_published import as_student
from tests.features.results.report_cards.test_verification import code_of, verify
from tests.features.results.submissions.classes import message


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


@pytest.fixture
def anyone(api):
    return api.using(token=None, school=None)


def results(api, student, **query):
    return api.get(f"/students/{student}/results", query_string={"term": "FIRST", **query})


def card(api, student, **query):
    return api.get(f"/students/{student}/report-card", query_string={"term": "FIRST", **query})


def republished(arms, publication, change=lambda: None):
    """Reopen a publication, change something, and publish again."""
    arms.api.ok(arms.reopen(publication))
    change()
    (again,) = arms.api.ok(arms.publish(publication["batch"]))
    return again


def test_a6_of_a_class_of_31_one_paper_is_replaced_by_a_corrected_score(api, make, anyone, place):
    arms = Arms(make, 31, subjects=1)
    arms.mark(first=99, step=1)
    (first,) = arms.published(arms.first)
    corrected = arms.students[arms.first][15]
    codes = {student: code_of(api, student) for student in arms.students[arms.first]}

    # From 84 to 84.5: nobody's position moves.
    again = republished(arms, first, lambda: arms.correct(corrected, 84.5))

    assert (again["changed"], again["class_figures_changed"]) == (1, 30)
    (changed,) = api.ok(api.get(f"/publications/{again['id']}/changes"))
    assert changed["student"]["id"] == corrected
    limiter.limiter.storage.reset()
    states = {student: verify(anyone, place.id, code).get_json() for student, code in codes.items()}
    replaced = [student for student, told in states.items() if told["state"] == "REPLACED"]
    assert (replaced, states[corrected]["replaced_at"]) == ([corrected], again["published_at"])
    assert all(bool(told["note"]) == (student != corrected) for student, told in states.items())

    # To 85.5: above the one before, whose position moves.
    third = republished(arms, again, lambda: arms.correct(corrected, 85.5))

    other = arms.students[arms.first][14]
    assert third["changed"] == 2
    assert {row["student"]["id"] for row in api.ok(api.get(f"/publications/{third['id']}/changes"))} == {
        corrected,
        other,
    }


def test_a6_a_paper_with_the_content_in_force_again_is_current_again(api, arms, anyone, place):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    code = code_of(api, student)
    again = republished(arms, first, lambda: arms.correct(student, 95))
    assert verify(anyone, place.id, code).get_json()["state"] == "REPLACED"

    third = republished(arms, again, lambda: arms.correct(student, 90))

    told = verify(anyone, place.id, code).get_json()
    assert (told["state"], told["replaced_at"], told["note"]) == ("CURRENT", None, None)
    assert third["changed"] == 1
    code_of_second = code_of(api, student, version=2)
    assert verify(anyone, place.id, code_of_second).get_json()["state"] == "REPLACED"


def rename(arms):
    api, student = arms.api, arms.students[arms.first][1]
    api.ok(api.patch(f"/students/{student}", {"last_name": "Àbíkẹ́"}))


def comment(arms):
    said = [{"student": arms.students[arms.first][1], "form_teacher_comment": "Ó dára."}]
    body = {"batch": arms.first, "term": "FIRST", "comments": said}
    arms.api.ok(arms.api.put("/comments", body))


def attend(arms):
    term = arms.terms["FIRST"]["id"]
    arms.api.ok(arms.api.put(f"/terms/{term}/calendar", {"times_opened": 100}))


def change_letterhead(arms):
    arms.api.ok(arms.api.patch("/letterhead", {"motto": "Ìmọ́lẹ̀ wa"}))


def change_calendar(arms):
    term = arms.terms["FIRST"]["id"]
    arms.api.ok(arms.api.put(f"/terms/{term}/calendar", {"next_term_begins": "2026-01-12", "notice": "Fees"}))


def change_form_teacher(arms):
    api, teacher = arms.api, arms.make.employee()["id"]
    api.ok(api.patch(f"/teachers/{arms.first}/add_to_batch", {"teacher_id": teacher}))


def hide_positions(arms):
    arms.api.ok(arms.api.patch("/result-settings", {"positions": "COHORT"}))


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (rename, 1),
        (comment, 1),
        (attend, 2),
        (hide_positions, 2),
        (change_letterhead, 0),
        (change_calendar, 0),
        (change_form_teacher, 0),
    ],
)
def test_a6_papers_of_changed_cards_alone_are_replaced(api, arms, anyone, place, change, changed):
    (first,) = arms.published(arms.first)
    codes = [code_of(api, student) for student in arms.students[arms.first]]

    again = republished(arms, first, lambda: change(arms))

    assert (again["changed"], again["class_figures_changed"]) == (changed, 0)
    states = [verify(anyone, place.id, code).get_json()["state"] for code in codes]
    assert states.count("REPLACED") == changed


def test_a6_an_outcome_replaces_no_paper(api, make, arms, anyone, place):
    arms.published()
    codes = [code_of(api, student) for student in arms.students[arms.first]]
    above = make.cohort(session=make.session())
    body = {
        "session": arms.cohort["session"],
        "moves": [{"batch": arms.first, "promote_to": above["id"], "repeat_in": None}],
        "overrides": [],
    }
    seen = api.ok(api.post("/promotions?dry_run=true", body))

    api.ok(api.post("/promotions", {**body, "fingerprint": seen["fingerprint"]}))

    assert {verify(anyone, place.id, code).get_json()["state"] for code in codes} == {"CURRENT"}


def test_a7_every_version_is_read_as_it_was(api, make, arms):
    (first,) = arms.published(arms.first)
    student, other = arms.students[arms.first]
    before = results(api, student).get_json()
    again = republished(arms, first, lambda: arms.correct(student, 95))

    assert results(api, student, version=1).get_json() == {**before, "state": "SUPERSEDED"}
    assert results(api, student, version=2).get_json() == results(api, student).get_json()
    of_first, of_second = (api.ok(api.get(f"/publications/{row['id']}/cards")) for row in (first, again))
    shown = [[(row["student"]["id"], row["average"], row["position"], row["version"]) for row in of]
             for of in (of_first, of_second)]  # fmt: skip
    assert sorted(shown[0]) == sorted([(student, 90, 1, 1), (other, 85, 2, 1)])
    assert sorted(shown[1]) == sorted([(student, 92.5, 1, 2), (other, 85, 2, 2)])
    assert results(api, student, version=3).status_code == 404
    assert results(api, str(uuid4()), version=1).status_code == 404
    api.ok(arms.reopen(again, withdraw=True))
    assert results(api, student, version=2).get_json()["state"] == "WITHDRAWN"
    assert results(api, student, version=1).get_json() == {**before, "state": "SUPERSEDED"}


def test_a7_a_version_in_a_class_that_was_left_is_read_too(api, make, arms):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    before = results(api, student).get_json()
    make.enrolled(arms.cohort, {"id": student}, batch=arms.second)
    leaving = {"leave_out": [{"student": student, "reason": "In the other arm"}]}
    api.ok(arms.reopen(first))
    api.ok(api.post("/publications", {"term": "FIRST", "batches": [arms.first], **leaving}))
    assert results(api, student, version=1).get_json() == {**before, "state": "SUPERSEDED"}

    api.ok(arms.publish(arms.second))

    # Of two first versions it is the one of the batch in which a card is in force.
    assert results(api, student, version=1).get_json()["batch"] == arms.second


@pytest.mark.program
def test_a7_every_version_is_printed_as_it_was(api, make, arms):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    before = card(api, student)
    again = republished(arms, first, lambda: arms.correct(student, 95))

    printed = card(api, student, version=1)

    assert (printed.status_code, printed.data) == (200, before.data)
    assert card(api, student, version=2).data == card(api, student).data != before.data
    answer = card(api, student, version=3)
    assert (answer.status_code, message(answer)) == (404, "The student has no report card of that version.")
    logged = api.ok(api.get("/audit", query_string={"entity": "export", "id": student}))["data"]
    assert [entry["new"].get("version") for entry in logged[:3]] == [None, 2, 1]
    assert again["version"] == 2


@pytest.mark.parametrize("version", ["0", "-1", "x", "1.5", "", str(2**31)])
@pytest.mark.parametrize("read", [results, card])
def test_a7_a_version_is_a_number_from_one(api, arms, read, version):
    (arms.published(arms.first))

    answer = read(api, arms.students[arms.first][0], version=version)

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["version"])


def test_a7_a_version_is_neither_live_nor_a_draft(api, arms):
    arms.published(arms.first)
    student = arms.students[arms.first][0]

    for answer, name in (
        (results(api, student, version=1, live="true"), "live"),
        (card(api, student, version=1, draft="true"), "draft"),
    ):
        assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [name])


def test_a7_versions_are_for_staff(api, make, other_api, make_other, arms):
    (first,) = arms.published(arms.first)
    student, classmate = arms.students[arms.first]
    own = as_student(make, student)

    for read in (results, card):
        answer = read(own, student, version=1)
        assert (answer.status_code, message(answer)) == (403, "Students see what is published of them alone.")
        assert read(own, classmate, version=1).status_code == 403
    path = f"/publications/{first['id']}/cards"
    assert own.get(path).status_code == 403
    assert other_api.get(path).status_code == 404
    assert api.get(f"/publications/{uuid4()}/cards").status_code == 404
    for read in (results, card):
        assert read(other_api, student, version=1).status_code == 404
    make.check_permission("GET", path, "read:results", others={"read:gradebooks", "write:results"}, json=None)


def test_a7_the_layout_is_frozen_and_cards_without_one_have_the_first(api, arms):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    since = ("class_name", "name_order", "signatures", "time_zone")

    def change(frozen):
        with in_transaction(SchoolBinding(api.school)):
            db.session.execute(update(ReportCard).values(card=frozen))

    with in_transaction(SchoolBinding(api.school)):
        (frozen,) = db.session.scalars(select(ReportCard.card).where(ReportCard.student_id == UUID(student)))
    now = card(api, student).data
    older = ReportCard.card
    for name in since:
        older = older.op("-")(name)
    change(older.op("||")(cast({"layout": 1}, JSONB)))
    first = card(api, student).data
    change(ReportCard.card.op("-")("layout"))

    assert frozen["layout"] == 3
    assert {name: frozen[name] for name in since} == {
        "class_name": f"{arms.cohort['classroom']} A",
        "name_order": "GIVEN_FIRST",
        "signatures": "PICTURES",
        "time_zone": "Africa/Lagos",
    }
    assert card(api, student).data == first != now


def test_a8_workbooks_of_published_results_keep_the_schools_name(api, arms):
    api.ok(api.patch("/letterhead", {"name": "Kọ́lẹ́jì Ìmọ́lẹ̀"}))
    arms.published()
    paths = [
        f"/broadsheets/download?batch={arms.first}&{of}"
        for of in ("term=FIRST", f"session={arms.cohort['session']}")
    ]
    before = [api.get(path).data for path in paths]

    api.ok(api.patch("/letterhead", {"name": "Renamed"}))

    assert [api.get(path).data for path in paths] == before
    for workbook in before:
        sheets = load_workbook(BytesIO(workbook))
        assert sheets["Broadsheet"]["A1"].value == "Kọ́lẹ́jì Ìmọ́lẹ̀"
