"""Writes school_service/web/documentation/examples.json: a request and its real answer for each operation.

    python docs/write_examples.py

Walks through the year of docs/write_api_guide.py, then sends the rest, and records the first request of
each operation that succeeded. Ids, tokens and times are replaced as in the guide; of long lists the first records are
recorded. The OpenAPI document shows them.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

from flask import Flask
from sqlalchemy import select
from write_api_guide import PASSWORD, SHOWN, Page, installation, write

from school_service.app import create_app
from school_service.auth.principal import VerifiedToken
from school_service.auth.tokens import issue_session_token
from school_service.core.database import db
from school_service.demo.letterhead import draw_badge, draw_signature
from school_service.features.people.models import User, UserSession
from school_service.features.results.models import ReportCard
from school_service.web.app_state import AppState
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tenants.registry.clients import PeoplesOptions, create_client

EXAMPLES = Path(__file__).parents[1] / "school_service" / "web" / "documentation" / "examples.json"
BASE = "https://schools.example.org"
PROVIDER = "https://id.example.org/"
PORTAL = "portal"
SECRET = "Zm9yIGV4YW1wbGUgb25seSwgbmV2ZXIgYSByZWFsIG9uZQ"  # noqa: S105 (an example)
# The key of RFC 7517's example, for one that is made anew in each run.
KEY = {
    "kid": "cbb6b1a7c6b6f5c2",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}


class Recorder(Page):
    """Records the first request of each operation that succeeded, with its answer."""

    def __init__(self, app: Flask) -> None:
        super().__init__(app)
        self._adapter = app.url_map.bind("localhost")
        self.school = ""
        self.examples: dict[str, dict[str, Any]] = {}

    def _send(self, method: str, path: str, body: Any, status: int, **options: Any) -> Any:
        answer = super()._send(method, path, body, status, **options)
        if status == 200:
            self.school = self.school or self.headers.get("X-SCHOOL-ID", "")
            rule, _ = self._adapter.match(path.partition("?")[0], method=method, return_rule=True)
            address = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
            example = {} if body is None else {"request": body}
            self.examples.setdefault(f"{method} {address}", {**example, "response": answer})
        return answer

    def written(self) -> str:
        """The examples as JSON, with ids and moments that are the same in each run."""
        lines = (
            f"{json.dumps(operation)}: {self._stable(json.dumps(_short(example), ensure_ascii=False))}"
            for operation, example in sorted(self.examples.items())
        )
        return "{\n" + ",\n".join(lines).replace("http://localhost", BASE) + "\n}\n"


def _short(value: Any) -> Any:
    """Leave out all but the first records of a list, values made anew in each run, and secrets."""
    if isinstance(value, list):
        return [
            _short(item) for item in (value[:SHOWN] if value and isinstance(value[0], dict) else value[:4])
        ]
    if not isinstance(value, dict):
        return value
    if "kty" in value:
        return {name: KEY.get(name, member) for name, member in value.items()}
    shown = {name: _short(member) for name, member in value.items()}
    return {**shown, "client_secret": SECRET} if "client_secret" in shown else shown


def _rest(page: Recorder) -> None:
    """Send the requests that the year leaves out, in an order in which each can succeed."""
    send = page.quietly
    page.acts_as("The administrator")
    headers = page.headers
    page.headers = {}
    for path in ("", "/auth"):
        send("GET", f"{path}/.well-known/oauth-authorization-server")
    send("GET", "/.well-known/oauth-authorization-server/auth")
    send("GET", "/auth/.well-known/jwks.json")
    for path in ("/health", "/health/live", "/health/ready"):
        send("GET", path)
    page.headers = {**headers, "X-SCHOOL-ID": page.school}
    _accounts(page)
    _structure(page)
    cohort, students = _class(page)
    _guardians(page, students)
    _teaching(page, cohort, students)
    _staff(page)
    _settings(page)
    _results(page)
    send("GET", "/changes?after=start&limit=2")
    send("PATCH", f"/cohorts/{cohort}/remove_students", {"student_ids": students[:1]})
    send("GET", f"/students/{students[0]}/data")
    send("DELETE", f"/students/{students[0]}/data")


def _accounts(page: Recorder) -> None:
    send = page.quietly
    body = {"username": "ngozi.eze", "password": PASSWORD, "first_name": "Ngọzi", "last_name": "Eze"}
    user = send("POST", "/users", {**body, "gender": "FEMALE"})["user"]["id"]
    send("GET", f"/users/{user}")
    send("PATCH", f"/users/{user}", {"last_name": "Eze-Okàfor"})
    send("PUT", f"/users/{user}/password", {"password": PASSWORD})
    permission = send("POST", "/permissions", {"section": "library", "access": "read"})["id"]
    send("GET", "/permissions")
    role = send("POST", "/roles", {"name": "Librarian", "avatar": 3})["id"]
    send("PATCH", f"/roles/{role}/permissions", {"permissionIds": [permission]})
    send("PATCH", f"/roles/{role}", {"name": "School librarian"})
    send("GET", f"/roles/{role}")
    send("PUT", f"/users/{user}/roles", {"role": role})
    send("DELETE", f"/users/{user}/roles/{role}")
    send("DELETE", f"/roles/{role}")
    _sign_in_by_an_app(page, user)
    (session,) = send("GET", f"/users/{user}/sessions")
    _ask_as_an_app(page, user, session["id"])
    send("DELETE", f"/users/{user}/sessions/{session['id']}")
    send("DELETE", f"/users/{user}/sessions")
    contact = {"email_address": "ngozi@example.com", "phone_number": "+2348030000021"}
    made = send(
        "POST", "/contacts", {"owner": user, **contact, "physical_address": "3 Montgomery Road, Yaba"}
    )
    send("PATCH", f"/contacts/{made['id']}", {"phone_number": "+2348030000022"})
    send("DELETE", f"/contacts/{made['id']}")
    _ways_in(page, user)
    send("DELETE", f"/users/{user}/delete")
    send("PUT", f"/users/{user}/restore")


def _ways_in(page: Recorder, user: str) -> None:
    """Invite a user, give them a photo, and link outside sign-ins to their account."""
    send = page.quietly
    send("PUT", f"/users/{user}/photo", files={"image": ("ngozi.png", draw_badge(20, 80, 60))})
    send("DELETE", f"/users/{user}/photo")
    [made] = send("POST", "/invitations", {"users": [user], "everybody": True, "days": 7})
    send("GET", "/invitations")
    send("POST", "/invitations/slips?format=xlsx", {"users": [user], "everybody": True})
    (made,) = send("GET", f"/invitations?user={user}")["data"]
    send("DELETE", f"/invitations/{made['id']}")
    [made] = send("POST", "/invitations", {"users": [user], "everybody": True})
    send("POST", "/users/login/invitation", {"code": made["code"], "password": PASSWORD})
    state: AppState = page.app.extensions["school-service"]
    settings = replace(state.settings, auth_issuers=(PROVIDER,), auth_linked_users=True)
    with patch.object(state, "settings", settings):
        identities = f"/users/{user}/identities"
        send("POST", identities, {"issuer": PROVIDER, "subject": "auth0|5f7c8ec7c33c6c004bbafe82"})
        invited = {"users": [user], "everybody": True, "emails": ["ngozi.eze@example.com"]}
        [made] = send("POST", "/invitations", invited)
        _link_own(state, page, made["code"])
        (*_, last) = send("GET", identities)
        send("DELETE", f"{identities}/{last['id']}")


def _link_own(state: AppState, page: Recorder, code: str) -> None:
    """Take an invitation by an outside sign-in: the claims of its token come from no provider here."""
    token = VerifiedToken(
        user_id=None,
        client_id="a-portal",
        own=False,
        schools=None,
        granted=False,
        permissions=frozenset(),
        identity=(PROVIDER, "auth0|6a1d0c2be55d6f0069c9b1aa"),
    )
    with patch.object(state.verifier, "verify", return_value=token):
        page.quietly("POST", "/me/identities", {"code": code})


def _sign_in_by_an_app(page: Recorder, user: str) -> None:
    """Store the session that signing in by the page of a service with a PUBLIC_URL would leave."""
    moment = now()
    with page.app.app_context(), in_transaction(SchoolBinding(UUID(page.school))):
        session = UserSession(
            handle=uuid4(),
            user_id=UUID(user),
            client_id=PORTAL,
            client_session_number=0,
            session_number=db.session.get_one(User, UUID(user)).session_number,
            scope="openid",
            redirect_uri=f"{BASE}/back",
            code_hash=uuid4().hex,
            code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            code_used=True,
            token_hash=uuid4().hex,
            last_used_at=moment,
            idle_until=moment + timedelta(days=14),
            expires_at=moment + timedelta(days=90),
            address="192.0.2.7",
            user_agent="Mozilla/5.0 (Android 15; Mobile; rv:145.0) Firefox/145.0",
        )
        db.session.add(session)


def _ask_as_an_app(page: Recorder, user: str, session: str) -> None:
    """Send the requests that need a PUBLIC_URL, as the app of that session does."""
    state: AppState = page.app.extensions["school-service"]
    app = create_app(replace(state.settings, public_url=BASE))
    there = Recorder(app)
    there.examples, there.school = page.examples, page.school
    there.quietly("GET", "/auth/.well-known/openid-configuration")
    given_up = app.test_client().post("/auth/oauth/revoke", data={"client_id": PORTAL, "token": "none"})
    there.examples["POST /auth/oauth/revoke"] = {"response": given_up.get_json()}
    with app.app_context():
        with in_transaction(SchoolBinding(UUID(page.school), read_only=True)):
            number = db.session.get_one(User, UUID(user)).session_number
        token = issue_session_token(
            state.verifier.key,
            UUID(user),
            UUID(page.school),
            session_id=UUID(session),
            session_number=number,
            client_id=PORTAL,
            client_session=0,
            scope="openid profile",
            permissions=None,
            lifetime=60,
        )
    there.headers = {"Authorization": f"Bearer {token['access_token']}"}
    for method in ("GET", "POST"):
        there.quietly(method, "/auth/userinfo")


def _structure(page: Recorder) -> None:
    send = page.quietly
    (*_, session) = send("GET", "/sessions")
    send("GET", f"/sessions/{session['id']}")
    send("PATCH", f"/sessions/{session['id']}", {"end_date": "2026-07-31"})
    (term, *_) = send("GET", "/terms")
    send("GET", f"/terms/{term['id']}")
    room = send("POST", "/classrooms", {"name": "JSS 1", "level": "Junior Secondary"})["id"]
    send("GET", "/classrooms")
    send("GET", f"/classrooms/{room}")
    send("PATCH", f"/classrooms/{room}", {"name": "JSS 1 Science"})
    subject = send("POST", "/templates", {"name": "Latin", "code": "LAT"})["id"]
    send("GET", "/templates")
    send("GET", f"/templates/{subject}")
    send("PATCH", f"/templates/{subject}", {"code": "LTN"})
    send("DELETE", f"/templates/{subject}")
    _taken_back(page)


def _taken_back(page: Recorder) -> None:
    """Make a year and a student by mistake, correct misspelt names, and delete it all."""
    send = page.quietly
    body = {"name": "2026/2072", "start_date": "2026-09-14", "end_date": "2027-07-30"}
    session = send("POST", "/sessions", body)["id"]
    term = send("POST", "/terms", {"session_id": session, "term": "FIRST", "display_name": "Frist term"})[
        "id"
    ]
    send("PATCH", f"/terms/{term}", {"display_name": "First term"})
    room = send("POST", "/classrooms", {"name": "JSS 11", "level": "Junior Secondary"})["id"]
    cohort = send("POST", "/cohorts", {"classroom": room, "session_id": session})["id"]
    batch = send("POST", f"/cohorts/{cohort}/batches", {"name": "Sliver"})["id"]
    send("GET", f"/batches/{batch}")
    send("PATCH", f"/batches/{batch}", {"name": "Silver"})
    subject = send("POST", "/templates", {"name": "Greek", "code": "GRK"})["id"]
    body = {"cohort_id": cohort, "subject_id": subject, "elective": False}
    taught = send("POST", "/cohort-subjects", body)["id"]
    send("DELETE", f"/cohort-subjects/{taught}")
    send("DELETE", f"/batches/{batch}")
    send("DELETE", f"/cohorts/{cohort}")
    send("DELETE", f"/classrooms/{room}")
    send("DELETE", f"/terms/{term}")
    send("DELETE", f"/sessions/{session}")
    send("DELETE", f"/templates/{subject}")
    person = {"first_name": "Terver", "last_name": "Iorkyaa", "admission_number": "QC/2052/001"}
    student = send("POST", "/students", person)["id"]
    send("DELETE", f"/students/{student}")
    trait = send("POST", "/metric-definitions", {"name": "punctuallity at work", "metric_type": "AFFECTIVE"})[
        "id"
    ]
    send("PATCH", f"/metric-definitions/{trait}", {"name": "punctuality at work"})
    send("GET", f"/metric-definitions/{trait}")
    send("DELETE", f"/metric-definitions/{trait}")


def _employees(page: Recorder) -> None:
    """Import the employees of a sheet."""
    template = page.show_workbook("/employees/import-template")
    row = {"first_name": "Nkem", "last_name": "Dike", "gender": "F", "category": "Teaching", "title": "Ms"}
    sheet = template["Employees"]
    for column, cell in enumerate(sheet[1], 1):
        sheet.cell(2, column).value = row.get(cell.value)
    page.quietly("POST", "/employees/import-sheet", files={"sheet": ("employees.xlsx", _saved(template))})


def _class(page: Recorder) -> tuple[str, list[str]]:
    """Make a cohort and enrol students who come by sheet; returns their ids."""
    send = page.quietly
    _employees(page)
    template = page.show_workbook("/students/import-template")
    rows = (
        {"first_name": "Terver", "last_name": "Iorkyaa", "admission_number": "QC/2025/001"},
        {"first_name": "Ẹfe", "last_name": "Aigbe", "admission_number": "QC/2025/002"},
    )
    sheet = template["Students"]
    names = [cell.value for cell in sheet[1]]
    for number, row in enumerate(rows, 2):
        for column, name in enumerate(names, 1):
            sheet.cell(number, column).value = row.get(name)
    files = {"sheet": ("students.xlsx", _saved(template))}
    send("POST", "/students/import-sheet", files=files)
    students = [student["id"] for student in send("GET", "/students?search=QC/2025")["data"]]
    send("PATCH", f"/students/{students[0]}", {"dob": "2014-05-27"})
    (*_, session) = send("GET", "/sessions")
    room = send("GET", "/classrooms")[0]["id"]
    body = {"classroom": room, "session_id": session["id"]}
    cohort = send("POST", "/cohorts", body)["id"]
    send("GET", "/cohorts")
    send("GET", f"/cohorts/{cohort}")
    send("PATCH", f"/cohorts/{cohort}", body)
    send("GET", f"/cohorts/{cohort}/batches")
    send("POST", f"/cohorts/{cohort}/enrollment", {"students": students, "batch": cohort})
    send("GET", f"/cohorts/{cohort}/students")
    workbook = page.show_workbook(f"/students/update-sheet?batch={cohort}")
    workbook["Students"]["C2"].value = "Ẹfẹ"
    send("POST", "/students/update-sheet?dry_run=true", files={"sheet": ("students.xlsx", _saved(workbook))})
    return cohort, students


def _guardians(page: Recorder, students: list[str]) -> None:
    send = page.quietly
    mother = {"full_name": "Ọmọ́lará Aigbe", "phone_number": "+2348030000024"}
    children = [{"student": student, "relationship": "Mother", "primary": True} for student in students]
    guardian = send("POST", "/guardians", {**mother, "students": children})["id"]
    send("GET", "/guardians?search=aigbe")
    send("GET", f"/guardians/{guardian}")
    send("PATCH", f"/guardians/{guardian}", {"email_address": "omolara@example.com"})
    account = {"username": "omolara.aigbe", "password": PASSWORD}
    send("PUT", f"/guardians/{guardian}/account", account)
    uncle = {"full_name": "Osaro Aigbe", "students": [{"student": students[0], "relationship": "Uncle"}]}
    send("POST", "/guardians", uncle)
    batch = send("GET", f"/students/{students[0]}")["batch"]
    send("POST", "/guardians/accounts", {"batch": batch, "days": 30})
    father = send("POST", "/guardians", {"full_name": "Osas Aigbe"})["id"]
    address = f"/students/{students[0]}/guardians"
    send("PUT", f"{address}/{father}", {"relationship": "Father", "receives_reports": False})
    send("PUT", f"{address}/{father}/stop", {"reason": "By an order of the court of 3 November 2025."})
    send("GET", address)
    send("DELETE", f"{address}/{father}/stop")
    send("DELETE", f"{address}/{father}")
    send("DELETE", f"/guardians/{father}")
    erased = send("POST", "/guardians", {"full_name": "Emeka Obi"})["id"]
    send("PUT", f"/guardians/{erased}/account", {"username": "emeka.obi"})
    send("DELETE", f"/guardians/{erased}/account")
    send("GET", f"/guardians/{erased}/data")
    send("DELETE", f"/guardians/{erased}/data")


def _teaching(page: Recorder, cohort: str, students: list[str]) -> None:
    send = page.quietly
    subject = send("POST", "/templates", {"name": "Music", "code": "MUS"})["id"]
    body = {"cohort_id": cohort, "subject_id": subject, "elective": True}
    taught = send("POST", "/cohort-subjects", body)["id"]
    send("GET", f"/cohort-subjects/{taught}")
    send("PATCH", f"/cohort-subjects/{taught}/students", students)
    send("GET", f"/cohort-subjects/{taught}/students?pageNumber=0&pageSize=50")
    send("PATCH", f"/cohort-subjects/{taught}", {"elective": True})
    term = send("GET", "/terms")[0]["id"]
    body = {
        "category": "CA1",
        "subject": taught,
        "name": "First test, Music",
        "abbreviation": "CA1",
        "due_date": "2025-10-17",
        "total_points": 20,
        "term": term,
        "description": "Scales and intervals",
        "file_name": "Music test.xlsx",
        "include_in_final": True,
        "publish_scores": False,
    }
    assessment = send("POST", "/assessments", body)["id"]
    send("GET", f"/assessments?cohort={cohort}&subject={taught}&term={term}")
    send("GET", f"/assessments/{assessment}")
    send("PATCH", f"/assessments/{assessment}", {"total_points": 25, "due_date": "2025-10-24"})
    body = {"assessment": assessment, "score": 14.5, "student": students[0], "batch": cohort}
    of_arm = f"batch={cohort}&term=FIRST"
    send("GET", f"/cohort-subjects/{taught}/scores?{of_arm}")
    mark = {"student": students[1], "assessment": assessment, "score": 12, "expected": None}
    send("PUT", f"/cohort-subjects/{taught}/scores?{of_arm}&dry_run=true", [mark])
    send("GET", f"/mark-sheets?{of_arm}")
    entry = send("POST", "/gradebooks", body)["id"]
    send("GET", f"/gradebooks?batch={cohort}")
    send("GET", f"/gradebooks/{entry}")
    send("PATCH", f"/gradebooks/{entry}", {"score": 15})
    send("GET", f"/cohort-subjects/{taught}/results?term={term}")
    send("GET", f"/students/{students[0]}/results?term={term}")
    send("GET", f"/broadsheets?batch={cohort}&term={term}")
    send("DELETE", f"/gradebooks/{entry}")
    absence = {"student": students[0], "status": "EXCUSED", "note": "A letter from home"}
    send("PUT", f"/assessments/{assessment}/absences", {"absences": [absence]})
    send("GET", f"/assessments/{assessment}/absences")
    send("DELETE", f"/assessments/{assessment}/absences/{students[0]}")
    _comments(page, cohort, term, students)
    _attendance(page, cohort, term, students)
    send("DELETE", f"/assessments/{assessment}")
    send("DELETE", f"/cohort-subjects/{taught}/students/{students[1]}")
    send("GET", "/metric-definitions")
    send("GET", f"/metrics?batchId={_observed(page)}")
    _traits(page, cohort)


def _traits(page: Recorder, cohort: str) -> None:
    send = page.quietly
    of_batch = f"batchId={cohort}"
    workbook = page.show_workbook(f"/metrics/download-sheet?{of_batch}&term=FIRST&metric_type=AFFECTIVE")
    workbook["Metrics"]["D2"].value = 5
    send(
        "POST", f"/metrics/upload-sheet?{of_batch}", files={"metric_sheet": ("traits.xlsx", _saved(workbook))}
    )
    (record,) = send("GET", f"/metrics?{of_batch}")
    send("GET", f"/metrics/{record['id']}")
    send("DELETE", f"/metrics/{record['id']}")


def _observed(page: Recorder) -> str:
    """The batch whose results are published, which has traits, too."""
    (publication, *_) = page.quietly("GET", "/publications")["data"]
    return str(publication["batch"])


def _comments(page: Recorder, cohort: str, term: str, students: list[str]) -> None:
    send = page.quietly
    calendar = {
        "start_date": "2025-09-15",
        "end_date": "2025-12-19",
        "times_opened": 124,
        "next_term_begins": "2026-01-12",
        "notice": "Fees are due by 23 January 2026.",
    }
    send("PUT", f"/terms/{term}/calendar", calendar)
    send("GET", f"/terms/{term}/calendar")
    comment = {"student": students[0], "times_present": 121, "form_teacher_comment": "Works with care."}
    send("PUT", "/comments", {"batch": cohort, "term": "FIRST", "comments": [comment]})
    send("GET", f"/comments?batch={cohort}&term=FIRST")
    workbook = page.show_workbook(f"/comments/download-sheet?batch={cohort}&term=FIRST")
    sheet = workbook["Comments"]
    sheet["D2"].value, sheet["E2"].value = 118, "Takes part, and can reach more."
    files = {"comments_sheet": ("comments.xlsx", _saved(workbook))}
    send("POST", f"/comments/upload-sheet?batch={cohort}", files=files)


def _attendance(page: Recorder, cohort: str, term: str, students: list[str]) -> None:
    send = page.quietly
    send("GET", "/attendance-settings")
    send("PATCH", "/attendance-settings", {"lock_after": 14, "families_read": "MARKS"})
    codes = send("GET", "/attendance-codes")
    send("PUT", "/attendance-codes", [*codes, {"code": "S", "name": "Sick", "kind": "EXCUSED"}])
    holiday = {"date": "2025-10-01", "status": "CLOSED", "name": "Independence Day"}
    send("PUT", "/school-days", {"days": [holiday]})
    send("GET", "/school-days?from=2025-09-29&to=2025-10-03")
    days = [{"batch": cohort, "date": f"2025-10-{day:02}", "part": "MORNING"} for day in range(6, 11)]
    (absent, late) = students[:2]
    marks = [
        {"student": absent, "code": "A", "note": "Nobody has called"},
        {"student": late, "code": "L", "arrived": "08:40"},
    ]
    for day in days:
        marked = {**day, "version": 0, "default": "P", "marks": marks, "submit": True}
        register = send("PUT", "/registers", {**marked, "taken_at": f"{day['date']}T08:05:00+01:00"})
    told = {"student": absent, "code": "S", "reason": "Her mother telephoned: malaria"}
    send("PUT", "/registers/corrections", {**days[-1], "corrections": [told]})
    key = "&".join(f"{name}={value}" for name, value in days[-1].items())
    send("GET", f"/registers?{key}")
    send("GET", f"/registers/{register['id']}")
    send("GET", "/attendance/absences?date=2025-10-10")
    send("GET", "/registers/missing?date=2025-10-13")
    send("GET", f"/attendance/days?date=2025-10-10&cohort={cohort}")
    send("GET", f"/attendance/summary?term={term}&batch={cohort}")
    send("GET", f"/attendance/chronic?term={term}&cohort={cohort}")
    send("GET", f"/students/{absent}/attendance?term={term}")
    send("DELETE", f"/registers/{register['id']}")


def _results(page: Recorder) -> None:
    send = page.quietly
    (publication, *_) = send("GET", "/publications")["data"]
    send("GET", f"/publications/{publication['id']}")
    card, *_ = send("GET", f"/publications/{publication['id']}/cards")
    of_card = f"term={publication['term']['id']}&format=json"
    send("GET", f"/students/{card['student']['id']}/report-card?{of_card}")
    send("GET", f"/verify/{page.school}/{_code_of_a_card(page)}")
    (promotion, *_) = send("GET", "/promotions")["data"]
    decision = send("GET", f"/promotions/{promotion['id']}")["decisions"][0]
    address = f"/promotions/{promotion['id']}/decisions/{decision['student']['id']}"
    amended = {"outcome": "PROMOTED_ON_TRIAL", "batch": decision["to_batch"], "reason": "The staff met again"}
    send("PATCH", address, amended)
    send("GET", "/promotion-rules")


def _code_of_a_card(page: Recorder) -> str:
    """The code of a report card, which the paper alone has."""
    with page.app.app_context(), in_transaction(SchoolBinding(UUID(page.school), read_only=True)):
        return str(db.session.scalars(select(ReportCard.code).order_by(ReportCard.id).limit(1)).one())


def _staff(page: Recorder) -> None:
    send = page.quietly
    employee, batch = send("GET", "/employees")[0]["id"], send("GET", "/cohorts")[0]["id"]
    send("PATCH", f"/teachers/{batch}/add_to_batch", {"teacher_id": employee})
    send("GET", f"/teachers/{batch}")
    send("DELETE", f"/teachers/{batch}/teachers/{employee}")
    _teachers_of_subjects(page, employee)
    send("GET", f"/employees/{employee}")
    send("PATCH", f"/employees/{employee}", {"title": "Dr"})
    send("GET", f"/employees/{employee}/bank-account")
    send("PATCH", f"/employees/{employee}/bank-account", {"bank_name": "Union Bank"})
    send("GET", f"/employees/{employee}/nextofkin")
    send("PATCH", f"/employees/{employee}/nextofkin", {"phone_number": "+2348030000023"})
    send("GET", f"/employees/{employee}/data")
    send("DELETE", f"/employees/{employee}?release=true")
    send("DELETE", f"/employees/{employee}/data")


def _teachers_of_subjects(page: Recorder, employee: str) -> None:
    send = page.quietly
    taught = send("GET", "/cohort-subjects?session=2026/2027&pageNumber=0&pageSize=50")["data"][0]["id"]
    row = {"cohort_subject": taught, "employee": employee, "starts_on": "2025-09-15"}
    (made,) = send("PUT", "/subject-teachers", {"assignments": [row]})
    send("GET", f"/subject-teachers?employee={employee}")
    sessions = send("GET", "/sessions")
    send("GET", "/sessions/current")
    other = next(each["id"] for each in sessions if each["id"] != made["session"])
    send("POST", "/subject-teachers/copy", {"from_session": made["session"], "to_session": other})
    send("DELETE", f"/subject-teachers/{made['id']}")


def _settings(page: Recorder) -> None:
    send = page.quietly
    send("GET", "/me")
    teacher = next(role["id"] for role in send("GET", "/roles") if role["name"] == "Teacher")
    switched = {"roles": [{"role": teacher, "reach": "OWN"}]}
    send("PUT", "/role-reaches?dry_run=true", switched)
    send("GET", "/settings")
    send("PATCH", "/settings", {"must_change_password": False, "time_zone": "Africa/Lagos"})
    for path, name in (("departments", "Chess"), ("employee-categories", "Visiting"), ("positions", "Coach")):
        made = send("POST", f"/{path}", {"name": name})["id"]
        send("GET", f"/{path}/{made}")
        send("PATCH", f"/{path}/{made}", {"name": f"{name} (part-time)"})
        send("DELETE", f"/{path}/{made}")
    send("GET", "/result-settings")
    comments = [{"lower_threshold": 75, "comment": "An excellent result."}]
    send(
        "PATCH",
        "/result-settings",
        {"percent_places": 1, "principal_comments": comments, "name_order": "SURNAME_FIRST"},
    )
    send("GET", "/letterhead")
    send("PATCH", "/letterhead", {"principal_name": "Dr Ọláyínká Ṣówándé", "principal_title": "Principal"})
    for which, image in (("logo", draw_badge(20, 80, 60)), ("signature", draw_signature())):
        send("PUT", f"/letterhead/{which}", files={"image": (f"{which}.png", image)})
        send("DELETE", f"/letterhead/{which}")
    unused = next(band for band in send("GET", "/grade-configs") if band["letter_grade"] == "F9")
    send("PATCH", f"/grade-configs/{unused['id']}", {"remarks": "Not passed"})
    send("DELETE", f"/grade-configs/{unused['id']}")
    band = {"lower_threshold": 0, "upper_threshold": 39, "letter_grade": "F9", "remarks": "Fail"}
    send("POST", "/grade-configs", band)
    send("PUT", "/grade-configs?level=Senior Secondary", [band])
    send("PUT", "/grade-configs?level=Senior Secondary", [])


def _saved(workbook: Any) -> bytes:
    made = BytesIO()
    workbook.save(made)
    return made.getvalue()


def main() -> None:
    """Write the file."""
    with installation() as (app, tenancy):
        page = Recorder(app)
        write(app, tenancy, page)
        with tenancy.admin.begin() as connection:
            people = PeoplesOptions(name="Parents' portal", is_public=True, redirect_uris=(f"{BASE}/back",))
            create_client(connection, client_id=PORTAL, all_schools=True, of_people=people)
        _rest(page)
        EXAMPLES.write_text(page.written(), encoding="utf-8")


if __name__ == "__main__":
    main()
