"""Promotions, undoing and scores at the same moment, in a school whose requests commit; and a server that is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3
from sqlalchemy import text

from tenants.registry.schools import schema_name
from tests.cli.program import serving, wait_for
from tests.features.results.promotions.ends import End, of
from tests.features.results.promotions.test_undo import score
from tests.features.results.submissions.classes import message
from tests.features.scores.scoresheets.test_killed_server import (
    GONE,
    environment,
    read_value,
    tables_locked,
    watching_schools,
)
from tests.postgres import on_citus
from tests.threads import run_concurrently

WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND query LIKE :query"
)
# The first statement of undoing; the lock of assessments is the second, and PostgreSQL need not tell its text.
LOCKING = "SELECT cohorts.id%"
SCORING = "SELECT assessments.total_points%"


@pytest.fixture
def end(committing):
    end = End(committing)
    end.published()
    return end


def standing_of(end):
    listed = end.api.ok(end.api.get("/promotions"))["data"]
    return [promotion["id"] for promotion in listed if promotion["undone_at"] is None]


def test_must_hold_6_twenty_commits_of_the_same_make_one_promotion(end):
    moves = [end.move(end.first, promote_to=None), end.move(end.second)]
    body = end.body(*moves, fingerprint=end.rehearsal(*moves)["fingerprint"])

    answers = run_concurrently(20, lambda _: end.api.using().post("/promotions", body))

    (promotion,) = {str(end.api.ok(answer)) for answer in answers}
    assert standing_of(end) == [answers[0].get_json()["id"]]
    assert str(answers[0].get_json()) == promotion
    assert [graduate["id"] for graduate in end.api.ok(end.api.get("/graduates"))] == [1, 2]
    assert end.students_of(end.above) == set(end.students[end.second])


def test_of_different_promotions_of_a_batch_one_is_made(end):
    bodies = []
    for student in end.everybody:
        overrides = [{"student": student, "outcome": "LEFT_OUT", "reason": "Moves to Jos"}]
        end.overrides = overrides
        bodies.append(end.body(fingerprint=end.rehearsal()["fingerprint"]))

    answers = run_concurrently(4, lambda number: end.api.using().post("/promotions", bodies[number]))

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    (made,) = (number for number, answer in enumerate(answers) if answer.status_code == 200)
    assert standing_of(end) == [answers[made].get_json()["id"]]
    assert end.students_of(end.above) == set(end.everybody) - {end.everybody[made]}


def test_committing_enrolling_reopening_and_undoing_wait_in_no_circle(end):
    """Whichever comes first: nobody is in two classes of the next session, and promoted results are published."""
    api = end.api
    body = end.body(fingerprint=end.rehearsal()["fingerprint"])
    publications = [publication["id"] for publication in end.listed(cohort=end.cohort["id"])]

    def work(number):
        client = api.using()
        if number % 4 == 0:
            return client.post("/promotions", body)
        if number % 4 == 1:
            enrollment = {"students": end.everybody, "batch": end.again["id"]}
            return client.post(f"/cohorts/{end.again['id']}/enrollment", enrollment)
        if number % 4 == 2:
            reason = {"reason": "A paper was found"}
            return client.post(f"/publications/{publications[number % 8 // 4]}/reopening", reason)
        return (
            client.delete(f"/promotions/{standing_of(end)[0]}") if number > 8 and standing_of(end) else None
        )

    answers = run_concurrently(16, work)

    assert {answer.status_code for answer in answers if answer is not None} <= {200, 409}
    above, again = end.students_of(end.above), end.students_of(end.again)
    assert not above & again
    assert above in (set(), set(end.everybody))
    if standing_of(end):
        states = {publication["state"] for publication in end.listed(cohort=end.cohort["id"])}
        assert states == {"PUBLISHED"}


def test_a_score_that_comes_while_a_promotion_is_undone_is_refused(end, tenancy):
    promotion = end.promoted()
    student = end.everybody[0]
    paper = end.make.assessment(end.compulsory, end.make.term(end.next_session))
    score = {"assessment": paper["id"], "student": student, "batch": end.above["id"], "score": 1}
    assessments = f"school_{end.api.school.hex}.assessments"

    with ThreadPoolExecutor() as threads, watching_schools(tenancy) as watching:
        with tenancy.admin.begin() as locking:
            locking.execute(text(f"SELECT FROM {assessments} FOR UPDATE"))
            undoing = threads.submit(end.api.using().delete, f"/promotions/{promotion['id']}")
            wait_for(
                lambda: read_value(watching, WAITING, query=LOCKING), "the one who undoes, at the assessment"
            )
            scoring = threads.submit(end.api.using().post, "/gradebooks", score)
            wait_for(lambda: read_value(watching, WAITING, query=SCORING), "the score, behind them")
        undone, refused = undoing.result(), scoring.result()

    assert (undone.status_code, refused.status_code) == (200, 422)
    assert refused.get_json()["errors"]["json"] == {"student": ["is not in the batch"]}
    assert end.api.ok(end.api.get("/gradebooks", query_string={"assessment": paper["id"]}))["total"] == 0


def test_undoing_races_scores(end):
    promotion = end.promoted()
    student = end.everybody[0]
    term = end.make.term(end.next_session)
    papers = [end.make.assessment(end.compulsory, term)["id"] for _ in range(6)]

    def work(number):
        client = end.api.using()
        if number == 3:
            return client.delete(f"/promotions/{promotion['id']}")
        score = {"student": student, "batch": end.above["id"], "score": 1}
        return client.post("/gradebooks", {**score, "assessment": papers[number % 6]})

    answers = run_concurrently(6, work)

    undone = answers.pop(3).status_code
    stored = end.api.ok(end.api.get("/gradebooks", query_string={"student": student}))["data"]
    of_next = [entry for entry in stored if entry["assessment"] in papers]
    if undone == 200:
        assert {answer.status_code for answer in answers} == {422}
        assert of_next == []
    else:
        assert undone == 409
        assert of_next


@pytest.mark.program
@pytest.mark.parametrize("act", ["commit", "undo"])
def test_must_hold_6_a_server_that_is_killed_leaves_nothing_of_it(end, tenancy, settings, tmp_path, act):
    moves = [end.move(end.first, promote_to=None), end.move(end.second)]
    fingerprint = end.rehearsal(*moves)["fingerprint"]
    schema = f"school_{end.api.school.hex}"
    if act == "commit":
        # The graduates' numbers come last.
        method, path, body = "POST", "/promotions", end.body(*moves, fingerprint=fingerprint)
        rows, query = f"{schema}.counters", "INSERT INTO promotions%"
    else:
        method, path, body = "DELETE", f"/promotions/{end.promoted(*moves)['id']}", None
        rows, query = f"{schema}.promotions", "UPDATE assessments%"
    before, logged = end.stored(), end.api.ok(end.api.get("/audit"))["total"]
    standing = standing_of(end)

    with (
        serving(cwd=tmp_path, settings=environment(settings)) as service,
        ThreadPoolExecutor() as threads,
        watching_schools(tenancy) as watching,
    ):
        with tenancy.admin.begin() as locking:
            locking.execute(text(f"SELECT FROM {rows} FOR UPDATE"))
            answer = threads.submit(send, service, end.api, method, path, body)

            def blocked():
                assert not answer.done(), answer.result()
                return read_value(watching, WAITING, query=query)

            pid = wait_for(blocked, "its last write")
            service.process.kill()
            service.process.wait()
        wait_for(lambda: read_value(watching, GONE, pid=pid), "the end of the server's transaction")
        assert answer.result() is None

    assert (end.stored(), standing_of(end)) == (before, standing)
    assert end.api.ok(end.api.get("/audit"))["total"] == logged
    again = end.commit(*moves, fingerprint=fingerprint) if act == "commit" else end.api.delete(path)
    assert again.status_code == 200
    assert len(standing_of(end)) == (act == "commit")


def send(service, api, method, path, body):
    """Send a request; gives the answer, or None where there was none."""
    try:
        return urllib3.request(
            method,
            service.base_url + path,
            headers={"Authorization": f"Bearer {api.token}", "X-SCHOOL-ID": str(api.school)},
            **({} if body is None else {"json": body}),
            retries=False,
        ).data
    except urllib3.exceptions.HTTPError:
        return None


def test_a11_of_reopening_a_card_of_another_class_and_promoting_by_it_one_is_refused(committing):
    """The card on which the promotion rests is of another cohort: no lock of a class is common to both."""
    make, api = committing, committing.api
    for _ in range(4):
        end = End(make, students=1, subjects=1)
        first, _ = end.published()
        (student,) = end.students[end.first]
        removed = {"student_ids": [student]}
        api.ok(api.patch(f"/cohorts/{end.cohort['id']}/remove_students", removed))
        other = make.cohort(session={"id": end.session})
        make.enrolled(other, {"id": student})
        move = end.move(other["id"])
        body = end.body(move, fingerprint=end.rehearsal(move)["fingerprint"])
        acts = [
            lambda client, body=body: client.post("/promotions", body),
            lambda client, first=first: client.post(
                f"/publications/{first['id']}/reopening", {"reason": "A paper was found"}
            ),
        ]

        answers = run_concurrently(2, lambda number, acts=acts: acts[number](api.using()))

        assert sorted(answer.status_code for answer in answers) == [200, 409]


@pytest.mark.skipif(on_citus(), reason="the operator's connection is to another server than the school's")
def test_a11_a_promotion_waits_for_the_reopening_of_a_card_and_is_refused(committing, tenancy):
    make, api = committing, committing.api
    end = End(make, students=1, subjects=1)
    first, _ = end.published()
    (student,) = end.students[end.first]
    removed = {"student_ids": [student]}
    api.ok(api.patch(f"/cohorts/{end.cohort['id']}/remove_students", removed))
    other = make.cohort(session={"id": end.session})
    make.enrolled(other, {"id": student})
    move = end.move(other["id"])
    body = end.body(move, fingerprint=end.rehearsal(move)["fingerprint"])

    with ThreadPoolExecutor() as threads, tenancy.admin.begin() as reopening:
        reopening.execute(text(f'SET LOCAL search_path TO "{schema_name(api.school)}"'))
        # As reopening does: the card, and then the state of its publication.
        reopening.execute(
            text("SELECT id FROM report_cards WHERE publication_id = :id FOR NO KEY UPDATE"),
            {"id": first["id"]},
        )
        with watching_schools(tenancy) as watching:
            promoting = threads.submit(lambda: api.using().post("/promotions", body))
            wait_for(lambda: read_value(watching, WAITING, query=LOCKING), "the promotion, at the card")
        reopening.execute(
            text(
                "UPDATE publications SET state = 'REOPENED', reopened_at = now(), reopened_by = 'x',"
                " reopened_by_name = 'x', reason = 'x' WHERE id = :id"
            ),
            {"id": first["id"]},
        )
        reopening.commit()
        answer = promoting.result()

    assert answer.status_code == 409


def test_of_amendments_at_once_the_last_one_holds_and_each_is_noted(end):
    api, before = end.api, end.stored()
    promotion = end.promoted()
    student = end.everybody[0]
    decisions = (
        *(("REPEATED", end.again["id"]), ("PROMOTED_ON_TRIAL", end.above["id"])),
        *(("LEFT_OUT", None), ("GRADUATED", None)),
    )

    def work(number):
        outcome, batch = decisions[number % 4]
        body = {"outcome": outcome, "reason": "The staff met again", **({"batch": batch} if batch else {})}
        return api.using().patch(f"/promotions/{promotion['id']}/decisions/{student}", body)

    answers = run_concurrently(8, work)

    assert {answer.status_code for answer in answers} == {200}
    shown = api.ok(api.get(f"/promotions/{promotion['id']}"))
    decision = of(shown, student)
    last = (decision["outcome"], decision["to_batch"])
    changes = [(amendment["outcome"], amendment["to_batch"]) for amendment in decision["amended"]]
    assert changes[-1] == last
    logged = api.ok(api.get("/audit", query_string={"entity": "promotion", "id": student}))["data"]
    steps = [[(row[side]["outcome"], row[side]["batch"]) for side in ("old", "new")] for row in logged[::-1]]
    assert [after for _, after in steps] == changes
    assert [before for before, _ in steps] == [("PROMOTED", end.above["id"]), *changes[:-1]]
    assert shown["counts"] == {**dict.fromkeys(shown["counts"], 0), "PROMOTED": 3, last[0]: 1}
    places = {cohort["id"] for cohort in (end.above, end.again) if student in end.students_of(cohort)}
    assert places == {last[1]} - {None}
    api.ok(end.undo(promotion))
    assert end.stored() == before


def test_an_amendment_and_the_undoing_at_once_leave_nothing_of_either(end):
    api, before = end.api, end.stored()
    for student in end.everybody:
        promotion = end.promoted()

        def work(number, student=student, path=f"/promotions/{promotion['id']}"):
            if number:
                body = {"outcome": "REPEATED", "batch": end.again["id"], "reason": "The staff met again"}
                return api.using().patch(f"{path}/decisions/{student}", body)
            return api.using().delete(path)

        undone, amended = run_concurrently(2, work)

        assert (undone.status_code, amended.status_code) in {(200, 200), (200, 409)}
        if amended.status_code == 409:
            assert message(amended) == "The promotion is undone."
        assert (end.stored(), standing_of(end)) == (before, [])


@pytest.mark.skipif(on_citus(), reason="the operator's connection is to another server than the school's")
def test_an_amendment_waits_for_the_card_of_the_next_session_and_is_refused(end, tenancy):
    api, promotion = end.api, end.promoted()
    student = end.everybody[0]
    score(end, student)
    submission = {"term": "FIRST", "blanks": "EXCUSED"}
    api.ok(api.post(f"/cohort-subjects/{end.compulsory['id']}/submission", submission))
    body = {"term": "FIRST", "batches": [end.above["id"]]}

    with ThreadPoolExecutor() as threads, watching_schools(tenancy) as watching:
        # All is judged, and the cards have to wait.
        with tables_locked(tenancy, api.school, "report_cards"):
            publishing = threads.submit(lambda: api.using().post("/publications", body))
            wait_for(lambda: read_value(watching, WAITING, query="UPDATE%publications%"), "the publication")
            amending = threads.submit(end.amend, promotion, student, "REPEATED", end.again["id"])
            wait_for(
                lambda: amending.done() or read_value(watching, WAITING, query=LOCKING),
                "the amendment, behind it",
            )
            assert not amending.done()
        published, refused = publishing.result(), amending.result()

    assert (published.status_code, refused.status_code) == (200, 409)
    assert "has a report card" in message(refused)
    assert student in end.students_of(end.above)


def test_of_a_publication_and_an_amendment_at_once_no_card_is_of_a_class_that_was_left(end):
    api, promotion = end.api, end.promoted()
    paper = end.make.assessment(end.compulsory, end.make.term(end.next_session))
    for student in end.everybody:
        end.make.entry(paper, student, end.above["id"])
    submission = {"term": "FIRST", "blanks": "EXCUSED"}
    subject = f"/cohort-subjects/{end.compulsory['id']}"
    api.ok(api.post(f"{subject}/submission", submission))
    for student in end.everybody[:3]:

        def work(number, student=student):
            if number:
                body = {"outcome": "REPEATED", "batch": end.again["id"], "reason": "The staff met again"}
                return api.using().patch(f"/promotions/{promotion['id']}/decisions/{student}", body)
            return api.using().post("/publications", {"term": "FIRST", "batches": [end.above["id"]]})

        published, amended = run_concurrently(2, work)

        (made,) = api.ok(published)
        cards = {card["student"]["id"] for card in api.ok(api.get(f"/publications/{made['id']}/cards"))}
        assert amended.status_code in {200, 409}
        assert (student in cards) == (amended.status_code == 409)
        api.ok(end.reopen(made, withdraw=True))
