"""Draw what the service prints and shows, to be looked at: report cards, a transcript, the page that verifies a card.

    tox -e pictures        or        python docs/draw_pictures.py [FOLDER]

Into FOLDER (default: build/pictures) as PNG. `docs/pictures/report-card.png` is one of them, which is drawn anew, too.
Needs poppler-utils, and for the page a Chromium; what is not installed is named and left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from school_service.core.ordinals import ordinal  # noqa: E402
from school_service.demo.drawing import draw_badge, draw_signature  # noqa: E402
from school_service.printing.printers import Printers  # noqa: E402
from school_service.printing.wording import long_date  # noqa: E402
from tests.printing import samples  # noqa: E402

SHOWN = ROOT / "docs" / "pictures" / "report-card.png"
PHONE = (390, 1100)  # pixels
DOTS = 80  # an inch

LONG_NAME = samples.student(
    first_name="Oluwáṣèyífúnmitán-Adébọ̀wálé", middle_name="Ọláolúwakìítán", last_name="Ògúnlẹ́yẹ-Akinwándé"
)
LONG_COMMENT = ("Ẹniọlá reads widely and asks good questions. " * 12)[:500]
COMMENTS = {"form_teacher": LONG_COMMENT, "principal": LONG_COMMENT}
CARDS: dict[str, dict[str, Any]] = {
    "card-1-subject": samples.card(1),
    "card-12-subjects": samples.card(12),
    "card-16-second-term": samples.card(16, term="SECOND", version=2),
    "card-24-third-term": samples.card(24, term="THIRD"),
    "card-40-subjects": samples.card(
        40, subjects=[samples.subject_result(one, f"Subject {one}") for one in range(1, 41)]
    ),
    "card-long-name-and-comments": samples.card(24, term="THIRD", student=LONG_NAME, comments=COMMENTS),
    "card-without-logo": samples.card(9, letterhead=samples.letterhead(logo=None, signature=None)),
    "card-with-nothing-optional": samples.card(9, **samples.BARE),
}


def main() -> None:
    """Draw all of them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("pdftoppm") is None:
        sys.exit("pdftoppm is not installed: apt-get install poppler-utils")
    pictures = {
        "logo": b64encode(draw_badge(29, 53, 87)).decode(),
        "signature": b64encode(draw_signature()).decode(),
    }
    tasks = {name: samples.task(card, pictures=pictures) for name, card in CARDS.items()}
    draft = {**CARDS["card-12-subjects"], "version": None, "published_at": None}
    tasks["card-draft"] = samples.task(draft, pictures=pictures, drafted_at="2025-12-12T09:00:00+00:00")
    tasks["transcript"] = samples.transcript_task(pictures=pictures)
    printers = Printers(2)
    for name, task in tasks.items():
        draw(printers.print(task), folder / name)
    shutil.copy(folder / "card-12-subjects-1.png", SHOWN)
    draw_page(folder / "verified.png")
    print(f"Drawn into {folder}, and {SHOWN.relative_to(ROOT)}")  # noqa: T201


def draw(pdf: bytes, path: Path) -> None:
    """Draw each page of a PDF."""
    command = ["pdftoppm", "-r", str(DOTS), "-png", "-", str(path)]
    subprocess.run(command, input=pdf, check=True)  # noqa: S603


def draw_page(path: Path) -> None:
    """Draw the page that verifies a card as a phone shows it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium is installed: the page that verifies a card is left out")  # noqa: T201
        return
    card = samples.card(12, student=LONG_NAME)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "verified.html"
        page.write_text(verified(card), encoding="utf-8")
        width, height = PHONE
        command = [
            chromium, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}",
            f"--user-data-dir={folder}/chromium", f"--screenshot={path}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603


def verified(card: dict[str, Any]) -> str:
    """Write the page of a card."""
    templates = FileSystemLoader(ROOT / "school_service" / "features" / "report_cards" / "templates")
    environment = Environment(loader=templates, autoescape=True)
    environment.filters.update(ordinal=ordinal, long_date=long_date)
    student = card["student"]
    names = (student["first_name"], student["middle_name"], student["last_name"])
    subjects = [
        {"name": one["subject"]["name"], "percent": one["percent"], "grade": one["grade"]}
        for one in card["subjects"]
    ]
    return environment.get_template("verified.html").render(
        state="CURRENT",
        school=card["letterhead"]["name"],
        student={"name": " ".join(names), "admission_number": student["admission_number"]},
        session=card["session"]["name"],
        term=card["term"]["term"],
        version=card["version"],
        published_at=card["published_at"],
        replaced_at=None,
        average=card["average"],
        grade=card["grade"],
        position=card["batch_figures"]["position"],
        of=card["batch_figures"]["of"],
        subjects=subjects,
        nonce="page",
        **{"class": f"{card['classroom']} {card['batch_name']}"},
    )


main()
