"""Signing in with a real browser: the sample app, the docs page, the pages without scripts and by keyboard."""

from __future__ import annotations

import json
import mimetypes
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import tests.web.test_docs_page as in_docs
from school_service.app import create_app
from tenants.registry.clients import PeoplesOptions, create_client, revoke_client
from tests.client import Document
from tests.conftest import dispose, make_place
from tests.factories import Factory
from tests.features.photos.test_photos import picture, put
from tests.features.sign_in.conftest import PERSON_PASSWORD, Entrance
from tests.served_apps import serving_app
from tests.web.test_docs_page import browser as browser
from tests.web.test_docs_page import complaints, press, read, wait, write

pytestmark = in_docs.pytestmark

APP = Path(__file__).parents[4] / "examples" / "single-page-app"
NEW = "seven green bicycles"


@contextmanager
def sample_app(service):
    """Serve the sample app from an origin of its own; `service` gives the address of the service."""

    def files(environ, start_response):
        name = environ["PATH_INFO"].strip("/") or "index.html"
        content = (APP / name).read_text(encoding="utf-8") if (APP / name).is_file() else None
        if content is None:
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]
        body = content.replace("http://127.0.0.1:8000", service()).encode()
        kind = mimetypes.guess_type(name)[0]
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    with serving_app(files) as address:
        yield address


@pytest.fixture(scope="module")
def town(settings, tenancy):
    """A service at an address of its own, the sample app at another, a school, and the two clients."""
    made = {}
    with (
        serving_app(lambda *request: made["served"](*request)) as address,
        sample_app(lambda: address) as elsewhere,
    ):
        app = create_app(replace(settings, public_url=address, cors_origins=(elsewhere,)))
        made["served"] = in_docs.with_few_operations(app)
        place = make_place(app, tenancy, "Ilé-ẹ̀kọ́ Gíga Ìbàdàn")
        uris = {"docs": f"{address}/docs/oauth2-redirect.html", "example": f"{elsewhere}/"}
        with tenancy.admin.begin() as connection:
            for client_id, uri in uris.items():
                of_people = PeoplesOptions(
                    name=client_id, is_public=True, redirect_uris=(uri,), post_logout_uris=(uri,)
                )
                create_client(connection, client_id=client_id, school_ids=[place.id], of_people=of_people)
        entrance = Entrance(app, Document(app), tenancy, place)
        yield entrance, address, elsewhere
        with tenancy.admin.begin() as connection:
            for client_id in uris:
                revoke_client(connection, client_id)
        dispose(app)


def graver(complaints):
    """Leave out that the school has no logo, and Swagger UI's own form."""
    known = ("/logo", "Password field is not contained in a form")
    return [complaint for complaint in complaints if not any(words in complaint for words in known)]


def fill_in(browser, **fields):
    """Fill the form of a page in and send it."""
    for name, text in fields.items():
        write(browser, f"[name={name}]", text)
    press(browser, "form button")


def at(browser, address):
    wait(browser, lambda _: browser.current_url.startswith(address))


def choose(browser, field, text):
    wait(browser, lambda _: Select(browser.find_element(By.ID, field)).select_by_visible_text(text) or True)


def test_the_sample_app_does_all_that_it_is_for(browser, town):
    entrance, address, elsewhere = town
    make = Factory(entrance.admin)
    taught = make.taught(students=1)
    assessment = make.assessment(taught.subject, taught.term)
    teacher = make.employee()
    entrance.admin.ok(
        entrance.admin.patch(f"/teachers/{taught.cohort['id']}/add_to_batch", {"teacher_id": teacher["id"]})
    )
    entrance.admin.ok(put(entrance.admin, make.account_of(teacher), picture()))
    person = entrance.person(
        *("read:cohorts", "read:terms", "read:students", "read:employees", "read:teachers", "read:users"),
        *("read:cohort-subjects", "read:assessments", "read:gradebooks", "write:gradebooks"),
    )
    complaints(browser)

    browser.get(f"{elsewhere}/")
    press(browser, "#sign-in")
    at(browser, f"{address}/auth/authorize")
    fill_in(browser, username=person.username, password=person.password)

    at(browser, elsewhere)
    assert read(browser, "#teacher-name") == f"Form teacher: {teacher['first_name']} {teacher['last_name']}"
    wait(
        browser, lambda _: browser.execute_script("return document.getElementById('photo').naturalWidth > 0")
    )
    assert browser.current_url == f"{elsewhere}/"
    wait(browser, lambda _: Select(browser.find_element(By.ID, "assessment")).options)
    write(browser, "#score", "17.5")
    press(browser, "#scores button")
    wait(browser, lambda _: read(browser, "#message") == "The score is entered.")
    (entry,) = entrance.admin.ok(entrance.admin.get("/gradebooks?pageNumber=0&pageSize=9"))["data"]
    assert (entry["assessment"], entry["score"]) == (assessment["id"], 17.5)
    # Only the refresh token is kept, for as long as the tab: loaded anew, the page gets another access token, once.
    kept = json.loads(browser.execute_script("return sessionStorage.getItem('session')"))
    assert set(kept) == {"refresh_token", "school_id", "id_token"}
    browser.refresh()
    assert read(browser, "#teacher-name")
    again = json.loads(browser.execute_script("return sessionStorage.getItem('session')"))
    assert again["refresh_token"] != kept["refresh_token"]
    assert in_docs.loaded(browser).count(f"{address}/auth/oauth/token") == 1
    press(browser, "#sign-out")
    wait(browser, lambda _: browser.find_element(By.ID, "sign-in").is_displayed())
    at(browser, f"{elsewhere}/")
    assert entrance.sql("SELECT count(*) FROM user_sessions WHERE user_id = %s", person.id)[0].count == 0
    assert browser.execute_script("return [document.cookie, {...localStorage}, {...sessionStorage}]") == [
        "",
        {},
        {},
    ]
    assert graver(complaints(browser)) == []


def test_authorize_on_the_docs_page_signs_in_and_an_operation_answers(browser, town):
    entrance, address, _ = town
    person = entrance.person("read:roles")
    listing = ".opblock[id$='-listRoles']"
    in_docs.open_page(browser, address, "#/roles/listRoles")
    page = browser.current_window_handle
    complaints(browser)

    def opened(_):
        if browser.find_elements(By.ID, "client_id_authorizationCode"):
            return True
        browser.find_element(By.CSS_SELECTOR, ".btn.authorize").click()
        return None

    wait(browser, opened)
    press(browser, "[aria-label='Apply given OAuth2 credentials']")
    popup = wait(
        browser, lambda _: next((window for window in browser.window_handles if window != page), None)
    )
    browser.switch_to.window(popup)
    fill_in(browser, username=person.username, password=person.password)
    wait(browser, lambda _: browser.window_handles == [page])
    browser.switch_to.window(page)

    # The token's school stands in every operation.
    wait(browser, lambda _: in_docs.value(browser, "#school") == str(entrance.place.id))
    in_docs.narrow(browser, "roles")
    assert in_docs.value(browser, f"{listing} tr[data-param-name='X-SCHOOL-ID'] input") == str(
        entrance.place.id
    )
    assert in_docs.execute(browser, listing) == "200"
    assert in_docs.stored(browser) == {"X-SCHOOL-ID": str(entrance.place.id), "cookies": ""}
    assert graver(complaints(browser)) == []


def focused(browser):
    return browser.switch_to.active_element


def await_focus(browser, name):
    """Wait until a field has the focus, which it gets some time after the page is there."""
    wait(browser, lambda _: focused(browser).get_attribute("name") == name)


def type_on(browser, *keys):
    for key in keys:
        focused(browser).send_keys(key)


def test_without_scripts_and_by_keyboard_alone(browser, town):
    """A password that was given, at 320 px: wrong once, then right, then two new ones that differ, then the same."""
    entrance, address, elsewhere = town
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
    person = entrance.person()
    client = entrance.client(redirect_uris=(f"{elsewhere}/",)).at(f"{elsewhere}/")
    asked, verifier = client.ask(state="s")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    size = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.get(f"{address}{asked}")
        await_focus(browser, "username")
        fits(browser)
        type_on(browser, person.username, Keys.TAB)
        type_on(browser, "wrong", Keys.TAB)
        assert focused(browser).tag_name == "button"
        type_on(browser, Keys.ENTER)
        wait(browser, lambda _: "is wrong" in browser.find_element(By.ID, "told").text)
        fits(browser)
        await_focus(browser, "username")
        assert focused(browser).get_attribute("value") == person.username
        type_on(browser, Keys.TAB)
        assert focused(browser).get_attribute("name") == "password"
        type_on(browser, PERSON_PASSWORD, Keys.ENTER)
        wait(browser, lambda _: browser.find_element(By.NAME, "new_password"))
        await_focus(browser, "new_password")
        type_on(browser, NEW, Keys.TAB)
        type_on(browser, "another", Keys.ENTER)
        wait(browser, lambda _: browser.find_element(By.ID, "new_password-error"))
        fits(browser)
        await_focus(browser, "new_password")
        type_on(browser, NEW, Keys.TAB)
        type_on(browser, NEW, Keys.ENTER)
        at(browser, f"{elsewhere}/?code=")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))
    given = parse_qs(urlsplit(browser.current_url).query)
    assert given["state"] == ["s"]
    assert client.exchange(given["code"][0], verifier).status_code == 200


def fits(browser):
    """Assert that nothing is scrolled sideways, and that pressed elements are 44 px high."""
    wide, low = browser.execute_script(MEASURED)
    assert wide <= 0
    assert low == []


MEASURED = """
return [
    document.documentElement.scrollWidth - innerWidth,
    [...document.querySelectorAll('a, button, input:not([type=hidden])')]
        .filter(one => one.getBoundingClientRect().height < 44).map(one => one.outerHTML),
];
"""
