"""User accounts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.client import ApiClient
from tests.conftest import make_place
from tests.threads import run_concurrently

NEW = {"username": "ada", "password": "s3cret", "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"}


class TestCreating:
    def test_a_user_is_created_with_a_token_of_theirs(self, api, place):
        made = api.ok(api.post("/users", NEW))

        user = made["user"]
        assert UUID(user["id"])
        assert user == {
            "id": user["id"],
            "username": "ada",
            "first_name": "Ada",
            "last_name": "Obi",
            "gender": "FEMALE",
            "photo": None,
            "roles": [],
            "school": {
                "id": str(place.id),
                "name": place.name,
                "address": None,
                "phone_number": None,
                "email_address": None,
                "motto": None,
                "logo_url": None,
            },
            "student": None,
        }
        assert set(made) == {"user", "access_token", "permissions", "must_change_password"}
        assert made["permissions"] == []
        token = made["access_token"]
        assert token == {"access_token": token["access_token"], "expires_in": 86400, "token_type": "Bearer"}
        assert api.using(token=token["access_token"]).get("/states").status_code == 200
        assert api.ok(api.get(f"/users/{user['id']}")) == user

    @pytest.mark.parametrize("field", NEW)
    def test_every_field_is_required(self, api, field):
        answer = api.post("/users", {name: value for name, value in NEW.items() if name != field})

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {field: ["Missing data for required field."]}}

    @pytest.mark.parametrize(
        "value", ["", None, 5, 5.5, True, [], {}, "a\0b", "\ud800", "x" * 1001], ids=lambda v: repr(v)[:12]
    )
    @pytest.mark.parametrize("field", NEW)
    def test_a_field_of_another_type_or_length_is_invalid(self, api, field, value):
        answer = api.post("/users", {**NEW, field: value})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [field]

    @pytest.mark.parametrize("field", [field for field in NEW if field != "password"])
    def test_texts_are_trimmed_and_not_blank(self, api, field):
        made = api.ok(api.post("/users", {**NEW, field: "\t  Ngozi\u00a0\n"}))

        assert made["user"][field] == "Ngozi"
        assert api.post("/users", {**NEW, "username": "other", field: " \t\n\u3000"}).status_code == 422

    @pytest.mark.parametrize("field", [field for field in NEW if field != "password"])
    def test_texts_hold_120_characters_of_any_script(self, api, field):
        longest = "ụ" * 119 + "😀"

        assert api.ok(api.post("/users", {**NEW, field: longest}))["user"][field] == longest
        assert api.post("/users", {**NEW, field: longest + "x"}).status_code == 422

    def test_one_character_is_enough(self, api):
        made = api.ok(api.post("/users", {**NEW, "username": "a", "password": "b"}))

        assert made["user"]["username"] == "a"
        assert api.post("/users/login", {"username": "a", "password": "b"}).status_code == 200

    def test_an_unknown_field_is_invalid(self, api):
        for extra in ("id", "roles", "photo", "school", "permissions", "deleted_at", "password_hash"):
            assert api.post("/users", {**NEW, extra: None}).status_code == 422

    @pytest.mark.parametrize("body", ["[]", "[{}]", '"text"', "5", "null", "true"])
    def test_a_body_that_is_no_object_is_invalid(self, api, body):
        answer = api.request("POST", "/users", data=body, content_type="application/json")

        assert answer.status_code == 422

    def test_a_body_that_is_no_json_is_refused(self, api):
        for text in ("", "{", "username=ada", b"\xff\xfe"):
            answer = api.request("POST", "/users", data=text, content_type="application/json")
            assert answer.status_code == 400, text
        assert api.request("POST", "/users", data={"username": "ada"}).status_code == 415

    def test_a_taken_username_is_a_conflict(self, api):
        api.ok(api.post("/users", NEW))

        answer = api.post("/users", {**NEW, "password": "another"})

        assert answer.status_code == 409
        assert answer.get_json()["message"] == "A user with this username exists already."
        assert answer.get_json()["errors"] == {"json": {"username": ["already taken"]}}

    def test_usernames_compare_without_regard_to_case_and_form(self, api):
        composed, decomposed = "\u1ecde", "o\u0323e"
        for username in ("ada", composed, "oe", "ada obi", "ada.obi", "'; --", "%", "_", "Straße"):
            assert api.post("/users", {**NEW, "username": username}).status_code == 200, username
        for username in ("ada", " ada ", "Ada", "ADA", "\uff41da", decomposed, "\u1ecc\uff25", "STRASSE"):
            answer = api.post("/users", {**NEW, "username": username})
            assert answer.status_code == 409, username
            assert answer.get_json()["message"] == "A user with this username exists already."
            assert answer.get_json()["errors"] == {"json": {"username": ["already taken"]}}

    def test_the_other_school_has_its_own_names(self, api, other_api):
        ours, theirs = (caller.ok(caller.post("/users", NEW)) for caller in (api, other_api))

        assert ours["user"]["id"] != theirs["user"]["id"]
        assert ours["user"]["school"]["name"] != theirs["user"]["school"]["name"]

    def test_it_needs_the_permission(self, make):
        assert make.caller("write:users").post("/users", NEW).status_code == 200
        answer = make.caller("read:users", "delete:users").post("/users", {**NEW, "username": "obi"})
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:users.",
        )

    def test_of_twenty_at_once_one_gets_the_name(self, app, document, tenancy):
        place = make_place(app, tenancy, "King's College, Lagos")
        api = ApiClient(app, document, place.admin_token, place.id)

        answers = run_concurrently(20, lambda _: api.using().post("/users", NEW).status_code)

        assert sorted(answers) == [200] + [409] * 19
        assert api.ok(api.get("/users?search=ada"))["total"] == 1


class TestShowing:
    def test_a_role_of_a_user_says_since_when(self, api, make):
        before = datetime.now(UTC) - timedelta(seconds=1)
        user, role = make.user()["user"], make.role()

        shown = api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

        [link] = shown["roles"]
        assert link == {"roleId": role["id"], "userId": user["id"], "createdAt": link["createdAt"]}
        given = datetime.fromisoformat(link["createdAt"])
        assert given.utcoffset() == timedelta(0)
        assert before < given < datetime.now(UTC) + timedelta(seconds=1)

    def test_a_student_is_shown_with_their_account(self, api, make):
        student = make.student()
        [user] = api.ok(api.get("/users", query_string={"search": student["admission_number"]}))["data"]

        assert user["student"] == {
            "id": student["id"],
            "admission_number": student["admission_number"],
            "status": "ACTIVE",
        }
        assert api.ok(api.get(f"/users/{user['id']}")) == user

    def test_the_password_is_never_shown(self, api, make):
        user = make.user(password="a very secret word")["user"]

        for path in ("/users", f"/users/{user['id']}"):
            text = api.get(path).get_data(as_text=True)
            assert "secret" not in text
            assert "argon2" not in text

    def test_an_unknown_user_is_not_found(self, api):
        answer = api.get(f"/users/{uuid4()}")

        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such user.")
        for path in ("/users/5", "/users/x", "/users/", "/users/null"):
            assert api.get(path).status_code == 404

    def test_the_other_schools_user_is_not_found(self, api, make_other):
        assert api.get(f"/users/{make_other.user()['user']['id']}").status_code == 404

    def test_it_needs_the_permission(self, make):
        user = make.user()["user"]
        nobody = make.caller("write:users", "delete:users")

        for path in ("/users", f"/users/{user['id']}", f"/users/{nobody.user['id']}"):
            answer = nobody.get(path)
            assert answer.status_code == 403
            assert answer.get_json()["message"] == "This needs the permission read:users."
            assert make.caller("read:users").get(path).status_code == 200


class TestListing:
    def names(self, api, **query):
        return [user["username"] for user in api.ok(api.get("/users", query_string=query))["data"]]

    def test_a_page_has_the_envelope(self, api, make):
        for number in range(6):
            make.user(username=f"b{number}")

        page = api.ok(api.get("/users?pageNumber=1&pageSize=3"))

        assert set(page) == {"page_number", "page_size", "total_pages", "total", "data"}
        assert (page["page_number"], page["page_size"], page["total"], page["total_pages"]) == (1, 3, 7, 3)
        assert [user["username"] for user in page["data"]] == ["b2", "b3", "b4"]

    def test_the_pages_hold_every_user_once(self, api, make):
        made = {make.user()["user"]["id"] for _ in range(11)}

        seen = []
        for number in range(4):
            seen += [user["id"] for user in api.ok(api.get(f"/users?pageNumber={number}&pageSize=3"))["data"]]

        assert len(seen) == len(set(seen)) == 12
        assert made < set(seen)

    def test_the_page_may_be_left_out(self, api, make):
        for _ in range(50):
            make.user()

        page = api.ok(api.get("/users"))

        assert (page["page_number"], page["page_size"], page["total"], page["total_pages"]) == (0, 50, 51, 2)
        assert len(page["data"]) == 50

    def test_past_the_end_there_is_nothing(self, api):
        page = api.ok(api.get("/users?pageNumber=2147483647&pageSize=1000"))

        assert (page["data"], page["total"], page["total_pages"]) == ([], 1, 1)

    def test_nothing_found_has_no_pages(self, api):
        page = api.ok(api.get("/users?search=nobody at all"))

        assert (page["data"], page["total"], page["total_pages"]) == ([], 0, 0)

    @pytest.mark.parametrize(
        "query",
        [
            "pageSize=0",
            "pageSize=1001",
            "pageSize=-1",
            "pageSize=x",
            "pageSize=",
            "pageSize=5.0",
            "pageNumber=-1",
            "pageNumber=1e3",
            "pageNumber=99999999999999999999",
            "pageNumber=+1",
            "pageNumber=%00",
            "search=%00",
        ],
    )
    def test_a_strange_query_is_invalid(self, api, query):
        answer = api.get(f"/users?{query}")

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["query"]) == [query.partition("=")[0]]

    @pytest.mark.parametrize(
        ("search", "usernames"),
        [
            ("ngozi", {"n.eze"}),
            ("NGOZI", {"n.eze"}),
            ("goz", {"n.eze"}),
            ("n.e", {"n.eze"}),
            ("N.EZE", {"n.eze"}),
            ("okàfor", {"100%", "a_b"}),
            ("OKÀFOR", {"100%", "a_b"}),
            ("ngozi eze", {"n.eze"}),
            ("i e", {"n.eze"}),
            ("  eze ", {"n.eze"}),
            ("%", {"100%"}),
            ("0%", {"100%"}),
            ("_", {"a_b"}),
            ("a_b", {"a_b"}),
            ("a%b", set()),
            ("n_eze", set()),
            ("\\", set()),
            ("/", set()),
            ("'", set()),
            ("eze ngozi", {"n.eze"}),
            ("eze bola", set()),
            ("emale", set()),
        ],
    )
    def test_users_are_searched_by_a_part_of_username_or_name(self, api, make, search, usernames):
        make.user(username="n.eze", first_name="Ngozi", last_name="Eze")
        make.user(username="100%", first_name="Bola", last_name="Okàfor")
        make.user(username="a_b", first_name="Uche", last_name="OKÀFOR")

        page = api.ok(api.get("/users", query_string={"search": search}))

        assert {user["username"] for user in page["data"]} == usernames
        assert page["total"] == len(usernames)

    def test_an_empty_search_finds_everybody(self, api, make):
        make.user()

        assert api.ok(api.get("/users?search="))["total"] == 2

    def test_the_search_is_paged(self, api, make):
        for number in range(5):
            make.user(username=f"clerk {number}")
        make.user(username="cook")

        page = api.ok(api.get("/users?search=clerk&pageNumber=1&pageSize=2"))

        assert (page["total"], page["total_pages"]) == (5, 3)
        assert [user["username"] for user in page["data"]] == ["clerk 2", "clerk 3"]

    def test_the_other_schools_users_are_not_listed(self, api, make_other):
        theirs = make_other.user(username="theirs")["user"]

        assert self.names(api) == ["admin"]
        assert self.names(api, search="theirs") == []
        assert theirs["id"] not in api.get("/users").get_data(as_text=True)

    def test_a_list_of_any_length_costs_one_round_trip(self, api, make, messages):
        for size in (2, 10):
            for _ in range(size):
                user = make.user()["user"]
                api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role()["id"]}))
            for query in ("", "?search=user", "?pageSize=1000"):
                api.ok(api.get(f"/users{query}"))
                with messages() as sent:
                    api.ok(api.get(f"/users{query}"))
                assert len(sent) == 1, sent


class TestDeletingAndRestoring:
    def test_a_deleted_user_is_gone_and_comes_back(self, api, make):
        made = make.user(username="gone")
        user = made["user"]

        assert api.ok(api.delete(f"/users/{user['id']}/delete")) == {"id": user["id"], "deleted": True}

        assert api.get(f"/users/{user['id']}").status_code == 404
        assert api.ok(api.get("/users?search=gone"))["total"] == 0
        assert user["id"] not in api.get("/users").get_data(as_text=True)
        assert api.using(token=made["access_token"]["access_token"]).get("/states").status_code == 401

        assert api.ok(api.put(f"/users/{user['id']}/restore")) == user
        assert api.ok(api.get(f"/users/{user['id']}")) == user
        assert api.ok(api.get("/users?search=gone"))["data"] == [user]
        assert make.signed_in(user).get("/states").status_code == 200

    def test_a_deleted_users_name_stays_taken(self, api, make):
        user = make.user(username="gone")["user"]
        api.ok(api.delete(f"/users/{user['id']}/delete"))

        assert api.post("/users", {**NEW, "username": "gone"}).status_code == 409

    def test_a_deleted_user_keeps_roles_and_password(self, api, make):
        user, role = make.user(username="gone")["user"], make.role()
        before = api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        api.ok(api.delete(f"/users/{user['id']}/delete"))

        assert api.ok(api.put(f"/users/{user['id']}/restore")) == before
        assert api.post("/users/login", {"username": "gone", "password": "a password"}).status_code == 200

    def test_deleting_twice_finds_nobody(self, api, make):
        user = make.user()["user"]
        api.ok(api.delete(f"/users/{user['id']}/delete"))

        assert api.delete(f"/users/{user['id']}/delete").status_code == 404

    def test_restoring_a_living_user_changes_nothing(self, api, make):
        user = make.user()["user"]

        for _ in range(2):
            assert api.ok(api.put(f"/users/{user['id']}/restore")) == user

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("PUT", "roles", {"role": "role"}),
            ("DELETE", "roles/role", None),
            ("PUT", "password", {"password": "new"}),
            ("DELETE", "delete", None),
        ],
    )
    def test_nothing_is_done_to_a_deleted_user(self, api, make, method, path, body):
        user, role = make.user()["user"], make.role()
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        api.ok(api.delete(f"/users/{user['id']}/delete"))
        options = (
            {} if body is None else {"json": {k: role["id"] if v == "role" else v for k, v in body.items()}}
        )

        answer = api.request(
            method, f"/users/{user['id']}/{path.replace('/role', '/' + role['id'])}", **options
        )

        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such user.")

    @pytest.mark.parametrize(("method", "path"), [("DELETE", "delete"), ("PUT", "restore")])
    def test_users_unknown_or_of_the_other_school_are_not_found(
        self, api, other_api, make_other, method, path
    ):
        theirs = make_other.user()["user"]

        for user_id in (uuid4(), theirs["id"]):
            assert api.request(method, f"/users/{user_id}/{path}").status_code == 404
        assert api.request(method, f"/users/nobody/{path}").status_code == 404
        assert other_api.get(f"/users/{theirs['id']}").status_code == 200

    def test_the_other_schools_deleted_user_is_not_restored(self, api, other_api, make_other):
        theirs = make_other.user()["user"]
        other_api.ok(other_api.delete(f"/users/{theirs['id']}/delete"))

        assert api.put(f"/users/{theirs['id']}/restore").status_code == 404
        assert other_api.get(f"/users/{theirs['id']}").status_code == 404

    def test_deleting_needs_its_permission(self, api, make):
        user = make.user()["user"]
        answer = make.caller("read:users", "write:users").delete(f"/users/{user['id']}/delete")

        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission delete:users.",
        )
        assert api.get(f"/users/{user['id']}").status_code == 200
        assert make.caller("delete:users").delete(f"/users/{user['id']}/delete").status_code == 200

    def test_restoring_needs_its_permission(self, api, make):
        user = make.user()["user"]
        api.ok(api.delete(f"/users/{user['id']}/delete"))
        answer = make.caller("read:users", "delete:users").put(f"/users/{user['id']}/restore")

        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:users.",
        )
        assert api.get(f"/users/{user['id']}").status_code == 404
        assert make.caller("write:users").put(f"/users/{user['id']}/restore").status_code == 200

    def test_of_ten_deletions_at_once_one_is_done(self, app, document, tenancy):
        place = make_place(app, tenancy, "Methodist Boys' High School, Lagos")
        api = ApiClient(app, document, place.admin_token, place.id)
        user = api.ok(api.post("/users", NEW))["user"]

        answers = run_concurrently(
            10, lambda _: api.using().delete(f"/users/{user['id']}/delete").status_code
        )

        assert sorted(answers) == [200] + [404] * 9


class TestRolesOfAUser:
    def test_a_user_may_have_several_roles(self, api, make):
        user = make.user()["user"]
        roles = [make.role("read:roles"), make.role("read:roles", "read:users"), make.role()]
        for role in roles:
            shown = api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

        assert [link["roleId"] for link in shown["roles"]] == [role["id"] for role in roles]
        signed_in = api.ok(api.post("/users/login", {"username": user["username"], "password": "a password"}))
        assert [(p["access"], p["section"]) for p in signed_in["permissions"]] == [
            ("read", "roles"),
            ("read", "users"),
        ]

    def test_giving_a_role_again_changes_nothing(self, api, make):
        user, role = make.user()["user"], make.role()
        shown = api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

        assert api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]})) == shown

    def test_giving_a_role_ten_times_at_once_gives_it_once(self, app, document, tenancy):
        place = make_place(app, tenancy, "Loyola College, Ibadan")
        api = ApiClient(app, document, place.admin_token, place.id)
        user = api.ok(api.post("/users", NEW))["user"]
        role = api.ok(api.post("/roles", {"name": "Cook", "avatar": 1}))

        path = f"/users/{user['id']}/roles"
        answers = run_concurrently(10, lambda _: api.using().put(path, {"role": role["id"]}).status_code)

        assert answers == [200] * 10
        assert len(api.ok(api.get(f"/users/{user['id']}"))["roles"]) == 1

    def test_an_unknown_role_is_invalid(self, api, make, make_other):
        user = make.user()["user"]

        for role in (str(uuid4()), make_other.role()["id"]):
            answer = api.put(f"/users/{user['id']}/roles", {"role": role})
            assert answer.status_code == 422
            assert answer.get_json()["errors"] == {"json": {"role": ["no such role"]}}
        assert api.ok(api.get(f"/users/{user['id']}"))["roles"] == []

    @pytest.mark.parametrize(
        "body",
        [{}, {"role": None}, {"role": "x"}, {"role": 5}, {"role": []}, {"role": ""}, {"roles": []}, [], 5],
    )
    def test_a_strange_role_is_invalid(self, api, make, body):
        assert api.put(f"/users/{make.user()['user']['id']}/roles", body).status_code == 422

    def test_users_unknown_or_of_the_other_school_are_not_found(self, api, make, make_other):
        role = make.role()

        for user_id in (uuid4(), make_other.user()["user"]["id"], "x"):
            assert api.put(f"/users/{user_id}/roles", {"role": role["id"]}).status_code == 404
            assert api.delete(f"/users/{user_id}/roles/{role['id']}").status_code == 404

    def test_a_role_is_taken_away(self, api, make):
        user, role, other = make.user()["user"], make.role(), make.role()
        for given in (role, other):
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": given["id"]}))

        shown = api.ok(api.delete(f"/users/{user['id']}/roles/{role['id']}"))

        assert [link["roleId"] for link in shown["roles"]] == [other["id"]]
        assert shown == api.ok(api.get(f"/users/{user['id']}"))

    def test_a_role_that_the_user_does_not_have_is_not_found(self, api, make, make_other):
        user, role = make.user()["user"], make.role()

        for role_id in (role["id"], uuid4(), make_other.role()["id"], "x"):
            assert api.delete(f"/users/{user['id']}/roles/{role_id}").status_code == 404

    def test_giving_and_taking_need_their_permissions(self, api, make):
        user, role = make.user()["user"], make.role()
        path = f"/users/{user['id']}/roles"

        answer = make.caller("read:users", "delete:users", "write:roles").put(path, {"role": role["id"]})
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:users.",
        )
        assert make.caller("write:users").put(path, {"role": role["id"]}).status_code == 200

        answer = make.caller("read:users", "write:users").delete(f"{path}/{role['id']}")
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission delete:users.",
        )
        assert make.caller("delete:users").delete(f"{path}/{role['id']}").status_code == 200
