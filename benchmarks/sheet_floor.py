"""The score sheet of 200 students for `benchmarks.throughput`: the school, the uploads, and the floor by hand.

The floor makes one round trip a request: binding, caller's state, permission and all of the work go together. It writes
the workbook with string templates into a zip with all but the sheets compressed already, and reads one with
zipfile and two regular expressions, in the one form that the benchmark sends. It refuses bad sheets and explains
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile
from zoneinfo import ZoneInfo

import orjson
from openpyxl import load_workbook
from urllib3 import encode_multipart_formdata

from benchmarks.sheets import filled
from school_service.features.classes.cohort_subjects.service import create_cohort_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.people.students.service import create_student
from school_service.features.school.classrooms.service import create_classroom
from school_service.features.school.cohorts.service import create_cohort
from school_service.features.school.sessions.service import create_session, create_term
from school_service.features.school.subjects.service import create_subject
from school_service.features.scores.assessments.service import create_assessment

STUDENTS = 200
# Uploads go to each in turn, so that clients seldom wait for one another, and no upload overtakes the one before it in
# the same assessment.
ASSESSMENTS = 32
SCORES = (12.5, 13.5)  # each upload changes every score of its assessment
SCHOOL = "School of the Sheets"
LAGOS = ZoneInfo("Africa/Lagos")  # the time zone of a new school
_CELL = r'<c r="{}[^>]*(?:/>|><(?:is><t|v)>([^<]*)</(?:t></is|v)></c>)'
# A row of the sheet of scores: the admission number and the score, with two names between them and a place behind.
_ROW = re.compile("<row [^>]*>" + "".join(map(_CELL.format, "ABCDE")) + "</row>")
_DETAIL = re.compile("<row [^>]*>" + "".join(map(_CELL.format, "AB")) + "</row>")

# The user's permissions, where their session has not ended.
STATE = """
state AS MATERIALIZED (
    SELECT name, permissions FROM caller_state(%(user)s, now(), false, NULL, NULL, NULL)
    WHERE session_number = %(session)s AND NOT must_change_password
)
"""
DOWNLOAD = f"""
WITH {STATE}
SELECT a.file_name, json_build_array(
    a.name, sub.name, (
        SELECT coalesce(string_agg(DISTINCT concat_ws(' ', u.first_name, u.last_name), ', '), '')
        FROM subject_teachers st JOIN employees em ON em.id = st.employee_id JOIN users u ON u.id = em.user_id
        WHERE st.cohort_subject_id = a.cohort_subject_id
    ), c.name || ' ' || ses.name, t.display_name, trim_scale(a.total_points)::text, a.id
)::text, (
    SELECT json_agg(json_build_array(s.admission_number, u.first_name, u.last_name, e.score, e.id)
                    ORDER BY u.last_name, u.first_name, s.admission_number, s.id)::text
    FROM subject_enrollments se
    JOIN students s ON s.id = se.student_id
    JOIN users u ON u.id = s.user_id
    LEFT JOIN gradebook_entries e ON e.student_id = s.id AND e.assessment_id = a.id
    WHERE se.cohort_subject_id = a.cohort_subject_id
)
FROM state
JOIN assessments a ON a.id = %(assessment)s AND a.deleted_at IS NULL
JOIN cohort_subjects cs ON cs.id = a.cohort_subject_id
JOIN subjects sub ON sub.id = cs.subject_id
JOIN cohorts co ON co.id = cs.cohort_id
JOIN classrooms c ON c.id = co.classroom_id
JOIN sessions ses ON ses.id = co.session_id
JOIN terms t ON t.id = a.term_id
WHERE 'read:assessments' = ANY (state.permissions)
"""
UPLOAD = f"""
SELECT id FROM assessments WHERE id = %(assessment)s AND deleted_at IS NULL FOR NO KEY UPDATE;
WITH {STATE}, given AS MATERIALIZED (
    SELECT * FROM unnest(%(numbers)s::text[], %(scores)s::numeric(7, 2)[]) AS given(number, score)
), matched AS MATERIALIZED (
    SELECT s.id, en.batch_id, given.score, e.id AS entry, e.score AS old, e.sheet AS old_sheet, state.name
    FROM state
    JOIN assessments a ON a.id = %(assessment)s AND 'write:gradebooks' = ANY (state.permissions)
    CROSS JOIN given
    JOIN students s ON s.admission_number = given.number
    JOIN subject_enrollments se ON se.student_id = s.id AND se.cohort_subject_id = a.cohort_subject_id
    JOIN enrollments en ON en.student_id = s.id AND en.cohort_id = a.cohort_id AND en.ended_at IS NULL
    LEFT JOIN gradebook_entries e ON e.assessment_id = a.id AND e.student_id = s.id
    WHERE given.score BETWEEN 0 AND a.total_points
), created AS (
    INSERT INTO gradebook_entries
        (id, assessment_id, student_id, batch_id, score, sheet, created_at, updated_at)
    SELECT gen_random_uuid(), %(assessment)s, id, batch_id, score, %(sheet)s, %(moment)s, %(moment)s
    FROM matched WHERE entry IS NULL
    RETURNING id, score
), updated AS (
    UPDATE gradebook_entries e SET score = m.score, sheet = %(sheet)s, updated_at = %(moment)s
    FROM matched m WHERE e.id = m.entry AND m.old <> m.score
    RETURNING e.id, m.old, m.old_sheet, e.score
), logged AS (
    INSERT INTO audit_entries
        (id, at, actor, actor_name, action, entity, entity_id, "old", "new", request_id)
    SELECT gen_random_uuid(), %(moment)s, %(user)s, state.name, change.action, 'gradebook', change.id, change.old,
        jsonb_build_object('score', change.score, 'source', 'sheet', 'file_name', %(sheet)s,
            'downloaded', %(downloaded)s::text), 'floor'
    FROM state, (
        SELECT 'create' AS action, id, NULL::jsonb AS old, score FROM created
        UNION ALL
        SELECT 'update', id, jsonb_build_object('score', old, 'source', 'sheet', 'file_name', old_sheet), score
        FROM updated
    ) change
)
SELECT (SELECT count(*) FROM matched), (SELECT count(*) FROM created), (SELECT count(*) FROM updated)
"""


@dataclass(frozen=True)
class SheetRequests:
    """The requests of score sheets: downloads by path, uploads by path, body and media type."""

    downloads: list[str]
    uploads: list[tuple[str, bytes]]
    media_type: str

    @property
    def of_one(self) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
        """Two uploads of the first assessment; each changes the scores of the other."""
        return self.uploads[0], self.uploads[len(self.uploads) // 2]

    def lua(self, folder: Path) -> Path:
        """Write the script with which wrk sends the uploads, one after the other and over again."""
        for number, (_, body) in enumerate(self.uploads):
            (folder / f"upload-{number}").write_bytes(body)
        paths = ", ".join(f'"{path}"' for path, _ in self.uploads)
        script = folder / "uploads.lua"
        script.write_text(
            f"""
local paths, requests, at = {{ {paths} }}, {{}}, 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "{self.media_type}"
init = function(args)
    for number, path in ipairs(paths) do
        local file = io.open("{folder}/upload-" .. (number - 1), "rb")
        requests[number] = wrk.format(nil, path, nil, file:read("*a"))
        file:close()
    end
end
request = function()
    at = at % #requests + 1
    return requests[at]
end
"""
        )
        return script


def teach() -> list[UUID]:
    """Make a class of 200 and its assessments, in the transaction under way; returns their ids."""
    room = create_classroom(name="JSS 1", level="Junior Secondary")
    year = create_session(name="2025/2026", start_date=date(2025, 9, 8), end_date=date(2026, 7, 24))
    cohort = create_cohort(classroom=room.id, session_id=str(year.id))
    students = [
        create_student(first_name="Adaeze", last_name=f"Okonkwo {n:03}", admission_number=f"A/{n:04}").id
        for n in range(STUDENTS)
    ]
    enroll(cohort_id=cohort.id, batch=cohort.id, students=students)
    subject = create_cohort_subject(
        cohort_id=cohort.id, subject_id=create_subject(name="Mathematics", code="MTH").id, elective=False
    )
    term = create_term(session_id=year.id, term="FIRST", display_name="First term")
    return [
        create_assessment(
            subject=subject.id,
            term=term.id,
            category="CA1",
            name=f"Test {number}",
            abbreviation="CA1",
            due_date=date(2025, 10, 17),
            total_points=Decimal(20),
            description="",
            file_name=f"test {number}.xlsx",
            include_in_final=True,
            publish_scores=False,
        ).id
        for number in range(ASSESSMENTS)
    ]


def requests_of(
    assessments: list[UUID], download: Callable[[str], bytes], upload: Callable[[str, bytes, str], None]
) -> SheetRequests:
    """Fill in the sheets that are downloaded, for uploads that change every score each time.

    Each is of a sheet that was downloaded when the scores were stored which it replaces, as a teacher sends it. A run
    of the benchmark may end between the two uploads of an assessment, and so they are sent with force=true.
    """
    paths = [f"/assessments/{assessment}" for assessment in assessments]
    first, second = SCORES
    changes: dict[float, list[tuple[str, bytes]]] = {first: [], second: []}
    for path in paths:
        for score in (first, second, first):
            form = {"scoresheet": ("scores.xlsx", filled(download(f"{path}/download-sheet"), score))}
            body, media_type = encode_multipart_formdata(form, boundary="0123456789abcdef")
            upload(f"{path}/scoresheet", body, media_type)
            changes[score].append((f"{path}/scoresheet?force=true", body))
        del changes[first][-2]  # filled in a sheet without scores
    return SheetRequests(
        [f"{path}/download-sheet" for path in paths], changes[second] + changes[first], media_type
    )


def cells(content: bytes) -> dict[str, list[tuple[Any, ...]]]:
    """The values of all cells of a workbook but the moment of its download, and whether they are locked."""
    return {
        sheet.title: [
            tuple((_without_moment(cell.value), cell.protection.locked, cell.number_format) for cell in row)
            for row in sheet.iter_rows()
        ]
        for sheet in load_workbook(BytesIO(content))
    }


def _without_moment(value: Any) -> Any:
    return _MOMENT.sub("", value) if isinstance(value, str) else value


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.]+( WAT|\+00:00)")


class SheetFloor:
    """Downloads and uploads by hand. `example` is a score sheet that the service wrote: its parts are the templates."""

    def __init__(self, example: bytes) -> None:
        fixed = BytesIO()
        with ZipFile(BytesIO(example)) as parts, ZipFile(fixed, "w", ZIP_DEFLATED) as archive:
            for name in parts.namelist():
                if not name.startswith("xl/worksheets/"):
                    archive.writestr(name, parts.read(name))
            scores = parts.read("xl/worksheets/sheet1.xml").decode()
            details = parts.read("xl/worksheets/sheet2.xml").decode()
        self._fixed = fixed.getvalue()
        header = scores.index("</row>") + len("</row>")
        self._before, self._after = scores[:header], scores[scores.index("</sheetData>") :]
        self._text, self._number, self._place = re.findall(r'<c r="[CDE]2" s="(\d+)"', scores)
        *self._labels, self._stored = re.findall(
            r'<c r="A\d+" s="(\d+)" t="inlineStr"><is><t>([^<]+)', details
        )
        self._detail = re.findall(r'<c r="B1" s="(\d+)"', details)[0]
        data = details.index("<sheetData>") + len("<sheetData>")
        self._before_details, self._after_details = details[:data], details[details.index("</sheetData>") :]

    def download(
        self, execute: Callable[[str, dict[str, Any]], Any], assessment: str
    ) -> tuple[str, bytes] | None:
        """Write a score sheet: its file name and bytes; None where there is none, or it is not allowed."""
        row = execute(DOWNLOAD, {"assessment": assessment})
        if row is None:
            return None
        name, details, rows = row
        text, number = self._text, self._number
        xml = [self._before]
        shown = orjson.loads(rows)
        for at, (admission, first, last, score, _) in enumerate(shown, 2):
            value = "/>" if score is None else f"><v>{score:g}</v></c>"
            xml.append(
                f'<row r="{at}"><c r="A{at}" s="{text}" t="inlineStr"><is><t>{escape(admission, False)}</t></is></c>'
                f'<c r="B{at}" s="{text}" t="inlineStr"><is><t>{escape(first, False)}</t></is></c>'
                f'<c r="C{at}" s="{text}" t="inlineStr"><is><t>{escape(last, False)}</t></is></c>'
                f'<c r="D{at}" s="{number}"{value}<c r="E{at}" s="{self._place}"><v>{at - 1}</v></c></row>'
            )
        xml.append(self._after)
        about = [self._before_details]
        moment = datetime.now(UTC)
        stored = {admission: [score, entry] for admission, _, _, score, entry in shown if entry}
        hidden = orjson.dumps({"moment": moment.isoformat(), "stored": stored}).decode()
        about_it = [
            SCHOOL,
            *orjson.loads(details),
            f"{moment.astimezone(LAGOS):%Y-%m-%d %H:%M:%S %Z}",
            hidden,
        ]
        values = zip([*self._labels, self._stored], about_it, strict=True)
        for at, ((style, label), value) in enumerate(values, 1):
            hides = ' hidden="1"' if value is hidden else ""
            text = f' t="inlineStr"><is><t>{escape(value, False)}</t></is></c>' if value else "/>"
            about.append(
                f'<row r="{at}"{hides}><c r="A{at}" s="{style}" t="inlineStr"><is><t>{label}</t></is></c>'
                f'<c r="B{at}" s="{self._detail}"{text}</row>'
            )
        about.append(self._after_details)
        content = BytesIO(self._fixed)
        with ZipFile(content, "a") as archive:
            for path, sheet in (("sheet1", xml), ("sheet2", about)):
                archive.writestr(f"xl/worksheets/{path}.xml", "".join(sheet), ZIP_DEFLATED, 1)
        return name, content.getvalue()

    def upload(
        self, execute: Callable[[str, dict[str, Any]], Any], assessment: str, body: bytes, media_type: str
    ) -> bytes | None:
        """Enter the scores of a form's score sheet; the counts as JSON, None where something is not as it should be."""
        boundary = media_type.partition("boundary=")[2].encode()
        start = body.index(b"\r\n\r\n") + 4
        name = re.search(rb'filename="([^"]*)"', body[:start])
        with ZipFile(BytesIO(body[start : body.rindex(b"\r\n--" + boundary)])) as parts:
            scores, details = (
                parts.read(f"xl/worksheets/{part}.xml").decode() for part in ("sheet1", "sheet2")
            )
        header, *rows = _ROW.findall(scores)
        about = dict(_DETAIL.findall(details))
        if (header[0], header[3]) != ("admission_number", "score") or name is None:
            return None
        if about["Assessment ID"] != assessment:
            return None
        given = [row for row in rows if row[3]]
        counts = execute(
            UPLOAD,
            {
                "assessment": assessment,
                "numbers": [unescape(row[0]) for row in given],
                "scores": [row[3] for row in given],
                "sheet": name[1].decode(),
                "moment": datetime.now(UTC),
                "downloaded": orjson.loads(unescape(about[self._stored[1]]))["moment"],
            },
        )
        matched, created, updated = counts
        if matched != len(given):
            return None
        answer: bytes = orjson.dumps(
            {
                "rows": len(rows),
                "created": created,
                "updated": updated,
                "unchanged": matched - created - updated,
                "blank": len(rows) - len(given),
            }
        )
        return answer
