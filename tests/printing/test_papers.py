"""Papers as they come out of a printer, read back by poppler."""

from __future__ import annotations

import io
import json
import re
import unicodedata
import zipfile
import zlib
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
import typst

from school_service.core.errors import Busy
from school_service.printing import printers, typesetting
from school_service.printing.papers import PAPERS
from school_service.printing.printers import Printers
from tests.features.results.report_cards.papers import images_of, misplaced, needs_poppler, pages_of, text_of
from tests.printing.pictures import png
from tests.printing.samples import (
    BARE,
    card,
    figures,
    student,
    subject_result,
    task,
    transcript,
    transcript_task,
)

pytestmark = pytest.mark.program

PICTURES = {
    "logo": b64encode(png(120, 120)).decode(),
    "signature": b64encode(png(200, 60, (10, 10, 80))).decode(),
}
LONG = card(60, subjects=[subject_result(place, f"Subject {place}") for place in range(60)])
"""A card of two pages."""
HOSTILE = (
    "#let x = 1 $x$ *b* _i_ `r` @a <b> \\u{0041} // /* [c] {d} \u202eabc\u200f 张 😀 مرحبا \u0007 \u0000 = -"
    ' (( " \\'
)
WORD = "W" * 40
MARKED = "o" + "\u0301" * 50


@pytest.fixture(scope="module")
def printed():
    """Print a task."""
    printers = Printers(1)
    yield printers.print
    printers.close()


@pytest.fixture
def printed_anew():
    """Print a task with a printer that has printed nothing before."""

    def print_anew(task):
        printers = Printers(1)
        try:
            return printers.print(task)
        finally:
            printers.close()

    return print_anew


def hostile(document, text=HOSTILE):
    """Put a text into every text of somebody's: one that is hostile."""
    if isinstance(document, dict):
        fixed = {
            "id", "base", "assessment", "category", "absence", "type", "positions", "published_at", "start_date",
            "end_date", "next_term_begins", "dob", "grade", "percent", "score", "points", "total_points", "average",
            "lowest", "highest", "total", "lower_threshold", "pass_mark", "term", "logo", "signature", "status",
            "issued_on", "admitted_on", "left_on", "time_zone", "name_order", "signatures", "outcome",
        }  # fmt: skip
        return {
            name: document[name]
            if name in fixed and not isinstance(document[name], dict)
            else hostile(document[name], text)
            for name in document
        } | ({"term": document["term"]} if isinstance(document.get("term"), dict) else {})
    if isinstance(document, list):
        return [hostile(member, text) for member in document]
    if isinstance(document, str) and not document.replace(".", "").isdigit():
        return text
    return document


ABOUT = re.compile(rb"/Lang\([\w-]+\)|/Alt\([^)]*\)|/S/(?:H1|TH|TD)\b")


def unpacked(pdf):
    """The objects of a PDF, those in compressed streams too."""
    packed = re.findall(rb"/Filter/FlateDecode.*?>>\s*stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return b"\n".join([pdf, *map(zlib.decompress, packed)])


@needs_poppler
def test_a_whole_class_is_printed_with_its_figures(printed):
    names = ["Ọlájùmọ̀kẹ́", "Ẹfẹ́", "Ɗanladi", "Ƙyauta", "Ụzọamaka", "Ńgọ́zí"]
    documents = [
        card(12, student=student(first_name=name, admission_number=f"UHS/{number}"), term="THIRD")
        for number, name in enumerate(names)
    ]

    pdf = printed(task(*documents, pictures=PICTURES))

    assert pages_of(pdf) == len(documents)
    for page, document in enumerate(documents, start=1):
        text = text_of(pdf, "-layout", "-f", str(page), "-l", str(page))
        # Letter by letter, each with its marks.
        name = f"{document['student']['first_name']} Temitọ́pẹ́ Ògúnlẹ́yẹ"
        assert unicodedata.normalize("NFC", name) in unicodedata.normalize("NFC", text)
        lines = {line.split("  ")[0].strip(): line.split() for line in text.splitlines()}
        for subject, so_far in zip(document["subjects"], document["cumulative"]["subjects"], strict=True):
            row = lines[subject["subject"]["name"]]
            figures = [
                subject["percent"],
                *(subject["batch"][name] for name in ("average", "lowest", "highest")),
            ]
            session = [*so_far["terms"].values(), so_far["percent"]]
            assert [cell for cell in row if "." in cell and len(cell) > 4] == figures + session
        assert f"{document['total']} of {document['obtainable']}" in text
        assert document["average"] in text


def test_one_paper_tells_screen_readers_its_parts_and_a_class_does_not(printed):
    pictures = {"pictures": PICTURES}

    card_alone, of_class, of_student = (
        unpacked(printed(made))
        for made in (
            task(card(2), **pictures),
            task(card(2), card(2), **pictures),
            transcript_task(**pictures),
        )
    )

    for paper in (card_alone, of_student):
        assert {b"/Lang(en-GB)", b"/Alt(Logo of the school)", b"/Alt(Signature)"} <= set(ABOUT.findall(paper))
        # A name as heading, and cells of headings apart from others.
        assert {b"/S/H1", b"/S/TH", b"/S/TD"} <= set(ABOUT.findall(paper))
    assert b"/Alt(Code to verify this card at https://schools.example.org/verify/" in card_alone
    assert not [mark for mark in ABOUT.findall(of_class) if mark.startswith((b"/Alt", b"/S/"))]


@pytest.mark.parametrize(
    "made",
    [
        lambda: task(card(3), card(4), pictures=PICTURES),
        lambda: task(LONG),
        lambda: task(card(3), card(4), pictures=PICTURES, archive=True),
        lambda: transcript_task(pictures=PICTURES),
    ],
    ids=["class", "two pages", "zip", "transcript"],
)
def test_a_printer_that_has_printed_prints_the_same_bytes_as_a_new_one(printed, printed_anew, made):
    first = printed(made())

    # Names and pictures of others in the same places are not seen.
    printed(task(card(5, student=student(first_name="Chidi")), pictures={"logo": PICTURES["signature"]}))
    printed(transcript_task(transcript=transcript(1, 3)))
    assert printed(made()) == first == printed_anew(made())


def test_classes_printed_at_once_by_one_printer_are_not_mixed_up(printed):
    classes = [
        task(
            *(card(2, student=student(first_name=name, admission_number=f"{number}")) for number in range(3))
        )
        for name in ("Ada", "Chidi", "Kemi")
    ]
    one_by_one = [printed(of_class) for of_class in classes]

    with ThreadPoolExecutor(3) as threads:
        at_once = list(threads.map(printed, classes))

    assert len(set(one_by_one)) == 3
    assert at_once == one_by_one


@needs_poppler
def test_nothing_of_a_card_is_on_the_next(printed):
    printed(task(card(2, student=student(first_name="Sẹ́gun", admission_number="A/1")), pictures=PICTURES))

    pdf = printed(task(card(2, **BARE, student=student(first_name="Chidi"))))

    assert not any(word in text_of(pdf) for word in ("Sẹ́gun", "A/1", "Awólọ́wọ̀"))
    assert images_of(pdf) == set()


def test_pictures_are_the_same_where_a_system_has_no_files_in_memory(printed):
    document = task(card(2, student=student(first_name="Ada")), pictures=PICTURES)
    made = json.loads(json.dumps(document), parse_float=str)
    del made["paper"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typesetting, "_has_files_in_memory", lambda: False)
        without = PAPERS["report-cards"](**made)

    assert printed(document) == without


@needs_poppler
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_text_is_read_as_it_is_printed(printed, form):
    """Capital letters with several marks, too: in regular, semibold and bold letters."""
    names = ("Ẹ̀wẹ̀", "Ọ̀ṢUN-Ọ̀yọ́", "Ṣ́adé", "Ị̀gwẹ̀", "M̀bá")
    first, middle, last, number, band = (unicodedata.normalize(form, name) for name in names)
    who = student(first_name=first, middle_name=middle, last_name=last, admission_number=number)
    comments = {"form_teacher": f"{first} {last}", "principal": middle}
    bands = [{"grade": band, "lower_threshold": "0", "remark": first}]
    of_card = card(1, student=who, comments=comments, bands=bands, class_name=last)

    for made in (
        task(of_card),
        task(of_card, card(2, student=who)),
        transcript_task(transcript=transcript(1, 1, student=who)),
    ):
        text = unicodedata.normalize("NFC", " ".join(text_of(printed(made), "-layout").split()))
        assert f" {unicodedata.normalize('NFC', ' '.join((first, middle, last)))} " in text
        assert unicodedata.normalize("NFC", number) in text
    text = unicodedata.normalize("NFC", " ".join(text_of(printed(task(of_card))).split()))
    assert f"{names[0]} {names[2]}" in text
    assert f"{names[4]} from 0 {names[0]}" in text
    # Nothing is there twice beside where it is printed.
    assert text.count("Ẹ̀") == text.count("Ẹ̀wẹ̀")


@needs_poppler
def test_a_comment_of_many_lines_is_printed_to_its_end(printed):
    said = {
        name: "\n".join(f"{name}-{line}" for line in range(25 * 5)) for name in ("form_teacher", "principal")
    }

    words = text_of(printed(task(card(12, comments=said)))).split()

    assert [word for word in words if word.startswith(("form_teacher-", "principal-"))] == [
        line for comment in said.values() for line in comment.split("\n")
    ]


def test_the_place_and_the_language_of_the_machine_change_no_byte(printed, printed_anew, monkeypatch):
    of_one = task(card(3, term="SECOND"), pictures=PICTURES)
    before = printed(of_one)

    for names in ({"TZ": "Pacific/Kiritimati", "LC_ALL": "C"}, {"TZ": "America/Adak", "LANG": "tr_TR.UTF-8"}):
        for name, value in names.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(printers._ENVIRONMENT, name, value)
        assert printed_anew(of_one) == before


@needs_poppler
@pytest.mark.parametrize(
    "made",
    [
        lambda: task(hostile(card(2, term="SECOND"))),
        lambda: transcript_task(transcript=hostile(transcript(1, 2))),
    ],
    ids=["card", "transcript"],
)
def test_no_text_is_markup_or_an_error(printed, made):
    text = text_of(printed(made()))

    for part in ("#let x = 1 $x$ *b* _i_ `r` @a <b>", "\\u{0041}", "// /* [c] {d}"):
        assert part in " ".join(text.split())


@needs_poppler
def test_no_text_is_printed_beyond_its_page_or_across_another(printed):
    """Its grade, too, in which a session of a transcript is as high as a page."""
    text = f"{WORD} {HOSTILE} {WORD * 2} {MARKED} {'one two three ' * 8}"
    of_card = hostile(card(12, term="THIRD"), text)
    of_transcript = hostile(transcript(2, 14), text)
    for of in (of_card, *of_transcript["sessions"]):
        for result in (of, *of["subjects"]):
            result["grade"] = text

    for made in (task(of_card), transcript_task(transcript=of_transcript)):
        pdf = printed(made)
        assert misplaced(pdf) == []
        said = "".join(text_of(pdf).split())
        assert [WORD in said, "\u0301" * 3 in said] == [True, True]


@needs_poppler
def test_misplaced_texts_are_found():
    beyond = "#place(dx: -10mm)[left] #place(dx: 180mm)[right] #place(dy: -16mm)[above]"
    across = "#place(dy: 50mm)[one] #place(dy: 51mm)[other] #place(dy: 60mm)[fine]"
    source = f'#set page(paper: "a4", margin: 15mm)\n{beyond}{across}'

    assert set(misplaced(typst.compile(source.encode()))) == {
        ("left",),
        ("right",),
        ("above",),
        ("one", "other"),
    }


@needs_poppler
@pytest.mark.parametrize(
    ("document", "pages"),
    [
        (card(1), 1),
        (card(16), 1),
        (card(16, term="THIRD"), 1),
        (card(9, **BARE), 1),
        (card(0, **BARE), 1),
        (card(40, subjects=[subject_result(place, f"Subject {place}") for place in range(40)]), 1),
        (card(50, subjects=[subject_result(place, f"Subject {place}") for place in range(50)]), 2),
    ],
    ids=["one", "sixteen", "third-term", "bare", "none", "forty", "fifty"],
)
def test_pages_of_a_card_are_numbered_where_it_has_several(printed, document, pages):
    pdf = printed(task(document, pictures=PICTURES))

    assert pages_of(pdf) == pages
    text = text_of(pdf)
    assert (f"Page 2 of {pages}" in text) == (pages > 1)
    # The second says whose it is.
    assert text.count("UHS-2023-001") == pages


@needs_poppler
@pytest.mark.parametrize("number", [46, 57])
def test_the_closing_parts_of_a_card_are_together_on_its_page(printed, number):
    document = card(number, subjects=[subject_result(place, f"Subject {place}") for place in range(number)])
    pdf = printed(task(document, pictures=PICTURES))

    first, second = (" ".join(page.split()) for page in text_of(pdf).split("\f")[:2])

    closing = ("School opened", "Form teacher", "Principal", "Next term begins", "Notice")
    assert [part in second for part in closing] == [True] * 5
    assert not [part for part in closing if part in first]
    # The traits and their key, too.
    assert ("Affective traits" in first) == ("5 Excellent · 4 Good" in first)


@needs_poppler
def test_the_signatures_of_a_transcript_are_below_a_session(printed):
    # Six sessions of fifteen subjects: the last does not fit on a page with the signatures.
    pages = text_of(printed(transcript_task(transcript=transcript(6, 15)))).split("\f")[:-1]

    assert ["School stamp" in page for page in pages] == [False, False, True]
    assert "2025/2026" in pages[2]


@needs_poppler
def test_the_foot_of_a_card_is_at_the_same_place_whether_its_pages_are_numbered_or_not(printed):
    pdfs = [printed(task(*of)) for of in ([card(2)], [card(2), LONG])]

    alone, with_another = (
        re.findall(r"<word (.*)>(?:Published|Verify)<", text_of(pdf, "-bbox", "-l", "1")) for pdf in pdfs
    )

    assert [pages_of(pdf) for pdf in pdfs] == [1, 3]

    assert len(alone) == 2
    assert with_another == alone


@needs_poppler
def test_the_address_of_verification_is_on_a_card_where_it_can_be_verified(printed):
    address = "https://schools.example.org/verify/"

    def text(**members):
        made = task(card(1, verification=members.pop("verification", True)), **members)
        return "".join(text_of(printed(made)).split())

    assert address in text()
    assert "erify" not in text(verification=False)
    assert "erify" not in text(verify_at=None)


@needs_poppler
def test_a_zip_has_a_file_for_each_card_also_for_like_and_odd_admission_numbers(printed):
    named = ["A/1", "A-1", "a:1", "..", "x" * 120]
    documents = [
        card(1, **BARE, student=student(admission_number=number, last_name="Ẹ" * 90)) for number in named
    ]

    with zipfile.ZipFile(io.BytesIO(printed(task(*documents, archive=True)))) as archive:
        names = archive.namelist()
        texts = [text_of(archive.read(name)) for name in names]

    assert len({name.casefold() for name in names}) == len(documents)
    assert all(name.count("/") == 1 and ".." not in name.split("/") for name in names)
    assert all(len(part.encode()) <= 255 for name in names for part in name.split("/"))
    assert [number in text for number, text in zip(named[:3], texts, strict=False)] == [True] * 3


@needs_poppler
def test_a_transcript_says_every_session(printed):
    document = transcript()

    text = text_of(printed(transcript_task()), "-layout")

    for session in document["sessions"]:
        assert f"{session['session']['name']} · {session['classroom']} A" in " ".join(text.split())
        for subject in session["subjects"]:
            figures = [subject[column] for column in ("FIRST", "SECOND", "THIRD", "percent", "grade")]
            assert any(line.split()[-5:] == figures for line in text.splitlines() if subject["name"] in line)
    assert "Page 2 of 2" in text
    assert "Graduated" in text


@needs_poppler
def test_a_card_without_subjects_has_neither_a_table_nor_headings_of_nothing(printed):
    nobody = {"batch_figures": figures(None, None), "cohort_figures": figures(None, None)}
    empty = card(0, **nobody)
    headings = {"Result of the term", "Subject", "Grade", "A1 from 75 Excellent"}

    text, of_one = (text_of(printed(task(document))) for document in (empty, card(1)))

    assert "Affective traits" in text
    assert not [heading for heading in headings if heading in text]
    assert [heading for heading in headings if heading not in of_one] == []


@needs_poppler
def test_a_transcript_of_nothing_says_so(printed):
    empty = transcript(0, graduation_class=None, student=student(dob=None, gender=None))

    assert "No results are published" in text_of(printed(transcript_task(transcript=empty)))


def test_a_class_beyond_the_time_is_busy():
    with pytest.raises(Busy):
        Printers(1, timeout=0.01).print(task(card(1)))
