"""The ways into an account that somebody else can make, and the ways in which an account gains."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.factories import PASSWORD
from tests.features.classes.student_imports.test_import import upload
from tests.features.people.guardians.test_guardians import put as put_link
from tests.features.people.guardians.test_guardians import stop_of
from tests.features.people.guardians.test_import import sheet

KINDS = ("PASSWORD", "INVITATION", "LINK")
MAKING = ("read:users", "write:users", "read:results")
"""The permissions for making all of them, of a guardian's account, too."""
_numbers = count(1)


class Planted:
    """A way into an account, and whether it is open still."""

    def __init__(self, kind: str, maker: Any, user: dict[str, Any], provider: Any) -> None:
        """Make it, as the maker."""
        self.kind, self.api, self.user, self.provider = kind, maker, user, provider
        self.subject = f"planted {next(_numbers)}"
        if kind == "PASSWORD":
            maker.ok(maker.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
        elif kind == "INVITATION":
            body = {"users": [user["id"]], "everybody": True}
            [made] = maker.ok(maker.post("/invitations", body))
            self.code = made["code"]
        else:
            body = {"issuer": provider.url, "subject": self.subject}
            maker.ok(maker.post(f"/users/{user['id']}/identities", body))

    def enters(self) -> bool:
        """Tell whether it lets in: by the password, the code or the outside sign-in."""
        api = self.api
        if self.kind == "PASSWORD":
            answer = api.post("/users/login", {"username": self.user["username"], "password": PASSWORD})
        elif self.kind == "INVITATION":
            answer = api.post("/users/login/invitation", {"code": self.code, "password": PASSWORD})
        else:
            token = self.provider.token(azp="a portal", sub=self.subject)
            answer = api.using(token=token).get("/me")
        return bool(answer.status_code == 200)


class Gaining:
    """An account that is about to gain, and the request of its gain."""

    def __init__(self, api: Any, make: Any) -> None:
        """Make a user without roles, who has set their own password."""
        self.api, self.make = api, make
        self.user = _with_own_password(api)

    def prepare(self) -> None:
        """Make the records that the gain presupposes, by the administrator."""

    def happen(self) -> Any:
        """Gain; return the answer of the request."""
        raise NotImplementedError

    def account_in(self, answer: Any) -> dict[str, Any]:
        """Find the account's part of the answer."""
        return answer if isinstance(answer, dict) else self._row(answer)

    def _row(self, answer: list[dict[str, Any]]) -> dict[str, Any]:
        [row] = [row for row in answer if row["user"] == self.user["id"]]
        for other in answer:
            assert other is row or (other["credentials"], other["credentials_total"]) == ([], 0)
        return row


def _with_own_password(api: Any) -> dict[str, Any]:
    name = f"gaining{next(_numbers)}"
    body = {
        "username": name,
        "password": PASSWORD,
        "first_name": "Ọlá",
        "last_name": "Bello",
        "gender": "FEMALE",
    }
    made = api.ok(api.post("/users", body))["user"]
    # Their own password: it is nobody's to end.
    token = api.ok(api.post("/users/login", {"username": name, "password": PASSWORD}))
    own = api.using(token=token["access_token"]["access_token"])
    passwords = {"password": f"{name} chose this", "current_password": PASSWORD}
    own.ok(own.put(f"/users/{made['id']}/password", passwords))
    return made


class RoleGiven(Gaining):
    def prepare(self):
        self.role = self.make.role("read:metrics")

    def happen(self):
        return self.api.ok(self.api.put(f"/users/{self.user['id']}/roles", {"role": self.role["id"]}))


class RoleGrown(Gaining):
    def prepare(self):
        self.role = self.make.role("read:results")
        self.api.ok(self.api.put(f"/users/{self.user['id']}/roles", {"role": self.role["id"]}))

    def happen(self):
        ids = [
            *(permission["id"] for permission in self.role["permissions"]),
            self.make._permission("read:metrics"),
        ]
        return self.api.ok(self.api.patch(f"/roles/{self.role['id']}/permissions", {"permissionIds": ids}))


class ReachWidened(Gaining):
    def prepare(self):
        self.role = self.make.role("read:results", reach="OWN")
        self.api.ok(self.api.put(f"/users/{self.user['id']}/roles", {"role": self.role["id"]}))

    def happen(self):
        roles = {"roles": [{"role": self.role["id"], "reach": "SCHOOL"}]}
        dry = self.api.ok(self.api.put("/role-reaches?dry_run=true", roles))
        done = self.api.ok(self.api.put("/role-reaches", roles))
        assert done == dry
        return done


class Restored(RoleGiven):
    def prepare(self):
        super().prepare()
        super().happen()

    def happen(self):
        self.api.ok(self.api.delete(f"/users/{self.user['id']}/delete"))
        return self.api.ok(self.api.put(f"/users/{self.user['id']}/restore"))


class AccountGiven(Gaining):
    def prepare(self):
        self.guardian = self.make.guardian()

    def happen(self):
        body = {"user": self.user["id"]}
        return self.api.ok(self.api.put(f"/guardians/{self.guardian['id']}/account", body))


class ChildLinked(Gaining):
    def prepare(self):
        number = next(_numbers)
        self.named = {"full_name": f"Emeka Obi {number}", "phone_number": f"0803{number:04}"}
        self.guardian = self.make.guardian(**self.named)
        body = {"user": self.user["id"]}
        self.api.ok(self.api.put(f"/guardians/{self.guardian['id']}/account", body))
        self.student = self.make.student()
        self.api.ok(put_link(self.api, self.student, self.make.guardian()))

    def happen(self):
        return self.api.ok(put_link(self.api, self.student, self.guardian))


class StopLifted(ChildLinked):
    def prepare(self):
        super().prepare()
        super().happen()
        self.api.ok(self.api.put(stop_of(self.student, self.guardian), {"reason": "x"}))

    def happen(self):
        return self.api.ok(self.api.delete(stop_of(self.student, self.guardian)))


class StudentAdmitted(ChildLinked):
    def happen(self):
        body = {"first_name": "A", "last_name": "B", "admission_number": f"G/{next(_numbers)}"}
        return self.api.ok(self.api.post("/students", {**body, "guardian": self.named}))


class StudentChanged(ChildLinked):
    def happen(self):
        return self.api.ok(self.api.patch(f"/students/{self.student['id']}", {"guardian": self.named}))


class Imported(ChildLinked):
    def happen(self):
        content = sheet([*self.named.values(), "father", None, None, None, None])
        dry = self.api.ok(upload(self.api, content, "?dry_run=true"))
        done = self.api.ok(upload(self.api, content))
        assert done == dry
        return done


WAYS = (
    RoleGiven,
    RoleGrown,
    ReachWidened,
    Restored,
    AccountGiven,
    ChildLinked,
    StopLifted,
    StudentAdmitted,
    StudentChanged,
    Imported,
)
