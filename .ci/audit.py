"""Look for known vulnerabilities of what a deployment installs (requirements.txt), by pip-audit.

    python .ci/audit.py [PROGRAM …]

Ends with 1 where there is one. Where the advisories can't be reached, that is said, and it ends with 0. What was not
looked up is always said: packages that the advisories don't know, and what no advisory on a package tells of.
"""

from __future__ import annotations

import json
import subprocess
import sys

PIP_AUDIT = (sys.executable, "-m", "pip_audit")
OPTIONS = ("-r", "requirements.txt", "--require-hashes", "--disable-pip", "--format", "json")
TIMEOUT = 120  # seconds
NEVER_LOOKED_UP = (
    "never looked up here: what packages bring along that is not Python (libpq, OpenSSL, typst, Swagger UI, "
    "PostgreSQL of the extra `embedded`), the extras, Python itself, and the system"
)


def main(program: tuple[str, ...]) -> int:
    """Run pip-audit and say what it found; returns the exit status."""
    try:
        done = subprocess.run(
            [*program, *OPTIONS, "--progress-spinner", "off"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        packages = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return unreachable(f"no answer within {TIMEOUT} seconds")
    except ValueError:
        return unreachable((done.stderr.strip().splitlines() or ["pip-audit says nothing"])[-1][:200])
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    not_looked_up = f"; not looked up: {', '.join(skipped)}" if skipped else ""
    vulnerable = [package for package in packages if package.get("vulns")]
    for package in vulnerable:
        for found in package["vulns"]:
            mended = ", ".join(found["fix_versions"]) or "no version yet"
            print(f"{package['name']} {package['version']}: {found['id']}, mended by {mended}")
    if vulnerable:
        print(f"vulnerable: {len(vulnerable)} of {len(packages)} packages{not_looked_up}")
    elif len(skipped) == len(packages):
        return unreachable("they know none of the packages")
    else:
        print(f"no known vulnerabilities in {len(packages) - len(skipped)} packages{not_looked_up}")
    print(NEVER_LOOKED_UP)
    return int(bool(vulnerable))


def unreachable(reason: str) -> int:
    """Say that nothing could be looked up, which is no failure of the change."""
    print(f"the advisories can't be reached, so nothing was looked up: {reason}")
    print(NEVER_LOOKED_UP)
    return 0


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or PIP_AUDIT))
