"""Every operation, by every relation, of one's own records and of others', in two arms and two sessions.

Each operation of the document that needs a permission says what OWN means (`x-own`), as tests/operations.json has it:
one that says otherwise, or is narrowed and has no case here, fails the first test. A case is sent by a caller of each
relation for the records of their place, and for records of the other places by all who reach theirs. A record in reach
is answered, and holds no student out of reach; a record out of reach is answered as an id of no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest

from school_service.seed.defaults import TRAITS
from tests.client import ApiClient
from tests.factories import UNKNOWN_ID, Factory
from tests.features.reach.conftest import OF_TEACHERS, Own, this_session
from tests.features.sign_in.rows import store_identity, store_invitation, store_session, store_ways_in
from tests.features.test_access_matrix import documented_operations
from tests.operations import STORED, having
from tests.savepoint_engine import uncommitted


@dataclass(frozen=True)
class Place:
    """The records of one arm, of students who are in it and take the subject.

    `student`, with the admission number `number`, has a score, the `newcomer` none, and `absent` was away.
    """

    student: str
    newcomer: str
    absent: str
    number: str
    batch: str
    cohort: str
    subject: str
    base: str
    term: str
    assessment: str
    entry: str
    account: str
    contact: str
    employee: str
    guardian: str
    heading: str = ""
    publication: str = ""
    register: str = ""
    lesson: str = ""


_school: list[Any] = []


def session_of(account: str) -> str:
    """Store a session of an account; answers its id."""
    return UNKNOWN_ID if account == UNKNOWN_ID else store_session(_school[-1], account)


def identity_of(account: str) -> str:
    """Link an account to another identity; answers the id of the link."""
    return UNKNOWN_ID if account == UNKNOWN_ID else store_identity(_school[-1], account)


def invitation_of(account: str) -> str:
    """Store an open invitation of an account; answers its id."""
    return UNKNOWN_ID if account == UNKNOWN_ID else store_invitation(_school[-1], account)


UNKNOWN = Place(*[UNKNOWN_ID for _ in fields(Place)])
ARM, SESSION = "arm", "session"


@dataclass(frozen=True)
class Case:
    """A request that is narrowed: for which relations, and how it is sent for a place.

    `others` are the places out of reach whose id in the request is another one. `listed` is a list without an id: the
    answer to a caller who reaches nothing is an empty one. `at` names the id of a place that the answer is to hold.
    `every_arm`: a subject teacher needs all arms. `files` are uploaded, in place of a body. `by`: the callers who reach
    it, where these are others than the relations: with M everybody has an account of their own, and the place has the
    student's. `apart`: the callers whose answers other tests have. `published`: the results of each place are published
    before.
    """

    relations: str
    path: Callable[[Place], str]
    body: Callable[[Place], Any] | None = None
    others: tuple[str, ...] = (ARM, SESSION)
    listed: bool = False
    at: str = "student"
    every_arm: bool = False
    files: Callable[[Place], dict[str, Any]] | None = None
    by: str | None = None
    apart: str = ""
    published: bool = False


def scores_of(place: Place) -> tuple[BytesIO, str]:
    """A score sheet with a row for the student."""
    return BytesIO(f"admission_number,score\n{place.number},7\n".encode()), "scores.csv"


def of_arm(place: Place) -> str:
    """The arm and the term of marks, in a query."""
    return f"batch={place.batch}&term={place.term}"


def subject_marks_of(place: Place) -> tuple[BytesIO, str]:
    """A mark sheet with a row for the student, whose columns are found by their headings."""
    return BytesIO(f"admission_number,{place.heading}\n{place.number},7\n".encode()), "marks.csv"


def traits_of(number: str, score: int = 3) -> tuple[BytesIO, str]:
    """A metric sheet with a row for a student, by their admission number."""
    traits = TRAITS["PSYCHOMOTOR"]
    rows = [["admission_number", *traits], [number, *[str(score)] * len(traits)]]
    return BytesIO("\n".join(map(",".join, rows)).encode()), "traits.csv"


def comments_of(place: Place) -> tuple[BytesIO, str]:
    """A comment sheet with a row for the student."""
    header = "admission_number,times_present,form_teacher_comment,principal_comment"
    return BytesIO(f"{header}\n{place.number},2,,\n".encode()), "comments.csv"


def marks_of(place: Place) -> tuple[BytesIO, str]:
    """A sheet of registers with today's mark of the student."""
    day = date.fromisoformat(Own.today())
    return BytesIO(f"admission_number,{day:%a} {day.day} {day:%b}\n{place.number},P\n".encode()), "week.csv"


def monday() -> str:
    """The Monday of this week."""
    day = date.fromisoformat(Own.today())
    return str(day - timedelta(days=day.weekday()))


def of_day(place: Place) -> str:
    """The key of a register of today, in a query."""
    return f"batch={place.batch}&date={Own.today()}&part=DAY"


def of_lesson(place: Place) -> str:
    """The key of a lesson of today, in a query."""
    return f"batch={place.batch}&date={Own.today()}&cohort_subject={place.subject}&period=2"


CASES: dict[str, list[Case]] = {
    "GET /students": [
        Case("TFSG", lambda _: "/students?pageSize=1000", listed=True),
        Case("TFSG", lambda place: f"/students?batch={place.batch}"),
        Case("TFSG", lambda place: f"/students?cohort={place.cohort}", others=(SESSION,)),
    ],
    "GET /students/{id}": [Case("TFSG", lambda place: f"/students/{place.student}")],
    "GET /guardians": [
        Case("FG", lambda _: "/guardians?pageSize=1000", listed=True, at="guardian"),
        Case("FG", lambda place: f"/guardians?student={place.student}", at="guardian"),
    ],
    "GET /guardians/{id}": [Case("FG", lambda place: f"/guardians/{place.guardian}", at="guardian")],
    "GET /students/{id}/guardians": [
        Case("FG", lambda place: f"/students/{place.student}/guardians", at="guardian")
    ],
    "GET /cohorts/{id}/students": [
        Case("TFSG", lambda place: f"/cohorts/{place.cohort}/students", others=(SESSION,))
    ],
    "GET /cohorts": [Case("TFSG", lambda _: "/cohorts", listed=True, at="cohort")],
    "GET /sessions/current": [
        # All of it is in everybody's reach, but for the counts of the school.
        Case("TFSGM", lambda _: "/sessions/current", others=(), at='"counts":null', by="TFSG")
    ],
    "GET /cohorts/{id}": [
        Case("TFSG", lambda place: f"/cohorts/{place.cohort}", others=(SESSION,), at="cohort")
    ],
    "GET /cohorts/{id}/batches": [
        Case("TFSG", lambda place: f"/cohorts/{place.cohort}/batches", others=(SESSION,), at="batch")
    ],
    "GET /batches/{id}": [Case("TFSG", lambda place: f"/batches/{place.batch}", at="batch")],
    "GET /teachers/{cohortId}": [Case("TFSG", lambda place: f"/teachers/{place.batch}", at="batch")],
    "GET /cohort-subjects": [
        Case("TFSG", lambda _: "/cohort-subjects?pageSize=1000", listed=True, at="subject"),
        Case("TFSG", lambda place: f"/cohort-subjects?batch={place.batch}", at="subject"),
    ],
    "GET /cohort-subjects/{id}": [
        Case("TFSG", lambda place: f"/cohort-subjects/{place.subject}", others=(SESSION,), at="subject")
    ],
    "GET /subject-teachers": [
        Case("TFSG", lambda _: "/subject-teachers?pageSize=1000", listed=True, at="subject"),
        Case("TFSG", lambda place: f"/subject-teachers?batch={place.batch}", at="subject"),
    ],
    "GET /assessments": [
        Case(
            "TF",
            lambda place: f"/assessments?cohort={place.batch}&subject={place.subject}&term={place.term}",
            at="assessment",
        )
    ],
    "GET /assessments/{id}": [
        Case("TF", lambda place: f"/assessments/{place.assessment}", others=(SESSION,), at="assessment")
    ],
    "POST /assessments": [
        Case(
            "T",
            lambda _: "/assessments",
            lambda place: {
                "category": "CA1",
                "subject": place.subject,
                "name": "Test",
                "abbreviation": "T",
                "due_date": "2025-10-17",
                "total_points": 20,
                "term": place.term,
                "description": "Fractions",
                "file_name": "test.xlsx",
                "include_in_final": True,
                "publish_scores": False,
            },
            others=(SESSION,),
            at="subject",
        )
    ],
    "PATCH /assessments/{id}": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}",
            lambda place: {"name": "Changed", "total_points": 90, "term": place.term},
            others=(SESSION,),
            at="assessment",
            every_arm=True,
        )
    ],
    "POST /assessments/many": [
        Case(
            "T",
            lambda _: "/assessments/many",
            lambda place: {
                "category": "CA1",
                "subjects": [place.subject],
                "name": "Test",
                "abbreviation": "T",
                "due_date": "2025-10-17",
                "total_points": 20,
                "term": place.term,
                "description": "Fractions",
                "file_name": "test.xlsx",
                "include_in_final": True,
                "publish_scores": False,
            },
            others=(SESSION,),
            at="subject",
        )
    ],
    "DELETE /assessments/{id}": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}",
            others=(SESSION,),
            at="assessment",
            every_arm=True,
        )
    ],
    "GET /gradebooks": [
        Case("TF", lambda _: "/gradebooks?pageSize=1000", listed=True, at="entry"),
        Case("TF", lambda place: f"/gradebooks?batch={place.batch}", at="entry"),
        Case("TF", lambda place: f"/gradebooks?student={place.student}", at="entry"),
    ],
    "GET /gradebooks/{id}": [Case("TF", lambda place: f"/gradebooks/{place.entry}", at="entry")],
    "POST /gradebooks": [
        Case(
            "T",
            lambda _: "/gradebooks",
            lambda place: {
                "assessment": place.assessment,
                "score": 1,
                "student": place.newcomer,
                "batch": place.batch,
            },
            others=(SESSION,),
            at="assessment",
        )
    ],
    "PATCH /gradebooks/{id}": [
        Case("T", lambda place: f"/gradebooks/{place.entry}", lambda _: {"score": 3}, at="entry")
    ],
    "GET /assessments/{id}/absences": [
        Case("TF", lambda place: f"/assessments/{place.assessment}/absences", others=(SESSION,), at="absent")
    ],
    "PUT /assessments/{id}/absences": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}/absences",
            lambda place: {"absences": [{"student": place.newcomer, "status": "ABSENT"}]},
            others=(SESSION,),
            at="newcomer",
        )
    ],
    "GET /assessments/{id}/scores": [
        Case("TF", lambda place: f"/assessments/{place.assessment}/scores", others=(SESSION,), at="student")
    ],
    "PUT /assessments/{id}/scores": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}/scores",
            lambda place: [{"student": place.newcomer, "score": 3}],
            others=(SESSION,),
            at="newcomer",
        )
    ],
    "GET /cohort-subjects/{id}/students": [
        Case("TF", lambda place: f"/cohort-subjects/{place.subject}/students", others=(SESSION,))
    ],
    "GET /cohort-subjects/{id}/mark-sheet": [
        Case(
            "TF",
            lambda place: f"/cohort-subjects/{place.subject}/mark-sheet?{of_arm(place)}",
            others=(SESSION,),
            at="number",
        )
    ],
    "POST /cohort-subjects/{id}/mark-sheet": [
        Case(
            "T",
            lambda place: f"/cohort-subjects/{place.subject}/mark-sheet?{of_arm(place)}",
            others=(SESSION,),
            at="updated",
            files=lambda place: {"mark_sheet": subject_marks_of(place)},
        )
    ],
    "GET /cohort-subjects/{id}/scores": [
        Case(
            "TF",
            lambda place: f"/cohort-subjects/{place.subject}/scores?{of_arm(place)}",
            others=(SESSION,),
        )
    ],
    "PUT /cohort-subjects/{id}/scores": [
        Case(
            "T",
            lambda place: f"/cohort-subjects/{place.subject}/scores?{of_arm(place)}",
            lambda place: [{"student": place.newcomer, "assessment": place.assessment, "score": 3}],
            others=(SESSION,),
            at="newcomer",
        )
    ],
    "GET /mark-sheets": [Case("TF", lambda place: f"/mark-sheets?{of_arm(place)}", at="number")],
    "DELETE /assessments/{id}/absences/{student_id}": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}/absences/{place.absent}",
            others=(SESSION,),
            at="absent",
        )
    ],
    "GET /scoresheets/{id}/scoresheet": [
        Case("TF", lambda place: f"/scoresheets/{place.subject}/scoresheet", others=(SESSION,))
    ],
    "GET /assessments/{id}/download-sheet": [
        Case(
            "TF",
            lambda place: f"/assessments/{place.assessment}/download-sheet",
            others=(SESSION,),
            at="number",
        )
    ],
    "POST /assessments/{id}/scoresheet": [
        Case(
            "T",
            lambda place: f"/assessments/{place.assessment}/scoresheet",
            others=(SESSION,),
            at="updated",
            files=lambda place: {"scoresheet": scores_of(place)},
        )
    ],
    "GET /cohort-subjects/{id}/results": [
        Case(
            "TF",
            lambda place: f"/cohort-subjects/{place.subject}/results?term={place.term}",
            others=(SESSION,),
        ),
        Case(
            "TF",
            lambda place: f"/cohort-subjects/{place.subject}/results?term={place.term}&live=true",
            others=(SESSION,),
        ),
    ],
    "GET /students/{id}/results": [
        Case("FSG", lambda place: f"/students/{place.student}/results?term={place.term}", apart="SG"),
        Case(
            "FSG", lambda place: f"/students/{place.student}/results?term={place.term}&live=true", apart="SG"
        ),
    ],
    "GET /broadsheets": [
        Case("F", lambda place: f"/broadsheets?batch={place.batch}&term={place.term}"),
        Case("F", lambda place: f"/broadsheets?batch={place.batch}&term={place.term}&live=true"),
    ],
    "GET /broadsheets/download": [
        Case("F", lambda place: f"/broadsheets/download?batch={place.batch}&term={place.term}", at="number")
    ],
    "GET /metrics": [Case("F", lambda place: f"/metrics?batchId={place.batch}", at="number")],
    "PUT /metrics": [
        Case(
            "F",
            lambda place: f"/metrics?batch={place.batch}&term={place.term}",
            lambda place: [
                {"student": place.student, "metric_type": "PSYCHOMOTOR", "metric_scores": {"painting": 5}}
            ],
            at="number",
        )
    ],
    "GET /metrics/download-sheet": [
        Case(
            "F",
            lambda place: (
                f"/metrics/download-sheet?batchId={place.batch}&term={place.term}&metric_type=PSYCHOMOTOR"
            ),
            at="number",
        )
    ],
    "POST /metrics/upload-sheet": [
        Case(
            "F",
            lambda place: (
                f"/metrics/upload-sheet?batchId={place.batch}&term={place.term}&metric_type=PSYCHOMOTOR"
            ),
            at="updated",
            files=lambda place: {"metric_sheet": traits_of(place.number, 4)},
        )
    ],
    "GET /students/update-sheet": [
        Case("F", lambda place: f"/students/update-sheet?batch={place.batch}", at="number"),
        Case(
            "F", lambda place: f"/students/update-sheet?cohort={place.cohort}", others=(SESSION,), at="number"
        ),
    ],
    "GET /comments": [Case("F", lambda place: f"/comments?batch={place.batch}&term={place.term}")],
    "PUT /comments": [
        Case(
            "F",
            lambda _: "/comments",
            lambda place: {
                "batch": place.batch,
                "term": place.term,
                "comments": [{"student": place.student, "times_present": 1}],
            },
        )
    ],
    "GET /comments/download-sheet": [
        Case(
            "F", lambda place: f"/comments/download-sheet?batch={place.batch}&term={place.term}", at="number"
        )
    ],
    "POST /comments/upload-sheet": [
        Case(
            "F",
            lambda place: f"/comments/upload-sheet?batch={place.batch}&term={place.term}",
            at="updated",
            files=lambda place: {"comments_sheet": comments_of(place)},
        )
    ],
    "GET /registers/download-sheet": [
        Case("F", lambda place: f"/registers/download-sheet?batch={place.batch}&week={monday()}", at="number")
    ],
    "POST /registers/upload-sheet": [
        Case(
            "F",
            lambda place: f"/registers/upload-sheet?batch={place.batch}",
            at="rows",
            files=lambda place: {"register_sheet": marks_of(place)},
        )
    ],
    "GET /registers/download": [
        Case("F", lambda place: f"/registers/download?batch={place.batch}&term={place.term}", at="number")
    ],
    "GET /registers": [
        Case("TF", lambda place: f"/registers?{of_lesson(place)}"),
        Case("F", lambda place: f"/registers?{of_day(place)}"),
    ],
    "PUT /registers": [
        Case(
            "TF",
            lambda _: "/registers",
            lambda place: {
                **dict(pair.split("=") for pair in of_lesson(place).split("&")),
                "period": 2,
                "marks": [{"student": place.student, "code": "P"}],
            },
        ),
        Case(
            "F",
            lambda _: "/registers",
            lambda place: {
                **dict(pair.split("=") for pair in of_day(place).split("&")),
                "marks": [{"student": place.student, "code": "P"}],
            },
        ),
    ],
    "GET /registers/{id}": [
        Case("TF", lambda place: f"/registers/{place.lesson}"),
        Case("F", lambda place: f"/registers/{place.register}"),
    ],
    "GET /attendance/absences": [
        Case("F", lambda _: f"/attendance/absences?date={Own.today()[:4]}-01-01", listed=True),
    ],
    "GET /registers/missing": [
        Case("F", lambda _: f"/registers/missing?date={Own.today()}", listed=True, at="batch")
    ],
    "GET /attendance/days": [
        Case("F", lambda _: f"/attendance/days?date={Own.today()}", listed=True, at="batch"),
        Case(
            "F",
            lambda place: f"/attendance/days?date={Own.today()}&cohort={place.cohort}",
            others=(SESSION,),
            at="batch",
        ),
    ],
    "GET /attendance/summary": [
        Case(
            "TF",
            lambda place: f"/attendance/summary?term={place.term}&cohort_subject={place.subject}",
            others=(SESSION,),
        ),
        Case("F", lambda place: f"/attendance/summary?term={place.term}&batch={place.batch}"),
    ],
    "GET /attendance/chronic": [
        Case("F", lambda _: "/attendance/chronic?term=FIRST", listed=True),
        Case(
            "F",
            lambda place: f"/attendance/chronic?term={place.term}&cohort={place.cohort}",
            others=(SESSION,),
        ),
    ],
    "GET /students/{id}/attendance": [
        Case(
            "TFSG",
            lambda place: f"/students/{place.student}/attendance?term={place.term}",
            at="opened",
            apart="SG",
        )
    ],
    "GET /students/{id}/report-card": [
        Case(
            "FSG",
            lambda place: f"/students/{place.student}/report-card?term={place.term}",
            at="%PDF",
            apart="SG",
            published=True,
        ),
        Case(
            "FSG",
            lambda place: f"/students/{place.student}/report-card?term={place.term}&draft=true",
            at="%PDF",
            apart="SG",
        ),
        Case(
            "FSG",
            lambda place: f"/students/{place.student}/report-card?term={place.term}&format=json",
            at="letterhead",
            apart="SG",
            published=True,
        ),
    ],
    "GET /students/{id}/report-cards": [
        Case(
            "FSG",
            lambda place: f"/students/{place.student}/report-cards",
            at="batch",
            apart="SG",
            published=True,
        )
    ],
    "GET /students/{id}/transcript": [
        Case("FSG", lambda place: f"/students/{place.student}/transcript", apart="SG")
    ],
    "GET /students/{id}/transcript/download": [
        Case("FSG", lambda place: f"/students/{place.student}/transcript/download", at="%PDF", apart="SG")
    ],
    "GET /report-cards": [
        Case("F", lambda place: f"/report-cards?batch={place.batch}&term={place.term}&draft=true", at="%PDF")
    ],
    "GET /publications": [
        Case("F", lambda _: "/publications", listed=True, at="publication", published=True),
        Case("F", lambda place: f"/publications?batch={place.batch}", at="publication", published=True),
    ],
    "GET /publications/{id}": [
        Case("F", lambda place: f"/publications/{place.publication}", at="publication", published=True)
    ],
    "GET /publications/{id}/changes": [
        Case("F", lambda place: f"/publications/{place.publication}/changes", at="[]", published=True)
    ],
    "GET /publications/{id}/cards": [
        Case("F", lambda place: f"/publications/{place.publication}/cards", published=True)
    ],
    "GET /submissions": [
        Case("TF", lambda place: f"/submissions?batch={place.batch}&term={place.term}", at="batch"),
        Case(
            "TF",
            lambda place: f"/submissions?cohort={place.cohort}&term={place.term}",
            others=(SESSION,),
            at="batch",
        ),
        Case("TF", lambda _: "/submissions", listed=True, at="batch"),
    ],
    "POST /cohort-subjects/{id}/submission": [
        Case(
            "T",
            lambda place: f"/cohort-subjects/{place.subject}/submission",
            lambda place: {"term": place.term, "batch": place.batch, "blanks": "EXCUSED"},
            others=(SESSION,),
            at="batch",
        )
    ],
    "DELETE /gradebooks/{id}": [Case("T", lambda place: f"/gradebooks/{place.entry}", at="entry")],
    "GET /contacts": [Case("FM", lambda place: f"/contacts?user_id={place.account}", at="contact", by="FS")],
    "POST /contacts": [
        Case(
            "M",
            lambda _: "/contacts",
            lambda place: {
                "owner": place.account,
                "email_address": "own@example.com",
                "phone_number": "+2348031234567",
                "physical_address": "1 Broad Street",
            },
            at="account",
            by="S",
        )
    ],
    "PATCH /contacts/{id}": [
        Case(
            "M",
            lambda place: f"/contacts/{place.contact}",
            lambda _: {"physical_address": "2 Broad Street"},
            at="contact",
            by="S",
        )
    ],
    "GET /users": [Case("M", lambda _: "/users?pageSize=1000", listed=True, at="account", by="S")],
    "GET /users/{id}": [Case("M", lambda place: f"/users/{place.account}", at="account", by="S")],
    "PUT /users/{id}/password": [
        Case(
            "M",
            lambda place: f"/users/{place.account}/password",
            lambda _: {"password": "another of their own", "current_password": "a password of their own"},
            at="account",
            by="S",
        )
    ],
    "DELETE /users/{id}/sessions": [
        Case("M", lambda place: f"/users/{place.account}/sessions", at="account", by="S")
    ],
    # The one in the path is stored when the request is sent: it is of the account's present session number.
    "GET /users/{id}/sessions": [Case("M", lambda place: f"/users/{place.account}/sessions", at="[", by="S")],
    "DELETE /users/{id}/sessions/{session_id}": [
        Case(
            "M",
            lambda place: f"/users/{place.account}/sessions/{session_of(place.account)}",
            at="deleted",
            by="S",
        )
    ],
    "GET /users/{id}/photo": [
        Case("TFSGM", lambda place: f"/users/{place.account}/photo", at="zxq", by="TFSG")
    ],
    "GET /users/{id}/identities": [
        Case("M", lambda place: f"/users/{place.account}/identities", at="zxq", by="S")
    ],
    "DELETE /users/{id}/identities/{identity_id}": [
        Case(
            "M",
            lambda place: f"/users/{place.account}/identities/{identity_of(place.account)}",
            at="deleted",
            by="S",
        )
    ],
    "DELETE /invitations/{id}": [
        Case("M", lambda place: f"/invitations/{invitation_of(place.account)}", at="deleted", by="S")
    ],
    "GET /employees": [Case("M", lambda _: "/employees", listed=True, at="employee", by="")],
    "GET /employees/{id}": [Case("M", lambda place: f"/employees/{place.employee}", at="employee", by="")],
    "GET /employees/{id}/bank-account": [
        Case("M", lambda place: f"/employees/{place.employee}/bank-account", at="employee", by="")
    ],
    "GET /employees/{id}/nextofkin": [
        Case("M", lambda place: f"/employees/{place.employee}/nextofkin", at="employee", by="")
    ],
}


def test_every_operation_says_the_meaning_of_own():
    documented = {
        f"{method} {path}": operation["x-own"]
        for (method, path), operation in documented_operations().items()
        if operation.get("x-permission")
    }

    assert documented == {name: row["own"] for name, row in STORED.items() if "own" in row}
    related = documented.keys() - having(own="REFUSED") - having(own="EVERYTHING")
    assert {name: documented[name] for name in related} == {
        operation: " ".join(cases[0].relations) for operation, cases in CASES.items()
    }


def make_places(make: Factory) -> dict[str, Place]:
    """Make an arm, another of the same cohort, and one of a session that ended long ago; all of one base subject."""
    _school.append(make.api.school)
    make.api.ok(make.api.patch("/attendance-settings", {"weekdays": [*range(1, 8)], "lock_after": None}))
    now, before = (
        this_session(make, current=True),
        make.session(start_date="2019-09-01", end_date="2020-07-31"),
    )
    base = make.subject()
    places = {}
    for session, arms in ((now, ("own", ARM)), (before, (SESSION,))):
        cohort, term = make.cohort(session=session), make.term(session)
        subject = make.cohort_subject(cohort, base)
        days = {"start_date": session["start_date"], "end_date": session["end_date"]}
        make.api.ok(make.api.put(f"/terms/{term['id']}/calendar", days))
        for number, name in enumerate(arms):
            batch = make.batch(cohort)["id"] if number else cohort["id"]
            student, newcomer, absent = made = [make.student() for _ in range(3)]
            make.enrolled(cohort, *made, batch=batch)
            teacher = make.employee()
            make.api.ok(make.api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher["id"]}))
            account = {"id": student["user"]}
            store_ways_in(make.api.school, student["user"])
            assessment = make.assessment(subject, term)
            entry = make.entry(assessment, student["id"], batch)
            make.api.ok(make.absences(assessment, {absent["id"]: "ABSENT"}))
            make.api.ok(
                make.api.post(
                    f"/metrics/upload-sheet?batchId={batch}&term={term['id']}&metric_type=PSYCHOMOTOR",
                    data={"metric_sheet": traits_of(student["admission_number"])},
                    content_type="multipart/form-data",
                )
            )
            places[name] = Place(
                student["id"],
                newcomer["id"],
                absent["id"],
                student["admission_number"],
                batch,
                cohort["id"],
                subject["id"],
                base["id"],
                term["id"],
                assessment["id"],
                entry["id"],
                account["id"],
                make.contact(account)["id"],
                teacher["id"],
                make.guardian(student)["id"],
                f"{assessment['abbreviation']} (20)",
            )
            first = date.fromisoformat(session["start_date"])
            for day in range(5):
                key = {"batch": batch, "date": str(first + timedelta(days=day)), "part": "DAY"}
                if key["date"] <= Own.today():
                    make.api.ok(make.api.put("/registers", {**key, "default": "A", "submit": True}))
            assigned = {"cohort_subject": subject["id"], "employee": teacher["id"], "batch": batch}
            make.api.ok(make.api.put("/subject-teachers", {"assignments": [assigned]}))
            places[name] = with_registers(make, places[name], session["start_date"])
    return places


def with_publications(make: Factory, places: dict[str, Place]) -> dict[str, Place]:
    """Publish the results of each place; answers the places with their publications."""
    published_places = {}
    for place in {each.cohort: each for each in places.values()}.values():
        body = {"term": place.term, "blanks": "EXCUSED"}
        make.api.ok(make.api.post(f"/cohort-subjects/{place.subject}/submission", body))
    for name, place in places.items():
        body = {"batches": [place.batch], "term": place.term}
        (made,) = make.api.ok(make.api.post("/publications", body))
        published_places[name] = replace(place, publication=made["id"])
    return published_places


def with_registers(make: Factory, place: Place, day: str) -> Place:
    """Take a lesson of a place; answers the place with this register and the day's."""
    key = {"batch": place.batch, "date": day}
    lesson = {**key, "cohort_subject": place.subject, "period": 20, "default": "P"}
    return replace(
        place,
        register=make.api.ok(make.api.put("/registers", {**key, "part": "DAY", "default": "A"}))["id"],
        lesson=make.api.ok(make.api.put("/registers", lesson))["id"],
    )


EVERY_ARM = "T of every arm"


def callers(own: Own, place: Place) -> dict[str, ApiClient]:
    """Make a caller of each relation to a place, all of whose permissions are OWN; and one of none, `-`."""
    return {
        "T": own.subject_teacher({"id": place.subject}, place.batch),
        EVERY_ARM: own.subject_teacher({"id": place.subject}, None),
        "F": own.form_teacher(place.batch),
        "S": own.student(place.student, *OF_TEACHERS),
        "G": own.guardian(place.guardian, *OF_TEACHERS),
        "-": own.teacher()[1],
    }


@pytest.fixture(scope="module", autouse=True)
def scene(prepared: Callable[..., Any]) -> tuple[dict[str, Place], dict[str, ApiClient]]:
    """The places, and the callers by their relations to the own one."""

    def build(make: Factory) -> tuple[dict[str, Place], dict[str, ApiClient]]:
        places = make_places(make)
        return places, callers(Own(make), places["own"])

    return prepared(build)


Answer = tuple[int, str]


def answer(client: ApiClient, operation: str, case: Case, place: Place) -> Answer:
    """Send a request; answers its status and its body as text, without the id of the request."""
    options = {} if case.body is None else {"json": case.body(place)}
    if case.files is not None:
        options = {"data": case.files(place), "content_type": "multipart/form-data"}
    response = client.request(operation.split()[0], case.path(place), **options)
    if response.status_code >= 400:
        body = response.get_json()
        body.pop("request_id", None)
        return response.status_code, repr(body)
    content = response.get_data()
    if not content.startswith(b"PK"):
        return response.status_code, content.decode(errors="replace")
    return response.status_code, _unpacked(content)


def _unpacked(content: bytes) -> str:
    """Give the texts of a workbook, or of a zip of them."""
    if not content.startswith(b"PK"):
        return content.decode()
    with ZipFile(BytesIO(content)) as archive:
        return "".join(_unpacked(archive.read(name)) for name in archive.namelist())


def _together(operations: Iterable[str]) -> dict[str, list[str]]:
    """Put operations that read together, as they leave the records as they are: readings of published results apart."""
    groups: dict[str, list[str]] = {}
    for operation in operations:
        published = any(case.published for case in CASES[operation])
        reads = "GET of published results" if published else "GET"
        groups.setdefault(reads if operation.startswith("GET ") else operation, []).append(operation)
    return groups


@pytest.mark.parametrize("operations", _together(CASES).values(), ids=_together(CASES))
def test_operations_answer_records_in_reach_alone(operations, make, scene, uncommitted_engine, subtests):
    places, asking = scene
    if any(case.published for operation in operations for case in CASES[operation]):
        places = with_publications(make, places)
    here = places["own"]
    others = {
        student
        for name, place in places.items()
        if name != "own"
        for student in (place.student, place.newcomer, place.absent, place.number)
    }
    for operation, case in ((name, case) for name in operations for case in CASES[name]):
        with subtests.test(operation):

            def answer_to(
                relation: str, place: Place, operation: str = operation, case: Case = case
            ) -> Answer:
                # For each as if nobody had asked before.
                with uncommitted(uncommitted_engine):
                    return answer(asking[relation], operation, case, place)

            unknown = (200, "") if case.listed else answer_to("-", UNKNOWN)
            for relation in (EVERY_ARM if case.every_arm else "T", "F", "S", "G", "-"):
                if relation in case.apart:
                    continue
                reaches = relation[0] in (case.relations if case.by is None else case.by)
                status, text = answer_to(relation, here)
                assert not [student for student in others if student in text]
                if reaches:
                    assert status < 300, (relation, text)
                    assert getattr(here, case.at, case.at) in text
                elif case.listed:
                    assert status == 200
                    assert getattr(here, case.at) not in text
                else:
                    assert (status, text) == unknown, relation
                elsewhere = case.others if reaches and not case.listed else ()
                for name in elsewhere:
                    assert answer_to(relation, places[name]) == unknown, (relation, name)
