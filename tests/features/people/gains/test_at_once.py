"""Accounts that gain while somebody makes a way into them, and while others change the same guardian."""

from __future__ import annotations

import pytest

from tests.factories import PASSWORD
from tests.features.people.gains.planting import ChildLinked, RoleGiven
from tests.threads import run_concurrently


@pytest.mark.parametrize("kind", ["PASSWORD", "INVITATION"])
def test_a_credential_planted_while_the_account_gains_ends_or_is_refused(committing, kind):
    api = committing.api
    maker = committing.caller("write:users", "read:users")
    for _ in range(6):
        gaining = RoleGiven(api, committing)
        gaining.prepare()

        def work(number, gaining=gaining):
            if number == 0:
                return gaining.happen()
            user = gaining.user["id"]
            client = maker.using()
            if kind == "PASSWORD":
                return client.put(f"/users/{user}/password", {"password": PASSWORD}).status_code
            return client.post("/invitations", {"users": [user], "everybody": True}).status_code

        _, *others = run_concurrently(3, work)

        assert set(others) <= {200, 403}
        assert api.ok(api.get(f"/invitations?user={gaining.user['id']}"))["total"] == 0
        credentials = {"username": gaining.user["username"], "password": PASSWORD}
        assert api.post("/users/login", credentials).status_code == 401


def test_links_and_accounts_of_one_guardian_at_once_do_not_deadlock(committing):
    api = committing.api
    for _ in range(4):
        gaining = ChildLinked(api, committing)
        gaining.prepare()
        account = f"/guardians/{gaining.guardian['id']}/account"
        stop = f"/students/{gaining.student['id']}/guardians/{gaining.guardian['id']}"
        works = (
            lambda client, stop=stop: client.put(stop, {"relationship": "uncle"}),
            lambda client, account=account: client.delete(account),
            lambda client, account=account, gaining=gaining: client.put(
                account, {"user": gaining.user["id"]}
            ),
        )

        answers = run_concurrently(6, lambda number, works=works: works[number % 3](api.using()).status_code)

        assert set(answers) <= {200, 404, 409}, answers
