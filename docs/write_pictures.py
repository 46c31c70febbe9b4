"""Makes the pictures of the README: a score sheet as it is printed, and the docs page.

    school-service demo                    # in another terminal
    python docs/write_pictures.py          # --data-dir FOLDER: of the demo, default school-data

Needs Chromium, LibreOffice and pdftoppm (Debian: chromium-driver, libreoffice-calc, poppler-utils).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import urllib3
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

PICTURES = Path(__file__).with_name("pictures")
MOST_BYTES = 150_000
DEADLINE = 300  # seconds for each program
SHEET = {"resolution": 96, "width": 800, "height": 400}  # pixels from the top left corner of the page
PAGE = {"width": 1280, "height": 900}
OPERATION = "createGradebookEntry"


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
    """Run a program; raises CalledProcessError with what it said."""
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


def main() -> None:
    """Make both pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data-dir", type=Path, default=Path("school-data"))
    details = json.loads((parser.parse_args().data_dir / "demo.json").read_text(encoding="utf-8"))
    PICTURES.mkdir(exist_ok=True)
    sheet, page = PICTURES / "score-sheet.png", PICTURES / "docs-page.png"
    with tempfile.TemporaryDirectory() as folder:
        picture_sheet(Demo(details), sheet, Path(folder))
        picture_page(details["base_url"], page)
    for picture in (sheet, page):
        if picture.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{picture} has {picture.stat().st_size} bytes, and may have {MOST_BYTES}.")


if __name__ == "__main__":
    main()
