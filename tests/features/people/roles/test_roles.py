"""Roles, and the permissions they bundle."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from school_service.core.permissions import Permission
from tests.client import ApiClient
from tests.conftest import PASSWORD, make_place
from tests.threads import run_concurrently


def permission_name(permission):
    return f"{permission['access']}:{permission['section']}"


@pytest.fixture
def permissions(api):
    """The permissions' ids, each by `access:section`."""
    return {permission_name(permission): permission["id"] for permission in api.ok(api.get("/permissions"))}


def set_permissions(api, role, *ids):
    return api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": list(ids)})


class TestCreatingARole:
    def test_a_role_is_created_without_permissions(self, api):
        role = api.ok(api.post("/roles", {"name": "Cook", "avatar": 7}))

        assert UUID(role["id"])
        assert role == {
            "id": role["id"],
            "name": "Cook",
            "avatarNumber": 7,
            "reach": "SCHOOL",
            "given_to": None,
            "permissions": [],
        }
        assert api.ok(api.get(f"/roles/{role['id']}")) == role
        assert role in api.ok(api.get("/roles"))

    def test_a_role_is_created_with_its_reach(self, api):
        assert api.ok(api.post("/roles", {"name": "Tutor", "avatar": 1, "reach": "OWN"}))["reach"] == "OWN"
        for reach in ("own", "", None, 1):
            assert api.post("/roles", {"name": "Cook", "avatar": 1, "reach": reach}).status_code == 422

    @pytest.mark.parametrize("avatar", [0, -1, 5.0, 2**31 - 1, -(2**31)])
    def test_an_avatar_is_any_whole_number(self, api, avatar):
        assert api.ok(api.post("/roles", {"name": "Cook", "avatar": avatar}))["avatarNumber"] == avatar

    @pytest.mark.parametrize(
        "avatar",
        [..., None, "1", "", True, 1.5, 2**31, 10**400, [], {}, float("nan")],
        ids=lambda v: repr(v)[:12],
    )
    def test_an_avatar_that_is_none_is_invalid(self, api, avatar):
        answer = api.post("/roles", {"name": "Cook"} if avatar is ... else {"name": "Cook", "avatar": avatar})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == ["avatar"]

    @pytest.mark.parametrize(
        "name", [..., None, "", "  \n", 5, [], "a\0b", "\ud800", "x" * 121], ids=lambda v: repr(v)[:12]
    )
    def test_a_name_that_is_none_is_invalid(self, api, name):
        answer = api.post("/roles", {"avatar": 1} if name is ... else {"name": name, "avatar": 1})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == ["name"]

    @pytest.mark.parametrize("name", ["a", "Olùkọ́", "x" * 120, "😀", "'; DROP TABLE roles; --"])
    def test_a_name_may_be_any_text(self, api, name):
        assert api.ok(api.post("/roles", {"name": f" {name}\t", "avatar": 1}))["name"] == name

    def test_an_unknown_field_is_invalid(self, api):
        for extra in ("id", "permissions", "permissionIds", "avatarNumber"):
            assert api.post("/roles", {"name": "Cook", "avatar": 1, extra: []}).status_code == 422

    def test_a_taken_name_is_a_conflict(self, api, other_api):
        other_api.ok(other_api.post("/roles", {"name": "Cook", "avatar": 1}))
        api.ok(api.post("/roles", {"name": "Cook", "avatar": 1}))

        answer = api.post("/roles", {"name": " Cook", "avatar": 2})

        assert answer.status_code == 409
        assert answer.get_json()["message"] == "A role with this name exists already."
        assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}

    def test_it_needs_the_permission(self, make):
        assert make.caller("write:roles").post("/roles", {"name": "Cook", "avatar": 1}).status_code == 200
        answer = make.caller("read:roles", "delete:roles").post("/roles", {"name": "Porter", "avatar": 1})
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:roles.",
        )

    def test_of_ten_at_once_one_gets_the_name(self, app, document, tenancy):
        place = make_place(app, tenancy, "Aquinas College, Akure")
        api = ApiClient(app, document, place.admin_token, place.id)

        answers = run_concurrently(
            10, lambda _: api.using().post("/roles", {"name": "Cook", "avatar": 1}).status_code
        )

        assert sorted(answers) == [200] + [409] * 9


class TestShowingRoles:
    def test_a_new_school_has_the_default_roles(self, api):
        roles = {role["name"]: role for role in api.ok(api.get("/roles"))}

        assert set(roles) == {
            "Administrator",
            "Bursar",
            "Guardian",
            "Principal",
            "Registrar",
            "Student",
            "Teacher",
            "Viewer",
        }
        own = {name for name, role in roles.items() if role["reach"] == "OWN"}
        assert own == {"Guardian", "Student", "Teacher"}
        assert set(map(permission_name, roles["Administrator"]["permissions"])) == set(Permission)
        for name in ("Bursar", "Registrar", "Teacher", "Viewer"):
            granted = set(map(permission_name, roles[name]["permissions"]))
            assert granted
            assert granted < set(Permission)
            assert "write:roles" not in granted
        viewing = set(map(permission_name, roles["Viewer"]["permissions"]))
        kept_back = {
            f"read:{section}" for section in ("audit", "changes", "employees", "export", "roles", "users")
        }
        assert viewing == {permission for permission in Permission if permission.access == "read"} - kept_back

    def test_a_viewer_reads_all_but_accounts_roles_employees_copies_and_the_audit_log(self, api):
        [viewer] = [role for role in api.ok(api.get("/roles")) if role["name"] == "Viewer"]

        reads = {permission for permission in Permission if permission.access == "read"}
        left_out = {
            f"read:{section}" for section in ("audit", "changes", "employees", "export", "roles", "users")
        }
        assert set(map(permission_name, viewer["permissions"])) == reads - left_out

    def test_a_principal_has_the_permissions_of_teachers_and_registrars_and_leaves_roles_to_the_administrator(
        self, api
    ):
        held = {
            role["name"]: set(map(permission_name, role["permissions"])) for role in api.ok(api.get("/roles"))
        }
        principal = held["Principal"]

        assert held["Teacher"] | held["Registrar"] <= principal
        reads = {permission for permission in Permission if permission.access == "read"}
        assert reads - principal == {"read:changes", "read:export"}
        kept = ("settings", "cohorts", "employees", "teachers", "assessments", "gradebooks")
        assert {f"{access}:{section}" for access in ("write", "delete") for section in kept} <= principal
        others = {"results", "graduates", "metrics", "terms", "users"}
        assert {f"write:{section}" for section in others} <= principal
        assert set(Permission) - principal == {
            "delete:attendance",
            "delete:metrics",
            "delete:results",
            "delete:roles",
            "delete:scoresheets",
            "delete:users",
            "read:changes",
            "read:export",
            "write:roles",
            "write:scoresheets",
        }

    def test_roles_are_listed_by_name_each_with_its_permissions(self, api, make):
        make.role(name="Zookeeper")
        role = make.role("read:users", "delete:classrooms", "read:classrooms", name="Archivist")

        roles = api.ok(api.get("/roles"))

        assert [listed["name"] for listed in roles] == sorted(listed["name"] for listed in roles)
        assert role in roles
        assert [permission_name(permission) for permission in role["permissions"]] == [
            "delete:classrooms",
            "read:classrooms",
            "read:users",
        ]
        for listed in roles:
            assert set(listed) == {"id", "name", "avatarNumber", "reach", "given_to", "permissions"}
            assert api.ok(api.get(f"/roles/{listed['id']}")) == listed

    def test_an_unknown_role_and_the_other_schools_are_not_found(self, api, other_api, make_other):
        theirs = make_other.role()

        for role_id in (uuid4(), theirs["id"]):
            answer = api.get(f"/roles/{role_id}")
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such role.")
        assert api.get("/roles/x").status_code == 404
        assert theirs["id"] not in api.get("/roles").get_data(as_text=True)
        assert other_api.ok(other_api.get(f"/roles/{theirs['id']}")) == theirs

    def test_it_needs_the_permission(self, make):
        role, nobody = make.role(), make.caller("write:roles", "delete:roles")

        for path in ("/roles", f"/roles/{role['id']}", "/permissions"):
            answer = nobody.get(path)
            assert answer.status_code == 403
            assert answer.get_json()["message"] == "This needs the permission read:roles."
            assert make.caller("read:roles").get(path).status_code == 200

    def test_a_list_costs_one_round_trip_however_long_it_is(self, api, make, messages):
        for size in (2, 10):
            for number in range(size):
                make.role("read:roles", "read:users")
                api.ok(api.post("/permissions", {"section": f"section{size}-{number}", "access": "read"}))
            for path in ("/roles", "/permissions"):
                api.ok(api.get(path))
                with messages() as sent:
                    api.ok(api.get(path))
                assert len(sent) == 1, sent


class TestSettingPermissions:
    def test_a_role_has_exactly_those_named(self, api, make, permissions):
        role = make.role("read:users", "write:users")

        shown = api.ok(set_permissions(api, role, permissions["write:users"], permissions["read:roles"]))

        assert set(map(permission_name, shown["permissions"])) == {"write:users", "read:roles"}
        assert shown == {**role, "permissions": shown["permissions"]}
        assert api.ok(api.get(f"/roles/{role['id']}")) == shown

    def test_an_empty_array_takes_all_away(self, api, make):
        role = make.role("read:users", "write:users")

        assert api.ok(set_permissions(api, role))["permissions"] == []
        assert api.ok(set_permissions(api, role))["permissions"] == []

    def test_the_same_again_changes_nothing(self, api, make, permissions):
        role = make.role("read:users", "write:users")

        assert (
            api.ok(set_permissions(api, role, permissions["write:users"], permissions["read:users"])) == role
        )

    def test_a_permission_named_twice_is_held_once(self, api, make, permissions):
        permission = permissions["read:users"]

        shown = api.ok(
            set_permissions(api, make.role(), permission, permission.upper(), f" {permission} ", permission)
        )

        assert list(map(permission_name, shown["permissions"])) == ["read:users"]

    def test_a_role_may_hold_every_permission(self, api, make, permissions):
        shown = api.ok(set_permissions(api, make.role(), *permissions.values()))

        assert len(shown["permissions"]) == len(permissions)

    @pytest.mark.parametrize(
        "unknown",
        ["", " ", "x", "read:users", "00000000-0000-0000-0000-000000000000", "null", "ả" * 30, "x" * 500],
    )
    def test_an_unknown_permission_is_invalid(self, api, make, permissions, unknown):
        role = make.role("read:users")

        answer = set_permissions(api, role, permissions["read:roles"], unknown)

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == ["permissionIds"]
        assert api.ok(api.get(f"/roles/{role['id']}")) == role

    def test_the_other_schools_permissions_are_unknown(self, api, other_api, make, permissions):
        theirs = other_api.ok(other_api.get("/permissions"))
        assert not {permission["id"] for permission in theirs} & set(permissions.values())

        assert set_permissions(api, make.role(), theirs[0]["id"]).status_code == 422

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"permissionIds": None},
            {"permissionIds": "x"},
            {"permissionIds": {}},
            {"permissionIds": [None]},
            {"permissionIds": [5]},
            {"permissionIds": [["x"]]},
            {"permissionIds": [{"id": "x"}]},
            {"permissionIds": ["a\0b"]},
            {"permissionIds": ["\ud800"]},
            {"permissionIds": ["x"] * 1001},
            {"permissionIds": [], "name": "Other"},
            {"permissions": []},
            [],
        ],
        ids=lambda body: repr(body)[:40],
    )
    def test_a_body_that_names_no_permissions_is_invalid(self, api, make, body):
        role = make.role("read:users")

        assert api.patch(f"/roles/{role['id']}/permissions", body).status_code == 422
        assert api.ok(api.get(f"/roles/{role['id']}")) == role

    def test_an_unknown_role_and_the_other_schools_are_not_found(self, api, other_api, make_other):
        theirs = make_other.role("read:users")

        for role_id in (uuid4(), theirs["id"], "x"):
            assert api.patch(f"/roles/{role_id}/permissions", {"permissionIds": []}).status_code == 404
        assert other_api.ok(other_api.get(f"/roles/{theirs['id']}")) == theirs

    def test_it_needs_the_permission(self, make):
        role = make.role()

        answer = set_permissions(make.caller("read:roles", "delete:roles"), role)
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:roles.",
        )
        assert set_permissions(make.caller("write:roles"), role).status_code == 200

    def test_of_many_at_once_one_is_the_last(self, app, document, tenancy):
        place = make_place(app, tenancy, "Government Secondary School, Owerri")
        api = ApiClient(app, document, place.admin_token, place.id)
        ids = [permission["id"] for permission in api.ok(api.get("/permissions"))]
        role = api.ok(api.post("/roles", {"name": "Cook", "avatar": 1}))
        # No two of these requests have a permission in common: any mixture of two would show.
        wishes = [ids[number::8] for number in range(8)]

        answers = run_concurrently(8, lambda number: set_permissions(api.using(), role, *wishes[number]))

        assert [answer.status_code for answer in answers] == [200] * 8
        for answer, wish in zip(answers, wishes, strict=True):
            assert {permission["id"] for permission in answer.get_json()["permissions"]} == set(wish)
        left = {permission["id"] for permission in api.ok(api.get(f"/roles/{role['id']}"))["permissions"]}
        assert left in [set(wish) for wish in wishes]

    def test_giving_a_role_and_adding_to_it_at_once_gives_nobody_too_much(self, app, document, tenancy):
        """The giver has all that was in it when it was given, or is refused."""
        place = make_place(app, tenancy, "Barewa College, Zaria")
        api = ApiClient(app, document, place.admin_token, place.id)
        ids = {
            permission_name(permission): permission["id"] for permission in api.ok(api.get("/permissions"))
        }
        new = {"password": "s3cret", "first_name": "A", "last_name": "B", "gender": "MALE"}
        clerk = api.ok(api.post("/users", {**new, "username": "clerk"}))
        of_clerk = api.ok(api.post("/roles", {"name": "Clerk", "avatar": 1}))
        api.ok(set_permissions(api, of_clerk, ids["write:users"]))
        api.ok(api.put(f"/users/{clerk['user']['id']}/roles", {"role": of_clerk["id"]}))
        signed_in = api.ok(api.post("/users/login", {"username": "clerk", "password": new["password"]}))
        as_clerk = api.using(token=signed_in["access_token"]["access_token"])

        for number in range(5):
            role = api.ok(api.post("/roles", {"name": f"Role {number}", "avatar": 1}))
            user = api.ok(api.post("/users", {**new, "username": f"user {number}"}))["user"]
            works = [
                lambda role=role: set_permissions(api.using(), role, ids["read:users"]),
                lambda role=role, user=user: as_clerk.using().put(
                    f"/users/{user['id']}/roles", {"role": role["id"]}
                ),
            ]
            added, given = run_concurrently(2, lambda turn, works=works: works[turn]())
            assert added.status_code == 200
            assert given.status_code in {200, 403}
            links = api.ok(api.get(f"/users/{user['id']}"))["roles"]
            assert bool(links) == (given.status_code == 200)


class TestPermissions:
    def test_a_new_school_has_the_catalogue(self, api):
        listed = api.ok(api.get("/permissions"))

        assert {permission_name(permission) for permission in listed} == set(Permission)
        # Three of each section, but of the audit log and of the corrections of registers one.
        assert len(listed) == len(Permission) == 3 * 19 + 4
        assert all(set(permission) == {"id", "section", "access"} for permission in listed)
        order = [(permission["section"], permission["access"]) for permission in listed]
        assert order == sorted(order)

    def test_a_permission_is_created(self, api):
        made = api.ok(api.post("/permissions", {"section": "canteen", "access": "serve"}))

        assert UUID(made["id"])
        shown = {"id": made["id"], "section": "canteen", "access": "serve"}
        # Administrators have gained, and the operator has made one of them.
        [credential] = made["credentials"]
        assert (credential["username"], credential["kind"], credential["ended"]) == (
            "admin",
            "PASSWORD",
            False,
        )
        assert made.items() >= shown.items()
        assert shown in api.ok(api.get("/permissions"))

    def test_administrators_have_it_at_once(self, api):
        answer = api.ok(api.post("/permissions", {"section": "canteen", "access": "read"}))
        made = {name: answer[name] for name in ("id", "section", "access")}

        roles = {role["name"]: role["permissions"] for role in api.ok(api.get("/roles"))}
        assert [name for name, granted in roles.items() if made in granted] == ["Administrator"]
        assert (
            made
            in api.ok(api.post("/users/login", {"username": "admin", "password": PASSWORD}))["permissions"]
        )
        # Only a holder of a permission may give it.
        role = api.ok(api.post("/roles", {"name": "Cook", "avatar": 1}))
        assert api.ok(set_permissions(api, role, made["id"]))["permissions"] == [made]

    @pytest.mark.parametrize("part", ["a", "a1", "a-b", "a-", "a--1", "x" * 120])
    @pytest.mark.parametrize("field", ["section", "access"])
    def test_the_parts_of_a_permission_are_lower_case_words(self, api, field, part):
        made = api.ok(api.post("/permissions", {"section": "canteen", "access": "read", field: f" {part}\n"}))

        assert made[field] == part

    @pytest.mark.parametrize(
        "part",
        [
            *(
                "A",
                "aB",
                "1a",
                "-a",
                "a b",
                "a_b",
                "a:b",
                "a.b",
                "*",
                "é",
                "a\u0301",
                "\uff41",
                "a\nb",
                "x" * 121,
            ),
            *("", " ", None, 5, True, [], {}, "a\0", "\ud800"),
        ],
        ids=lambda part: repr(part)[:12],
    )
    @pytest.mark.parametrize("field", ["section", "access"])
    def test_a_part_of_another_form_is_invalid(self, api, field, part):
        answer = api.post("/permissions", {"section": "canteen", "access": "read", field: part})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [field]

    @pytest.mark.parametrize("field", ["section", "access"])
    def test_both_parts_are_required(self, api, field):
        body = {"section": "canteen", "access": "read"}
        del body[field]

        assert api.post("/permissions", body).status_code == 422
        assert api.post("/permissions", {"section": "canteen", "access": "read", "id": 1}).status_code == 422

    def test_a_permission_that_exists_is_a_conflict(self, api, other_api):
        other_api.ok(other_api.post("/permissions", {"section": "canteen", "access": "read"}))
        api.ok(api.post("/permissions", {"section": "canteen", "access": "read"}))
        api.ok(api.post("/permissions", {"section": "canteen", "access": "write"}))
        api.ok(api.post("/permissions", {"section": "clinic", "access": "read"}))

        for section in ("canteen", "students"):
            answer = api.post("/permissions", {"section": section, "access": "read"})
            assert answer.status_code == 409
            assert answer.get_json()["message"] == "A permission with this section and access exists already."
            assert set(answer.get_json()["errors"]["json"]) == {"section", "access"}

    def test_it_needs_the_permission(self, make):
        body = {"section": "canteen", "access": "read"}

        answer = make.caller("read:roles", "delete:roles").post("/permissions", body)
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:roles.",
        )
        assert make.caller("write:roles").post("/permissions", body).status_code == 200

    def test_of_ten_at_once_one_is_made_and_administrators_have_it(self, app, document, tenancy):
        place = make_place(app, tenancy, "Edo College, Benin City")
        api = ApiClient(app, document, place.admin_token, place.id)
        body = {"section": "canteen", "access": "read"}

        answers = run_concurrently(10, lambda _: api.using().post("/permissions", body).status_code)

        assert sorted(answers) == [200] + [409] * 9
        [administrator] = [role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator"]
        assert len(administrator["permissions"]) == len(api.ok(api.get("/permissions"))) == 62


class TestTheSchoolHeader:
    """It is optional on all six operations."""

    def test_each_works_without_it(self, api, make, permissions):
        role, bare = make.role(), api.using(school=None)

        assert bare.get("/permissions").status_code == 200
        assert bare.get("/roles").status_code == 200
        assert bare.get(f"/roles/{role['id']}").status_code == 200
        assert bare.post("/permissions", {"section": "canteen", "access": "read"}).status_code == 200
        assert bare.post("/roles", {"name": "Cook", "avatar": 1}).status_code == 200
        assert set_permissions(bare, role, permissions["read:users"]).status_code == 200

    def test_each_is_closed_to_the_other_schools_header(self, api, make, other_place):
        role, astray = make.role(), api.using(school=other_place.id)

        for answer in (
            astray.get("/permissions"),
            astray.get("/roles"),
            astray.get(f"/roles/{role['id']}"),
            astray.post("/permissions", {"section": "canteen", "access": "read"}),
            astray.post("/roles", {"name": "Cook", "avatar": 1}),
            set_permissions(astray, role),
        ):
            assert answer.status_code == 403
