"""The readings of a golden school at a moment of its story: every reading of results, papers, and verification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from zlib import crc32

from tests.features.results.golden.reading import Reader
from tests.features.results.golden.school import GoldenSchool, SchoolClass
from tests.features.results.golden.story import Moment

STAFF = "staff"


class Rounds:
    """Reads a school at the moments of its story."""

    def __init__(self, school: GoldenSchool, reader: Reader) -> None:
        self.school, self.reader = school, reader

    def read(self, moment: Moment) -> None:
        """Read the classes and terms of a moment."""
        self.reader.moment = moment.name
        for of, term in moment.read:
            self._class(of, term)
            self._papers(of, term)
        if moment.whole:
            self._publications()
            self._students()
        if moment.own:
            for of, term in moment.read:
                self._own(of, term)
        if moment.whole or moment.own:
            self._verification()
        self.reader.moment = f"after {moment.name}"

    def _get(self, path: str, who: str = STAFF, **query: Any) -> None:
        """Read an address as somebody."""
        client = self.school.callers.get(who, self.school.api)
        self.reader.get(client, who, f"{path}?{urlencode(query)}" if query else path)

    def _class(self, of: SchoolClass, term: str) -> None:
        """Read a class in a term."""
        for batch in of.arms.values():
            for what in ({"term": term}, {"term": term, "live": "true"}, {"session": of.session}):
                self._get("/broadsheets", batch=batch, **what)
                self._get("/broadsheets/download", batch=batch, **what)
            for path in ("/submissions", "/publications", "/comments"):
                self._get(path, batch=batch, term=term)
        self._get("/submissions", cohort=of.cohort["id"], term=term)
        self._get("/publications", cohort=of.cohort["id"], session=of.session)
        for subject in of.subjects.values():
            for what in ({}, {"live": "true"}, *({"batch": batch} for batch in of.arms.values())):
                self._get(f"/cohort-subjects/{subject}/results", term=term, **what)
        for student in of.known:
            path = f"/students/{student}/results"
            for what in (
                {"session": of.session},
                {"live": "true", "session": of.session},
                {},
                {"version": 1},
            ):
                self._get(path, term=term, **what)

    def _papers(self, of: SchoolClass, term: str) -> None:
        """Read the papers of a class in a term."""
        for batch in of.arms.values():
            self._get("/report-cards", batch=batch, term=term)
        self._get("/report-cards", batch=of.cohort["id"], term=term, format="zip", draft="true")
        for student in of.known[:2]:
            path = f"/students/{student}/report-card"
            for what in ({}, {"draft": "true"}, {"version": 1}):
                self._get(path, term=term, session=of.session, **what)

    def _publications(self) -> None:
        """Read everything that was published."""
        self._get("/publications")
        for publication in self.school.publications:
            for part in ("", "/changes", "/cards"):
                self._get(f"/publications/{publication}{part}")
        self._get("/promotions")

    def _students(self) -> None:
        """Read the transcripts of everybody, and print some."""
        for number, student in enumerate(self.school.ability):
            self._get(f"/students/{student}/transcript")
            if number % 12 == 0:
                self._get(f"/students/{student}/transcript/download")

    def _own(self, of: SchoolClass, term: str) -> None:
        """Read as two teachers with permissions of reach OWN, and as a guardian and a student without any."""
        for who in self.school.callers:
            for path, query in self._paths(of, term):
                self._get(path, who, **query)

    def _paths(self, of: SchoolClass, term: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for batch in of.arms.values():
            asked = {"batch": batch, "term": term}
            yield from (
                (path, asked)
                for path in ("/broadsheets", "/broadsheets/download", "/submissions", "/publications")
            )
            yield "/broadsheets", {"batch": batch, "session": of.session}
            yield "/broadsheets", {**asked, "live": "true"}
        yield "/submissions", {"cohort": of.cohort["id"], "term": term}
        for name in ("Mathematics", "English Language"):
            path = f"/cohort-subjects/{of.subjects[name]}/results"
            yield path, {"term": term}
            yield from ((path, {"term": term, "batch": batch}) for batch in of.arms.values())
        for student in (*of.known[1:4], of.known[-1]):
            for what in ({}, {"live": "true"}, {"version": 1}):
                yield f"/students/{student}/results", {"term": term, "session": of.session, **what}
            yield f"/students/{student}/transcript", {}
        yield f"/students/{of.known[2]}/report-card", {"term": term, "session": of.session}
        yield f"/students/{of.known[2]}/transcript/download", {}
        for publication in self.school.publications[-4:]:
            yield f"/publications/{publication}/changes", {}
            yield f"/publications/{publication}/cards", {}

    def _verification(self) -> None:
        """Verify all papers, as a stranger with the paper in hand; some by a browser."""
        anyone = self.school.api.using(token=None, school=None)
        for code, paper in self.reader.codes().items():
            self.reader.verify(anyone, code, paper, "application/json")
            if crc32(paper.encode()) % 10 == 0:
                self.reader.verify(anyone, code, paper, "text/html")
