"""The operator's export of a school in the form of OneRoster."""

import json
import stat

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.oneroster.csv_binding import TABLES, read_zip

pytestmark = pytest.mark.program


@pytest.fixture
def school(cli):
    """A school without records but its administrator."""
    return json.loads(cli("tenants", "create", "Exported School", "--json").stdout)["id"]


def test_must_hold_13_an_empty_school_is_exported(cli, school, tmp_path):
    path = tmp_path / "school.zip"
    path.write_bytes(b"an older one")

    done = cli("tenants", "export-oneroster", school, str(path), "--json")

    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"id": school, "session": None, "file": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    manifest, files = read_zip(path.read_bytes())
    assert manifest["source.systemCode"] == school
    assert set(files) == set(TABLES)
    assert not any(files.values())


def test_what_can_not_be_exported_leaves_no_file(cli, school, tmp_path):
    path = tmp_path / "school.zip"
    for arguments, problem in (
        ((UNKNOWN_ID, str(path)), "no school"),
        ((school, str(path), "--session", "1066/1067"), "no session 1066/1067"),
        ((school, str(tmp_path / "none" / "school.zip")), "can't be written"),
    ):
        done = cli("tenants", "export-oneroster", *arguments)
        assert done.exit_code == 1
        assert problem in done.stderr.lower()
    assert list(tmp_path.iterdir()) == []
