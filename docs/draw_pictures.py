"""Draw the papers and pages of the service: pictures to be looked at, and the README's.

    tox -e pictures        or        python docs/draw_pictures.py [FOLDER] [--demo DATA_DIR]

Report cards, a transcript and the page that verifies a card, into FOLDER (default: build/pictures) as PNG; one of them
is `docs/pictures/report-card.png`, which is drawn anew, too. With `--demo`, of a `school-service demo` that runs, also
the README's score sheet and docs page.

Needs poppler-utils, and for the page a Chromium; a program that is not installed is named, its pictures left out. With
`--demo` LibreOffice and chromedriver, too (Debian: chromium-driver, libreoffice-calc, poppler-utils).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import urllib3
from jinja2 import Environment, FileSystemLoader
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from school_service.core.texts import ordinal  # noqa: E402
from school_service.demo.letterhead import draw_badge, draw_signature  # noqa: E402
from school_service.features.results.models import CARD_STATES, REPLACED_CARD, WITHDRAWN_CARD  # noqa: E402
from school_service.printing.printers import Printers  # noqa: E402
from school_service.printing.wording import long_date  # noqa: E402
from tests.printing import samples  # noqa: E402

README_PICTURES = ROOT / "docs" / "pictures"
SHOWN = README_PICTURES / "report-card.png"
MOST_BYTES = 150_000  # of a picture of the README
DEADLINE = 300  # seconds for each program
SHEET = {"resolution": 96, "width": 800, "height": 400}  # pixels from the top left corner of the page
PAGE = {"width": 1280, "height": 900}
OPERATION = "createGradebookEntry"
PHONES = ((390, 1100), (320, 1250))  # pixels
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
    **{
        f"card-{number}-subjects": samples.card(
            number,
            subjects=[samples.subject_result(place, f"Subject {place}") for place in range(1, number + 1)],
        )
        for number in (40, 50)
    },
    **{
        f"card-{number}-subjects-with-teachers": samples.card(
            number,
            show_teachers=True,
            subjects=[samples.subject_result(place, f"Subject {place}") for place in range(1, number + 1)],
        )
        for number in (3, 18, 40)
    },
    "card-long-name-and-comments": samples.card(24, term="THIRD", student=LONG_NAME, comments=COMMENTS),
    "card-without-photo": samples.card(12, show_photo=True),
    "card-of-early-years": samples.card(0, marks=False, positions="NONE", has_stamp=True),
    "card-without-logo": samples.card(9, letterhead=samples.letterhead(logo=None, signature=None)),
    "card-with-nothing-optional": samples.card(9, **samples.BARE),
}


def main() -> None:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "pictures")
    parser.add_argument("--demo", type=Path, metavar="DATA_DIR", help="the data folder of a demo that runs")
    asked = parser.parse_args()
    folder: Path = asked.folder
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
    draw_pages(folder)
    shown = [SHOWN]
    if asked.demo is not None:
        shown += draw_demo(json.loads((asked.demo / "demo.json").read_text(encoding="utf-8")))
    for picture in shown:
        if picture.stat().st_size > MOST_BYTES:
            sys.exit(f"{picture} has {picture.stat().st_size} bytes, and may have {MOST_BYTES}.")
    print(f"Drawn into {folder}, and {', '.join(str(path.relative_to(ROOT)) for path in shown)}")  # noqa: T201


def draw(pdf: bytes, path: Path) -> None:
    """Draw each page of a PDF."""
    command = ["pdftoppm", "-r", str(DOTS), "-png", "-", str(path)]
    subprocess.run(command, input=pdf, check=True)  # noqa: S603


def draw_pages(folder: Path) -> None:
    """Draw the page that verifies a card as phones show it: of each width, and of each state of a card."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium is installed: the page that verifies a card is left out")  # noqa: T201
        return
    card = samples.card(12, student=LONG_NAME)
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "verified.html"
        for state in CARD_STATES:
            page.write_text(verified(card, state), encoding="utf-8")
            for width, height in PHONES:
                picture = folder / f"verified-{state.lower()}-{width}.png"
                command = [
                    chromium, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}",
                    f"--user-data-dir={scratch}/chromium", f"--screenshot={picture}", page.as_uri(),
                ]  # fmt: skip
                subprocess.run(command, check=True, capture_output=True, timeout=120)  # noqa: S603


def verified(card: dict[str, Any], state: str) -> str:
    """Write the page of a card in a state."""
    templates = FileSystemLoader(
        ROOT / "school_service" / "features" / "results" / "report_cards" / "templates"
    )
    environment = Environment(loader=templates, autoescape=True)
    environment.filters.update(ordinal=ordinal, long_date=long_date)
    student = card["student"]
    names = (student["first_name"], student["middle_name"], student["last_name"])
    subjects = [
        {"name": result["subject"]["name"], "percent": result["percent"], "grade": result["grade"]}
        for result in card["subjects"]
    ]
    said = {
        "student": {"name": " ".join(names), "admission_number": student["admission_number"]},
        "class": f"{card['classroom']} {card['batch_name']}",
        "session": card["session"]["name"],
        "term": card["term"]["term"],
        "average": card["average"],
        "grade": card["grade"],
        "position": card["batch_figures"]["position"],
        "of": card["batch_figures"]["of"],
        "subjects": subjects,
    }
    return environment.get_template("verified.html").render(
        state=state,
        school=card["letterhead"]["name"],
        version=card["version"],
        published_at=card["published_at"],
        replaced_at=card["published_at"] if state == REPLACED_CARD else None,
        time_zone=card["time_zone"],
        nonce="page",
        **(dict.fromkeys(said) if state == WITHDRAWN_CARD else said),
    )


# The README's score sheet and docs page, of a demo that runs


def draw_demo(details: dict[str, Any]) -> list[Path]:
    """Draw both, by the details in demo.json; returns their paths."""
    sheet, page = README_PICTURES / "score-sheet.png", README_PICTURES / "docs-page.png"
    with tempfile.TemporaryDirectory() as folder:
        picture_sheet(Demo(details), sheet, Path(folder))
        picture_page(details["base_url"], page)
    return [sheet, page]


class Demo:
    """A demo that runs, seen by its client."""

    def __init__(self, details: dict[str, Any]) -> None:
        self._base = details["base_url"]
        self._school = details["schools"][0]["id"]
        credentials = {name: details[name] for name in ("client_id", "client_secret", "audience")}
        answer = urllib3.request(
            "POST",
            f"{details['auth_url']}/oauth/token",
            json={**credentials, "grant_type": "client_credentials"},
        )
        self._token = answer.json()["access_token"]

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        """Send a GET; ends the program unless it succeeds."""
        headers = {"Authorization": f"Bearer {self._token}", "X-SCHOOL-ID": self._school}
        answer = urllib3.request("GET", f"{self._base}{path}", headers=headers)
        if answer.status != 200:
            raise SystemExit(answer.data.decode())
        return answer


def run(*command: str | Path) -> None:
    """Run a program; raises CalledProcessError with its output."""
    subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE)  # noqa: S603 (our own words)


def picture_sheet(demo: Demo, picture: Path, folder: Path) -> None:
    """Print an assessment's score sheet with LibreOffice, and picture the top of its page."""
    assessment = demo.get("/gradebooks?pageSize=1").json()["data"][0]["assessment"]
    sheet = folder / "sheet.xlsx"
    sheet.write_bytes(demo.get(f"/assessments/{assessment}/download-sheet").data)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    run("soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", folder, sheet)
    size = [f"{SHEET[name]}" for name in ("resolution", "width", "height")]
    options = ("-png", "-singlefile", "-r", size[0], "-x", "0", "-y", "0", "-W", size[1], "-H", size[2])
    run("pdftoppm", *options, folder / "sheet.pdf", picture.with_suffix(""))


def picture_page(base: str, picture: Path) -> None:
    """Picture the docs page at the operation that enters a score."""
    options = ChromeOptions()
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={PAGE['width']},{PAGE['height']}")
    browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.get(f"{base}/docs#/gradebooks/{OPERATION}")
        opened = f"#operations-gradebooks-{OPERATION}.is-open"
        WebDriverWait(browser, DEADLINE).until(lambda _: browser.find_elements(By.CSS_SELECTOR, opened))
        tag = browser.find_element(By.CSS_SELECTOR, "#operations-tag-gradebooks")
        # The page scrolls by itself at first.
        WebDriverWait(browser, DEADLINE).until(lambda _: _stays_above(browser, tag))
        browser.save_screenshot(str(picture))
    finally:
        browser.quit()


def _stays_above(browser: Chrome, element: WebElement) -> bool:
    """Scroll so that an element is at the top, below the bar; tells whether it is there a moment later."""
    script = "scrollTo(0, arguments[0].getBoundingClientRect().top + scrollY - 5); return scrollY"
    before = browser.execute_script(script, element)
    time.sleep(1)
    return bool(before == browser.execute_script("return scrollY"))


main()
