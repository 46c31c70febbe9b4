"""Uploads at once: schools read their sheets by turns."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from school_service.core.priority import NICENESS
from school_service.sheets import uploads
from tests.cli.program import wait_for
from tests.client import ApiClient
from tests.sheets.workbooks import workbook

BAD = workbook([("first_name", "last_name", "admission_number"), ("", "Obi", "A/1")])
"""It is read and judged, and never stored."""


def upload(app, document, place):
    api = ApiClient(app, document, place.admin_token, place.id)
    form = {"sheet": (BytesIO(BAD), "students.xlsx")}
    return api.post("/students/import-sheet", data=form, content_type="multipart/form-data").status_code


def test_a_school_waits_for_no_sheet_of_another(app, document, place, other_place, monkeypatch):
    reading, go = [], threading.Event()
    open_sheets = uploads.open_sheets

    def open_slowly(file):
        if not reading:
            reading.append(file)
            assert go.wait(60)
        return open_sheets(file)

    monkeypatch.setattr(uploads, "open_sheets", open_slowly)
    with ThreadPoolExecutor(5) as threads:
        try:
            first = threads.submit(upload, app, document, place)
            wait_for(lambda: reading, "the sheet that takes long")
            others = [threads.submit(upload, app, document, place) for _ in range(4)]
            wait_for(lambda: uploads.sheet_turns.count_waiting() == 4, "the school's others")

            assert upload(app, document, other_place) == 422
            assert not first.done()
        finally:
            go.set()
        assert [sent.result() for sent in (first, *others)] == [422] * 5


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has a priority of each thread")
def test_reading_gives_way_to_short_requests(app, document, place, monkeypatch):
    priorities = []
    open_sheets = uploads.open_sheets

    def priority_of_thread():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def open_noting(file):
        priorities.append(priority_of_thread())
        return open_sheets(file)

    monkeypatch.setattr(uploads, "open_sheets", open_noting)

    assert upload(app, document, place) == 422
    assert priorities == [priority_of_thread() + NICENESS]
