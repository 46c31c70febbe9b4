"""Makes records through the API, with names of their own."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.client import ApiClient

_numbers = count(1)


class Factory:
    """Makes records of one school, as its administrator; every argument overrides a default."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self.api.ok(self.api.post(path, body))

    def user(self, **fields: Any) -> dict[str, Any]:
        """Make a user; answers the AuthUser."""
        number = next(_numbers)
        body = {"username": f"user{number}", "password": "a password", "first_name": "Adaeze", "last_name": "Okàfor"}
        return self._post("/users", {**body, "gender": "FEMALE", **fields})

    def role(self, *permissions: str, **fields: Any) -> dict[str, Any]:
        """Make a role with these permissions, each written `access:section`."""
        role = self._post("/roles", {"name": f"Role {next(_numbers)}", "avatar": 1, **fields})
        if not permissions:
            return role
        known = {f"{p['access']}:{p['section']}": p["id"] for p in self.api.ok(self.api.get("/permissions"))}
        wanted = [known[permission] for permission in permissions]
        return self.api.ok(self.api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": wanted}))

    def caller(self, *permissions: str) -> ApiClient:
        """Make a user with exactly these permissions; answers a client with their token."""
        made = self.user()
        if permissions:
            role = self.role(*permissions)
            self.api.ok(self.api.put(f"/users/{made['user']['id']}/roles", {"role": role["id"]}))
        caller = self.api.using(token=made["access_token"]["access_token"])
        caller.user = made["user"]
        return caller

    def classroom(self, **fields: Any) -> dict[str, Any]:
        """Make a classroom."""
        return self._post("/classrooms", {"name": f"JSS {next(_numbers)}", "level": "Junior Secondary", **fields})
