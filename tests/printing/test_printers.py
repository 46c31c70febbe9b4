"""Printers: processes that print, so many at once, each for so long, with nothing of the process that serves."""

from __future__ import annotations

import logging
import os
import sys
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from school_service.core.errors import Busy
from school_service.printing.printers import NotPrinted, Printers
from tests.printing.pictures import png

pytestmark = pytest.mark.program


def picture(image):
    return {"paper": "picture", "picture": b64encode(image).decode()}


def running(program):
    return (sys.executable, "-I", "-c", program)


def test_a_picture_becomes_a_pdf_with_the_same_bytes_each_time():
    printers = Printers(1)

    printed = printers.print(picture(png()))

    assert printed.startswith(b"%PDF-")
    assert printers.print(picture(png())) == printed
    assert printers.print(picture(png(colour=(1, 2, 3)))) != printed


@pytest.mark.parametrize(
    "broken", [png()[:60], b"GIF89a", b"", b"<svg/>", png().replace(b"IDAT", b"IDAX")], ids=range(5)
)
def test_a_broken_picture_is_not_printed_and_the_log_says_so(caplog, broken):
    with pytest.raises(NotPrinted):
        Printers(1).print(picture(broken))

    (record,) = caplog.records
    assert record.getMessage() == "nothing was printed"
    assert 0 < len(record.printer) <= 2000


def test_a_printer_that_hangs_is_killed_and_gone():
    printers = Printers(1, command=running("import time; time.sleep(600)"), timeout=0.2)

    with pytest.raises(Busy):
        printers.print(picture(png()))

    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if "time.sleep(600)" in " ".join(child.cmdline())]
    # Its turn is free again, too.
    with pytest.raises(Busy):
        printers.print(picture(png()))


def test_that_a_printer_was_killed_is_in_the_log_without_what_it_printed(caplog):
    printers = Printers(1, command=running("import time; time.sleep(600)"), timeout=0.01)

    with pytest.raises(Busy):
        printers.print({"paper": "picture", "picture": "Ògúnlẹ́yẹ"})

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "killed" in record.getMessage()
    assert "Ògúnlẹ́yẹ" not in str(vars(record))


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "pass", "import os; os.abort()"])
def test_a_printer_that_ends_without_a_file_has_not_printed(caplog, program):
    with pytest.raises(NotPrinted):
        Printers(1, command=running(program)).print(picture(png()))


def test_a_printer_inherits_no_environment_and_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    program = """
import json, os, sys
paths = [f"/proc/self/fd/{number}" for number in range(3, 200)]
files = [os.readlink(path) for path in paths if os.path.lexists(path)]
print(json.dumps([dict(os.environ), files, os.getcwd(), sys.path]))
"""
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        found = Printers(1, command=running(program)).print({}).decode()

    assert "secret" not in found
    assert "DATABASE" not in found
    assert str(tmp_path) not in found
    assert '"LC_ALL": "C.UTF-8"' in found


def test_so_many_print_at_once_and_who_finds_none_free_is_told_in_time():
    printers = Printers(1, command=running("import sys; sys.stdin.read(); print('x')"), patience=0.05)
    held, free = threading.Event(), threading.Event()

    def hold():
        with printers._turns.of("printer"):
            held.set()
            free.wait(10)

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(hold)
        assert held.wait(10)
        with pytest.raises(Busy):
            printers.print({})
        free.set()
        other.result()

    assert printers.print({}) == b"x\n"


def test_an_application_has_as_many_printers_as_its_settings_say(app):
    assert app.extensions["printers"]._turns.limit == 2
