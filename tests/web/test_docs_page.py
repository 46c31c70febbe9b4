"""The documentation page in a real browser, which reaches nothing but the service."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache

import pytest
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from school_service.app import create_app
from tests.client import Document
from tests.conftest import dispose, make_place
from tests.served_apps import serving_app

PATIENCE = 180  # seconds

chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
driver = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(not (chromium and driver), reason="Chromium or chromedriver is not installed."),
]


SHOWN = {"classrooms", "roles"}  # tags


def with_few_operations(app):
    """The application with a document of a few operations: the browser takes seconds to draw all of them."""

    @cache
    def few_operations():
        document = app.test_client().get("/openapi.json").get_json()
        document["paths"] = {
            path: each
            for path, each in document["paths"].items()
            if SHOWN.issuperset(
                tag for name, operation in each.items() if name != "parameters" for tag in operation["tags"]
            )
        }
        document["tags"] = [tag for tag in document["tags"] if tag["name"] in SHOWN]
        return json.dumps(document).encode()

    def shortened(environ, start_response):
        if not environ["PATH_INFO"].endswith("/openapi.json"):
            return app(environ, start_response)
        content = few_operations()
        start_response(
            "200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        )
        return [content]

    return shortened


# One for all tests: the browser keeps the compiled scripts of an address that it has visited.
@pytest.fixture(scope="module")
def shared_address(without_address):
    with serving_app(with_few_operations(without_address)) as address:
        yield address


@pytest.fixture
def address(shared_address, browser):
    """The address, with nothing of it stored in the browser."""
    everything = {"origin": shared_address, "storageTypes": "local_storage,cookies"}
    browser.execute_cdp_cmd("Storage.clearDataForOrigin", everything)
    return shared_address


@pytest.fixture
def whole_address(without_address):
    with serving_app(without_address) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
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
        # No process is begun for a site that is not visited.
        "--disable-site-isolation-trials",
        "--disable-features=IsolateOrigins,site-per-process,SpareRendererForSitePerProcess",
        "--process-per-site",
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    browser.set_script_timeout(PATIENCE)
    yield browser
    browser.quit()


# The page draws itself anew while it loads, so that an element found a moment ago may be gone: each step
# looks anew until it succeeds.
UNSETTLED = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
)


def wait(browser, step):
    # Selenium by itself looks twice a second.
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.05, ignored_exceptions=UNSETTLED).until(step)


def click(browser, selector):
    """Click an element once, by the page itself: an element that moves while the page scrolls can't be missed."""
    browser.execute_script("arguments[0].click()", browser.find_element(By.CSS_SELECTOR, selector))


def press(browser, selector):
    """Press an element with the pointer, as soon as it is in sight and nothing covers it."""

    def step(_):
        element = browser.find_element(By.CSS_SELECTOR, selector)
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        return True

    wait(browser, step)


def write(browser, selector, text):
    def step(_):
        browser.find_element(By.CSS_SELECTOR, selector).send_keys(text)
        return True

    wait(browser, step)


PASTE = "arguments[0].focus(); document.execCommand('insertText', false, arguments[1])"


def paste(browser, selector, text):
    """Enter a long text at once: the page draws itself anew after each key that is typed."""

    def step(_):
        element = browser.find_element(By.CSS_SELECTOR, selector)
        browser.execute_script(PASTE, element, text)
        return element.get_attribute("value") == text

    wait(browser, step)


def read(browser, selector):
    """Read the text of an element once there is some."""
    return wait(browser, lambda _: browser.find_element(By.CSS_SELECTOR, selector).text)


def value(browser, selector):
    """Read the value of a field once it has one."""
    return wait(browser, lambda _: browser.find_element(By.CSS_SELECTOR, selector).get_attribute("value"))


def open_page(browser, address, place=""):
    browser.get("about:blank")
    browser.get(f"{address}/docs{place}")
    wait(browser, lambda _: browser.find_element(By.CSS_SELECTOR, ".opblock"))


def narrow(browser, tag):
    """Show the operations of one tag alone: of a hundred and more the page draws those in sight."""
    write(browser, ".operation-filter-input", tag)


def expand(browser, operation):
    """Open an operation, whose list is drawn anew while it is narrowed."""

    def opened(_):
        control = f"{operation} .opblock-summary-control"
        if browser.find_element(By.CSS_SELECTOR, control).get_attribute("aria-expanded") == "true":
            return True
        click(browser, control)
        return None

    wait(browser, opened)


def authorize(browser, token):
    """Enter a token in the dialog: buttons are clicked until it is open, and until it has taken the token."""

    def opened(_):
        if browser.find_elements(By.CSS_SELECTOR, ".auth-container input"):
            return True
        click(browser, ".btn.authorize")
        return None

    def entered(_):
        if not browser.find_elements(By.CSS_SELECTOR, ".auth-container input"):
            return True
        click(browser, ".auth-btn-wrapper .authorize")
        return None

    wait(browser, opened)
    paste(browser, ".auth-container input", token)
    wait(browser, entered)
    press(browser, ".auth-btn-wrapper .btn-done")


def choose_school(browser, school):
    """Enter a school, and click the button until it is chosen."""
    browser.find_element(By.CSS_SELECTOR, "#school").clear()
    write(browser, "#school", school)

    def chosen(_):
        if browser.execute_script("return localStorage.getItem('X-SCHOOL-ID')") == school:
            return True
        click(browser, "#school-form button")
        return None

    wait(browser, chosen)


def execute(browser, operation):
    """Send an operation's request and read the status of its answer."""
    expand(browser, operation)

    def step(_):
        shown = browser.find_elements(By.CSS_SELECTOR, f"{operation} .live-responses-table .response")
        if shown:
            return shown[0].find_element(By.CSS_SELECTOR, ".response-col_status").text
        click(browser, f"{operation} .execute")
        return None

    return wait(browser, step)


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def loaded(browser):
    return browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")


# Read at once: a message to the browser for each of a hundred operations takes longer than to draw them. After a step
# down, or at the end back to the top, the page has two frames to draw the operations in sight.
LISTED_IN_SIGHT = """
const [done] = arguments;
const shown = [...document.querySelectorAll('.opblock')].map(block => [
    block.querySelector('.opblock-summary-method').innerText,
    block.querySelector('.opblock-summary-path').dataset.path,
]);
const before = window.scrollY;
window.scrollBy(0, window.innerHeight * 0.9);
if (window.scrollY === before) window.scrollTo(0, 0);
requestAnimationFrame(() => requestAnimationFrame(() => done(shown)));
"""


def test_the_page_lists_every_operation_without_a_complaint_or_a_foreign_address(
    browser, whole_address, without_address
):
    address, document = whole_address, Document(without_address)
    browser.set_window_size(1400, 5000)  # more in sight at each step
    open_page(browser, address)

    listed, expected = set(), set(document.operations())

    def all_listed(_):
        # Of so many operations the page draws those in sight.
        listed.update(map(tuple, browser.execute_async_script(LISTED_IN_SIGHT)))
        return listed >= expected

    wait(browser, all_listed)
    assert listed == expected
    assert complaints(browser) == []
    assert len(loaded(browser)) >= 6
    assert [name for name in loaded(browser) if not name.startswith(f"{address}/")] == []
    browser.set_window_size(1400, 1000)


def test_an_operation_is_tried_with_a_token_and_a_school(browser, address, app, tenancy):
    place = make_place(app, tenancy, "Mayflower School, Ikenne")
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    body = {"name": "JSS 1 Ọ̀ṣun", "level": "Junior Secondary"}
    made = app.test_client().post("/classrooms", json=body, headers=headers).get_json()
    listing = ".opblock[id$='-listClassrooms']"

    open_page(browser, address)
    choose_school(browser, str(place.id))
    authorize(browser, place.admin_token)
    narrow(browser, "classrooms")
    expand(browser, listing)

    assert value(browser, f"{listing} tr[data-param-name='X-SCHOOL-ID'] input") == str(place.id)
    assert execute(browser, listing) == "200"
    assert json.loads(read(browser, f"{listing} .live-responses-table .highlight-code code")) == [made]
    assert complaints(browser) == []


def shown_operations(browser):
    """Read the paths in sight."""
    return {
        each.get_attribute("data-path")
        for each in browser.find_elements(By.CSS_SELECTOR, ".opblock-summary-path")
    }


def seek(browser, words, status):
    """Write words into the search, and wait until the status says how many operations there are."""
    field = browser.find_element(By.CSS_SELECTOR, "#finder")
    field.clear()
    field.send_keys(words)
    wait(browser, lambda _: browser.find_element(By.CSS_SELECTOR, ".finder [role=status]").text == status)


def headings(browser):
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "h2.group")]


def test_words_of_a_summary_and_buttons_of_groups_find_operations(browser, address):
    open_page(browser, address)

    assert headings(browser) == ["Roles and permissions", "Classes and subjects"]
    seek(browser, "POST classrooms", "1 operation")
    assert shown_operations(browser) == {"/classrooms"}
    assert headings(browser) == ["Classes and subjects"]
    seek(browser, "nothing of this kind", "0 operations")
    press(browser, ".finder .groups button:nth-child(3)")
    wait(browser, lambda _: headings(browser) == ["Roles and permissions"])
    assert {path.split("/")[1] for path in shown_operations(browser)} <= {"roles", "permissions", "users"}
    press(browser, ".finder .groups button:first-child")
    wait(browser, lambda _: headings(browser) == ["Roles and permissions", "Classes and subjects"])
    assert complaints(browser) == []


def test_the_page_is_as_wide_as_its_window(browser, address):
    open_page(browser, address)
    try:
        for width in (390, 1280):
            # A window of Chromium may be no narrower than 500: the page is shown as a telephone shows it.
            shown = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shown)
            wait(browser, lambda _, width=width: browser.execute_script("return innerWidth") == width)
            finder = browser.find_element(By.CSS_SELECTOR, ".finder")
            assert finder.rect["x"] >= 0
            assert finder.rect["x"] + finder.rect["width"] <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


VISIBLE = """
return [...document.querySelectorAll(arguments[0])]
    .filter(each => each.checkVisibility({opacityProperty: true, visibilityProperty: true}))
    .map(each => each.innerText);
"""


def visible(browser, selector):
    """Read the texts of the elements that are shown, all at once."""
    return browser.execute_script(VISIBLE, selector)


def test_the_guide_finds_sections_and_shows_requests_in_the_form_that_is_chosen(browser, address):
    browser.get(f"{address}/docs/guide")
    sections = len(visible(browser, ".guide nav a"))
    assert visible(browser, "pre[data-form=curl], pre[data-form=python], pre[data-form=typescript]") == []

    for form, word in (("curl", "curl "), ("python", ".sync("), ("typescript", "await client.")):
        click(browser, f".guide-bar input[value={form}]")
        shown = visible(browser, f"pre[data-form={form}]")
        assert len(shown) > 50
        assert all(word in each for each in shown)
    write(browser, "#seek", "transcript")
    links = visible(browser, ".guide nav a")
    assert 0 < len(links) < sections
    assert read(browser, "#found") == f"{len(links)} of {sections} sections"
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")

    browser.get(f"{address}/docs/guide")
    assert len(visible(browser, "pre[data-form=typescript]")) > 50
    assert complaints(browser) == []


def stored(browser):
    """Read all that the page has stored in the browser."""
    return browser.execute_script("return {...localStorage, ...sessionStorage, cookies: document.cookie}")


def test_the_school_outlasts_a_visit_and_a_token_is_stored_nowhere_and_ends_with_it(
    browser, address, place, other_place
):
    listing = ".opblock[id$='-listRoles']"
    shown = f"{listing} tr[data-param-name='X-SCHOOL-ID'] input"

    open_page(browser, address)
    choose_school(browser, str(other_place.id))
    # As an earlier version of the page stored it.
    browser.execute_script("localStorage.setItem('authorized', arguments[0])", place.admin_token)

    # A link leads to an operation.
    open_page(browser, address, "#/roles/listRoles")
    assert value(browser, shown) == str(other_place.id)
    authorize(browser, place.admin_token)
    # The token outlasts a change of the school, and the school alone is stored.
    choose_school(browser, str(place.id))
    narrow(browser, "roles")

    assert value(browser, shown) == str(place.id)
    assert execute(browser, listing) == "200"
    assert stored(browser) == {"X-SCHOOL-ID": str(place.id), "cookies": ""}
    assert complaints(browser) == []

    open_page(browser, address, "#/roles/listRoles")
    narrow(browser, "roles")
    assert value(browser, shown) == str(place.id)
    assert execute(browser, listing) == "401"
    assert stored(browser) == {"X-SCHOOL-ID": str(place.id), "cookies": ""}


# A path in front of the service

PREFIX = "/school/api"


def below_prefix(app):
    """The application behind a proxy that takes a prefix away, and has nothing elsewhere."""
    app = with_few_operations(app)

    def proxy(environ, start_response):
        path = environ["PATH_INFO"]
        if not path.startswith(f"{PREFIX}/"):
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]
        return app({**environ, "PATH_INFO": path.removeprefix(PREFIX)}, start_response)

    return proxy


def test_the_page_works_below_a_path_that_a_proxy_takes_away_and_on_a_telephone(
    browser, without_address, place
):
    listing = ".opblock[id$='-listRoles']"
    browser.set_window_size(390, 900)
    complaints(browser)  # of earlier tests
    with serving_app(below_prefix(without_address)) as address:
        open_page(browser, f"{address}{PREFIX}", "#/roles/listRoles")
        choose_school(browser, str(place.id))
        authorize(browser, place.admin_token)
        narrow(browser, "roles")

        assert execute(browser, listing) == "200"
        assert [name for name in loaded(browser) if not name.startswith(f"{address}{PREFIX}/")] == []
        assert len(loaded(browser)) >= 6
        assert complaints(browser) == []
    browser.set_window_size(1400, 1000)


# Pages of other origins (CORS)

FETCH = """
const [address, method, headers, done] = arguments;
const body = method === 'POST' ? '{"name": 5}' : undefined;
fetch(address, {method, headers, body}).then(
    async answer => done([
        answer.status, answer.headers.get('X-Request-ID'), answer.headers.get('Retry-After'), await answer.json(),
    ]),
    error => done(String(error)),
);
"""


def test_a_page_of_another_origin_calls_the_service_where_cors_origins_names_it(
    browser, address, settings, place
):
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    written = {**headers, "Content-Type": "application/json"}
    opened = create_app(replace(settings, public_url=None, cors_origins=(address,)))

    def call(path, method="GET", headers=headers):
        return browser.execute_async_script(FETCH, path, method, headers)

    # A page without a policy of its own: the page of the documents may call its own service alone.
    browser.get(f"{address}/health")
    with serving_app(opened) as elsewhere:
        status, request_id, _, roles = call(f"{elsewhere}/roles")
        refused = call(f"{elsewhere}/roles", headers={"X-SCHOOL-ID": str(place.id)})
        invalid = call(f"{elsewhere}/classrooms", "POST", written)
        unknown = call(f"{elsewhere}/nothing", "DELETE")
        # A page there may not call a service that names no origins.
        browser.get(f"{elsewhere}/health")
        shut_out = [call(f"{address}/roles"), call(f"{address}/classrooms", "POST", written)]

    assert status == 200
    assert len(request_id) == 32
    assert {role["name"] for role in roles} >= {"Administrator"}
    for answer, code in ((refused, 401), (invalid, 422), (unknown, 404)):
        assert (answer[0], answer[1]) == (code, answer[3]["request_id"])
    assert shut_out == ["TypeError: Failed to fetch"] * 2
    assert len([entry for entry in complaints(browser) if "blocked by CORS policy" in entry]) == 2
    dispose(opened)
