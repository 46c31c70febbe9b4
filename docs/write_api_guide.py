"""Writes docs/api.md: a year of a school through the API, each step with its request and the real response.

And the same as a page that the service shows at /docs/guide, of school_service/web/documentation/guide.html.

    python docs/write_api_guide.py

Starts a PostgreSQL of its own from the wheel, creates a school, and walks through its year. Ids, tokens and
times, which differ from run to run, are replaced by constant ones; all else is as it was answered. A test
checks that the page is as this script writes it.
"""

from __future__ import annotations

import json
import re
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from html import escape
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from flask import Flask
from markdown_it import MarkdownIt
from openpyxl import load_workbook
from sqlalchemy import select
from write_calls import LANGUAGES, Call

from school_service.app import create_app, tenancy_of
from school_service.auth.policies import Policy
from school_service.cli.data_folder import data_folder
from school_service.config import Settings
from school_service.core.database import db
from school_service.core.error_types import ErrorType
from school_service.core.permissions import Permission
from school_service.demo.letterhead import draw_badge, draw_signature
from school_service.features.people.models import OWN
from school_service.features.people.roles.seeded import ROLES_OF_NEW_SCHOOL, SEEDED_ROLES, SeededRole
from school_service.features.results.models import Publication, ReportCard
from school_service.web.operations import operations_of
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.clients import create_client
from tenants.registry.installation import install
from tenants.tenancy import Administrator, Tenancy

PAGE = Path(__file__).with_name("api.md")
SHOWN_PAGE = Path(__file__).parents[1] / "school_service" / "web" / "documentation" / "guide.html"
SHOWN = 2  # records of a longer list
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
CLIENT = "front-end"
PASSWORD = "correct horse battery staple"  # noqa: S105 (of a school that exists for a moment)

REQUEST_ID = "5f0c2a7be1d94c3f8a6e4b2d90c17f35"
FINGERPRINT = "ac9145f2b875c06ac5d3091ed66dbfe70e3933a35dcede05dadf55c5cdf3b51b"

_WHO = {"T": "subject teacher", "F": "form teacher", "S": "student", "G": "guardian", "M": "everybody"}
# The records to see and the work to do, in a school's words, each with the operation that says to whom it is open.
_SEEN = {
    "students of the class": "GET /students",
    "classes and arms": "GET /cohorts",
    "subjects and their teachers": "GET /cohort-subjects",
    "assessments of a subject": "GET /assessments",
    "scores and absences": "GET /gradebooks",
    "how far a subject is": "GET /submissions",
    "results of a subject": "GET /cohort-subjects/{id}/results",
    "results, report card and transcript of a student": "GET /students/{id}/results",
    "broadsheets and the cards of a class": "GET /broadsheets",
    "traits and comments": "GET /comments",
    "guardians": "GET /guardians",
    "addresses and telephone numbers": "GET /contacts",
    "account, employee record": "GET /users/{id}",
}
_DONE = {
    "enter and correct scores and absences": "POST /gradebooks",
    "submit a subject for an arm": "POST /cohort-subjects/{id}/submission",
    "add assessments; change and delete empty ones (others: a teacher of every arm)": "POST /assessments",
    "enter traits and comments": "PUT /comments",
    "set a password": "PUT /users/{id}/password",
}
# The work of a school in a year, each with the operation that says which of its roles may do it.
_IN_A_YEAR = {
    "make roles, change their permissions": "POST /roles",
    "hire, and give those hired their roles": "POST /employees",
    "invite teachers, and set their passwords": "POST /invitations",
    "set time zone, letterhead, weights, promotion": "PATCH /result-settings",
    "open sessions, terms and their calendars": "POST /sessions",
    "set up the next session": "POST /sessions/{id}/copy-from",
    "make classrooms, classes and subjects": "POST /cohorts",
    "enter students and guardians": "POST /students",
    "invite students and guardians, and set their passwords": "POST /invitations",
    "put students into classes": "POST /cohorts/{id}/enrollment",
    "assign subject teachers and form teachers": "PUT /subject-teachers",
    "call registers": "PUT /registers",
    "correct registers that are submitted": "PUT /registers/corrections",
    "add assessments, and enter scores": "POST /gradebooks",
    "write comments and traits": "PUT /metrics",
    "hand results in": "POST /cohort-subjects/{id}/submission",
    "see the subjects that are handed in": "GET /submissions",
    "reopen a subject, publish, correct": "POST /publications",
    "print report cards": "GET /report-cards",
    "promote": "POST /promotions",
    "let students graduate": "POST /graduates",
    "let an employee go": "DELETE /employees/{id}",
    "read the audit log": "GET /audit",
}
# Permissions that some of it needs beside: nobody gives away a permission that they lack.
_FURTHER = {
    "hire, and give those hired their roles": {Permission.USERS_WRITE, *ROLES_OF_NEW_SCHOOL["Teacher"]},
    "set up the next session": {Permission.ASSESSMENTS_WRITE},
    "invite teachers, and set their passwords": ROLES_OF_NEW_SCHOOL["Teacher"],
    "invite students and guardians, and set their passwords": {Permission.RESULTS_READ},
}
_CHOICES = "".join(
    f'<label><input type="radio" name="form" value="{form}"{" checked" if form == "http" else ""}>{name}</label>\n'
    for form, name in LANGUAGES.items()
)
_BAR = f"""<form class="guide-bar" role="search">
<label for="seek">Find a step</label>
<input id="seek" type="search" placeholder="such as: report card, or POST /students">
<span id="found" role="status"></span>
<fieldset>
<legend>Requests as</legend>
{_CHOICES}</fieldset>
</form>
"""
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
_MINUTE = re.compile(r"\b\d{4}-\d\d-\d\d at \d\d:\d\d\b")
_PUBLISHED = re.compile(r"\bPublished \d{1,2} [A-Z][a-z]{2,8} \d{4}\b")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
_FINGERPRINT = re.compile(r"\b[0-9a-f]{64}\b")
_CODE = re.compile(r"(?<![\w-])[0-9A-Z]{4}(?:-[0-9A-Z]{4}){2}(?![\w-])")  # of an invitation
_REQUEST = re.compile(r"\b[0-9a-f]{32}\b")
_INLINE = re.compile(r"<code>[^<]*</code>")
_HEADING = re.compile(r"^##+ ", re.MULTILINE)
_NAMED = re.compile(rf"\b({'|'.join(METHODS)})\s+(/[\w/{{}}.-]*)")


class Page:
    """The page while it is written: prose, requests and their answers."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self._client = app.test_client()
        self._parts: list[str] = []
        self._ids: dict[str, str] = {}
        self.calls: list[Call] = []
        self.headers: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._caller = self._named = ""

    def say(self, prose: str) -> None:
        """Add prose, in Markdown; after a heading, the caller of the next request is named anew."""
        self._parts.append(textwrap.dedent(prose).strip())
        if _HEADING.search(self._parts[-1]):
            self._named = ""

    def sign_in(self, person: str, answer: Any) -> None:
        """Let somebody call from here on, as `acts_as`, with the token of this answer."""
        self._tokens[person] = f"Bearer {answer['access_token']['access_token']}"
        self.acts_as(person)

    def acts_as(self, person: str) -> None:
        """Let somebody who has signed in call from here on: the page names them before their next request."""
        self.headers["Authorization"] = self._tokens[person]
        self._caller = person

    def quietly(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request that the page does not show; the answer has to be 200."""
        return self._send(method, path, body, 200, **options)

    def show(
        self, method: str, path: str, body: Any = None, status: int = 200, secret: str = "", **options: Any
    ) -> Any:
        """Send a request and show it with its answer, which has to be of this status; returns the body.

        A `secret` of the body is not shown.
        """
        answer = self._send(method, path, body, status, **options)
        request = self._request(method, path, body, options.get("files"), options.get("headers"))
        request = request.replace(secret, "…") if secret else request
        self._name_caller()
        self._parts.append(_fenced("http", request))
        shown = {**body, "client_secret": "…"} if secret else body
        files = {name: file for name, (file, _content) in options.get("files", {}).items()}
        self.calls.append(Call(request, method, path, shown, options.get("headers", {}), files, status))
        self._parts.append(_fenced("json", self._stable(_written(self._in_order(answer)))))
        return answer

    def show_file(self, path: str) -> bytes:
        """Download a file and show the answer; returns it."""
        answer = self._client.get(path, headers=self.headers)
        _demand(answer, 200)
        about = "\n".join(
            f"{name}: {answer.headers[name]}" for name in ("Content-Type", "Content-Disposition")
        )
        request = self._request("GET", path, None, None)
        self._name_caller()
        self._parts.append(_fenced("http", request))
        self.calls.append(Call(request, "GET", path))
        self._parts.append(_fenced("", self._stable(about)))
        content = bytes(answer.data)
        answer.close()
        return content

    def show_lines(self, path: str) -> None:
        """Read lines of JSON and show the first ones."""
        answer = self._client.get(path, headers=self.headers)
        _demand(answer, 200)
        lines = answer.get_data(as_text=True).splitlines()
        answer.close()
        more = [f"… {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        request = self._request("GET", path, None, None)
        self._name_caller()
        self._parts.append(_fenced("http", request))
        self.calls.append(Call(request, "GET", path))
        self._parts.append(_fenced("", self._stable("\n".join([*lines[:SHOWN], *more]))))

    def show_workbook(self, path: str) -> Any:
        """Download a workbook and show the answer; returns it opened."""
        return load_workbook(BytesIO(self.show_file(path)))

    def show_sheet(self, workbook: Any, title: str) -> None:
        """Show the first rows of a sheet as a table."""
        rows = [[str(value or "") for value in row] for row in workbook[title].iter_rows(values_only=True)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        self._parts.append("\n".join(lines))

    def forms(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Give each request that was shown, with its other forms."""
        document = self.app.test_client().get("/openapi.json").get_json()
        for call in self.calls:
            forms = call.forms(document)
            yield call.text, {language: self._stable(text) for language, text in forms.items()}

    def text(self) -> str:
        """The page."""
        return "\n\n".join(self._parts) + "\n"

    def _name_caller(self) -> None:
        if self._caller != self._named:
            self._parts.append(f"*{self._caller}:*")
            self._named = self._caller

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        status: int,
        files: dict[str, tuple[str, bytes]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        form = {name: (BytesIO(content), file_name) for name, (file_name, content) in (files or {}).items()}
        sent = {"data": form} if files else {} if body is None else {"json": body}
        fields = {**self.headers, **(headers or {})}
        answer = self._client.open(path, method=method, headers=fields, **sent)
        _demand(answer, status)
        return answer.get_json()

    def _request(
        self,
        method: str,
        path: str,
        body: Any,
        files: dict[str, tuple[str, bytes]] | None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        lines = [f"{method} {path}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        for name, (file_name, _content) in (files or {}).items():
            lines += ["Content-Type: multipart/form-data", "", f"{name}: the file {file_name}"]
        if body is not None:
            lines += ["", _written(body)]
        return self._stable("\n".join(lines))

    def _in_order(self, value: Any) -> Any:
        """Give members that are named by ids the order in which the page has shown these first."""
        if isinstance(value, list):
            return [self._in_order(item) for item in value]
        if not isinstance(value, dict):
            return value
        names = list(value)
        if all(_UUID.fullmatch(name) for name in names):
            names.sort(key=[*self._ids, *names].index)
        return {name: self._in_order(value[name]) for name in names}

    def _stable(self, text: str) -> str:
        text = _TOKEN.sub("eyJhbGciOiJFUzI1NiIsImtpZCI6…", text)
        text = _UUID.sub(self._stable_id, text)
        text = _CODE.sub("K7QM-4TZ9-XDR2", text)
        text = _MOMENT.sub("2025-09-01T08:30:00", text)
        text = _MINUTE.sub("2025-09-01 at 09:30", text)
        text = _PUBLISHED.sub("Published 1 September 2025", text)
        text = _FINGERPRINT.sub(FINGERPRINT, text)
        return _REQUEST.sub(REQUEST_ID, text)

    def _stable_id(self, match: re.Match[str]) -> str:
        number = len(self._ids)
        return self._ids.setdefault(
            match[0],
            str(UUID(int=Random(number).getrandbits(128), version=4)),  # noqa: S311
        )


def _demand(answer: Any, status: int) -> None:
    if answer.status_code != status:
        raise RuntimeError(f"{answer.request} answered {answer.status}: {answer.get_data(as_text=True)}")


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _written(value: Any) -> str:
    """Write JSON: a short record on one line, a longer one on several, of a long list its first records."""
    return _abridged(value, 0)


def _abridged(value: Any, depth: int) -> str:
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (len(short) + depth <= 100 and not _is_long(value)):
        return short
    pad = " " * (depth + 2)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_abridged(item, depth + 2)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * depth + "}"
    parts = [_abridged(item, depth + 2) for item in value[: SHOWN if _is_long(value) else None]]
    if _is_long(value):
        parts.append(f"… {len(value) - SHOWN} more")
    return "[\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * depth + "]"


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > SHOWN and isinstance(value[0], dict)


def write(app: Flask, tenancy: Tenancy, page: Page | None = None) -> str:
    """Walk through a year of a new school, and write the page about it."""
    page = page or Page(app)
    administrator = Administrator("admin", PASSWORD)
    school = create_school(tenancy, name="Queen's College, Yaba", administrator=administrator)
    with tenancy.admin.begin() as connection:
        secret = create_client(
            connection,
            client_id=CLIENT,
            school_ids=[school.id],
            permissions=["read:users"],
            tells_addresses=True,
        )
    page.headers = {}
    _begin(page, str(school.id), secret)
    _say_who_sees_what(page)
    _say_what_roles_do(page)
    roles = _first_day(page)
    people = _set_up(page, roles)
    _set_up_results(page)
    year = _set_up_classes(page, people)
    _enrol(page, year)
    _invite(page, year)
    _change_classes(page, year)
    _assess(page, year)
    _record_traits(page, year)
    _call_registers(page, year)
    _submit(page, year)
    _publish(page, year)
    _correct(page, year)
    _read_at_home(page, year)
    for term, day in (("SECOND", "2026-03-20"), ("THIRD", "2026-07-10")):
        _repeat(page, year, term, day)
    _set_up_next_session(page, year)
    _promote(page, year)
    _print(page, year)
    _graduate(page, year)
    _look_after(page, year)
    _keep_a_copy(page, year)
    _errors(page, year)
    _say_special_cases(page)
    return page.text()


def _begin(page: Page, school_id: str, secret: str) -> None:
    page.say(
        """
        # A school's year through the API

        This page follows a school from its first day through three terms to printed cards and the next session, in
        the order of the work. Every answer is the service's own to the request above it; only ids, tokens and moments
        are replaced, and of long lists the first records are shown. `/docs` of a running service lists every operation
        with the permission it needs.

        <!-- Written by docs/write_api_guide.py; do not edit. -->

        ## The token and the school

        Every request carries a token and, but for a few where the token itself names it, the school:

        ```http
        Authorization: Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6…
        X-SCHOOL-ID: 3f0c2b1e-5d5e-4b0a-9d7e-2f4c8a6b1d90
        ```

        A server that stands in front of people (a web site, an app's backend) has a token of its own. With no
        outside identity provider configured, the service issues it to the clients that the operator made:

        ```sh
        school-service clients create front-end --school ID --permission read:users --tells-addresses
        ```
        """
    )
    credentials = {
        "client_id": CLIENT,
        "client_secret": secret,
        "audience": "school-service",
        "grant_type": "client_credentials",
    }
    token = page.show("POST", "/auth/oauth/token", credentials, secret=secret)
    page.headers = {"Authorization": f"Bearer {token['access_token']}", "X-SCHOOL-ID": school_id}
    page.say(
        """
        With that token the server signs people in. The service counts wrong passwords by address, and all requests of
        this server come from its own: so it sends the address of the person in `X-End-User-Address`, which counts for
        clients made with `--tells-addresses` alone. Without it one guesser on the server's page keeps everybody out.
        The answer has a token of the user's own, for this school alone:
        """
    )
    signed_in = page.show(
        "POST",
        "/users/login",
        {"username": "admin", "password": PASSWORD},
        headers={"X-End-User-Address": "203.0.113.7"},
    )
    page.sign_in("The administrator", signed_in)
    page.say("From here on the line above a request names the person whose token it carries.")


def _say_who_sees_what(page: Page) -> None:
    """Tell the records that permissions of OWN reach: the table is written from the declarations of the operations."""
    # No step of the walk: it is not among the examples.
    paths = page.app.test_client().get("/openapi.json").get_json()["paths"]

    def row(words: str, operation: str) -> str:
        method, path = operation.split()
        relations = paths[path][method.lower()]["x-own"].split()
        return f"| {words} | {' | '.join('yes' if each in relations else '–' for each in _WHO)} |"  # noqa: RUF001

    def table(head: str, rows: dict[str, str]) -> str:
        heading = f"| {head} | {' | '.join(f'{name}' for name in _WHO.values())} |"
        return "\n".join([heading, "|---" * (len(_WHO) + 1) + "|", *(row(*each) for each in rows.items())])

    page.say(
        """
        ## Permissions and their reach

        A role has permissions, and a `reach`, the records on which they count: `SCHOOL`, all of the school, or `OWN`,
        those of related people. A new school's Administrator, Principal, Registrar, Bursar and Viewer reach the
        whole school; its Teacher, Guardian and Student their own. A permission by any role of reach SCHOOL reaches the
        whole school. With OWN a *subject teacher* sees the students who take the subject in the arms that they teach
        (`PUT /subject-teachers`), and their records in that subject; a *form teacher* the students of the batch, with
        all their subjects; a *student* themselves; a *guardian* their children; and *everybody* their own account. All
        of them read the records of no person: terms, subjects, grades, settings.
        """
    )
    page.say(table("may see", _SEEN))
    page.say(table("may do", _DONE))
    page.say(
        """
        A student and a guardian need no permission for results, report card and transcript, and read the published
        ones alone: nothing live, no draft. A guardian who is stopped for a child sees nothing of that child from the
        next request on. To a subject teacher `dob`, `former_school` and `guardian` of a student are null, and
        `leaving_reason` is shown with reach SCHOOL alone. Figures are of the whole class for every reader: a position
        is the same to a teacher and to the principal.

        A record out of reach is not there: it is in no list, total, search or file, and its id is answered as an
        unknown one, with 404 in a path and 422 elsewhere. An operation without a meaning for OWN refuses it with 403.
        `GET /me` has the permissions, classes, subjects and children of the user, and `mine=true` narrows an answer for
        the whole school to the user's own. In `/docs` each operation names as `x-own` the relations that it serves:
        `T`, `F`, `S`, `G` and `M` for these five, `EVERYTHING` or `REFUSED`.
        """
    )


def _say_what_roles_do(page: Page) -> None:
    roles = [role for role in SEEDED_ROLES if role.given_to is None]
    operations = operations_of(page.app)

    def cell(role: SeededRole, words: str, operation: str) -> str:
        policy = operations[operation].policy or Policy()
        may = role.permissions >= {*policy.permissions, *_FURTHER.get(words, ())}
        if not may or (role.reach == OWN and policy.own.refused):
            return "–"  # noqa: RUF001
        return "their own" if role.reach == OWN else "yes"

    rows = (
        f"| {words} | {' | '.join(cell(role, words, operation) for role in roles)} |"
        for words, operation in _IN_A_YEAR.items()
    )
    page.say(
        """
        ### The work of each role in a year

        The account of the first day, with the role Administrator, makes the account of the school's head and gives it
        the role Principal; the rest of the year can go by without it. An administrator changes the permissions of a
        role by `PATCH /roles/{id}/permissions`. Roles of a school that is older than this release stay as they are:
        `differs` of `PUT /role-reaches` lists the permissions that they have beside these, and those that they lack.
        """
    )
    head = f"| to | {' | '.join(role.name for role in roles)} |"
    page.say("\n".join([head, "|---" * (len(roles) + 1) + "|", *rows]))
    page.say(
        """
        Students and guardians read their results once they are published, and need no permission for it. Nobody gives
        away a permission that they lack: a role, an invitation or a password for an account needs all that the account
        has, so that a Registrar is refused (403) for a guardian who is a teacher too.

        An employee who teaches or has form classes is not deleted in passing: `DELETE /employees/{id}` answers 409, and
        names these. With `?hand_over=` and the id of a colleague the colleague has them from today on, with
        `?release=true` nobody has. `GET /subject-teachers?employee=` still shows the subjects that they taught, and
        `GET /cohort-subjects?without_teacher=true` lists the subjects without a teacher today.
        """
    )


def _take_invitation(page: Page, person: str, code: str) -> None:
    """Set a password with the code of an invitation: its owner calls from here on."""
    taken = {"code": code, "password": PASSWORD}
    page.sign_in(person, page.quietly("POST", "/users/login/invitation", taken))


def _first_day(page: Page) -> dict[str, str]:
    page.say(
        """
        ## The administrator's first day

        `school-service tenants create` has made the account `admin`, with the role Administrator. It makes the account
        of the school's head, whose role is Principal:
        """
    )
    roles = {role["name"]: role["id"] for role in page.quietly("GET", "/roles")}
    names = {"first_name": "Ọláyínká", "last_name": "Ṣówándé", "gender": "FEMALE"}
    head = page.show("POST", "/users", {"username": "head", "password": PASSWORD, **names})["user"]
    page.show("PUT", f"/users/{head['id']}/roles", {"role": roles["Principal"]})
    page.say(
        """
        Schools differ. A role of the school's own is made by `POST /roles`, and `PATCH /roles/{id}/permissions` gives
        any role the permissions it has from then on (`GET /permissions` lists all).

        The head sets a password that nobody else knows, with the code of an invitation (`everybody`: of an account
        that has a password, too). The administrator's work is done, until a role is to change:
        """
    )
    (invitation,) = page.show("POST", "/invitations", {"users": [head["id"]], "everybody": True})
    _take_invitation(page, "The principal", invitation["code"])
    return roles


def _employee(page: Page, number: int, **names: str) -> dict[str, Any]:
    """Make the body of an employee, with bank account, next of kin and contact."""
    departments, categories, positions, states = (
        {record["name"]: record["id"] for record in page.quietly("GET", path)}
        for path in ("/departments", "/employee-categories", "/positions", "/states")
    )
    nationalities = {
        nationality["code"]: nationality["id"] for nationality in page.quietly("GET", "/nationalities")
    }
    address = "5 Herbert Macaulay Way, Yaba"
    first, last = names["first_name"], names["last_name"]
    return {
        **names,
        "middle_name": "Ruth",
        "title": "Mrs",
        "gender": "FEMALE",
        "dob": "1986-04-12",
        "join_date": "2020-09-07",
        "marital_status": "Married",
        "blood_group": "O+",
        "religion": "Christianity",
        "status": "ACTIVE",
        "department": departments["Sciences"],
        "category": categories["Teaching"],
        "position": positions["Teacher"],
        "nationality": nationalities["NG"],
        "state": states["Lagos"],
        "lga": page.quietly("GET", f"/lgas?state={states['Lagos']}")[0]["id"],
        "bank_details": {
            "bank_name": "First Bank",
            "account_name": f"{first} Ruth {last}",
            "account_number": "0123456789",
            "bank_sort_code": "011151003",
            "account_type": "Savings",
            "employee_no": f"QC-0{number}",
            "employee": number,
        },
        "next_of_kin": {
            "full_name": f"Túnjí {last}",
            "relationship": "Husband",
            "phone_number": "+2348030000017",
            "physical_address": address,
            "employee": number,
        },
        "contact": {
            "email_address": f"employee{number}@example.com",
            "phone_number": "+2348030000018",
            "physical_address": address,
        },
    }


def _account_of(page: Page, employee: dict[str, Any]) -> str:
    """Find the account of an employee."""
    (account,) = page.quietly("GET", f"/users?search={employee['username']}")["data"]
    return str(account["id"])


def _set_up(page: Page, roles: dict[str, str]) -> dict[str, Any]:
    page.say(
        """
        ## The principal hires

        Times on paper and in messages are of the school's time zone:
        """
    )
    page.show("PATCH", "/settings", {"time_zone": "Africa/Lagos"})
    page.say("A new school has default departments, employee categories and positions. More are added:")
    page.show("POST", "/departments", {"name": "Performing Arts"})
    page.say(
        """
        Many employees at once come in a workbook (`GET /employees/import-template`, `POST /employees/import-sheet`),
        with names, gender and category alone where no more is known: the other members are null until
        `PATCH /employees/{id}` fills them. A single employee comes with bank account, next of kin, contact and a user
        account, all in one request: either everything is stored or nothing. States, local government areas
        (`GET /states`, `GET /lgas`) and nationalities are the same for every school.
        """
    )
    body = _employee(page, 17, first_name="Adébísí", last_name="Ògúnlẹ́yẹ")
    employee = page.show("POST", "/employees", body)
    page.say(
        "Her account gets a role, and an invitation as the head's was; with its code she sets her password:"
    )
    account = _account_of(page, employee)
    page.show("PUT", f"/users/{account}/roles", {"role": roles["Teacher"]})
    (teacher,) = page.quietly("POST", "/invitations", {"users": [account]})
    page.say("The registrar is hired likewise. How to reach the owner of an account:")
    page.show("GET", f"/contacts?user_id={account}")
    clerk = page.quietly("POST", "/employees", _employee(page, 18, first_name="Hauwa", last_name="Bello"))
    office = _account_of(page, clerk)
    page.quietly("PUT", f"/users/{office}/roles", {"role": roles["Registrar"]})
    (registrar,) = page.quietly("POST", "/invitations", {"users": [office]})
    for person, made in (("The teacher", teacher), ("The registrar", registrar)):
        _take_invitation(page, person, made["code"])
    page.acts_as("The principal")
    return {"employee": employee}


def _set_up_results(page: Page) -> None:
    page.say(
        """
        ## The principal decides how results are computed

        A new school has default grade bands and traits. A grade is the band with the highest `lower_threshold` that is
        not above the score, in percent.
        """
    )
    page.show("GET", "/grade-configs")
    page.say(
        """
        How results are computed is set once, before the first card. Without settings all points of a subject count
        as they are; here a test counts 40 of 100 and the examination 60, and a comment of the principal is filled in
        by the average where nobody writes one. A change of these settings leaves published results as they are.
        """
    )
    page.show(
        "PATCH",
        "/result-settings",
        {
            "weighting": "CATEGORIES",
            "weights": [{"category": "CA1", "weight": 40}, {"category": "EXAM", "weight": 60}],
            "principal_comments": [
                {"lower_threshold": 70, "comment": "An excellent result. Keep it up."},
                {"lower_threshold": 0, "comment": "More is possible with regular work."},
            ],
        },
    )
    page.say("The letterhead of all paper; logo and signature are pictures (PNG or JPEG, 512 KiB at most):")
    page.show(
        "PATCH",
        "/letterhead",
        {
            "motto": "Knowledge and service",
            "principal_name": "Dr Ọláyínká Ṣówándé",
            "principal_title": "Principal",
        },
    )
    page.show("PUT", "/letterhead/logo", files={"image": ("logo.png", draw_badge(20, 80, 60))})
    page.quietly("PUT", "/letterhead/signature", files={"image": ("signature.png", draw_signature())})


def _set_up_classes(page: Page, people: dict[str, Any]) -> dict[str, Any]:
    page.acts_as("The registrar")
    page.say(
        """
        ## The registrar sets up the year

        The academic session and its three terms:
        """
    )
    dates = {"start_date": "2025-09-08", "end_date": "2026-07-24"}
    session = page.show("POST", "/sessions", {"name": "2025/2026", **dates, "current": True})
    body = {"session_id": session["id"], "term": "FIRST", "display_name": "First Term 2025/2026"}
    terms = {"FIRST": page.show("POST", "/terms", body)}
    for name in ("SECOND", "THIRD"):
        body = {"session_id": session["id"], "term": name, "display_name": f"{name.title()} Term 2025/2026"}
        terms[name] = page.quietly("POST", "/terms", body)
    page.say(
        """
        The calendar of each term says when it begins and ends, how often school opened (which a student's attendance
        is compared with), when the next term begins, and a notice for parents. A term is named by its id or, where
        the session is known, as FIRST, SECOND or THIRD.
        """
    )
    calendars = (
        ("FIRST", "2025-09-08", "2025-12-12", "2026-01-12"),
        ("SECOND", "2026-01-12", "2026-04-02", "2026-04-27"),
        ("THIRD", "2026-04-27", "2026-07-24", "2026-09-07"),
    )
    for name, start, end, following in calendars:
        calendar = {
            "start_date": start,
            "end_date": end,
            "times_opened": 124,
            "next_term_begins": following,
            "notice": "Fees are due on the first day of term.",
        }
        send = page.show if name == "FIRST" else page.quietly
        send("PUT", f"/terms/{terms[name]['id']}/calendar", calendar)
    page.say("Subjects and classrooms outlast the session:")
    subject = page.show("POST", "/templates", {"name": "Physics", "code": "PHY"})
    english = page.quietly("POST", "/templates", {"name": "English Language", "code": "ENG"})
    classroom = page.show("POST", "/classrooms", {"name": "SSS 2", "level": "Senior Secondary"})
    last = page.quietly("POST", "/classrooms", {"name": "SSS 3", "level": "Senior Secondary"})
    page.say(
        """
        A cohort is a classroom in a session. It is born with one batch, its first arm, whose id is the cohort's
        own: a school without arms never needs to know of them, and gives the cohort's id wherever a `batch` is asked
        for. (`batches: ["Gold", "Silver"]` names the arms of a new cohort.)
        """
    )
    of_session = {"session_id": session["id"]}
    cohort = page.show("POST", "/cohorts", {"classroom": classroom["id"], **of_session})
    arm = page.show("POST", f"/cohorts/{cohort['id']}/batches", {"name": "B"})
    last_cohort = page.quietly("POST", "/cohorts", {"classroom": last["id"], **of_session})
    page.say(
        """
        A cohort subject is a subject taught to a cohort. Everyone in the cohort takes it, unless it is elective:
        then `PATCH /cohort-subjects/{id}/students`, with an array of ids, names its students. `PATCH
        /cohort-subjects/{id}` with `{"elective": false}` makes it compulsory, and everyone enrolled takes it at once;
        with `true` everyone keeps it, and `DELETE /cohort-subjects/{id}/students/{student_id}` lets one drop it.
        """
    )
    body = {"cohort_id": cohort["id"], "subject_id": subject["id"], "elective": False}
    physics = page.show("POST", "/cohort-subjects", body)
    taught_english = page.quietly("POST", "/cohort-subjects", {**body, "subject_id": english["id"]})
    page.say("The teachers, by subject and arm; and the form teacher of an arm:")
    rows = [
        {"cohort_subject": subject["id"], "employee": people["employee"]["id"], "batch": cohort["id"]}
        for subject in (physics, taught_english)
    ]
    page.show("PUT", "/subject-teachers", {"assignments": rows})
    page.show("PATCH", f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": people["employee"]["id"]})
    page.show("GET", f"/cohort-subjects?pageNumber=0&pageSize=50&batch={cohort['id']}")
    return {
        **people,
        "session": session,
        "term": terms["FIRST"],
        "terms": {name: term["id"] for name, term in terms.items()},
        "subject": subject,
        "cohort": cohort,
        "arm": arm,
        "last_cohort": last_cohort,
        "cohort_subject": physics,
        "taught_english": taught_english,
    }


def _enrol(page: Page, year: dict[str, Any]) -> None:
    cohort = year["cohort"]
    page.say("## The registrar enrols")
    page.say(
        "Each student gets a user account. Many at once come in a workbook "
        "(`GET /students/import-template`, `POST /students/import-sheet`). A class list comes, and goes back "
        "corrected, by `GET` and `POST /students/update-sheet`."
    )
    student = page.show(
        "POST",
        "/students",
        {
            "first_name": "Chidinma",
            "last_name": "Bàlógun",
            "admission_number": "QC/2020/001",
            "gender": "FEMALE",
            "dob": "2009-02-28",
            "admitted_on": "2020-09-14",
            "former_school": "Corona School",
            "guardian": {"full_name": "Ngozi Bàlógun", "relationship": "Mother"},
        },
    )
    other = page.quietly(
        "POST",
        "/students",
        {"first_name": "Zainab", "last_name": "Danladi", "admission_number": "QC/2020/002"},
    )
    ids = [student["id"], other["id"]]
    page.show("POST", f"/cohorts/{cohort['id']}/enrollment", {"students": ids, "batch": cohort["id"]})
    page.say(
        """
        The first day in the class may be given, `started_on`, of all or of each (`started_on_each`), and the last one
        with the removal (`PATCH /cohorts/{cohortId}/remove_students`, `ended_on`). Registers go by these days; where
        nobody has entered them, by the day of the request. A student who leaves the school is WITHDRAWN by
        `PATCH /students/{id}`, with `left_on` and `leaving_reason` where they are known, and ACTIVE again on return.
        """
    )
    leaver = {"first_name": "Ìbídàpọ̀", "last_name": "Oyèlárán", "admission_number": "QC/2019/044"}
    leaving = page.quietly("POST", "/students", leaver)["id"]
    last = year["last_cohort"]["id"]
    page.quietly("POST", f"/cohorts/{last}/enrollment", {"students": [leaving], "batch": last})
    year.update(
        students=ids, leaver=leaving, of_account={person["user"]: person["id"] for person in (student, other)}
    )


def _invite(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## Students and parents get accounts

        The service sends no mail. The school hands out codes: the holder of a code sets the password of its account,
        the first or a forgotten one, by the page at `url` or, without the service's pages, by an application of the
        school's. Invited are the users named, or the students of a batch; an account with a password only with
        `everybody`. The code is answered once, and known to nobody afterwards; another invitation takes its place.
        Nobody invites themselves: of a batch they are left out.

        **Give roles first, then hand out passwords and slips.** An account gains by a role, a permission, a child. Its
        credentials by others (a password that they set, an open invitation, a link) end then, unless their makers may
        do all that the account now may; for a student's or guardian's account they have to read results, too. The
        answer to the gain names them: `credentials` with `username`, `kind`, `made_by_name`, `made_at` and `ended`,
        200 at most, `credentials_total` and `credentials_of_kind`. Without `read:users` there are the numbers alone.
        """
    )
    [made, *_] = page.show("POST", "/invitations", {"batch": year["cohort"]["id"], "days": 14})
    page.say("Each guardian of the class who has no account gets one, and a code likewise:")
    (mother,) = page.show("POST", "/guardians/accounts", {"batch": year["cohort"]["id"]})
    page.say(
        """
        For a class on paper, `POST /invitations/slips?format=pdf` takes the same body and answers slips to be cut
        apart, ten on a page, with a QR code of `url` each; `format=xlsx` answers the same in columns. These, too, are
        new codes. Which invitations are open, without their codes:
        """
    )
    page.show("GET", f"/invitations?batch={year['cohort']['id']}")
    page.say(
        "The front end takes a code with its own token (`POST /users/login/invitation`), and the student is signed in:"
    )
    _take_invitation(page, "The student", made["code"].lower())
    _take_invitation(page, "The mother", mother["code"])
    year["signed_in"] = year["of_account"][made["user"]]
    page.acts_as("The registrar")
    page.say(
        """
        ```http
        POST /users/login/invitation

        {"code": "k7qm 4tz9 xdr2", "password": "…"}
        ```

        The answer is as that of `POST /users/login`. A code that was used, replaced, has expired, or is of an account
        that was given a password since, is refused in the same words (401). Beyond thirty wrong ones a minute from an
        address that is 429; a right one is taken all the same.

        ### Photos

        A photo is a JPEG or PNG of up to 8 MiB. It is made anew, upright and small, without a telephone's metadata,
        such as the place. `photo` of the user is then an address below the service's own, to be read with a token that
        may read users, or of the user, or of people related to them.
        """
    )
    page.show("PUT", f"/users/{made['user']}/photo", files={"image": ("zainab.png", draw_badge(90, 120, 60))})
    page.say(
        """
        An application fetches the bytes with its token, and shows them:

        ```js
        const headers = { Authorization: `Bearer ${token}`, "X-SCHOOL-ID": school };
        const answer = await fetch(user.photo, { headers });
        if (answer.ok) picture.src = URL.createObjectURL(await answer.blob());
        ```

        ### Sign-ins of an outside provider

        Where the operator has set `AUTH_LINKED_USERS=on`, a token of the outside provider is for the user whose account
        is linked to its `iss` and `sub`. An administrator links them
        (`POST /users/{id}/identities`), or people do so themselves: an application that is told 403 with the
        type `not-linked` asks for the code of an invitation, or for username and password, and sends it
        with the same token to `POST /me/identities`. With neither, an invitation counts that was made with the e-mail
        address which the provider has verified (`emails` of `POST /invitations`); an address of the records never does.
        Nobody links their own account as an administrator does. A link made by a password ends when another person sets
        a new one.
        """
    )


def _change_classes(page: Page, year: dict[str, Any]) -> None:
    cohort, arm = year["cohort"]["id"], year["arm"]["id"]
    page.say(
        """
        ## Changes in a year

        **A student comes late.** `started_on` is the first day in the class; registers before it do not ask for them:
        """
    )
    body = {"first_name": "Ẹfe", "last_name": "Aigbe", "admission_number": "QC/2024/071"}
    late = page.quietly("POST", "/students", body)["id"]
    body = {"students": [late], "batch": cohort, "started_on": "2025-10-13"}
    page.show("POST", f"/cohorts/{cohort}/enrollment", body)
    page.say(
        "**A student moves** to another arm: enrolled there, they have left the first one. Scores move along:"
    )
    body = {"students": [late], "batch": arm, "started_on": "2025-10-20"}
    page.show("POST", f"/cohorts/{cohort}/enrollment", body)
    page.say(
        """
        **A student leaves.** The enrollment ends with the last day; scores and marks stay, and `status` ACTIVE brings
        the student back:
        """
    )
    gone = {"status": "WITHDRAWN", "left_on": "2025-10-24", "leaving_reason": "The family has moved to Jos."}
    page.show("PATCH", f"/students/{late}", gone)
    page.say(
        """
        **Something was wrong.** A student in a wrong class is taken out of it
        (`PATCH /cohorts/{cohortId}/remove_students`), a student entered twice is deleted (`DELETE /students/{id}`), and
        so is a subject that the class does not take. A record with scores is refused, and names them: assessments go
        before their subject (`DELETE /assessments/{id}`, which takes their scores along). Where it is published,
        [reopen it first](#take-back-a-wrong-subject-or-a-wrong-choice).
        """
    )
    body = {"cohort_id": cohort, "subject_id": year["subject"]["id"], "elective": True}
    wrong = page.quietly("POST", "/templates", {"name": "Further Mathematics", "code": "FMA"})["id"]
    wrong = page.quietly("POST", "/cohort-subjects", {**body, "subject_id": wrong})["id"]
    page.show("DELETE", f"/cohort-subjects/{wrong}")
    page.say(
        """
        **A teacher leaves** with `DELETE /employees/{id}?hand_over=`, and the id of a colleague, who has the subjects
        and the form classes from that day on; [above](#the-work-of-each-role-in-a-year).
        """
    )


def _assess(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## The teacher assesses

        A front end begins with `GET /me`: it has the user's classes and subjects.
        """
    )
    page.acts_as("The teacher")
    page.show("GET", "/me")
    page.say(
        """
        An assessment is of a cohort subject and a term. The same test of several subjects of a cohort is made at once:
        """
    )
    physics, english = year["cohort_subject"]["id"], year["taught_english"]["id"]
    test = {
        "category": "CA1",
        "name": "First test",
        "abbreviation": "CA1",
        "due_date": "2025-10-17",
        "total_points": 20,
        "term": year["term"]["id"],
        "description": "First term",
        "file_name": "First test.xlsx",
        "include_in_final": True,
        "publish_scores": True,
    }
    tests = page.show("POST", "/assessments/many", {**test, "subjects": [physics, english]})
    exam = {
        **test,
        "category": "EXAM",
        "name": "Examination",
        "abbreviation": "EXAM",
        "due_date": "2025-12-05",
        "total_points": 60,
        "file_name": "Examination.xlsx",
    }
    page.say("One by itself:")
    assessment = page.show(
        "POST", "/assessments", {**exam, "subject": physics, "name": "Examination, Physics"}
    )
    english_exam = page.quietly("POST", "/assessments", {**exam, "subject": english})
    year.update(exam=assessment, exam_body=exam, test_body=test)
    page.say(
        """
        The assessments of a subject are found by three filters, all of them needed: `cohort` (or an arm of it),
        `subject` (the cohort subject, or the subject that is taught) and `term` (an id, or its name).
        """
    )
    page.show("GET", f"/assessments?cohort={year['cohort']['id']}&subject={physics}&term=FIRST")
    page.say("Its score sheet is a workbook with a row for everyone who takes the subject:")
    sheet = page.show_workbook(f"/assessments/{assessment['id']}/download-sheet")
    page.say("The teacher fills in the column `score`:")
    for row, score in zip(sheet["Scores"].iter_rows(min_row=2), (48.5, 39), strict=True):
        row[3].value = score
    page.show_sheet(sheet, "Scores")
    page.say(
        "All rows are entered, or none. The same sheet again changes nothing; a blank score changes none."
    )
    files = {"scoresheet": ("Physics examination.xlsx", _saved(sheet))}
    page.show("POST", f"/assessments/{assessment['id']}/scoresheet", files=files)
    page.say("A row that can't be accepted is named as Excel counts it, and nothing is stored:")
    sheet["Scores"]["D2"].value = 61
    files = {"scoresheet": ("Physics examination.xlsx", _saved(sheet))}
    page.show("POST", f"/assessments/{assessment['id']}/scoresheet", status=422, files=files)
    page.say(
        """
        One sheet has all assessments of a subject: the students of an arm, and a column for each assessment of a term.
        `GET /mark-sheets?batch=&term=` is a zip of the sheets of all subjects of the arm.
        """
    )
    of_arm = f"batch={year['cohort']['id']}&term=FIRST"
    marks = page.show_workbook(f"/cohort-subjects/{physics}/mark-sheet?{of_arm}")
    page.say(
        """
        The teacher writes scores, and ABSENT or EXCUSED for a student who was away. Only cells that were changed since
        the download are entered, all or none; an emptied cell removes its score or absence (`delete:gradebooks`):
        """
    )
    marks["Marks"]["D2"].value, marks["Marks"]["D3"].value = 15.5, "EXCUSED"
    page.show_sheet(marks, "Marks")
    page.say("With `dry_run=true` nothing is stored. `totals` are the arm's in each assessment:")
    files = {"mark_sheet": ("Physics.xlsx", _saved(marks))}
    page.show("POST", f"/cohort-subjects/{physics}/mark-sheet?{of_arm}&dry_run=true", files=files)
    page.say(
        """
        A program does so by `GET` and `PUT /cohort-subjects/{id}/scores?batch=&term=`. It enters a class's scores in
        one assessment as a list, too, by the same rules: all or none, an `absence` in place of a score (ABSENT counts
        0, EXCUSED counts nowhere), null to remove either. `expected` is the value that the program has read, so that
        nobody's correction is overwritten:
        """
    )
    first, second = year["students"]
    of_test = f"/assessments/{tests[1]['id']}/scores"
    page.show("GET", of_test)
    page.show(
        "PUT",
        of_test,
        [
            {"student": first, "score": 17, "expected": None},
            {"student": second, "absence": "EXCUSED", "expected": None},
        ],
    )
    page.say("A program with an older list gets 409, with each changed value and the name of its author:")
    page.show("PUT", of_test, [{"student": first, "score": 12, "expected": None}], status=409)
    page.quietly(
        "PUT",
        f"/assessments/{english_exam['id']}/scores",
        [{"student": first, "score": 44}, {"student": second, "score": 51.5}],
    )
    page.say(
        """
        A single score names the `batch` too, the arm of the assessment's cohort in which the student is (a cohort's id
        is its first arm), and so is a single absence entered:
        """
    )
    score = {"assessment": tests[0]["id"], "student": first, "batch": year["cohort"]["id"], "score": 15.5}
    page.show("POST", "/gradebooks", score)
    absence = {"student": second, "status": "EXCUSED", "note": "A letter from home"}
    page.show("PUT", f"/assessments/{tests[0]['id']}/absences", {"absences": [absence]})
    page.say("The scores of the class:")
    path = f"/scoresheets/{year['cohort_subject']['id']}/scoresheet?term={year['term']['id']}"
    scoresheet = page.show("GET", path)[0]
    page.say("Every change of a score is on record, with its author:")
    page.acts_as("The principal")
    page.show("GET", f"/audit?entity=gradebook&id={scoresheet['gradebooks'][-1]['id']}")


def _record_traits(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## The form teacher records traits

        Behaviour is scored from 5 (excellent) to 1 (poor), trait by trait, once a term, for two types: AFFECTIVE
        and PSYCHOMOTOR. A school may add traits of its own.
        """
    )
    page.show("POST", "/metric-definitions", {"name": "leadership", "metric_type": "AFFECTIVE"})
    page.acts_as("The teacher")
    path = f"/metrics/download-sheet?batchId={year['cohort']['id']}&term=FIRST&metric_type=PSYCHOMOTOR"
    sheet = page.show_workbook(path)
    for number, row in enumerate(sheet["Metrics"].iter_rows(min_row=2)):
        for column, cell in enumerate(row[3:]):
            cell.value = 3 + (number + column) % 3
    page.say("Filled in:")
    page.show_sheet(sheet, "Metrics")
    files = {"metric_sheet": ("traits.xlsx", _saved(sheet))}
    page.show("POST", f"/metrics/upload-sheet?batchId={year['cohort']['id']}", files=files)
    page.say("Or as a list, of both types; `expected`, as with scores, has the stored values by trait:")
    record = {
        "student": year["students"][0],
        "metric_type": "AFFECTIVE",
        "metric_scores": {"leadership": 5, "neatness": 4},
    }
    page.show("PUT", f"/metrics?batch={year['cohort']['id']}&term=FIRST", [record])


def _call_registers(page: Page, year: dict[str, Any]) -> None:
    batch, (_, second) = year["cohort"]["id"], year["students"]
    page.acts_as("The principal")
    page.say(
        """
        ## The form teacher calls the register

        A *day register* is of a class (its batch), a date and a part of the day; a *lesson register* of a cohort
        subject, a batch, a date and a period. That key is its identity: there is nothing to create first.
        School is open on the days of a term's calendar, on the school's weekdays, but for those that are closed:
        """
    )
    calendar = {"start_date": "2025-09-15", "end_date": "2025-12-12", "next_term_begins": "2026-01-12"}
    page.show("PUT", f"/terms/{year['term']['id']}/calendar", calendar)
    page.show("PATCH", "/attendance-settings", {"parts": "HALF_DAYS", "families_read": "MARKS"})
    page.say(
        """
        `HALF_DAYS` is the Nigerian register, which is called in the morning and in the afternoon. A holiday, and one
        morning on a Saturday:
        """
    )
    days = [
        {"date": "2025-10-01", "status": "CLOSED", "name": "Independence Day"},
        {"date": "2025-10-04", "status": "OPEN", "part": "MORNING", "name": "Open day"},
    ]
    page.show("PUT", "/school-days", {"days": days})
    page.show("GET", "/school-days?from=2025-10-01&to=2025-10-06")
    page.say(
        """
        A mark is a code of the school's, and counts by the code's `kind`: PRESENT and LATE as present, ABSENT and
        EXCUSED as absent:
        """
    )
    page.show("GET", "/attendance-codes")
    page.say(
        """
        ### Take a register

        A telephone asks for the register before it shows the class. `state` is NOT_TAKEN, and everyone is in it
        without a code:
        """
    )
    # The days of this year are long past, and a teacher's register is closed after a week.
    page.quietly("PATCH", "/attendance-settings", {"lock_after": None})
    page.acts_as("The teacher")
    key = {"batch": batch, "date": "2025-10-02", "part": "MORNING"}
    query = "&".join(f"{name}={value}" for name, value in key.items())
    page.show("GET", f"/registers?{query}")
    page.say(
        """
        The teacher taps the absent students. `default` is the code of everyone who is not named and has none, so that a
        class of forty with two absent is a request of 200 bytes. `submit` hands the register in: it counts from then
        on, and everybody enrolled by that date must be marked, else it is 409 and `errors.json.unmarked` names them.
        """
    )
    page.show(
        "PUT",
        "/registers",
        {**key, "default": "P", "marks": [{"student": second, "code": "A"}], "submit": True},
    )
    page.say(
        """
        A student who comes at half past eight is marked again. Of a mark that is sent, a member left out stays and null
        clears it; marks that are not sent stay. `version` is the register's when the telephone last saw it:
        """
    )
    late = {"student": second, "code": "L", "arrived": "08:31"}
    page.show("PUT", "/registers", {**key, "version": 1, "marks": [late]})
    page.say(
        """
        ### Two devices, and no network

        Each mark knows the version of the register with which it changed. A mark equal to the stored one is no change.
        A different one is taken if the stored mark has not changed since the `version` that was sent; other marks have
        no part in it. Where the stored mark has changed since, that is a conflict: nothing of the request is stored,
        and the answer has each such mark as `stored` and as `given`. Here a second telephone, which saw version 1,
        marks the same student excused:
        """
    )
    excused = {"student": second, "code": "E", "note": "Clinic"}
    page.show("PUT", "/registers", {**key, "version": 1, "marks": [excused]}, status=409)
    page.say(
        """
        So a program for telephones without a network at hand does this:

        1. Before the day, while there is a network, GET the registers of the teacher's classes, and keep class list and
           `version`. Without one, the version is 0.
        2. Marking writes into the device alone. For each register keep **one** PUT, not a list of taps: the key, the
           `version` that the teacher saw, the marks that they set, `default`, `submit`, and `taken_at`, when they
           marked.
        3. When there is a network, send the kept PUTs, in any order, and as often as it takes: the same PUT sent ten
           times ends as sent once. No `Idempotency-Key` is needed. A timeout, 429 and 503 are sent again, after
           `Retry-After` where it is there.
        4. 200: forget the PUT; keep the answer, with its `version`.
        5. 409 with `errors.json.marks`: show the teacher both, `stored` and `given`, and the author of the change. A
           mark left as stored goes out of the PUT; the rest is sent with the `version` of the answer. `force: true`
           takes all given marks; the audit log says so.
        6. 409 with `errors.json.unmarked`: a student has joined the class since. GET the register, mark them, send it
           again.
        7. 409 otherwise: school is closed on that day. 422: a date to come, or people who are not in the class, by
           name: GET the register, and leave them out. 403: the register is older than the school lets a teacher
           change (`lock_after`, in days): the office corrects it. None of these is sent again as it is.

        A conflict goes by the version that the writer saw, never by the clocks of telephones: `taken_at` may be at most
        five minutes ahead, is kept beside the server's time and decides nothing. `default` never conflicts, since it
        fills empty marks alone. A GET has `date` as the device shows it: *today* is a day of the school's time zone
        (`GET /settings`).

        ### Correct

        A correction of the office stands beside the teacher's mark, and counts. It needs `write:attendance-corrections`
        and a reason; no teacher's PUT changes it, and a `code` of null takes it back. It may be there before the
        register is taken: a mother telephones at seven.
        """
    )
    page.acts_as("The registrar")
    correction = {"student": second, "code": "E", "reason": "At the clinic since Monday, says her mother."}
    page.show("PUT", "/registers/corrections", {**key, "corrections": [correction]})
    page.say(
        "### Sums of registers\n\nMissing registers, in every open part of a day and class with students:"
    )
    page.acts_as("The teacher")
    page.quietly("PUT", "/registers", {**key, "part": "AFTERNOON", "default": "P", "submit": True})
    page.acts_as("The registrar")
    page.show("GET", "/registers/missing?from=2025-10-01&to=2025-10-03")
    page.show("GET", "/attendance/days?date=2025-10-02")
    page.say(
        """
        The sums of a class in a term. `opened` is how often the student was called: the submitted registers with a mark
        of theirs, in whichever arm. So `opened` is `present` and `absent` together, also for a student who came late in
        the term. A draft counts nowhere:
        """
    )
    page.show("GET", f"/attendance/summary?term=FIRST&batch={batch}")
    page.say("One student, by week and mark; `families_read` sets the part that students and guardians read:")
    page.show("GET", f"/students/{second}/attendance?term=FIRST")
    page.say(
        """
        A name such as FIRST means the term of the current session, else of the student's latest that has one; of
        another session the term's id is given. `GET /attendance/chronic` lists the students who were away for too large
        a part of the term.

        ### On paper, and on cards

        A week as a sheet to fill in, with a column for each open part of a day, for a class whose teacher has no
        telephone:
        """
    )
    page.acts_as("The teacher")
    sheet = page.show_workbook(f"/registers/download-sheet?batch={batch}&week=2025-09-29")
    rows = list(sheet["Register"].iter_rows(min_row=2))
    for column, codes in ((3, "PP"), (4, "PA")):
        for row, code in zip(rows, codes, strict=True):
            row[column].value = code
    page.say("Filled in:")
    page.show_sheet(sheet, "Register")
    page.say(
        """
        A blank cell changes nothing, all is stored or nothing, and a mark changed since the download is 409, named by
        row and person, unless `force=true` replaces it. A register without unmarked students then is submitted:
        """
    )
    files = {"register_sheet": ("week.xlsx", _saved(sheet))}
    page.show("POST", f"/registers/upload-sheet?batch={batch}", files=files)
    page.acts_as("The registrar")
    page.say(
        "The register of the term, with weekly totals, times opened, boys, girls and averages, to be printed (A3):"
    )
    page.show_file(f"/registers/download?batch={batch}&term=FIRST")
    page.say(
        """
        Cards show how often school opened and a student came as typed in, with `PUT /comments` and in the term's
        calendar. With `{"roll_up": "REGISTERS"}` in the settings they show the sums of registers, and other figures are
        refused; with `TYPED` the typed ones come back.
        """
    )


def _submit(page: Page, year: dict[str, Any]) -> None:
    subject, batch = year["cohort_subject"]["id"], year["cohort"]["id"]
    page.acts_as("The teacher")
    page.say(
        """
        ## The form teacher comments

        The comments of a card on a student's term, and how many of the times that school opened they came. There is a
        sheet for it, too (`GET /comments/download-sheet`). The form teacher writes with `write:metrics`; a principal's
        comment needs `write:results`.
        """
    )
    first, second = year["students"]
    page.show(
        "PUT",
        "/comments",
        {
            "batch": batch,
            "term": "FIRST",
            "comments": [
                {"student": first, "times_present": 118, "form_teacher_comment": "A curious mind."},
                {"student": second, "times_present": 97, "form_teacher_comment": "Is welcome back."},
            ],
        },
    )
    page.say(
        """
        ## Teachers hand in

        Results are read at any time, computed from the scores as they stand: `state` is PROVISIONAL then. The
        broadsheet has a row for each student of a class and a column for each subject:
        """
    )
    page.show("GET", f"/broadsheets?batch={batch}&term=FIRST")
    page.say(
        "As a workbook, to be read, printed and signed, here by position; `order=name` puts the students by name:"
    )
    page.show_file(f"/broadsheets/download?batch={batch}&term=FIRST")
    page.say(
        """
        At the end of a term the teacher of each subject submits it, and the class is published as a whole. These are
        the subjects in which something counts; `blanks` are missing scores:
        """
    )
    page.show("GET", f"/submissions?batch={batch}&term=FIRST")
    page.say(
        """
        While a score is blank, submitting is 409 and names it; or `blanks` decides how it counts. Without a `batch`
        every arm of the cohort is submitted, by a teacher of all; with one that arm alone:
        `GET /submissions?cohort=` has the state of each.
        """
    )
    of_arm = {"term": "FIRST", "batch": batch}
    page.show("POST", f"/cohort-subjects/{subject}/submission", of_arm)
    page.quietly("POST", f"/cohort-subjects/{year['taught_english']['id']}/submission", of_arm)
    page.say("From here on nothing changes the scores of this subject and term, by hand or by sheet:")
    answer = page.quietly("GET", f"/gradebooks?student={second}&assessment={year['exam']['id']}")
    (entry,) = answer["data"]
    page.show("PATCH", f"/gradebooks/{entry['id']}", {"score": 50}, status=409)
    year["entry"] = entry


def _publish(page: Page, year: dict[str, Any]) -> None:
    batch, (first, _) = year["cohort"]["id"], year["students"]
    page.acts_as("The principal")
    page.say(
        """
        ## The principal publishes

        The open subjects of all classes: `GET /submissions?state=OPEN`.

        The class is published: all of it, or nothing, and a 409 names each obstacle (`?dry_run=true` does so without
        publishing). Arms of a cohort are published together, so that their cards show the same positions.
        """
    )
    (publication,) = page.show("POST", "/publications", {"term": "FIRST", "batches": [batch]})
    page.say(
        """
        Each card is frozen as it is then. A later change of a name, a grade band, a setting or an enrollment changes no
        published answer; `live=true` asks for the figures of now. Students read their own without any permission.
        """
    )
    page.show("GET", f"/students/{first}/results?term=FIRST")
    year["publication"] = publication


def _correct(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## The principal corrects published results

        A mistake is corrected in the open. The publication is reopened, with a reason, then the subject. The published
        version is shown on, as REOPENED, until the next one:
        """
    )
    subject, batch = year["cohort_subject"]["id"], year["cohort"]["id"]
    path = f"/publications/{year['publication']['id']}/reopening"
    page.show("POST", path, {"reason": "Two answers of one script were not marked."})
    reason = {"term": "FIRST", "reason": "Two answers of one script were not marked."}
    page.show("POST", f"/cohort-subjects/{subject}/reopening", reason)
    page.acts_as("The teacher")
    page.show("PATCH", f"/gradebooks/{year['entry']['id']}", {"score": 52})
    page.quietly("POST", f"/cohort-subjects/{subject}/submission", {"term": "FIRST", "batch": batch})
    page.acts_as("The principal")
    page.say("Handed in and published again, it is the next version:")
    (again,) = page.show("POST", "/publications", {"term": "FIRST", "batches": [batch]})
    page.say(
        """
        `changed` counts the cards to be printed again, which say something else of their student;
        `class_figures_changed` those that differ in the figures of the class alone, whose papers hold. Students who
        have left the class since still have a card, and are named in `left`. A student who should never have been in
        the class is named in `leave_out` of the request, with a reason. These are to be printed again:
        """
    )
    page.show("GET", f"/publications/{again['id']}/changes")
    page.say(
        """
        Every version stays readable to staff: `/publications/{id}/cards` lists its cards, and `version=1` of
        `/students/{id}/results` and of `/students/{id}/report-card` answers the first one.

        ### Take back a wrong subject, or a wrong choice

        A published term keeps the subjects that each student took then; later choices leave them. To change them,
        reopen the publication. `DELETE /cohort-subjects/{id}/students/{student_id}` then takes the elective from
        the next version, too, and `PATCH /cohort-subjects/{id}/students` puts a student in, whose scores are entered
        and submitted before it is published again. While it is reopened, or submitted and not published yet, a subject
        stays elective or compulsory as it is (409).

        A wrong subject goes step by step: reopen its publications and submissions, delete its assessments by
        `DELETE /assessments/{id}`, which takes their scores with it and keeps them in the audit log, and its teachers
        by `DELETE /subject-teachers/{id}`, then `DELETE /cohort-subjects/{id}`, and submit and publish again. The
        students of a compulsory subject go with it; from an elective each is taken out before.
        """
    )
    year["publication"] = again


def _read_at_home(page: Page, year: dict[str, Any]) -> None:
    student = year["students"][0]
    page.acts_as("The mother")
    page.say(
        """
        ## Parents and students read

        A parent needs no permission for the results of their children, a student none for their own. `GET /me` names
        the children:
        """
    )
    page.show("GET", "/me")
    page.say("The cards of a child, the newest first, and one of them on paper:")
    page.show("GET", f"/students/{student}/report-cards")
    page.show_file(f"/students/{student}/report-card?term=FIRST")
    page.say(
        "The days on which the child was away, where the school lets families read them (`families_read`):"
    )
    page.show("GET", f"/students/{student}/attendance?term=FIRST")
    page.say(
        "A student changes their own password by `PUT /users/{id}/password`, and reads the same of themselves:"
    )
    page.acts_as("The student")
    page.show("GET", f"/students/{year['signed_in']}/results?term=FIRST")


def _repeat(page: Page, year: dict[str, Any], term: str, day: str) -> None:
    """Do the first term's steps for another one; show its publication alone."""
    physics, english = year["cohort_subject"]["id"], year["taught_english"]["id"]
    first, second = year["students"]
    if term == "SECOND":
        page.say(
            """
            ## The second and the third term

            They go as the first one did. The results of a term count for the session, whose results cards of the second
            and third term show beside the term's own:
            """
        )
    page.acts_as("The teacher")
    for body, marks in (
        (year["test_body"], ((14, 16), (18, 11))),
        (year["exam_body"], ((41, 50), (52.5, 38))),
    ):
        body = {**body, "term": year["terms"][term], "due_date": day, "description": term.title()}
        made = page.quietly("POST", "/assessments/many", {**body, "subjects": [physics, english]})
        for assessment, scores in zip(made, marks, strict=True):
            records = [
                {"student": student, "score": score}
                for student, score in zip((first, second), scores, strict=True)
            ]
            page.quietly("PUT", f"/assessments/{assessment['id']}/scores", records)
    batch = year["cohort"]["id"]
    traits = {"metric_type": "AFFECTIVE", "metric_scores": {"leadership": 4, "neatness": 5}}
    page.quietly("PUT", f"/metrics?batch={batch}&term={term}", [{"student": first, **traits}])
    comments = [{"student": student, "times_present": 120} for student in (first, second)]
    page.quietly("PUT", "/comments", {"batch": batch, "term": term, "comments": comments})
    for subject in (physics, english):
        page.quietly("POST", f"/cohort-subjects/{subject}/submission", {"term": term, "batch": batch})
    page.acts_as("The principal")
    body = {"term": term, "batches": [batch]}
    if term == "THIRD":
        page.show("POST", "/publications", body)
        return
    page.quietly("POST", "/publications", body)
    page.say(
        """
        A mistake of the first term that is found now stands in two publications. A dry run of the reopening lists the
        acts that correct both, in the order in which all succeed; scores are changed between the last reopening and the
        first submission:
        """
    )
    reopening = f"/publications/{year['publication']['id']}/reopening?dry_run=true"
    page.show("POST", reopening, {"subjects": [physics]})
    page.say("The third term:")


def _set_up_next_session(page: Page, year: dict[str, Any]) -> None:
    page.acts_as("The principal")
    page.say(
        """
        ## The principal sets up the next session

        The next session is created, and set up as this one was: terms with their calendars, cohorts with their arms,
        subjects, assessments and form teachers, or some of these `parts`. Dates are shifted by the days between the
        first days of both sessions. A dry run answers the records to be made, row by row:
        """
    )
    session = page.show(
        "POST", "/sessions", {"name": "2026/2027", "start_date": "2026-09-07", "end_date": "2027-07-23"}
    )
    path = f"/sessions/{session['id']}/copy-from"
    page.show("POST", f"{path}?dry_run=true", {"session": "2025/2026"})
    page.say(
        """
        Then they are made, all or nothing. Records of the next session stay: the same copy again makes nothing again,
        and records added to this session meanwhile come along. A teacher who has left is left out, and named.
        """
    )
    copied = page.show("POST", path, {"session": "2025/2026"})
    year["next"] = {row["name"]: row["id"] for row in copied["rows"] if row["record"] == "cohort"}
    year["next_session"] = session["id"]


def _print(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## Papers

        Published results are printed: the card of a student, the cards of a class in one PDF (or each alone, in a zip:
        `format=zip`), and a transcript of all published results. A card of the third term shows the decision of the
        promotion, where its student was promoted before it is printed; a promotion replaces no paper, so the term is
        published first. Students print their own without any permission.

        A list has the published cards of a student, the newest first:
        """
    )
    student, batch = year["students"][0], year["cohort"]["id"]
    page.show("GET", f"/students/{student}/report-cards")
    page.say(
        """
        A term's name without `session` means the term of the current session, if the student is or was enrolled in it
        and it has such a term, else of their latest that has one: by now the next one. So the session is named, by its
        id or its name. A student and a guardian need not name it: to them the name is of the newest session in which
        that term's card is published, also on the day after a promotion.
        """
    )
    page.show_file(f"/students/{student}/report-card?term=THIRD&session=2025/2026")
    page.show_file(f"/report-cards?batch={batch}&term=THIRD")
    page.say(
        """
        An app shows the same as the paper: `format=json` of the card answers its whole content, the figures as they are
        printed and beside them the words of the paper, such as `2nd =`. The table of subjects is drawn by
        `keys.columns`: each names the `member` of a subject that it shows, with the lines of its heading.

        All published results of a student, to be read and to be printed:
        """
    )
    page.show("GET", f"/students/{student}/transcript")
    page.show_file(f"/students/{student}/transcript/download")
    page.say(
        """
        Where the service has a `PUBLIC_URL`, a card bears a code, by which any holder of the paper has it verified,
        without token and school. A browser gets a small page. A card of an earlier version is REPLACED if a newer one
        says something else of the student, a code that is not on any paper 404:
        """
    )
    page.show("GET", f"/verify/{page.headers['X-SCHOOL-ID']}/{_code_of_card(page, student)}")


def _code_of_card(page: Page, student: str) -> str:
    """The code of a student's newest report card, which the paper alone has."""
    with (
        page.app.app_context(),
        in_transaction(SchoolBinding(UUID(page.headers["X-SCHOOL-ID"]), read_only=True)),
    ):
        newest = select(ReportCard.code).join(Publication, Publication.id == ReportCard.publication_id)
        query = newest.where(ReportCard.student_id == UUID(student)).order_by(Publication.published_at.desc())
        return str(db.session.scalars(query.limit(1)).one())


def _promote(page: Page, year: dict[str, Any]) -> None:
    page.acts_as("The principal")
    page.say(
        """
        ## The principal promotes

        At the end of a session students go on into the next. Rules decide by the published results: for each level of
        classrooms, or for all that have no rule of their own. Without a rule an average of 40 is enough.
        """
    )
    rule = {
        "minimum_average": 45,
        "trial_average": 40,
        "required_subjects": [year["subject"]["id"]],
        "maximum_failed": 3,
    }
    page.show("PUT", "/promotion-rules", [rule])
    page.say(
        """
        A dry run shows the outcome of each student, and stores nothing. `promote_to` names the batch of the next
        session, null where the class is the last; `repeat_in` the batch of students who repeat. People decide where the
        rule should not: each of `overrides` has a reason.
        """
    )
    above, again = year["next"]["SSS 3"], year["next"]["SSS 2"]
    moves = [{"batch": year["cohort"]["id"], "promote_to": above, "repeat_in": again}]
    override = {
        "student": year["students"][1],
        "outcome": "REPEATED",
        "reason": "Missed two terms; her parents ask for the year again.",
    }
    body = {"session": "2025/2026", "moves": moves, "overrides": [override]}
    seen = page.show("POST", "/promotions?dry_run=true", body)
    page.say(
        """
        The commit brings the `fingerprint` of the dry run. If a result, a rule, a class or a decision has changed
        since, it is 409. The same commit again answers the same promotion, and changes nothing.
        """
    )
    commit = {**body, "fingerprint": seen["fingerprint"]}
    promotion = page.quietly("POST", "/promotions", commit)
    page.show("GET", "/promotions?session=2025/2026")
    page.say(
        "A student who goes on or repeats is in a class of the next session, on its score sheets and class lists:"
    )
    page.show("GET", f"/cohorts/{above}/students")
    page.say(
        """
        One decision is amended by `PATCH /promotions/{id}/decisions/{student}`, with the outcome, the class of the next
        session and a reason, as long as the student has no report card of that session. The student moves; the
        promotion answers as amended, with each amendment in `amended` of the decision.

        A promotion can be undone while nothing rests on it: no score, absence, trait, comment or elective of the next
        session, nobody moved since, and its graduates are the last ones. Enrollments, graduates and their numbers are
        taken back; the promotion stays on record.
        """
    )
    page.show("DELETE", f"/promotions/{promotion['id']}")
    page.quietly("POST", "/promotions", commit)
    page.say("Here it is committed again. When the new session begins, it becomes the current one:")
    page.show("PATCH", f"/sessions/{year['next_session']}", {"current": True})


def _graduate(page: Page, year: dict[str, Any]) -> None:
    page.acts_as("The registrar")
    page.say(
        """
        ## The registrar lets students graduate

        Students of the last class graduate by the promotion, where `promote_to` is null; a student may graduate alone,
        too, with the date of leaving where it is known. Graduates are counted from 1, `student` is the student's
        number. The enrollment ends; scores and history stay.
        """
    )
    page.show("POST", "/graduates", {"student": year["leaver"], "left_on": "2026-07-17"})
    page.show("GET", "/graduates?page=0&size=50")
    page.show("GET", f"/students/{year['leaver']}")


def _look_after(page: Page, year: dict[str, Any]) -> None:
    page.acts_as("The principal")
    page.say(
        """
        ## Give other programs the school's data

        A learning platform or a library takes classes, people and results as OneRoster: a zip of CSV files, of the
        current session or of another by its name. The files are of version 1.2, with `version=1.1` of 1.1, for
        receivers that read no other. A record has the same `sourcedId` in both, and keeps it: its own id, where it has
        one. They are for programs: a name is in them as it was entered, also one that a spreadsheet takes for a
        formula.
        """
    )
    page.show_file("/oneroster/csv?session=2025/2026")
    page.say(
        """
        Where a receiver refuses files, name each that it takes by a `file`; the manifest says `absent` of the others.
        The plugin enrol_oneroster of Moodle takes these five.
        """
    )
    names = ("academicSessions", "orgs", "classes", "users", "enrollments")
    page.show_file(f"/oneroster/csv?version=1.1{''.join(f'&file={name}' for name in names)}")
    page.say(
        """
        No file has passwords: the service does not know them. Where the receiver signs people in by an identity
        provider, none are needed. Else give them to people there, or fill them in, in a copy of `users.csv`, each with
        one that its owner changes at the first sign-in. That plugin wants an `identifier`, which becomes the username,
        and a `password` of every user: fill in both in the copy, as teachers have no admission number. Of signs it
        takes spaces, dots, commas and hyphens: write "2026-2027" in place of "2026/2027" there.
        """
    )
    page.say(
        """
        ## Look back

        Changes with their authors and times, the newest first: of a record (`entity` and `id`), by a person (`actor`).
        A person may ask for a copy of all stored data about them: `GET /students/{id}/data`.
        """
    )
    page.show("GET", f"/audit?entity=publication&id={year['publication']['id']}")


def _say_special_cases(page: Page) -> None:
    """List the operations that no step has: a new one is here until a section names it."""
    document = page.app.test_client().get("/openapi.json").get_json()
    named = {operation["operationId"] for _, operation in named_in(page.text(), document)}
    page.say(
        """
        ## For special cases

        Operations that are in no section above, by the groups of `/docs`:
        """
    )
    for group in document["x-tagGroups"]:
        others = [
            f"- `{method} {path}`: {operation['summary']}"
            for method, path, operation in operations_in(document)
            if operation["tags"][0] in group["tags"] and operation["operationId"] not in named
        ]
        if others:
            page.say(f"### {group['name']}")
            page.say("\n".join(others))


def operations_in(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Go through the operations of the document, each with its method and path."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method.upper() in METHODS:
                yield method.upper(), path, operation


def named_in(text: str, document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Find the operations that a text names, each with the words that name it: method and path, a query left out."""
    known = [
        (method, re.compile(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path))), operation)
        for method, path, operation in sorted(operations_in(document), key=lambda entry: entry[1].count("{"))
    ]
    for named in _NAMED.finditer(text):
        for method, path, operation in known:
            if method == named[1] and path.fullmatch(named[2]):
                yield named[0], operation
                break


def _keep_a_copy(page: Page, year: dict[str, Any]) -> None:
    page.acts_as("The administrator")
    page.say(
        """
        ## Keep a copy

        A front end at its first start, a library system, a ministry's warehouse, a gateway of messages, and a school
        that leaves read all records once, and then the changes. `GET /export` answers all records of one moment,
        a line of JSON each, every record after those that it names; clients that take gzip get it zipped. It needs
        `read:export`, and of each resource the permission to read it in the whole school: a resource without it is
        not there, asked for or not. `resource`, given once for each, asks for some alone.
        """
    )
    page.show_lines("/export?resource=classrooms&resource=students")
    page.say(
        """
        A record has its stored values, with ids of other records: no names of others, nothing computed, no authors of
        changes, and no pictures but their digests. `enrollments`, `subject-enrollments` and `student-guardians` are
        lists, one a student; `absences` one an assessment, `subject-teachers` one a cohort subject, `form-teachers` one
        an arm. `settings` are several records, each with its name as its id. Deleted and erased records are not there.

        From the cursor of the first line on, `GET /changes` lists the changes: the record, and whether it was created,
        updated, deleted or erased. It has no values: it needs `read:changes`, and again the permission to read the
        resource in the whole school. Without `after` it answers the cursor of now.
        """
    )
    cursor = page.show("GET", "/changes")["cursor"]
    page.quietly("PATCH", f"/students/{year['leaver']}", {"middle_name": "Ade"})
    page.show("GET", f"/changes?after={cursor}&limit=100")
    page.say(
        """
        Changes come in the order in which they were stored. An answer never divides the changes of one request, so it
        may have more than `limit`. Ask again from the new cursor, at once while `more` is true, else after half a
        minute or so: an answer without changes costs as little as a list of classrooms. Then read the changed records,
        up to 200 of a resource at once:
        """
    )
    page.show_lines(f"/export?resource=students&id={year['leaver']}")
    page.say(
        """
        A program with a copy does five things with each answer, in this order, and stores the new cursor with the last:

        1. `deleted`: remove the record.
        2. `erased`: remove the record, and every record that has its id anywhere: the data of a person were erased, and
           nothing of them may stay, in backups of the copy neither. The records of others that remain are listed as
           `updated` beside it.
        3. `created` and `updated`: read the records by their ids, and put them in place of the old ones. One without a
           line is gone meanwhile: remove it.
        4. A change that comes twice, or of a record that is there already, is no error.
        5. 410 (`gone`): the place of the cursor is not there any more, since the school was restored from a backup, its
           audit log was pruned, or an update has changed records by itself. Remove the copy, and begin with an export.

        `after=start` answers all changes that are kept, which is no copy: begin with an export. `examples/follower.py`
        of the source does all this in forty lines; the operator writes the same file by
        `school-service tenants export`.

        The same feed is a message to the parents: where `GET /changes?resource=registers` has changes,
        `GET /attendance/absences` names the students who are away today, with the guardians to tell.
        `examples/notices.py` hands these to the school's own gateway.
        """
    )
    page.acts_as("The principal")


def _types_of_errors() -> str:
    """Write the table of the types of errors, by status."""
    rows = [
        f"| `{error_type}` | {', '.join(map(str, error_type.statuses))} | {error_type.meaning} | {error_type.remedy} |"
        for error_type in sorted(ErrorType, key=lambda error_type: (error_type.statuses, error_type))
    ]
    return "\n".join(["| type | status | when | what to do |", "|---|---|---|---|", *rows])


def _errors(page: Page, year: dict[str, Any]) -> None:
    page.say(
        """
        ## Send again safely

        Where an answer was lost on the way, nobody knows whether the request was carried out. A POST with the header
        `Idempotency-Key`, of 1 to 255 printable ASCII characters, such as a new uuid, can be sent again: for 24 hours
        the same request with the same key does nothing and is answered as it was, with
        `Idempotency-Replayed: true`.

        - A key belongs to the user or client who sent it, in one school. With another address or another body it is
          422; a body is the same if its bytes are, an upload if its files are.
        - While the first request is under way, the second is 409: try again shortly.
        - An error is not stored: the request can be tried again with the same key.
        - Where an answer has a token or a code, nothing is stored and the header is ignored: `POST /users/login`,
          `/users/login/invitation`, `/me/identities` and `/auth/oauth/token`; `POST /users`, which is 409 where the
          username is there already; `POST /invitations` and `/invitations/slips`, whose new codes take the place of
          the first; and `POST /guardians/accounts`, after which `POST /invitations` invites the guardians by `users`.

        ## Change a record as you have seen it

        The answer of a GET of one record has an `ETag`. A PATCH or DELETE of that record with this tag as `If-Match` is
        refused with 412 where the record has changed since; the answer of the PATCH has the next `ETag`. The header is
        optional. A GET with the tag as `If-None-Match` is answered 304 without a body while the record is the same.

        ## When something is wrong

        Every error has this one shape; `request_id` is also in the header `X-Request-ID` and in the service's
        logs.

        `errors.json` has a member within a list at its place in the body, `{"assignments": {"0": {"employee": […]}}}`,
        where the value is malformed. Where the school's records stand against it, it has the member's path,
        `assignments.0.employee`, or the list, with the person in the message; lists of scores, of metrics and of an
        assessment's subjects have the place for both.

        Errors end. A list that is too long says that alone. Errors of a body (`errors.json`) end after the member with
        which 100 messages are reached, errors of a sheet or of records in a list (`errors.rows`) after 200 rows, and
        both earlier where the answer would be larger than 64 KiB. `errors.left_out` then counts the other members,
        parameters or rows with an error; it is absent where all are told. A message has at most 300 characters, and an
        unknown name is said back by its first 60.

        Go by `status` and `type`, a reason for programs. A type never changes its name or its meaning; new ones may
        come, and a client that does not know one goes by the status. A record out of reach has the type of a record
        that is not there, `unknown-id`, wherever it is named; a sheet or a list has this type where each bad row names
        such a record and has no other fault, and each row has its own `code`. The endpoints below `/auth/oauth` answer
        OAuth's statuses and `error`, and `type` beside them.
        """
    )
    page.say(_types_of_errors())
    page.show("POST", "/graduates", {"student": year["leaver"]}, status=409)
    page.show("POST", "/classrooms", {"name": " ", "levels": "Senior"}, status=422)
    page.headers["X-SCHOOL-ID"] = "0b6e6a53-5c5a-4d5c-8d53-9d2b7f9d8a11"
    page.show("GET", "/classrooms", status=403)
    page.say(
        """
        ## From a web page, and from generated code

        A page of another origin may call the service where the operator has named its origin (`CORS_ORIGINS`). A
        secret of a client has no place in it: the page's own server asks for the token.

        `/openapi.json` describes every operation, with its permission (`x-permission`) and a real request and answer.
        A release has two clients that are made of it and have its version, `clients/school_service_client-*.whl` for
        Python and `clients/school-service-client-*.tgz` for TypeScript, both with strict types:
        `examples/enter_score.py` and `examples/enter-score.ts` list students, enter a score and handle a stale sheet,
        in 30 lines. Postman and Bruno import the document, each operation as a request. OAuth libraries get a
        token at `/auth/oauth/token` as they do anywhere (a form, HTTP Basic), and find it by
        `/.well-known/oauth-authorization-server`. `scope` in the form names permissions of the client's grant, with a
        space between two: the token has these alone. One that the grant does not cover is 400 `invalid_scope`.

        ## Versions, and the stability of the interface

        The service's version is in `/openapi.json` (`info.version`) and `/health`. Versions follow
        [Semantic Versioning](https://semver.org): a new first number may break a client, others do not.
        [CHANGELOG.md](../CHANGELOG.md) has the changes.

        Any version may bring these, so a client has to bear them: new operations, new optional parameters and members
        of a body, new members of an answer, new header fields, new values of `type` of errors and of `code` in errors
        of rows, another wording of any `message`, and an error where there was a failure (500). Go by statuses, types,
        members and codes, never by words; take no notice of members that you do not know. The order of members means
        nothing.

        A new first number alone may bring these: an operation, a parameter or a member is taken away or renamed, gets
        another type or another meaning; something optional becomes required; a new value of an enumeration that is
        answered; another status for the same case; another permission for an operation. Names of operations
        (`operationId`) and of schemas count, as generated code is made of them.

        A part of the interface is first deprecated: in the document (`deprecated: true`, with its substitute) and in
        the changelog. It goes on working as before until the next first number, and for twelve months at least. Before
        version 1 a second number may break an extension, when the version before has announced it; the interface of
        `tests/contract/interface.md` does not change. Only a hole in security may make this shorter, and then the
        changelog begins with it. There is one version of the interface at an address: no path or header has a number.
        """
    )


def _saved(workbook: Any) -> bytes:
    made = BytesIO()
    workbook.save(made)
    return made.getvalue()


def as_html(page: Page) -> str:
    """Write the page as a part of one in HTML: its sections have ids, and are listed at the top.

    Each request is there in every form; the page shows one of them.
    """
    text = page.text()
    # A file beside the page has no address at the service.
    text = re.sub(r"\[([^]]+)\]\((?!https:)[^)]+\)", r"\1", text)
    text = re.sub(r"<!--.*?-->\n*", "", text)
    tokens = _MARKDOWN.parse(text)
    contents = []
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open" and heading.tag == "h2":
            name = re.sub(r"[^a-z]+", "-", inline.content.lower()).strip("-")
            heading.attrSet("id", name)
            contents.append(f'<li><a href="#{name}">{escape(inline.content)}</a></li>')
    document = page.app.test_client().get("/openapi.json").get_json()
    forms = iter([*page.forms(), ("", {})])
    request, others = next(forms)
    for token in tokens:
        if token.type == "fence" and token.content.strip() == request.strip():
            token.type = "html_block"
            head = request.split("\n", 1)[0]
            named = f'<p class="operation"><code>{escape(head)}</code></p>'
            token.content = f"{named}\n{_in_every_form(token.content, others)}"
            request, others = next(forms)
    if request:
        raise RuntimeError(f"not on the page: {request}")
    listed = "\n".join(contents)
    body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    body = _INLINE.sub(lambda code: _linked(code[0], document), body)
    return f"{_BAR}<nav>\n<ul>\n{listed}\n</ul>\n</nav>\n{body}"


def _linked(code: str, document: Mapping[str, Any]) -> str:
    """Lead from inline code, HTML, that names an operation to its place on the docs page."""
    for _, operation in named_in(code, document):
        return f'<a href="../docs#/{operation["tags"][0]}/{operation["operationId"]}">{code}</a>'
    return code


def _in_every_form(request: str, others: dict[str, str]) -> str:
    written = {"http": request.rstrip("\n"), **others}
    return "".join(
        f'<pre data-form="{form}"{"" if form == "http" else " hidden"}><code class="language-{form}">'
        f"{escape(text)}\n</code></pre>\n"
        for form, text in written.items()
    )


@contextmanager
def installation() -> Iterator[tuple[Flask, Tenancy]]:
    """Start a service on a PostgreSQL of its own, which are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="school-guide-") as folder, ExitStack() as stack:
        # Where root runs this, PostgreSQL's own user must get to its data.
        Path(folder).chmod(0o711)
        used = stack.enter_context(data_folder(Path(folder) / "school-data", create=True))
        settings: Settings = used.settings({"LOG_LEVEL": "WARNING"})
        tenancy = tenancy_of(settings)
        install(tenancy)
        yield create_app(settings), tenancy
        tenancy.admin.dispose()


def main() -> None:
    """Write the page."""
    with installation() as (app, tenancy):
        page = Page(app)
        PAGE.write_text(write(app, tenancy, page), encoding="utf-8")
        SHOWN_PAGE.write_text(as_html(page), encoding="utf-8")


if __name__ == "__main__":
    main()
