"""axe on the pages on which people sign in: its findings by the rules of WCAG 2.2 AA, and its best practices."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.features.sign_in.pages.test_in_browser import PERSON_PASSWORD, fill_in, town, wait
from tests.web.test_docs_page import browser, pytestmark

__all__ = ["browser", "town"]
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [*pytestmark, pytest.mark.skipif(not AXE.is_file(), reason="npm has not installed axe-core.")]

FOUND = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations', 'incomplete']}).then(
    found => done([...found.violations, ...found.incomplete].map(one => [one.id, one.nodes.map(node => node.html)])),
    error => done([String(error)]),
);
"""


def test_axe_finds_nothing(browser, town):
    entrance, address, elsewhere = town
    client = entrance.client(redirect_uris=(f"{elsewhere}/",), name="Òkè Ọ̀yọ́ portal").at(f"{elsewhere}/")
    entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": True}))
    person = entrance.person()
    (invitation,) = entrance.admin.ok(
        entrance.admin.post("/invitations", {"users": [entrance.person().id], "everybody": True})
    )
    faults = {}

    def look(name):
        browser.execute_script(AXE.read_text(encoding="utf-8"))
        for theme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": theme}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            violations = browser.execute_async_script(FOUND)
            if violations:
                faults[name, theme] = violations

    sign_in = f"{address}{client.ask()[0]}"
    pages = {
        "sign in": sign_in,
        "unknown school": f"{address}{client.ask(school='nobody-here')[0]}",
        "unknown client": f"{address}/auth/authorize?client_id=nobody",
        "invitation": f"{address}/auth/invitation",
        "invitation with a code": f"{address}{urlsplit(invitation['url']).path}",
        "wrong code": f"{address}/auth/{entrance.place.id}/invitation/AAAA-AAAA-AAAA",
        "signed out": f"{address}/auth/logout",
    }
    try:
        for name, page in pages.items():
            browser.get(page)
            look(name)
        browser.get(sign_in)
        fill_in(browser, username=person.username, password="wrong")
        wait(browser, lambda _: browser.find_element("id", "told"))
        look("wrong password")
        browser.get(sign_in)
        fill_in(browser, username=person.username, password=PERSON_PASSWORD)
        wait(browser, lambda _: browser.find_element("name", "again"))
        look("new password")
        fill_in(browser, new_password="one", again="two")
        wait(browser, lambda _: browser.find_element("id", "new_password-error"))
        look("new passwords that differ")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        entrance.admin.ok(entrance.admin.patch("/settings", {"must_change_password": False}))
    assert faults == {}
