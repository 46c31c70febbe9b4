"""Write tests/operations.json: the declarations of operations, and the measures of the tests of every write and read.

python -m tests.write_operations
"""

from __future__ import annotations

import json
import sys

import pytest

from tests import operations

MEASURING = (
    "tests/features/audit/test_every_write.py::test_a_write_is_on_record_with_actor_address_and_request_and_a_failed_one_is_not",
    "tests/features/reach/test_messages.py::test_every_read_costs_its_messages",
)


def main() -> int:
    """Measure, and write the file where all that measure have passed; returns the exit status."""
    operations.recording, declared = {}, operations.declared()
    # A new operation is measured, too: the tests send the stored ones.
    for name, row in declared.items():
        operations.STORED.setdefault(name, row)
    status = pytest.main(["-n", "0", "-q", "-p", "no:cacheprovider", *MEASURING])
    if status == 0:
        rows = {name: {**row, **operations.recording.get(name, {})} for name, row in declared.items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        operations.PATH.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
