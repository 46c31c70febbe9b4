"""The audit log: changes with actor, time, old and new values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from school_service.core.database import db
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.postgres import on_postgresql_alone
from tests.threads import run_concurrently


@pytest.fixture
def write(api):
    """Writes changes outside of a request, as the operator."""

    def writing(entity, *changes, school=None):
        with in_transaction(SchoolBinding(school or api.school)):
            audit_changes(entity, changes)

    return writing


def new_change(new=None):
    return Change(uuid4(), None, {"score": 1} if new is None else new)


def page(api, **filters):
    return api.ok(api.get("/audit", query_string=filters))


def listed(api, **filters):
    return page(api, **filters)["data"]


def test_an_entry_shows_actor_time_and_values(api, write):
    change = Change(uuid4(), {"score": 12.5, "source": "hand"}, {"score": 13, "source": "hand"})
    before = datetime.now(UTC)

    write("gradebook", change)

    (entry,) = listed(api)
    assert before <= datetime.fromisoformat(entry.pop("at")) <= datetime.now(UTC)
    assert entry == {
        "id": entry["id"],
        "actor": "operator",
        "actor_name": "operator",
        "action": "update",
        "entity": "gradebook",
        "entity_id": str(change.entity_id),
        "old": {"score": 12.5, "source": "hand"},
        "new": {"score": 13, "source": "hand"},
        "request_id": None,
        "address": None,
    }


def test_the_action_follows_from_the_values_before_and_after(api, rehearsed):
    record_id = uuid4()
    with in_transaction(SchoolBinding(api.school)):
        audit_change("gradebook", record_id, new={"score": 1})
        audit_change("gradebook", record_id, old={"score": 1}, new={"score": 2})
        audit_change("gradebook", record_id, old={"score": 2})

    shown = [(entry["action"], entry["old"], entry["new"]) for entry in listed(api)]

    assert shown == [
        ("delete", {"score": 2}, None),
        ("update", {"score": 1}, {"score": 2}),
        ("create", None, {"score": 1}),
    ]


def test_values_are_exact(api, write):
    values = {
        "score": Decimal("99999.99"),
        "half": Decimal("0.1"),
        "id": UUID(int=7),
        "day": date(2025, 9, 8),
        "at": datetime(2025, 9, 8, 7, 30, tzinfo=UTC),
        "name": "Ọláyínká \u2028 %s :x 'quoted' \\ \"",
        "nothing": None,
        "list": [1, {"deep": True}],
    }

    write("gradebook", new_change(values))

    assert '"score": 99999.99' in api.get("/audit").get_data(as_text=True)
    assert listed(api)[0]["new"] == {
        **values,
        "score": 99999.99,
        "half": 0.1,
        "id": str(UUID(int=7)),
        "day": "2025-09-08",
        "at": "2025-09-08T07:30:00+00:00",
    }


def test_a_value_that_json_can_not_hold_is_the_programs_fault(api, write):
    with pytest.raises(Exception, match="not JSON serializable: set"):
        write("gradebook", new_change({"score": {1}}))

    assert listed(api) == []


def test_entries_are_listed_the_newest_first_in_a_stable_order(api, write):
    for _ in range(3):
        write("gradebook", new_change(), new_change(), new_change())

    entries = listed(api)

    assert [entry["id"] for entry in entries] == [
        entry["id"] for entry in sorted(entries, key=lambda entry: (entry["at"], entry["id"]), reverse=True)
    ]
    pages = [listed(api, pageNumber=number, pageSize=2) for number in range(5)]
    assert [entry for part in pages for entry in part] == entries
    assert len({entry["at"] for entry in entries}) == 3


def test_entries_are_found_by_kind_record_and_actor(api, make, write):
    score, metric = new_change(), new_change()
    write("gradebook", score, new_change())
    write("metric", metric)

    assert page(api, entity="gradebook")["total"] == 2
    assert [entry["entity_id"] for entry in listed(api, entity="metric")] == [str(metric.entity_id)]
    assert [entry["entity_id"] for entry in listed(api, id=str(score.entity_id))] == [str(score.entity_id)]
    assert page(api, actor="operator")["total"] == 3
    assert page(api, actor="operator", entity="gradebook", id=str(score.entity_id))["total"] == 1
    assert page(api, entity="metric", id=str(score.entity_id))["total"] == 0


@pytest.mark.parametrize("filters", [{"entity": "planet"}, {"id": str(uuid4())}, {"actor": "nobody's"}])
def test_a_filter_that_fits_nothing_gives_an_empty_page(api, write, filters):
    write("gradebook", new_change())

    assert page(api, **filters) == {
        "page_number": 0,
        "page_size": 50,
        "total_pages": 0,
        "total": 0,
        "data": [],
    }


@pytest.mark.parametrize(
    "filters",
    [
        {"id": "7"},
        {"id": ""},
        {"entity": ""},
        {"entity": "x" * 41},
        {"entity": "a\0"},
        {"actor": "x" * 256},
        {"pageSize": 0},
        {"pageSize": 1001},
        {"pageNumber": -1},
    ],
)
def test_an_invalid_filter_is_refused(api, filters):
    assert api.get("/audit", query_string=filters).status_code == 422


def test_the_other_school_has_its_own_log(api, other_api, write):
    mine, foreign = new_change(), new_change()
    write("gradebook", mine)
    write("gradebook", foreign, school=other_api.school)

    assert [entry["entity_id"] for entry in listed(api)] == [str(mine.entity_id)]
    assert [entry["entity_id"] for entry in listed(other_api)] == [str(foreign.entity_id)]
    assert listed(api, id=str(foreign.entity_id)) == []
    assert api.using(school=other_api.school).get("/audit").status_code == 403
    assert api.using(token=None).get("/audit").status_code == 401


def test_reading_the_log_needs_a_permission_of_its_own(make):
    assert make.caller("read:audit").get("/audit").status_code == 200
    refused = make.caller("read:results", "read:users").get("/audit")
    assert (refused.status_code, refused.get_json()["message"]) == (
        403,
        "This needs the permission read:audit.",
    )


def test_nothing_to_write_is_nothing_written(api, write, messages):
    with messages() as sent:
        write("gradebook")

    assert len(sent) == 2, sent
    assert listed(api) == []


def test_many_changes_are_written_with_the_commit(api, write, messages):
    for count in (2, 200):
        old = [None, {"score": 1}] * (count // 2)
        changes = [Change(uuid4(), before, {"score": 2}) for before in old]
        with messages() as sent:
            write("gradebook", *changes)
        assert len(sent) == 2, sent
    assert page(api)["total"] == 202


def test_an_error_takes_the_entry_back_with_the_change(api):
    def fail_after_writing():
        with in_transaction(SchoolBinding(api.school)):
            audit_change("gradebook", uuid4(), new={"score": 1})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_writing()

    assert listed(api) == []


def test_a_page_costs_one_round_trip_however_long_it_is(api, write, messages):
    for count in (5, 100):
        write("gradebook", *(new_change() for _ in range(count)))
        page(api, pageSize=1000)
        with messages() as sent:
            page(api, pageSize=1000)
        assert len(sent) == 1, sent


# How PostgreSQL finds entries when there are many: an index for each filter, which gives the order too.


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("", "ix_audit_entries_at_id"),
        ("WHERE entity = 'metric'", "ix_audit_entries_entity_at_id"),
        ("WHERE entity_id = '{id}'", "ix_audit_entries_entity_id_at_id"),
        ("WHERE actor = 'somebody'", "ix_audit_entries_actor_at_id"),
    ],
)
@on_postgresql_alone
def test_each_filter_has_an_index_that_gives_the_order(api, write, condition, index):
    first = new_change()
    write("gradebook", first, *(new_change() for _ in range(4999)))
    write("metric", new_change())
    with in_transaction(SchoolBinding(api.school)):
        connection = db.session.connection()
        # The school's role may not ANALYZE: the table is another's. So PostgreSQL knows no more than its size.
        connection.exec_driver_sql("SET LOCAL enable_sort TO off")
        plan = connection.exec_driver_sql(
            "EXPLAIN SELECT id FROM audit_entries "
            f"{condition.format(id=first.entity_id)} ORDER BY at DESC, id DESC LIMIT 50"
        )
        lines = "\n".join(row[0] for row in plan)

    assert f"using {index}" in lines, lines
    assert "Sort" not in lines, lines


def test_entries_of_many_at_once_are_all_there(committing):
    api = committing.api
    changes = [new_change() for _ in range(20)]

    def writing(number):
        with api.app.app_context(), in_transaction(SchoolBinding(api.school)):
            audit_changes("gradebook", [changes[number]])

    run_concurrently(20, writing)

    assert {entry["entity_id"] for entry in listed(api)} == {str(change.entity_id) for change in changes}
