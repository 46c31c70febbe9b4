"""Sends arbitrary requests to every operation of the demo, as an administrator; any finding fails.

    tox -e fuzz [-- --max-examples 50]

Starts the real program on a data folder of its own; arguments are handed to `schemathesis run`. Loosened checks are
in `schemathesis.toml`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cli.program import Running, running
from tests.fuzz.known import configuration, known_ids

LOOSENED = Path(__file__).with_name("schemathesis.toml")

# With these the administrator would sooner or later delete themselves, end their own sessions, or take their own
# permissions away, and the rest of the run would see nothing but 401 and 403. They have a run of their own, with the
# token of a client that may do everything and that no operation can touch.
UNDERMINING = (
    "DELETE /users/{id}/delete",
    "DELETE /users/{id}/roles/{roleId}",
    "DELETE /users/{id}/sessions",
    "PATCH /roles/{id}/permissions",
    "PUT /users/{id}/password",
)


def main() -> int:
    """Start the demo, sign its first administrator in, and run schemathesis on it."""
    with (
        tempfile.TemporaryDirectory(prefix="school-fuzz-") as folder,
        running("demo", "--port", "0", cwd=Path(folder)) as demo,
    ):
        demo.wait_for(lambda: "Ctrl-C stops" in demo.printed, "the demo")
        try:
            return fuzz(demo, Path(folder))
        finally:
            demo.end()


def fuzz(demo: Running, folder: Path) -> int:
    """Run schemathesis on a demo that is ready; 0 where it found nothing."""
    details = json.loads((folder / "school-data" / "demo.json").read_text(encoding="utf-8"))
    demo.base_url = details["base_url"]
    school = details["schools"][0]
    client = demo.client_token(details["client_id"], details["client_secret"])
    signed_in = demo.ok("POST", "/users/login", token=client, school=school["id"], body=school["admin"])
    administrator = signed_in["access_token"]["access_token"]

    ids = known_ids(demo, administrator, school["id"])
    chosen = folder / "schemathesis.toml"
    bound = configuration(demo.ok("GET", "/openapi.json"), ids)
    chosen.write_text(LOOSENED.read_text(encoding="utf-8") + bound, encoding="utf-8")

    def run(token: str, choice: str) -> int:
        headers = (f"Authorization: Bearer {token}", f"X-SCHOOL-ID: {school['id']}")
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(chosen), "run"]
        command += [f"{demo.base_url}/openapi.json", *sys.argv[1:]]
        command += [part for header in headers for part in ("--header", header)]
        command += [part for name in UNDERMINING for part in (choice, name)]
        return subprocess.run(command, cwd=folder, check=False).returncode

    failed = run(administrator, "--exclude-name")
    # A write of the administrator shows that the run was not one of refusals alone.
    demo.ok("POST", "/departments", token=administrator, school=school["id"], body={"name": "Still here"})
    failed = run(client, "--include-name") or failed
    errors = [line for line in demo.log if line.get("level") == "ERROR"]
    for line in errors:
        print(json.dumps(line), file=sys.stderr)  # noqa: T201
    return failed or bool(errors)


if __name__ == "__main__":
    raise SystemExit(main())
