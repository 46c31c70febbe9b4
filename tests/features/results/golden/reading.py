"""Reads a golden school as its staff, families and strangers, and remembers the answers."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from unittest.mock import patch
from uuid import UUID
from zipfile import ZipFile
from zlib import crc32

from flask import Flask
from openpyxl import load_workbook
from pypdf import PdfReader
from werkzeug.test import TestResponse

from school_service.auth.login_throttle import limiter
from school_service.features.results.report_cards import service
from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy
from tests.client import ApiClient
from tests.features.results.golden.comparing import ACT, ANSWER, DOCUMENT, PAPER, Reading

THE_SCHOOL = "00000000-0000-4000-8000-00000005c001"
"""The id of the school in readings: each run has a school with an id of its own."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)
# The moment of the server's clock, the id of the request, and the `type` of errors, later than the oldest recordings.
_OF_NOW = (
    (re.compile(r'"type": ?"[a-z-]+", ?("message":)'), r"\1"),
    (re.compile(r'("generated_at": ?")[^"]*'), r"\1now"),
    (re.compile(r'("request_id": ?")[^"]*'), r"\1one"),
    (re.compile(r"(PROVISIONAL: as of )[\w ]*"), r"\1now"),
)


def is_read(name: str, part: int) -> bool:
    """Tell whether a reading of this name belongs to a run that has one of `part` of all readings."""
    return crc32(name.encode()) % part == 0


class Reader:
    """Remembers readings of a school: one of `part` of all.

    `labels` are the names of its records by their ids.
    """

    def __init__(self, app: Flask, tenancy: Tenancy, school_id: UUID, part: int) -> None:
        self.app, self.tenancy, self.school_id, self.part = app, tenancy, school_id, part
        self.labels: dict[str, str] = {}
        self.readings: list[Reading] = []
        self.moment = "at first"
        self._asked: set[str] = set()
        self._times: Counter[str] = Counter()

    def get(self, client: ApiClient, who: str, path: str) -> None:
        """Read an address as somebody, once at a moment, if this run reads it."""
        name = self._reading_name(f"{who} GET {path}")
        if name in self._asked:
            return
        self._asked.add(name)
        if is_read(name, self.part):
            self._read(name, client.get(path))
        elif path.endswith("/transcript/download"):
            # It is stored before it is printed, and each run verifies it.
            with patch.object(service, "print_paper", lambda *_task: b""):
                client.get(path)

    def verify(self, anyone: ApiClient, code: str, paper: str, accept: str) -> None:
        """Verify a paper by its code, if this run does so."""
        name = self._reading_name(f"{paper} is verified, as {accept}")
        if is_read(name, self.part):
            with self.app.app_context():
                limiter.limiter.storage.reset()
            self._read(name, anyone.get(f"/verify/{self.school_id}/{code}", headers={"Accept": accept}))

    def tell(self, act: str, answer: TestResponse) -> None:
        """Remember the answer to an act."""
        self._remember(self._reading_name(act), ACT, str(answer.status_code), answer.get_data(as_text=True))

    def documents(self) -> None:
        """Remember every stored document: cards, rules of publications, issued transcripts."""
        for publication, rules in self._select(_RULES):
            self._remember(self._reading_name(f"rules of {publication}"), DOCUMENT, "", rules)
        for publication, student, changed, of_class, in_force, card in self._select(_CARDS):
            about = f"in force {in_force}, changed {changed}, in class figures {of_class}"
            self._remember(self._reading_name(f"card of {student} in {publication}"), DOCUMENT, about, card)
        for name, _code, transcript in self._select(_ISSUED):
            self._remember(self._reading_name(name), DOCUMENT, "", transcript)

    def codes(self) -> dict[str, str]:
        """Select the codes of papers, each with the name of its paper."""
        named = sorted((self._labelled(name), str(code)) for name, code in self._select(_CODES))
        return {code: name for name, code in named}

    def _read(self, name: str, answer: TestResponse) -> None:
        """Remember the answer to a GET."""
        file = answer.headers.get("Content-Disposition", "")
        about = f"{answer.status_code} {file}".strip()
        if answer.mimetype == "application/json":
            self._remember(name, ANSWER, about, answer.get_data(as_text=True))
        else:
            self._remember(name, PAPER, about, self._without_codes("\n".join(_lines(answer.data, file))))

    def _without_codes(self, text: str) -> str:
        """Put the names of papers in place of their codes, which fall to the cards of a class in any order."""
        for code, paper in self.codes().items() if "/verify/" in text else ():
            text = text.replace(code, paper)
        return text

    def _remember(self, name: str, kind: str, about: str, text: str) -> None:
        """Remember a text, without the server's moment and the ids that are new in each run."""
        for pattern, put in _OF_NOW:
            text = pattern.sub(put, text)
        self._times[name] += 1
        again = f", {self._times[name]}" if self._times[name] > 1 else ""
        self.readings.append(
            Reading(name + again, kind, about, text.replace(str(self.school_id), THE_SCHOOL))
        )

    def _reading_name(self, what: str) -> str:
        """Name a reading, with the names of records in place of their ids."""
        return f"{self.moment}: {self._labelled(what)}"

    def _labelled(self, text: str) -> str:
        return _UUID.sub(lambda id: self.labels.get(id[0], id[0]), text)

    def _select(self, sql: str) -> list[Any]:
        """Select from the school's tables, as it is stored."""
        with self.tenancy.admin.connect() as connection:
            connection.exec_driver_sql(f"SET search_path TO {schema_name(self.school_id)}")
            return [*connection.exec_driver_sql(sql)]


_RULES = "SELECT id, rules::text FROM publications ORDER BY published_at, id"
_CARDS = """
    SELECT publication_id, student_id, changed, class_figures_changed, in_force, card::text
    FROM report_cards c JOIN publications p ON p.id = publication_id
    ORDER BY published_at, publication_id, student_id
"""
_ISSUED = """
    SELECT 'transcript ' || row_number() OVER student || ' of ' || student_id, code, transcript::text
    FROM issued_transcripts WINDOW student AS (PARTITION BY student_id ORDER BY issued_at, digest)
    ORDER BY student_id, issued_at, digest
"""
_CODES = f"""
    SELECT 'card of ' || student_id || ' in ' || publication_id, code FROM report_cards
    UNION ALL SELECT issued.name, issued.code FROM ({_ISSUED}) AS issued (name, code, transcript)
"""


def _lines(content: bytes, file: str) -> Iterator[str]:
    """Give the lines of a file, by its name: a workbook, a PDF, an archive of them; else of a page."""
    if ".xlsx" in file:
        yield from _cells(content)
    elif ".pdf" in file:
        yield from (page.extract_text() for page in PdfReader(BytesIO(content)).pages)
    elif ".zip" in file:
        with ZipFile(BytesIO(content)) as archive:
            for name in archive.namelist():
                yield f"{name}:"
                yield from _lines(archive.read(name), name)
    else:
        yield html.unescape(_MARKUP.sub(" ", content.decode()))


_HEADER = 4  # the row of a broadsheet's header below its three titles


def _cells(workbook: bytes) -> Iterator[str]:
    """Give the cells of a workbook: sheet, cell, value, format and whether it is marked.

    A broadsheet's cells come without the key above its header, which it had not at first.
    """
    for sheet in load_workbook(BytesIO(workbook)):
        frozen = sheet.freeze_panes
        if sheet.title == "Broadsheet":
            header = next(cell.row for cell in sheet["A"] if cell.value == "No.")
            sheet.delete_rows(_HEADER, header - _HEADER)
            frozen = re.sub(r"\d+", str(_HEADER + 1), frozen)
        yield f"{sheet.title} {sheet.oddHeader.center.text} {frozen} {sheet.page_setup.paperSize}"
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.value is not None):
            shown = cell.number_format if isinstance(cell.value, int | float) else ""
            marked = " marked" * bool(cell.font.b and cell.font.i)
            yield f"{sheet.title}!{cell.coordinate} {cell.value!r} {shown}{marked}"
