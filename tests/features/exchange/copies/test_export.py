"""The export of a school, as lines of JSON."""

from __future__ import annotations

import gzip
import json

import pytest

from school_service.features.exchange.copies.resources import NAMES
from tests.features.exchange.copies.copies import changes, export, records


@pytest.fixture
def taught(make):
    return make.taught(2)


def test_some_records_are_the_lines_of_the_export(api, taught, messages):
    everything, _ = export(api)
    keys = [key for key in everything if key[0] == "students"]

    with messages() as sent:
        response = api.get(
            "/export", query_string=[("resource", "students"), *(("id", key) for _, key in keys), ("id", "x")]
        )

    assert response.status_code == 200, response.get_data(as_text=True)
    assert records(response.get_data(as_text=True).splitlines()) == {key: everything[key] for key in keys}
    assert len(sent) == 1


@pytest.mark.parametrize("name", NAMES)
def test_each_resource_is_read_by_ids(name, api, taught):
    everything, _ = export(api, resource=name)
    ids = [key for _, key in everything] or ["00000000-0000-0000-0000-000000000000"]

    response = api.get(
        "/export", query_string=[("resource", name), *(("id", record_id) for record_id in ids)]
    )

    assert response.status_code == 200, response.get_data(as_text=True)
    assert records(response.get_data(as_text=True).splitlines()) == everything


def test_a_record_comes_after_the_records_it_names(api, taught):
    seen = set()
    for line in api.get("/export").get_data(as_text=True).splitlines()[1:]:
        row = json.loads(line)
        for name in (
            "classroom",
            "session",
            "cohort",
            "cohort_subject",
            "base",
            "user",
            "sessionId",
            "owner",
        ):
            named = row["record"].get(name) if isinstance(row["record"], dict) else None
            assert named is None or named in seen | {row["id"]}, (row["resource"], name)
        seen.add(row["id"])


def test_an_export_is_zipped_for_a_client_that_accepts_gzip(api, taught):
    plain = api.get("/export", headers={"Accept-Encoding": "identity"})
    zipped = api.get("/export", headers={"Accept-Encoding": "gzip"})

    assert "Content-Encoding" not in plain.headers
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert zipped.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    lines = gzip.decompress(zipped.data).splitlines()
    assert lines[1:] == plain.data.splitlines()[1:]
    assert json.loads(lines[0])["resources"]["students"] == 2


def test_an_export_is_on_record_and_no_change(api, taught):
    _, head = export(api)

    [entry] = api.ok(api.get("/audit?entity=export"))["data"]
    assert entry["new"] == {"records": head["resources"]}
    assert changes(api, head["cursor"])[0] == []


def test_there_is_no_head(api):
    head, options = api.send("HEAD", "/export"), api.send("OPTIONS", "/export")

    assert (head.status_code, options.status_code) == (405, 200)
    for answer in (head, options):
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "OPTIONS"}


def test_ids_are_of_one_resource(api):
    assert api.get("/export?id=x").status_code == 422
    assert api.get("/export?resource=students&resource=users&id=x").status_code == 422
    assert api.get("/export?resource=nothing").status_code == 422
    assert (
        api.get(
            "/export", query_string=[("resource", "users"), *(("id", "x") for _ in range(201))]
        ).status_code
        == 422
    )


def test_a_resource_is_there_with_its_permission_for_the_whole_school(api, make, taught):
    reader = make.caller("read:export", "read:changes", "read:classrooms")
    student = taught.students[0]

    records, head = export(reader)

    assert {name for name, _ in records} == {"classrooms"}
    assert set(head["resources"]) == {"classrooms"}
    assert reader.get(f"/export?resource=students&id={student}").data == b""
    assert {change["resource"] for change in changes(reader, "start")[0]} == {"classrooms"}


def test_other_schools_records_are_not_there(api, other_api, taught):
    student = taught.students[0]

    assert other_api.get(f"/export?resource=students&id={student}").data == b""
    assert not [key for key in export(other_api)[0] if key[1] == student]


def test_nothing_is_there_without_the_permission(api, make):
    reader = make.caller("read:students")

    assert reader.get("/export").status_code == 403
    assert reader.get("/export?resource=students&id=x").status_code == 403
    assert reader.get("/changes").status_code == 403
