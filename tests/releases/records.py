"""All that a school's administrator reads of it by the API, record by record, and the differences of two moments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import urllib3

PAGE = 1000
LISTS = (
    *("/permissions", "/roles", "/sessions", "/terms", "/classrooms", "/templates", "/cohorts"),
    *("/metric-definitions", "/promotion-rules", "/employees", "/settings", "/departments"),
    *("/employee-categories", "/positions", "/grade-configs", "/result-settings", "/letterhead"),
    *("/nationalities", "/states", "/lgas"),
)
PAGED = ("/users", "/students", "/cohort-subjects", "/gradebooks", "/publications", "/promotions", "/audit")
EVERY = 16
"""Of the records that are read one by one, every sixteenth: the lists have all of them."""


class Reader:
    """Reads with the administrator's token, on connections that are kept, from the service at `base_url`."""

    def __init__(self, base_url: str, school: str, password: str, client_token: str) -> None:
        self.base_url = base_url
        self._http = urllib3.PoolManager(timeout=60, retries=False, maxsize=2)
        self._headers = {"X-SCHOOL-ID": school, "Authorization": f"Bearer {client_token}"}
        signed_in = self.send("POST", "/users/login", json={"username": "admin", "password": password})
        assert signed_in.status == 200, signed_in.data
        token = signed_in.json()["access_token"]["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, **options: Any) -> urllib3.BaseHTTPResponse:
        """Send a request; any answer will do."""
        return self._http.request(method, self.base_url + path, headers=self._headers, **options)

    def get(self, path: str, **query: Any) -> Any:
        """Read an answer that has to be 200."""
        answer = self.send("GET", f"{path}?{urlencode(query)}" if query else path)
        assert answer.status == 200, (path, query, answer.status, answer.data[:300])
        return answer.json()

    def read_all(self) -> dict[str, Any]:
        """Read the school: the answer of each operation, by its path and query."""
        answers = {path: self.get(path) for path in LISTS}
        answers |= {path: list(self._pages(path, "pageNumber", "pageSize")) for path in PAGED}
        answers["/graduates"] = list(self._pages("/graduates", "page", "size"))
        for number, cohort in enumerate(answers["/cohorts"]):
            for path in ("/cohorts/{}/batches", "/cohorts/{}/students", "/teachers/{}"):
                self._note(answers, path.format(cohort["id"]))
            for batch in answers[f"/cohorts/{cohort['id']}/batches"]:
                self._read_batch(answers, cohort, batch["id"], number)
        for subject in _some(answers["/cohort-subjects"]):
            self._note(answers, f"/cohort-subjects/{subject['id']}")
            self._note(answers, f"/scoresheets/{subject['id']}/scoresheet")
        for student in _some(answers["/students"]):
            for path in ("/students/{}", "/students/{}/transcript", "/students/{}/data"):
                self._note(answers, path.format(student["id"]))
        for employee in _some(answers["/employees"]):
            for path in ("/employees/{}", "/employees/{}/bank-account", "/employees/{}/nextofkin"):
                self._note(answers, path.format(employee["id"]))
        for publication in answers["/publications"]:
            self._note(answers, f"/publications/{publication['id']}")
        return answers

    def _read_batch(self, answers: dict[str, Any], cohort: dict[str, Any], batch: str, number: int) -> None:
        self._note(answers, "/metrics", batchId=batch)
        terms = [term["id"] for term in answers["/terms"] if term["sessionId"] == cohort["session"]]
        # Of the session's terms in turn: all together each is read of some.
        term = terms[number % len(terms)]
        for path in ("/comments", "/broadsheets", "/submissions"):
            self._note(answers, path, batch=batch, term=term)

    def _note(self, answers: dict[str, Any], path: str, **query: Any) -> None:
        address = f"{path}?{urlencode(query)}" if query else path
        answer = self.send("GET", address)
        assert answer.status in (200, 404), (address, answer.status, answer.data[:300])
        answers[address] = answer.json() if answer.status == 200 else "not found"

    def _pages(self, path: str, number: str, size: str) -> Iterator[Any]:
        for page in range(1000):
            answer = self.get(path, **{number: page, size: PAGE})
            rows = answer["data"] if isinstance(answer, dict) else answer
            yield from rows
            if len(rows) < PAGE:
                return
        raise AssertionError(f"{path} has no end")


def _some(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row["id"])[::EVERY]


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Name values of before that are missing or others now; members and rows that came since are no difference.

    Records of a list are found by their subject: the order of names is the release's.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name not in after:
                yield f"{place}/{name}: gone"
            else:
                yield from differences(value, after[name], f"{place}/{name}")
    elif isinstance(before, list) and isinstance(after, list):
        keys = [_key(row) for row in before]
        if None not in keys and len(set(keys)) == len(keys):
            by_key = {_key(row): row for row in after}
            for key, row in zip(keys, before, strict=True):
                if key in by_key:
                    yield from differences(row, by_key[key], f"{place}/{key}")
                else:
                    yield f"{place}/{key}: gone"
        elif len(before) != len(after):
            yield f"{place}: {len(before)} before, {len(after)} after"
        else:
            for number, pair in enumerate(zip(before, after, strict=True)):
                yield from differences(*pair, f"{place}/{number}")
    elif before != after:
        yield f"{place}: {str(before)[:80]} before, {str(after)[:80]} after"


def _key(row: Any) -> str | None:
    """Name the subject of a row: itself, or its student or subject."""
    if not isinstance(row, dict):
        return None
    of = row.get("student") or row.get("cohort_subject")
    return row.get("id") or (of["id"] if isinstance(of, dict) else of)
