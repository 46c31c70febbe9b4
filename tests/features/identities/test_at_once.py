"""Many who take one invitation at once with their outside sign-ins."""

from __future__ import annotations

from tests.features.identities.test_identities import by_password, listed, outside
from tests.features.invitations.test_invitations import an_account, code_of, invite
from tests.threads import run_concurrently


def test_of_twenty_at_once_one_is_linked(committing, provider, link_users):
    api = committing.api
    link_users(api)
    student = an_account(api, committing)
    code = code_of(api, student)
    claims = {"email": "ada@example.com", "email_verified": True}

    def linking(number):
        client = outside(api.using(), provider, f"somebody {number}", **claims)
        return client.post("/me/identities", {"code": code}).status_code

    answers = run_concurrently(20, linking)

    assert answers.count(200) == 1
    assert set(answers) <= {200, 401, 429}
    assert [identity["subject"] for identity in listed(api, student)] == [f"somebody {answers.index(200)}"]
    other = an_account(api, committing)
    api.ok(invite(api, other, emails=["ada@example.com"]))
    answers = run_concurrently(
        8,
        lambda number: (
            outside(api.using(), provider, f"else {number}", **claims).post("/me/identities", {}).status_code
        ),
    )
    assert sorted(answers) == [200] + [403] * 7
    assert len(listed(api, other)) == 1


def test_no_link_by_the_password_of_before_is_left_beside_one_that_somebody_else_sets(
    committing, provider, link_users
):
    api = committing.api
    link_users(api)
    for number in range(5):
        user = committing.user()["user"]

        def doing(turn, user=user, number=number):
            if turn == 0:
                return api.using().put(f"/users/{user['id']}/password", {"password": "another"}).status_code
            client = outside(api.using(), provider, f"{number} {turn}")
            return by_password(client, user, "a password").status_code

        answers = run_concurrently(4, doing)

        assert answers[0] == 200
        assert set(answers[1:]) <= {200, 401}
        assert listed(api, user) == []
