"""Switching roles between the whole school's records and one's own."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import PASSWORD, UNKNOWN_ID
from tests.features.reach.conftest import ids
from tests.threads import run_concurrently

PATH = "/role-reaches"


def put(api, *roles, dry=False, **body):
    named = [{"role": role["id"], "reach": reach} for role, reach in roles]
    return api.put(f"{PATH}?dry_run={str(dry).lower()}", {"roles": named, **body})


def committed(api, *roles, **body):
    dry = api.ok(put(api, *roles, dry=True, **body))
    answer = api.ok(put(api, *roles, **body))
    assert answer == dry
    return answer


@pytest.fixture
def older(api):
    """A school that was there before the roles Principal, Guardian and Student were seeded."""
    for role in api.ok(api.get("/roles")):
        if role["name"] in {"Principal", "Guardian", "Student"}:
            api.ok(api.delete(f"/roles/{role['id']}"))


@pytest.fixture
def teacher(arms, make, own):
    """An employee with a role that reaches the whole school, who teaches the subject to arm A; and the role."""
    employee = make.employee()
    account = make.account_of(employee)
    client = own.caller(account, "read:students", "read:graduates", reach="SCHOOL")
    own.assign(employee, arms.subject, arms.a)
    (held,) = make.api.ok(make.api.get(f"/users/{account['id']}"))["roles"]
    return account, client, make.api.ok(make.api.get(f"/roles/{held['roleId']}"))


def enroll_in_roles(api, **numbers):
    """Add users by SQL, so many of each role by its id; their usernames begin with the parameter's name."""
    adding = text(
        "WITH made AS (INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number,"
        " created_at) SELECT gen_random_uuid(), :word || n, :word || n, 'A', 'B', '', 1, now()"
        " FROM generate_series(1, :number) n RETURNING id)"
        " INSERT INTO user_roles (user_id, role_id, created_at) SELECT id, :role, now() FROM made"
    )
    with in_transaction(SchoolBinding(api.school)):
        for word, (role, number) in numbers.items():
            db.session.execute(adding, {"word": word, "number": number, "role": role["id"]})


class TestMany:
    @pytest.fixture
    def roles(self, api, make):
        """A role that loses by the switch, and one that gains by it."""
        loses = make.role("read:students", "read:graduates")
        gains = make.role("read:classrooms", "read:students", reach="OWN")
        return loses, gains

    def test_all_losing_users_come_first_then_others_up_to_a_thousand(self, api, roles):
        loses, gains = roles
        # By their usernames the gaining users would be the first.
        enroll_in_roles(api, zz=(loses, 12), aa=(gains, 1181))

        preview = api.ok(put(api, (loses, "OWN"), (gains, "SCHOOL"), dry=True))

        assert (preview["users_total"], preview["users_losing"], len(preview["users"])) == (1193, 12, 1000)
        first, others = preview["users"][:12], preview["users"][12:]
        assert [user["username"] for user in first] == sorted(f"zz{n}" for n in range(1, 13))
        assert {tuple(user["refused"]) for user in first} == {("read:graduates",)}
        assert all(user["narrowed"] == user["refused"] == [] for user in others)
        assert [user["username"] for user in others] == sorted(user["username"] for user in others)

    def test_more_than_a_thousand_losing_users_are_all_named(self, api, roles):
        loses, gains = roles
        enroll_in_roles(api, zz=(loses, 1005), aa=(gains, 3))

        preview = api.ok(put(api, (loses, "OWN"), (gains, "SCHOOL"), dry=True))

        assert (preview["users_total"], preview["users_losing"], len(preview["users"])) == (1008, 1005, 1005)
        assert {user["username"][:2] for user in preview["users"]} == {"zz"}

    def test_a_user_who_loses_a_permission_and_gains_another_loses(self, api, make, roles):
        loses, gains = roles
        user = make.user()["user"]
        for role in roles:
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

        preview = api.ok(put(api, (loses, "OWN"), (gains, "SCHOOL"), dry=True))

        (shown,) = preview["users"]
        assert (shown["refused"], shown["widened"]) == (["read:graduates"], ["read:classrooms"])
        assert preview["users_losing"] == 1


class TestDiffering:
    """An upgraded school keeps its roles: further permissions of a new school's are named, and given by hand."""

    ATTENDANCE = {
        "Teacher": ["read:attendance", "write:attendance"],
        "Registrar": ["read:attendance", "write:attendance-corrections"],
    }

    def without(self, api, name, permissions):
        """Take permissions from a role by SQL, as a school of before lacks them."""
        taking = text(
            "DELETE FROM role_permissions r USING roles o, permissions p WHERE r.role_id = o.id AND o.name = :name"
            " AND r.permission_id = p.id AND p.access || ':' || p.section = ANY (:permissions)"
        )
        with in_transaction(SchoolBinding(api.school)):
            db.session.execute(taking, {"name": name, "permissions": permissions})

    def test_a_new_schools_roles_differ_in_nothing(self, api):
        assert api.ok(put(api, dry=True))["differs"] == []

    def test_an_upgraded_schools_roles_lack_new_permissions(self, api):
        for name, permissions in self.ATTENDANCE.items():
            self.without(api, name, permissions)

        differences = api.ok(put(api, dry=True))["differs"]

        assert [(role["name"], role["more"], role["less"]) for role in differences] == [
            (name, [], permissions) for name, permissions in sorted(self.ATTENDANCE.items())
        ]
        ids_by_name = {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}
        assert all(role["role"] == ids_by_name[role["name"]] for role in differences)
        # They stay as they are, also where seeded roles are added.
        assert committed(api, add_seeded=True)["differs"] == differences
        assert api.ok(put(api, dry=True))["differs"] == differences

    def test_differing_permissions_are_given_and_taken_by_the_permissions_of_the_role(self, api):
        self.without(api, "Teacher", ["delete:assessments", "delete:gradebooks"])
        (told,) = api.ok(put(api, dry=True))["differs"]
        known = {
            f"{permission['access']}:{permission['section']}": permission["id"]
            for permission in api.ok(api.get("/permissions"))
        }
        held = {permission["id"] for permission in api.ok(api.get(f"/roles/{told['role']}"))["permissions"]}
        wanted = held - {known[name] for name in told["more"]} | {known[name] for name in told["less"]}

        api.ok(api.patch(f"/roles/{told['role']}/permissions", {"permissionIds": sorted(wanted)}))

        assert told["less"] == ["delete:assessments", "delete:gradebooks"]
        assert api.ok(put(api, dry=True))["differs"] == []

    def test_a_role_with_more_and_one_of_another_name(self, api, make):
        (bursar,) = [role for role in api.ok(api.get("/roles")) if role["name"] == "Bursar"]
        make.role("read:students")
        self.without(api, "Bursar", ["read:terms"])
        giving = text(
            "INSERT INTO role_permissions (role_id, permission_id)"
            " SELECT :role, id FROM permissions WHERE access = 'write' AND section = 'students'"
        )
        with in_transaction(SchoolBinding(api.school)):
            db.session.execute(giving, {"role": bursar["id"]})

        assert api.ok(put(api, dry=True))["differs"] == [
            {"role": bursar["id"], "name": "Bursar", "more": ["write:students"], "less": ["read:terms"]}
        ]


class TestSwitching:
    def test_the_preview_names_losing_users_and_permissions_and_changes_nothing(self, api, arms, teacher):
        account, client, role = teacher

        preview = api.ok(put(api, (role, "OWN"), dry=True))

        assert preview["roles"] == [
            {"id": role["id"], "name": role["name"], "before": "SCHOOL", "reach": "OWN"}
        ]
        assert preview["users"] == [
            {
                "user": account["id"],
                "username": account["username"],
                "name": f"{account['first_name']} {account['last_name']}",
                "narrowed": ["read:students"],
                "refused": ["read:graduates"],
                "widened": [],
                "subjects": 1,
                "classes": 0,
                "children": 0,
            }
        ]
        assert (preview["users_total"], preview["added"]) == (1, [])
        assert api.ok(api.get(f"/roles/{role['id']}"))["reach"] == "SCHOOL"
        assert ids(client, "/students") >= {*arms.in_a, *arms.in_b}

    def test_a_switch_works_from_the_next_request_on_and_back(self, api, arms, teacher):
        _, client, role = teacher

        committed(api, (role, "OWN"))
        assert api.ok(api.get(f"/roles/{role['id']}"))["reach"] == "OWN"
        assert ids(client, "/students") == set(arms.in_a)
        assert client.get("/graduates").status_code == 403

        back = committed(api, (role, "SCHOOL"))
        assert back["users"][0]["widened"] == ["read:graduates", "read:students"]
        assert ids(client, "/students") >= {*arms.in_a, *arms.in_b}

    def test_the_same_switch_again_changes_nothing(self, api, teacher):
        _, _, role = teacher
        answer = committed(api, (role, "OWN"))
        entries = api.ok(api.get("/audit?entity=role"))["total"]

        again = api.ok(put(api, (role, "OWN")))

        assert (again["users"], again["roles"]) == ([], [{**answer["roles"][0], "before": "OWN"}])
        assert api.ok(api.get("/audit?entity=role"))["total"] == entries

    @pytest.mark.parametrize("fingerprint", ["5f0c2a7be1d94c3f8a6e4b2d90c17f35", "", None, 7, ["x"]])
    def test_a_fingerprint_is_taken_and_not_looked_at(self, api, teacher, fingerprint):
        _, _, role = teacher

        for dry in (True, False):
            assert "fingerprint" not in api.ok(put(api, (role, "OWN"), dry=dry, fingerprint=fingerprint))

        assert api.ok(api.get(f"/roles/{role['id']}"))["reach"] == "OWN"

    def test_a_commit_after_a_change_is_judged_anew(self, api, make, teacher):
        account, _, role = teacher
        seen = api.ok(put(api, (role, "OWN"), dry=True))
        wider = make.role("read:students", "read:graduates")
        api.ok(api.put(f"/users/{account['id']}/roles", {"role": wider["id"]}))

        answer = api.ok(put(api, (role, "OWN")))

        assert (seen["users_total"], answer["users_total"]) == (1, 0)

    def test_a_user_with_the_permission_by_another_role_is_not_named(self, api, make, teacher):
        account, _, role = teacher
        wider = make.role("read:students", "read:graduates")
        api.ok(api.put(f"/users/{account['id']}/roles", {"role": wider["id"]}))

        assert api.ok(put(api, (role, "OWN"), dry=True))["users"] == []

    def test_subjects_and_classes_without_a_teacher_are_uncovered(self, api, arms, make, own, teacher):
        api.ok(api.patch(f"/sessions/{arms.session['id']}", {"current": True}))
        own.form_teacher(arms.b)

        uncovered = api.ok(put(api, dry=True))["uncovered"]

        assert {(each["cohort_subject"], each["batch_name"]) for each in uncovered["subjects"]} == {
            (arms.subject["id"], "B"),
            (arms.other["id"], "A"),
            (arms.other["id"], "B"),
        }
        assert (uncovered["subjects_total"], uncovered["batches_total"]) == (3, 1)
        assert [each["batch"] for each in uncovered["batches"]] == [arms.a]

    def test_an_employee_with_a_deleted_account_looks_after_nothing(self, api, arms, own):
        api.ok(api.patch(f"/sessions/{arms.session['id']}", {"current": True}))
        employee, _ = own.teacher()
        api.ok(api.patch(f"/teachers/{arms.b}/add_to_batch", {"teacher_id": employee["id"]}))
        own.assign(employee, arms.subject, None)
        before = api.ok(put(api, dry=True))["uncovered"]

        api.ok(api.delete(f"/users/{employee['user']}/delete"))

        after = api.ok(put(api, dry=True))["uncovered"]
        assert (before["subjects_total"], before["batches_total"]) == (2, 1)
        assert (after["subjects_total"], after["batches_total"]) == (4, 2)

    def test_a_caller_who_may_not_read_classes_is_told_their_number_alone(self, api, arms, make, teacher):
        api.ok(api.patch(f"/sessions/{arms.session['id']}", {"current": True}))
        empty = make.role()

        for held, subjects, batches in (
            ((), 0, 0),
            (("read:cohort-subjects",), 3, 0),
            (("read:cohorts",), 0, 2),
        ):
            caller = make.caller("write:roles", *held)
            for roles in ((), ((empty, "OWN"),)):
                uncovered = caller.ok(put(caller, *roles, dry=True))["uncovered"]
                assert (len(uncovered["subjects"]), len(uncovered["batches"])) == (subjects, batches)
                assert (uncovered["subjects_total"], uncovered["batches_total"]) == (3, 2)

    def test_giving_accounts_their_role_needs_its_permissions(self, api, make):
        committed(api, add_seeded=True)

        assert put(make.caller("write:roles"), add_seeded=True, dry=True).status_code == 403


class TestRefused:
    def test_unknown_roles(self, api, make, make_other, teacher):
        _, _, role = teacher
        for wrong in ({"id": UNKNOWN_ID}, make_other.role("read:students")):
            answer = put(api, (role, "OWN"), (wrong, "OWN"), dry=True)
            assert list(answer.get_json()["errors"]["json"]) == ["roles.1.role"]
        twice = put(api, (role, "OWN"), (role, "SCHOOL"), dry=True)
        assert twice.status_code == 422
        for body in ({}, {"roles": None}, {"roles": [{}]}, {"roles": [{"role": role["id"], "reach": "own"}]}):
            assert api.put(PATH, body).status_code == 422

    def test_the_reaches_of_the_administrator_and_of_roles_given_to_all_stay(self, api):
        roles = {role["name"]: role for role in api.ok(api.get("/roles"))}
        assert put(api, (roles["Administrator"], "OWN"), dry=True).status_code == 409
        committed(api, add_seeded=True)
        roles = {role["name"]: role for role in api.ok(api.get("/roles"))}
        assert put(api, (roles["Student"], "SCHOOL"), dry=True).status_code == 409

    def test_a_switch_needs_all_permissions_of_the_roles_for_the_whole_school(
        self, older, make, own, teacher
    ):
        _, _, role = teacher
        lacking = make.caller("write:roles", "read:students")
        narrow = make.caller("write:roles", "read:graduates")
        own.caller(narrow.user, "read:students")
        enough = make.caller("write:roles", "read:students", "read:graduates")

        assert put(lacking, (role, "OWN"), dry=True).status_code == 403
        assert put(enough, (role, "OWN"), dry=True).status_code == 200
        assert put(enough, add_seeded=True, dry=True).status_code == 403

    def test_somebody_keeps_every_permission(self, api, place):
        every = [each["id"] for each in api.ok(api.get("/permissions"))]
        chief = api.ok(api.post("/roles", {"name": "Chief", "avatar": 1}))
        api.ok(api.patch(f"/roles/{chief['id']}/permissions", {"permissionIds": every}))
        api.ok(api.put(f"/users/{place.admin_id}/roles", {"role": chief["id"]}))
        assert put(api, (chief, "OWN"), dry=True).status_code == 200
        administrator = next(r for r in api.ok(api.get("/roles")) if r["name"] == "Administrator")
        api.ok(api.delete(f"/users/{place.admin_id}/roles/{administrator['id']}"))

        assert put(api, (chief, "OWN"), dry=True).status_code == 409


class TestSeededRoles:
    def test_missing_seeded_roles_are_made_and_students_get_theirs(self, older, api, make, arms):
        before = {role["name"] for role in api.ok(api.get("/roles"))}

        answer = committed(api, add_seeded=True)

        assert set(answer["added"]) == {"Principal", "Guardian", "Student"}
        roles = {role["name"]: role for role in api.ok(api.get("/roles"))}
        assert set(roles) == before | set(answer["added"])
        assert (roles["Student"]["reach"], roles["Student"]["given_to"]) == ("OWN", "STUDENTS")
        assert (roles["Guardian"]["reach"], roles["Guardian"]["given_to"]) == ("OWN", "GUARDIANS")
        assert roles["Principal"]["reach"] == "SCHOOL"
        for student in (*arms.in_a, *arms.in_b, make.student()["id"]):
            user = api.ok(api.get(f"/users/{api.ok(api.get(f'/students/{student}'))['user']}"))
            assert roles["Student"]["id"] in [role["roleId"] for role in user["roles"]]
        assert committed(api, add_seeded=True)["added"] == []

    def test_accounts_of_guardians_that_are_there_get_theirs(self, older, api, make):
        guardian = api.ok(api.post("/guardians", {"full_name": "Bísí Àjàyí"}))
        body = {"username": "bisi.ajayi", "password": "a password of theirs"}
        user = api.ok(api.put(f"/guardians/{guardian['id']}/account", body))["user"]
        assert api.ok(api.get(f"/users/{user}"))["roles"] == []

        answer = committed(api, add_seeded=True)

        assert user in [each["user"] for each in answer["users"]]
        roles = {role["id"]: role for role in api.ok(api.get("/roles"))}
        given = [role["roleId"] for role in api.ok(api.get(f"/users/{user}"))["roles"]]
        assert [roles[role]["given_to"] for role in given] == ["GUARDIANS"]
        assert committed(api, add_seeded=True)["users"] == []

    def test_an_account_that_may_do_all_of_it_already_gets_its_role(self, api, make):
        roles = {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}
        user = api.ok(api.get(f"/students/{make.student()['id']}"))["user"]
        api.ok(api.delete(f"/users/{user}/roles/{roles['Student']}"))
        api.ok(api.put(f"/users/{user}/roles", {"role": roles["Viewer"]}))

        assert committed(api, add_seeded=True)["users"] == []

        held = {role["roleId"] for role in api.ok(api.get(f"/users/{user}"))["roles"]}
        assert held == {roles["Viewer"], roles["Student"]}

    def test_changing_the_account_needs_no_permission_of_the_seeded_role(self, api, make, arms):
        committed(api, add_seeded=True)
        user = api.ok(api.get(f"/students/{arms.in_a[0]}"))["user"]
        changer = make.caller("write:users", "read:results")

        assert changer.put(f"/users/{user}/password", {"password": "another password"}).status_code == 200

    def test_a_student_reads_their_own_records(self, older, api, arms, make):
        committed(api, add_seeded=True)
        user = api.ok(api.get(f"/students/{arms.in_a[0]}"))["user"]
        api.ok(api.put(f"/users/{user}/password", {"password": "a password of theirs"}))
        student = make.signed_in(api.ok(api.get(f"/users/{user}")), "a password of theirs")

        assert ids(student, "/students") == {arms.in_a[0]}
        assert student.get("/gradebooks").status_code == 403


def test_a_look_is_one_read_and_a_switch_two_messages(older, api, make, arms, teacher, messages):
    """A request has two besides: its beginning, and the one that commits."""
    _, _, role = teacher
    for reach, dry, number in (("OWN", True, 3), ("OWN", False, 4), ("OWN", False, 4), ("SCHOOL", False, 4)):
        with messages() as sent:
            api.ok(put(api, (role, reach), add_seeded=True, dry=dry))

        assert len(sent) == number, (reach, dry)
        assert dry or "FOR NO KEY UPDATE" in sent[1]


class TestAtOnce:
    def test_switches_of_a_role_follow_one_another(self, committing):
        api, role = committing.api, committing.role("read:students")
        reaches = ("OWN", "SCHOOL") * 4

        answers = run_concurrently(8, lambda number: put(api.using(), (role, reaches[number])))

        rows = [api.ok(answer)["roles"][0] for answer in answers]
        told = [(row["before"], row["reach"]) for row in rows if row["before"] != row["reach"]]
        entries = api.ok(api.get(f"/audit?entity=role&id={role['id']}"))["data"]
        steps = [
            (entry["old"]["reach"], entry["new"]["reach"])
            for entry in entries
            if "reach" in (entry["old"] or {})
        ]
        # The answered switches are on record, and each is undone by one alone.
        assert sorted(steps) == sorted(told)
        is_own = steps.count(("SCHOOL", "OWN")) - steps.count(("OWN", "SCHOOL"))
        assert api.ok(api.get(f"/roles/{role['id']}"))["reach"] == {0: "SCHOOL", 1: "OWN"}[is_own]

    def test_seeded_roles_are_made_once(self, committing):
        api = committing.api
        for role in api.ok(api.get("/roles")):
            if role["name"] in {"Principal", "Guardian"}:
                api.ok(api.delete(f"/roles/{role['id']}"))

        answers = run_concurrently(6, lambda _: put(api.using(), add_seeded=True))

        assert sorted(len(api.ok(answer)["added"]) for answer in answers) == [0, 0, 0, 0, 0, 2]
        names = [role["name"] for role in api.ok(api.get("/roles"))]
        assert (names.count("Principal"), names.count("Guardian")) == (1, 1)

    def test_of_the_last_two_administrators_one_stays(self, committing):
        api = committing.api
        every = [each["id"] for each in api.ok(api.get("/permissions"))]
        chiefs, bearers = [], []
        for number in range(2):
            chief = api.ok(api.post("/roles", {"name": f"Chief {number}", "avatar": 1}))
            api.ok(api.patch(f"/roles/{chief['id']}/permissions", {"permissionIds": every}))
            chiefs.append(chief)
            user = committing.user()["user"]
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": chief["id"]}))
            api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
            bearers.append(committing.signed_in(user, PASSWORD))
        everybody = api.ok(api.get("/users?pageNumber=0&pageSize=50"))["data"]
        administrator = next(r for r in api.ok(api.get("/roles")) if r["name"] == "Administrator")
        for user in everybody:
            if administrator["id"] in [role["roleId"] for role in user["roles"]]:
                bearers[0].ok(bearers[0].delete(f"/users/{user['id']}/roles/{administrator['id']}"))

        answers = run_concurrently(
            2, lambda number: put(bearers[number].using(), (chiefs[1 - number], "OWN"))
        )

        assert sorted(answer.status_code for answer in answers) in ([200, 403], [200, 409])

    def test_a_look_waits_for_nobody(self, committing, tenancy):
        api, role = committing.api, committing.role("read:students")
        with tenancy.admin.begin() as locking:
            locking.execute(text(f"SELECT FROM school_{api.school.hex}.roles FOR UPDATE"))

            assert api.ok(put(api, (role, "OWN"), dry=True))["users"] == []
