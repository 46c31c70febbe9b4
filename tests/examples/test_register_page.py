"""The sample app takes a register in a real browser: with a network, without one, and beside another device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import alert_is_present
from selenium.webdriver.support.ui import Select

import tests.web.test_docs_page as in_docs
from school_service.app import create_app
from tests.client import ApiClient, Document
from tests.conftest import dispose, make_place
from tests.factories import Factory
from tests.features.attendance.classes import Kept
from tests.served_apps import serving_app
from tests.web.test_docs_page import browser as browser
from tests.web.test_docs_page import complaints, press, read, wait

pytestmark = in_docs.pytestmark

SCRIPT = Path(__file__).parents[2] / "examples" / "single-page-app" / "register.js"
PAGE = """<!DOCTYPE html><title>Register</title><link rel="icon" href="data:,"><p id="message"></p>
<section id="register" hidden></section><script type="module">
import {{ showRegister, forgetRegisters }} from "./register.js";
const headers = {headers};
async function call(path, options = {{}}) {{
  const answer = await fetch(path, {{ ...options, headers: {{ ...headers, ...options.headers }} }});
  if (answer.ok) return answer;
  const problem = await answer.json();
  throw Object.assign(new Error(problem.message), {{ status: answer.status, problem }});
}}
const say = (text) => (document.getElementById("message").textContent = text);
window.show = () => showRegister(document.getElementById("register"), {{ call, say, batch: "{batch}" }});
window.forget = forgetRegisters;
show();
</script>"""


@pytest.fixture(scope="module")
def class_(settings, tenancy):
    """A class with a register, at an address where the page is, too."""
    app = create_app(settings)
    place = make_place(app, tenancy, "Ilé-ẹ̀kọ́ Gíga Ọ̀yọ́")
    class_ = Kept(Factory(ApiClient(app, Document(app), place.admin_token, place.id)))
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    files = {
        "/page/": ("text/html", PAGE.format(headers=json.dumps(headers), batch=class_.batch)),
        "/page/register.js": ("text/javascript", SCRIPT.read_text(encoding="utf-8")),
    }

    def page_and_service(environ, start_response):
        if environ["PATH_INFO"] not in files:
            return app(environ, start_response)
        kind, content = files[environ["PATH_INFO"]]
        body = content.encode()
        start_response(
            "200 OK", [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body)))]
        )
        return [body]

    with serving_app(page_and_service) as address:
        class_.address = address
        yield class_
    dispose(app)


def choose(browser, class_, number, code):
    wait(
        browser,
        lambda _: (
            Select(browser.find_element(By.NAME, class_.students[number])).select_by_value(code) or True
        ),
    )


def says(browser, words):
    wait(browser, lambda _: words in browser.find_element(By.ID, "message").text)


def offline(browser, *, away):
    conditions = {"offline": away, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def test_a_register_is_taken_with_a_network_and_without(browser, class_):
    # The device has the school's day, which begins an hour before the day of UTC.
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Africa/Lagos"})
    browser.get(f"{class_.address}/page/")
    choose(browser, class_, "R/2", "A")
    press(browser, "#register button")
    says(browser, "handed in")
    register = class_.api.ok(class_.get())
    assert (register["state"], class_.codes(register)) == ("SUBMITTED", {"R/1": "P", "R/2": "A", "R/3": "P"})

    # Without a network it is kept, on a page that was loaded before, and sent once there is one.
    offline(browser, away=True)
    browser.execute_script("show()")
    choose(browser, class_, "R/3", "L")
    press(browser, "#register button")
    says(browser, "Kept on this device")
    # Meanwhile another device marks the same student, and a second one.
    class_.api.ok(class_.put(codes={"R/1": "E", "R/3": "A"}, version=1))
    offline(browser, away=False)
    asked = wait(browser, alert_is_present())
    assert "School Administrator marked A, you L" in asked.text
    asked.accept()
    says(browser, "handed in")
    assert class_.codes(class_.api.ok(class_.get())) == {"R/1": "E", "R/2": "A", "R/3": "L"}

    browser.execute_script("forget()")
    assert browser.execute_script("return localStorage.length") == 0
    assert read(browser, "#register button")
    known = ("409 (CONFLICT)", "ERR_INTERNET_DISCONNECTED")
    assert [
        complaint for complaint in complaints(browser) if not any(words in complaint for words in known)
    ] == []
