"""Cards of a class in portions: other tasks wait for one portion, and the file is the same."""

from __future__ import annotations

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from pypdf import PdfReader

from school_service.printing import portions
from school_service.printing.printers import Printers
from tests.printing.samples import card, student
from tests.printing.test_papers import BARE, task
from tests.printing.test_printers import wait_for

pytestmark = pytest.mark.program


def documents(count):
    """Cards of a class, each of another student."""
    return [
        card(2, **BARE, student=student(admission_number=f"A/{number}", last_name="Obi"))
        for number in range(count)
    ]


def portioned(made, count):
    """The arguments of `print_cards` for the task of so many cards."""
    cards = json.dumps(made["cards"], indent=1)
    return {name: value for name, value in made.items() if name != "cards"}, cards, count


@pytest.fixture
def printers(monkeypatch):
    """One printer, which notes the school of each task and the number of its cards."""
    made = Printers(1, patience=30)
    made.tasks = []

    def note(task, school):
        asked = orjson.loads(orjson.dumps(task["cards"])) if "cards" in task else None
        made.tasks.append((school, task["paper"] if asked is None else len(asked)))
        return made.print(task, school)

    monkeypatch.setattr(portions, "print_paper", note)
    yield made
    made.close()


def print_portioned(made, count, school="A"):
    task, cards, count = portioned(made, count)
    return portions.print_cards(task, cards=cards, count=count, school=school)


def test_a_zip_of_portions_is_the_zip_of_all(printers, monkeypatch):
    made = task(*documents(7), archive=True)
    whole = printers.print(made)
    monkeypatch.setattr(portions, "OF_ARCHIVE", 3)

    assert print_portioned(made, 7) == whole
    assert [count for _, count in printers.tasks] == [2, 2, 3]
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert len(archive.namelist()) == 7


def test_a_pdf_of_portions_has_the_pages_of_all_and_their_links(printers, monkeypatch):
    made = task(*documents(7))
    monkeypatch.setattr(portions, "OF_FILE", 3)
    whole = PdfReader(io.BytesIO(printers.print(made)))

    joined = print_portioned(made, 7)

    assert [count for _, count in printers.tasks] == [2, 2, 3, "joined"]
    pages = PdfReader(io.BytesIO(joined))
    assert [page.extract_text() for page in pages.pages] == [page.extract_text() for page in whole.pages]
    assert [_links(page) for page in pages.pages] == [_links(page) for page in whole.pages]
    assert pages.metadata.title == whole.metadata.title
    # The same cards are the same bytes.
    assert print_portioned(made, 7) == joined


def _links(page):
    annotations = [annotation.get_object() for annotation in page.get("/Annots", ())]
    return [annotation["/A"]["/URI"] for annotation in annotations]


def test_a_class_within_one_portion_is_printed_by_one_task(printers):
    made = task(*documents(3))

    assert print_portioned(made, 3) == printers.print(made)
    assert printers.tasks == [("A", 3)]


def test_figures_of_portions_keep_their_digits():
    cards = '[{"a": [1.50, "]"], "b": "}{"},\n {"a": 70.0}, \n{"a": 1e2}]'

    assert list(portions._elements(cards)) == ['{"a": [1.50, "]"], "b": "}{"}', '{"a": 70.0}', '{"a": 1e2}']
    assert list(portions._divided(["1", "2", "3", "4", "5"], 4)) == ["[1,2]", "[3,4,5]"]


def test_a_card_of_another_school_waits_for_one_portion(printers, monkeypatch):
    monkeypatch.setattr(portions, "OF_ARCHIVE", 1)
    made, single = task(*documents(6), archive=True), task(*documents(1))

    with ThreadPoolExecutor(2) as threads:
        with printers._turns.of("A"):
            of_class = threads.submit(print_portioned, made, 6)
            wait_for(lambda: printers._turns.count_waiting() == 1)
            alone = threads.submit(print_portioned, single, 1, "B")
            wait_for(lambda: printers._turns.count_waiting() == 2)
        alone.result()
        # At most one portion has come before it, and the next may have been asked for meanwhile.
        assert [school for school, _ in printers.tasks].count("A") <= 3
        assert not of_class.done()
        of_class.result()
