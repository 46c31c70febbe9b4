"""Lists students, enters a score, and handles a stale sheet: enter_score.py ADDRESS SCHOOL TOKEN ASSESSMENT."""

import sys
from uuid import UUID

from school_service_client import AuthenticatedClient
from school_service_client.api.scoresheets import list_assessment_scores, set_assessment_scores
from school_service_client.api.students import list_students
from school_service_client.models import ClassScore, Error, ErrorType, NewClassScore, StudentPage

address, school, token = sys.argv[1:4]
assessment = UUID(sys.argv[4])
with AuthenticatedClient(base_url=address, token=token) as client:
    students = list_students.sync(client=client, x_school_id=school, page_size=5)
    assert isinstance(students, StudentPage), students
    for student in students.data:
        print(student.admission_number, student.first_name, student.last_name)
    seen: ClassScore | None = None
    for score in (
        1.25,
        3,
        3,
    ):  # The second time somebody has changed the score that was seen, and it is read again.
        if seen is None:
            sheet = list_assessment_scores.sync(assessment, client=client, x_school_id=school)
            assert isinstance(sheet, list), sheet
            seen = next(row for row in sheet if row.absence is None)
        body = [NewClassScore(student=seen.student.id, score=score, expected=seen.score)]
        saved = set_assessment_scores.sync(assessment, client=client, x_school_id=school, body=body)
        if isinstance(saved, Error) and saved.type_ is ErrorType.STALE:  # 409, of a record with If-Match 412
            print("read the sheet again:", saved.message)
            seen = None
        else:
            print(saved.message if isinstance(saved, Error) else f"saved {score}")
