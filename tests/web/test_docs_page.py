"""The documentation page in a real browser, which reaches nothing but the service."""

from __future__ import annotations

import json
import shutil
import threading

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from waitress import create_server, wasyncore

from tests.conftest import make_place

PATIENCE = 30  # seconds

chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
driver = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (chromium and driver), reason="Chromium or chromedriver is not installed."
)


@pytest.fixture
def address(app):
    sockets = {}
    server = create_server(app, map=sockets, host="127.0.0.1", port=0, threads=4)
    stopped = threading.Event()

    def serve():
        while not stopped.is_set():
            wasyncore.loop(timeout=0.1, count=1, map=sockets)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}"
    finally:
        stopped.set()
        thread.join()
        server.task_dispatcher.shutdown()
        wasyncore.close_all(sockets)


@pytest.fixture
def browser(tmp_path):
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={tmp_path / 'browser'}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()


def wait(browser, condition):
    return WebDriverWait(browser, PATIENCE).until(condition)


def find(place, selector):
    """Find an element once it is there."""
    browser = getattr(place, "parent", place)
    return wait(browser, lambda _: next(iter(place.find_elements(By.CSS_SELECTOR, selector)), None))


def press(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    wait(browser, lambda _: element.is_displayed() and element.is_enabled())
    element.click()


def open_page(browser, address):
    browser.get(f"{address}/docs")
    find(browser, ".opblock")


def operation(browser, name):
    return find(browser, f".opblock[id$='-{name}']")


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def loaded(browser):
    return browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")


def test_it_lists_every_operation_without_a_complaint_or_a_foreign_address(browser, address, document):
    open_page(browser, address)

    shown = {
        (
            block.find_element(By.CSS_SELECTOR, ".opblock-summary-method").text,
            block.find_element(By.CSS_SELECTOR, ".opblock-summary-path").get_attribute("data-path"),
        )
        for block in browser.find_elements(By.CSS_SELECTOR, ".opblock")
    }
    assert shown == set(document.operations())
    assert complaints(browser) == []
    assert len(loaded(browser)) >= 6
    assert [name for name in loaded(browser) if not name.startswith(f"{address}/")] == []


def test_an_operation_is_tried_with_a_token_and_a_school(browser, address, app, tenancy):
    place = make_place(app, tenancy, "Mayflower School, Ikenne")
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    body = {"name": "JSS 1 Ọ̀ṣun", "level": "Junior Secondary"}
    made = app.test_client().post("/classrooms", json=body, headers=headers).get_json()

    open_page(browser, address)
    first_page = browser.find_element(By.CSS_SELECTOR, ".opblock")
    field = find(browser, "#school")
    field.send_keys(str(place.id))
    field.submit()
    wait(browser, lambda _: is_gone(first_page))
    press(browser, find(browser, ".btn.authorize"))
    find(browser, ".auth-container input").send_keys(place.admin_token)
    find(browser, ".auth-btn-wrapper .authorize").click()
    find(browser, ".auth-btn-wrapper .btn-done").click()
    listing = operation(browser, "get_classrooms")
    press(browser, find(listing, ".opblock-summary-control"))
    school = find(listing, "tr[data-param-name='X-SCHOOL-ID'] input")
    assert school.get_attribute("value") == str(place.id)
    press(browser, find(listing, ".execute"))
    answer = find(listing, ".live-responses-table .response")

    assert answer.find_element(By.CSS_SELECTOR, ".response-col_status").text == "200"
    assert json.loads(answer.find_element(By.CSS_SELECTOR, ".highlight-code code").text) == [made]
    assert complaints(browser) == []


def test_the_school_and_the_token_outlast_a_visit_and_a_link_leads_to_an_operation(browser, address, place):
    open_page(browser, address)
    browser.execute_script("localStorage.setItem('X-SCHOOL-ID', arguments[0])", str(place.id))
    press(browser, find(browser, ".btn.authorize"))
    find(browser, ".auth-container input").send_keys(place.admin_token)
    find(browser, ".auth-btn-wrapper .authorize").click()

    browser.get("about:blank")
    browser.get(f"{address}/docs#/roles/get_roles")

    linked = operation(browser, "get_roles")
    school = find(linked, "tr[data-param-name='X-SCHOOL-ID'] input")
    assert school.get_attribute("value") == str(place.id)
    press(browser, find(linked, ".execute"))
    answer = find(linked, ".live-responses-table .response")
    assert answer.find_element(By.CSS_SELECTOR, ".response-col_status").text == "200"


def is_gone(element):
    try:
        element.is_enabled()
    except StaleElementReferenceException:
        return True
    return False
