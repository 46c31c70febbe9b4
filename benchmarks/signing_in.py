"""The cost of signing in by a browser, beside the operations that it stands for.

    python -m benchmarks.signing_in [--rounds 300]

Starts a PostgreSQL of its own from the wheel, with one school and a client by which people sign in. The service answers
in this process, as WSGI; requests that are compared are sent in turn. Prints the median of each in microseconds and
their ratio: a request with a token of a session ÷ one with a token of `POST /users/login`, a refresh ÷ `GET
/classrooms`, the sign-in page ÷ `GET /health/live` (processor time of this process), and the page's form ÷ `POST
/users/login`. Passwords are hashed at the real cost, but in the last comparison: `POST /users/login` ÷ `GET
/classrooms`, in processor time of this process and of PostgreSQL, where a hash costs next to nothing.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import secrets
import time
from collections.abc import Callable
from statistics import median
from urllib.parse import parse_qs, urlencode, urlsplit

import psutil
from argon2 import PasswordHasher
from sqlalchemy import text
from werkzeug.test import Client, TestResponse

from benchmarks.installation import installation
from school_service.app import create_app
from school_service.auth import passwords
from school_service.auth.tokens import issue_client_token
from school_service.config import Settings
from tenants.provisioning.create import create_school
from tenants.registry.clients import PeoplesOptions, create_client
from tenants.tenancy import Administrator, Tenancy

PUBLIC_URL = "https://schools.example.org"
BACK = "https://app.example.com/back"
PASSWORD = "nine purple elephants"
FORM = {"Sec-Fetch-Site": "same-origin"}

Send = Callable[[], TestResponse]


def compare(name: str, rounds: int, ours: Send, other: Send, clock: Callable[[], float]) -> None:
    """Send two requests in turn and print their medians, and the ratio."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for send, times in zip((ours, other), took, strict=True):
            began = clock()
            status = send().status_code
            times.append((clock() - began) * 1_000_000)
            if status not in {200, 303}:
                raise SystemExit(f"{name}: {status}")
    first, second = map(median, took)
    print(f"{name:48}{first:9.0f} us {second:9.0f} us   {first / second:.2f}")


class Person:
    """The administrator of a school, at an application."""

    def __init__(self, client: Client, school: str, machine: str) -> None:
        self.client, self.school = client, school
        self._machine = {"Authorization": f"Bearer {machine}", "X-SCHOOL-ID": school}
        self.verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "client_id": "app",
            "redirect_uri": BACK,
            "response_type": "code",
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "school": school,
        }
        self.page = f"/auth/authorize?{urlencode(asked)}"
        self.refresh_token = ""

    def type_password(self) -> TestResponse:
        """Send the form of the page."""
        return self.client.post(self.page, data={"username": "admin", "password": PASSWORD}, headers=FORM)

    def log_in(self) -> TestResponse:
        """Sign in as a server does for a person."""
        body = {"username": "admin", "password": PASSWORD}
        return self.client.post("/users/login", json=body, headers=self._machine)

    def begin(self) -> str:
        """Sign in by the page; returns the access token."""
        code = parse_qs(urlsplit(self.type_password().location).query)["code"][0]
        return self._ask(grant_type="authorization_code", code=code, code_verifier=self.verifier)

    def refresh(self) -> TestResponse:
        """Exchange the refresh token."""
        given = {"grant_type": "refresh_token", "refresh_token": self.refresh_token, "client_id": "app"}
        answer = self.client.post("/auth/oauth/token", data=given)
        self.refresh_token = answer.json["refresh_token"]
        return answer

    def classrooms(self, token: str) -> Send:
        """List the classrooms with a token."""
        headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": self.school}
        return lambda: self.client.get("/classrooms", headers=headers)

    def _ask(self, **given: str) -> str:
        answer = self.client.post("/auth/oauth/token", data={"client_id": "app", **given}).json
        self.refresh_token = answer["refresh_token"]
        return str(answer["access_token"])


def compare_rest(tenancy: Tenancy, rounds: int, login: Send, other: Send) -> None:
    """Compare the processor time of signing in, but for its hash, with another request's."""
    # The stored hash is replaced by a cheap one at the next sign-in.
    passwords.hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    for _ in range(20):
        login()
        other()
    with tenancy.admin.connect() as connection:
        statement = text("SELECT pid FROM pg_stat_activity WHERE application_name = 'school-service'")
        backends = [psutil.Process(pid) for pid in connection.execute(statement).scalars()]

    def spent() -> tuple[float, float]:
        return time.process_time(), sum(sum(backend.cpu_times()[:2]) for backend in backends)

    took = []
    for send in (login, other):
        before = spent()
        for _ in range(rounds):
            send()
        took.append([(now - then) / rounds * 1000 for now, then in zip(spent(), before, strict=True)])
    (ours, its), (others, others_its) = took
    print(
        f"POST /users/login but for its hash : GET /classrooms, processor: {ours:.1f} and {its:.1f} ms "
        f"(PostgreSQL's), {others:.1f} and {others_its:.1f} ms; {(ours + its) / (others + others_its):.1f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    with installation(on_disk=False) as here:
        school = create_school(
            here.tenancy, name="Queen's College", administrator=Administrator("admin", PASSWORD)
        )
        with here.tenancy.admin.begin() as connection:
            create_client(
                connection,
                client_id="app",
                all_schools=True,
                of_people=PeoplesOptions(is_public=True, redirect_uris=(BACK,)),
            )
            create_client(connection, client_id="server", all_schools=True, all_permissions=True)
        settings = Settings.load({**here.environment, "PUBLIC_URL": PUBLIC_URL, "LOG_LEVEL": "ERROR"})
        app = create_app(settings)
        with app.app_context():
            key = app.extensions["school-service"].verifier.key
            machine = issue_client_token(key, "server", [])["access_token"]
        person = Person(app.test_client(), str(school.id), machine)
        logged_in = person.log_in().json["access_token"]["access_token"]
        with_session = person.classrooms(person.begin())
        without = person.classrooms(logged_in)
        wall = time.perf_counter
        compare("a session's token : one of POST /users/login", rounds * 5, with_session, without, wall)
        compare("a refresh : GET /classrooms", rounds, person.refresh, without, wall)
        live: Send = lambda: person.client.get("/health/live")  # noqa: E731
        page: Send = lambda: person.client.get(person.page)  # noqa: E731
        compare("the page : GET /health/live (processor)", rounds, page, live, time.process_time)
        compare("the page's form : POST /users/login", rounds // 5, person.type_password, person.log_in, wall)
        compare_rest(here.tenancy, rounds, person.log_in, without)


if __name__ == "__main__":
    main()
