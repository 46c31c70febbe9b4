"""Issuing transcripts: the printed contents are stored with a code, for verification by the holder of the paper."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Text, Uuid, cast, func, select
from sqlalchemy.dialects.postgresql import JSONB, insert

from school_service.core.read_models import json_object
from school_service.core.statements import statement
from school_service.features.results.models import IssuedTranscript
from school_service.features.results.report_cards.reads import pictures
from school_service.features.results.transcripts.reads import printed_transcript
from school_service.features.school.models import Picture

_APART = ("card_ids", "generated_at")
"""Members of a transcript with columns of their own."""


@statement
def issue(id: UUID, code: UUID, student_id: UUID, user_id: UUID, moment: datetime, for_school: bool) -> Any:
    """Store the contents of a transcript, and answer the contents to print: one row, or none without a transcript.

    `transcript` and `pictures` are texts of JSON, `code` is the paper's; `admission_number` and so on name the file. If
    the same was issued on the same day already, it is this paper again, with its code and its time. `user_id` is the
    owner of the token: the student's own account gets nothing if nothing is published. `for_school`: the caller reads
    the whole school's results, or their own.
    """
    printed = printed_transcript(student_id, user_id, moment, for_school).subquery("found")
    members = {name: column for name, column in printed.c.items() if name not in _APART}
    said = func.to_jsonb(json_object(**members), type_=JSONB)
    document = select(said.label("document"), printed.c.card_ids).subquery("said")
    digest = func.encode(func.sha256(func.convert_to(cast(document.c.document, Text), "UTF8")), "hex")
    values: dict[str, Any] = {
        "id": cast(id, Uuid),
        "student_id": cast(student_id, Uuid),
        "code": cast(code, Uuid),
        "digest": digest,
        "issued_at": cast(moment, DateTime(timezone=True)),
        "card_ids": document.c.card_ids,
        "transcript": document.c.document,
    }
    issued = insert(IssuedTranscript).from_select(
        list(values), select(*values.values()).select_from(document), include_defaults=False
    )
    # A stored row is written anew, as it is, so that RETURNING has it, also where another has stored it meanwhile.
    stored = (
        issued.on_conflict_do_update(
            index_elements=("student_id", "digest"), set_={"digest": issued.excluded.digest}
        )
        .returning(IssuedTranscript.transcript, IssuedTranscript.code, IssuedTranscript.issued_at)
        .cte("stored")
    )
    transcript = stored.c.transcript
    school = transcript["school"]
    is_shown = [Picture.sha256 == school[name].astext for name in ("logo", "signature")]
    student = transcript["student"]
    return select(
        cast(transcript, Text).label("transcript"),
        stored.c.code,
        stored.c.issued_at,
        pictures(*is_shown),
        *(student[name].astext.label(name) for name in ("admission_number", "last_name", "first_name")),
    )
