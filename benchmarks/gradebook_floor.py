"""Entering scores by hand for `benchmarks.throughput`: the assessments, the requests, and the floor's statement.

The floor makes one round trip a request, which is a transaction of its own: binding, caller's state, permission, the
checks, the entry with its line in the audit log, and the answer.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.sheet_floor import STATE

PATH = "/gradebooks"
SCORES_PER_SECOND = 3000  # more scores than a server can enter

# Of the school of `benchmarks.sheet_floor`; a student has no score in them.
MAKE_ASSESSMENTS = """
INSERT INTO assessments
SELECT gen_random_uuid(), cohort_subject_id, cohort_id, session_id, term_id, 'Score ' || n, abbreviation, due_date,
    total_points, description, category, file_name, include_in_final, publish_scores, created_at, NULL
FROM (SELECT * FROM assessments LIMIT 1) one, generate_series(1, %(number)s) n
RETURNING id
"""
STUDENTS = "SELECT student_id, batch_id FROM enrollments"

ENTER = f"""
WITH {STATE}, assessed AS MATERIALIZED (
    SELECT * FROM assessments WHERE id = %(assessment)s::uuid AND deleted_at IS NULL FOR SHARE
), entered AS (
    INSERT INTO gradebook_entries (id, assessment_id, student_id, batch_id, score, created_at, updated_at)
    SELECT gen_random_uuid(), a.id, %(student)s, %(batch)s, %(score)s, now(), now()
    FROM state, assessed a
    JOIN batches b ON b.id = %(batch)s::uuid AND b.cohort_id = a.cohort_id
    WHERE 'write:gradebooks' = ANY (state.permissions) AND %(score)s BETWEEN 0 AND a.total_points
        AND EXISTS (SELECT FROM enrollments
                    WHERE student_id = %(student)s::uuid AND batch_id = b.id AND ended_at IS NULL)
        AND EXISTS (SELECT FROM subject_enrollments
                    WHERE student_id = %(student)s::uuid AND cohort_subject_id = a.cohort_subject_id)
    RETURNING *
), logged AS (
    INSERT INTO audit_entries (id, at, actor, actor_name, action, entity, entity_id, "new", request_id)
    SELECT gen_random_uuid(), now(), %(user)s, state.name, 'create', 'gradebook', e.id,
        jsonb_build_object('score', e.score, 'source', 'hand'), 'floor'
    FROM state, entered e
)
SELECT json_build_object('id', e.id, 'assessment', e.assessment_id, 'assessment_category', a.category,
    'score', e.score, 'student', e.student_id, 'batch', e.batch_id, 'subject', a.cohort_subject_id)::text
FROM entered e CROSS JOIN assessed a
"""


def script(folder: Path, assessments: list[str], students: list[tuple[str, str]]) -> Path:
    """Write the script with which wrk enters scores, one for each student in each assessment.

    Its argument is the number of the first, so that each run enters others. Neighbouring requests are of
    different assessments, as requests of different teachers are. `students` have a batch.
    """
    path = folder / "scores.lua"
    assessed = ", ".join(f'"{assessment}"' for assessment in assessments)
    taught = ", ".join(f'{{ "{student}", "{batch}" }}' for student, batch in students)
    path.write_text(
        f"""
local assessments, students, at = {{ {assessed} }}, {{ {taught} }}, 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
init = function(args)
    at = tonumber(args[1])
end
request = function()
    local assessment = assessments[at % #assessments + 1]
    local student = students[math.floor(at / #assessments) % #students + 1]
    at = at + 1
    return wrk.format(nil, "{PATH}", nil, string.format(
        '{{"assessment": "%s", "student": "%s", "batch": "%s", "score": 12.5}}', assessment, student[1], student[2]))
end
"""
    )
    return path
