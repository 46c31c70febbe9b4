"""A client that openapi-python-client generates from the document goes through a school's year, as it was written."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from importlib import import_module, util
from io import BytesIO
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4
from zipfile import ZipFile

import pytest
from openpyxl import load_workbook
from sqlalchemy import select

from school_service.core.database import db
from school_service.features.results.models import Publication, ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.conftest import PASSWORD

pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(
        util.find_spec("openapi_python_client") is None,
        reason="openapi-python-client is not installed: tox -e openapi installs it and runs this.",
    ),
]

NAME = "generated_school_client"
BASE = "http://schools.example.org"
SETTINGS = {
    "post_hooks": [],
    "package_name_override": NAME,
    # The generator knows no type for lines of JSON.
    "content_type_overrides": {"application/x-ndjson": "application/octet-stream"},
}


@pytest.fixture(scope="module")
def generated(document, app, tmp_path_factory):
    """The client, made of nothing but the document; importable until the module's tests have ended."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(app.json.dumps(document.spec), encoding="utf-8")
    (folder / "settings.yml").write_text(json.dumps(SETTINGS), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate"),
            *("--path", folder / "openapi.json", "--output-path", folder / NAME),
            *("--config", folder / "settings.yml", "--meta", "none", "--fail-on-warning"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stdout
    sys.path.insert(0, str(folder))
    yield import_module(NAME)
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


@dataclass
class Caller:
    """Somebody who calls the API by the generated client, in a school."""

    package: ModuleType
    app: Any
    school: str
    token: str | None = None

    def __getattr__(self, name: str) -> Any:
        """A generated model or enumeration, by its name."""
        return getattr(import_module(f"{NAME}.models"), name)

    def client(self) -> Any:
        httpx = import_module("httpx")
        options = {"base_url": BASE, "httpx_args": {"transport": httpx.WSGITransport(app=self.app)}}
        if self.token is None:
            return self.package.Client(**options)
        return self.package.AuthenticatedClient(token=self.token, **options)

    def send(self, operation: str, *path: Any, school: bool = True, **given: Any) -> Any:
        """Call an operation, `tag.name`; path parameters by position."""
        function = import_module(f"{NAME}.api.{operation}").sync_detailed
        header = {"x_school_id": self.school} if school else {}
        with self.client() as client:
            return function(*path, client=client, **header, **given)

    def do(self, operation: str, *path: Any, **given: Any) -> Any:
        """Call an operation that succeeds; returns the answer as the client parsed it, of a file its bytes."""
        answer = self.send(operation, *path, **given)
        assert answer.status_code == 200, answer.content
        return answer.content if hasattr(answer.parsed, "payload") else answer.parsed

    def ids_by_name(self, operation: str) -> dict[str, Any]:
        """Ids by name."""
        return {record.name: record.id for record in self.do(operation)}

    def file(self, workbook: Any) -> Any:
        """A workbook as the client sends it."""
        content = BytesIO()
        workbook.save(content)
        types = import_module(f"{NAME}.types")
        return types.File(payload=BytesIO(content.getvalue()), file_name="filled in.xlsx")


@pytest.fixture
def caller(generated, rehearsed, place, grant):
    """The school's administrator, signed in by the token of a machine client that was asked for as a form."""
    client_id, secret = grant(school_ids=[place.id], permissions=["read:users"])
    machine = Caller(generated, rehearsed, str(place.id))
    asked = machine.TokenRequest(
        client_id=client_id,
        client_secret=secret,
        audience="school-service",
        grant_type=machine.TokenRequestGrantType.CLIENT_CREDENTIALS,
    )
    token = machine.do("auth.issue_token", body=asked, school=False)
    assert token.token_type is machine.TokenType.BEARER
    machine.token = token.access_token
    signed_in = machine.do("users.sign_in_user", body=machine.Login(username="admin", password=PASSWORD))
    assert signed_in.user.student is None
    return Caller(generated, rehearsed, str(place.id), signed_in.access_token.access_token)


def test_every_operation_is_in_it(generated, document):
    for operation in document.operations().values():
        (tag,) = operation["tags"]
        name = f"{NAME}.api.{tag.replace('-', '_')}.{snake_case(operation['operationId'])}"
        assert callable(import_module(name).sync_detailed), name


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def test_an_error_is_read_as_one(caller):
    refused = caller.send("classrooms.create_classroom", body=caller.NewClassroom(name="", level="Junior"))
    unknown = caller.send("classrooms.get_classroom", uuid4())
    elsewhere = Caller(caller.package, caller.app, str(uuid4()), caller.token).send("roles.list_roles")

    assert (refused.status_code, refused.parsed.code) == (422, 422)
    assert refused.parsed.errors.json == {"name": ["Length must be between 1 and 120."]}
    assert (unknown.status_code, unknown.parsed.message) == (404, "No such classroom.")
    assert elsewhere.status_code == 403
    assert unknown.parsed.request_id == unknown.headers["X-Request-ID"]


def test_the_generated_client_goes_from_the_first_day_to_the_graduates(caller):
    teacher = employ(caller)
    session = caller.do(
        "sessions.create_session",
        body=caller.NewSession(
            name="2031/2032", start_date=date(2031, 9, 8), end_date=date(2032, 7, 23), current=True
        ),
    )
    term = caller.do(
        "sessions.create_term",
        body=caller.NewTerm(session_id=session.id, term=caller.TermName.FIRST, display_name="First Term"),
    )
    classroom = caller.do(
        "classrooms.create_classroom", body=caller.NewClassroom(name="SSS 3 G", level="SSS")
    )
    cohort = caller.do(
        "cohorts.create_cohort",
        body=caller.NewCohort(classroom=classroom.id, session_id=str(session.id)),
    )
    students = enrol(caller, cohort)
    caller.do("form_teachers.add_form_teacher", cohort.id, body=caller.TeacherOfBatch(teacher_id=teacher.id))
    subject = caller.do("subjects.create_subject", body=caller.NewSubject(name="Ìmọ̀ Ẹ̀rọ", code="GEN"))
    taught = caller.do(
        "cohort_subjects.create_cohort_subject",
        body=caller.NewCohortSubject(cohort_id=cohort.id, subject_id=subject.id, elective=True),
    )
    caller.do(
        "cohort_subjects.add_cohort_subject_students", taught.id, body=[student.id for student in students]
    )

    give_scores(caller, taught, term, students)
    give_traits(caller, cohort, students)
    graduates = [
        caller.do("graduates.create_graduate", body=caller.NewGraduate(student=student.id))
        for student in students
    ]

    assert {graduate.graduation_class for graduate in graduates} == {"SSS 3 G 2031/2032"}
    shown = caller.do("students.list_students", status=caller.StudentStatus.GRADUATED, page_size=100)
    assert {student.id for student in shown.data} >= {student.id for student in students}
    assert all(
        student.status is caller.StudentStatus.GRADUATED and student.cohort is None for student in shown.data
    )
    entries = caller.do("audit.list_audit_entries", entity="graduate", page_size=1)
    assert entries.total == len(students)
    assert entries.data[0].action is caller.AuditAction.CREATE


def employ(caller: Caller) -> Any:
    lagos = caller.ids_by_name("geography.list_states")["Lagos"]
    employee = caller.do(
        "employees.create_employee",
        body=caller.NewEmployee(
            first_name="Fọlákẹ́",
            middle_name="",
            last_name="Sóyínká",
            title="Dr",
            gender="FEMALE",
            dob=date(1979, 6, 30),
            join_date=date(2009, 9, 7),
            marital_status="Married",
            blood_group="AB-",
            religion="Christianity",
            status="ACTIVE",
            department=caller.ids_by_name("settings.list_departments")["Sciences"],
            category=caller.ids_by_name("settings.list_employee_categories")["Teaching"],
            position=caller.ids_by_name("settings.list_positions")["Teacher"],
            nationality=caller.ids_by_name("geography.list_nationalities")["Nigeria"],
            state=lagos,
            lga=caller.do("geography.list_lgas", state=lagos)[0].id,
            bank_details=caller.NewBankAccount(
                bank_name="First Bank",
                account_name="F. Sóyínká",
                account_number="0123456789",
                bank_sort_code="011151003",
                account_type="Current",
                employee_no="MS-001",
                employee=1,
            ),
            next_of_kin=caller.NewNextOfKin(
                full_name="Akin Sóyínká",
                relationship="Husband",
                phone_number="+2348030000001",
                physical_address="1 School Road, Ikenne",
                employee=1,
            ),
            contact=caller.ContactDetails(
                email_address="folake@example.com",
                phone_number="+2348030000002",
                physical_address="1 School Road, Ikenne",
            ),
        ),
    )
    (account,) = caller.do("users.list_users", search=employee.username).data
    role = caller.ids_by_name("roles.list_roles")["Teacher"]
    caller.do("users.add_user_role", account.id, body=caller.RoleOfUser(role=role))
    caller.do("users.set_user_password", account.id, body=caller.Password(password=PASSWORD))
    shown = caller.do("employees.get_employee", employee.id)
    assert (shown.role, shown.dob) == (role, date(1979, 6, 30))
    return shown


def enrol(caller: Caller, cohort: Any) -> list[Any]:
    """Make two students, one by one and by sheet, and enrol them."""
    template = load_workbook(BytesIO(caller.do("student_imports.download_student_sheet")))
    header = [cell.value for cell in template["Students"][1]]
    row = {"first_name": "Zainab", "last_name": "Ɗanladi", "admission_number": "GEN/002"}
    for column, name in enumerate(header, 1):
        template["Students"].cell(2, column).value = row.get(name)
    imported = caller.do(
        "student_imports.import_students", body=caller.SheetUpload(sheet=caller.file(template))
    )
    assert (imported.created, imported.errors) == (1, [])
    (by_sheet,) = caller.do("students.list_students", search="GEN/002").data
    assert (by_sheet.guardian, by_sheet.dob) == (None, None)
    by_hand = caller.do(
        "students.create_student",
        body=caller.NewStudent(
            first_name="Ẹfe",
            last_name="Aigbe",
            admission_number="GEN/001",
            dob=date(2014, 2, 28),
            guardian=caller.NewGuardian(full_name="Osas Aigbe", relationship="Father"),
        ),
    )
    assert by_hand.guardian.full_name == "Osas Aigbe"
    ids = [by_hand.id, by_sheet.id]
    enrolled = caller.do(
        "enrollments.enroll_students", cohort.id, body=caller.Enrollment(students=ids, batch=cohort.id)
    )
    assert {(student.id, student.cohort) for student in enrolled} == {
        (student_id, UUID(str(cohort.id))) for student_id in ids
    }
    return sorted(enrolled, key=lambda student: student.admission_number)


def examination(caller: Caller, taught: Any, term: Any) -> Any:
    """An assessment to be made."""
    return caller.NewAssessment(
        category=caller.AssessmentCategory.EXAM,
        subject=taught.id,
        name="Examination",
        abbreviation="EXAM",
        due_date=date(2031, 11, 28),
        total_points=60,
        term=term.id,
        description="As planned",
        file_name="examination.xlsx",
        include_in_final=True,
        publish_scores=True,
    )


def give_scores(caller: Caller, taught: Any, term: Any, students: list[Any]) -> None:
    assessment = caller.do("assessments.create_assessment", body=examination(caller, taught, term))
    sheet = load_workbook(BytesIO(caller.do("scoresheets.download_score_sheet", assessment.id)))
    rows = list(sheet["Scores"].iter_rows(min_row=2))
    rows[0][3].value, rows[1][3].value = 48.5, 61
    upload = caller.ScoresheetUpload(scoresheet=caller.file(sheet))
    refused = caller.send("scoresheets.upload_score_sheet", assessment.id, body=upload)
    assert refused.status_code == 422
    (error,) = refused.parsed.errors.rows
    assert (error.row, error.column, error.code) == (rows[1][3].row, "score", "invalid")

    rows[1][3].value = 39
    upload = caller.ScoresheetUpload(scoresheet=caller.file(sheet))
    assert caller.do("scoresheets.upload_score_sheet", assessment.id, body=upload).created == 2
    shown = caller.do("scoresheets.list_cohort_subject_scores", taught.id, term=term.id)
    scores = {
        line.student.admission_number: [gradebook.score for gradebook in line.gradebooks] for line in shown
    }
    assert scores == {"GEN/001": [48.5], "GEN/002": [39.0]}
    page = caller.do("gradebooks.list_gradebook_entries", batch=students[0].batch)
    assert (page.total, page.data[0].assessment_category) == (2, caller.AssessmentCategory.EXAM)


def test_must_hold_14_a_year_goes_from_the_score_sheet_to_the_promotion(caller):
    session = caller.do(
        "sessions.create_session",
        body=caller.NewSession(name="2033/2034", start_date=date(2033, 9, 8), end_date=date(2034, 7, 23)),
    )
    term = caller.do(
        "sessions.create_term",
        body=caller.NewTerm(session_id=session.id, term=caller.TermName.FIRST, display_name="First Term"),
    )
    classroom = caller.do(
        "classrooms.create_classroom", body=caller.NewClassroom(name="SSS 2 G", level="SSS")
    )
    cohort = caller.do(
        "cohorts.create_cohort", body=caller.NewCohort(classroom=classroom.id, session_id=str(session.id))
    )
    students = enrol(caller, cohort)
    subject = caller.do("subjects.create_subject", body=caller.NewSubject(name="Ìtàn", code="HIS"))
    taught = caller.do(
        "cohort_subjects.create_cohort_subject",
        body=caller.NewCohortSubject(cohort_id=cohort.id, subject_id=subject.id, elective=False),
    )
    give_scores(caller, taught, term, students)

    first = publish(caller, cohort, taught)
    ids = {result.student.admission_number: result.student.id for result in results_of(caller, taught)}
    assert published(caller, taught) == {
        "GEN/001": (80.83, "PUBLISHED", 1),
        "GEN/002": (65.0, "PUBLISHED", 1),
    }
    held = correct(caller, taught, ids["GEN/002"])
    assert (held.status_code, "are submitted: reopen them first." in held.parsed.message) == (409, True)
    why = caller.PublicationReopening(reason="One answer was not marked")
    assert caller.do("publications.reopen_publication", first.id, body=why).state == "REOPENED"
    reason = caller.Reopening(term="FIRST", reason="One answer was not marked")
    opened = caller.do("submissions.reopen_results", taught.id, body=reason)
    assert (opened.state, opened.submitted_at) == (caller.SubmissionState.OPEN, None)
    assert published(caller, taught)["GEN/002"] == (65.0, "REOPENED", 1)
    assert correct(caller, taught, ids["GEN/002"]).status_code == 200

    second = publish(caller, cohort, taught)

    assert (second.version, second.changed) == (2, 2)
    assert published(caller, taught) == {
        "GEN/001": (80.83, "PUBLISHED", 2),
        "GEN/002": (86.67, "PUBLISHED", 2),
    }
    changes = caller.do("publications.list_publication_changes", second.id)
    after = {change.student.admission_number: change.after.position for change in changes}
    assert after == {"GEN/001": 2, "GEN/002": 1}
    listed = caller.do("publications.list_publications", batch=cohort.id)
    assert [publication.state for publication in listed.data] == [
        caller.PublicationState.PUBLISHED,
        caller.PublicationState.SUPERSEDED,
    ]
    transcript = caller.do("transcripts.get_transcript", ids["GEN/002"])
    assert [session.average for session in transcript.sessions] == [86.67]
    print_cards(caller, cohort, ids["GEN/002"])
    promote(caller, cohort, session, subject.id, ids)


def print_cards(caller: Caller, cohort: Any, student: Any) -> None:
    """Print a card, the cards of the class and a transcript, and verify the card by its code, as anybody may."""
    card = caller.do("report_cards.print_report_card", student, term="FIRST")
    together = caller.do("report_cards.print_report_cards", batch=cohort.id, term="FIRST")
    archive = caller.do(
        "report_cards.print_report_cards", batch=cohort.id, term="FIRST", format_=caller.CardsFormat.ZIP
    )
    transcript = caller.do("report_cards.print_transcript", student)
    assert {content[:5] for content in (card, together, transcript)} == {b"%PDF-"}
    with ZipFile(BytesIO(archive)) as cards:
        assert card in [cards.read(name) for name in cards.namelist()]
    anybody = Caller(caller.package, caller.app, caller.school)
    school = UUID(caller.school)
    told = anybody.do("verification.verify_paper", school, code_of(school, student), school=False)
    assert (told.state.value, told.version, told.average) == ("CURRENT", 2, 86.67)
    unknown = anybody.send("verification.verify_paper", school, uuid4(), school=False)
    assert unknown.status_code == 404


def code_of(school: UUID, student: UUID) -> UUID | None:
    """The code of a student's newest card, which the paper has where the service has a PUBLIC_URL."""
    with in_transaction(SchoolBinding(school, read_only=True)):
        return db.session.scalar(
            select(ReportCard.code)
            .join(Publication, Publication.id == ReportCard.publication_id)
            .where(ReportCard.student_id == student)
            .order_by(Publication.version.desc())
            .limit(1)
        )


def promote(caller: Caller, cohort: Any, session: Any, subject: UUID, ids: dict[str, Any]) -> None:
    """Promote a class into the next session as it was seen, and undo it."""
    following = caller.do(
        "sessions.create_session",
        body=caller.NewSession(name="2034/2035", start_date=date(2034, 9, 8), end_date=date(2035, 7, 23)),
    )
    classroom = caller.do(
        "classrooms.create_classroom", body=caller.NewClassroom(name="SSS 3 G", level="SSS")
    )
    above = caller.do(
        "cohorts.create_cohort", body=caller.NewCohort(classroom=classroom.id, session_id=str(following.id))
    )
    taught = caller.do(
        "cohort_subjects.create_cohort_subject",
        body=caller.NewCohortSubject(cohort_id=above.id, subject_id=subject, elective=False),
    )
    rules = [caller.NewPromotionRule(minimum_average=81, trial_average=80)]
    (rule,) = caller.do("promotions.set_promotion_rules", body=rules)
    assert (rule.level, rule.minimum_average, rule.minimum_terms) == (None, 81, 1)
    body = caller.NewPromotion(
        session=str(session.id),
        moves=[caller.Move(batch=cohort.id, promote_to=above.id, repeat_in=None)],
    )
    seen = caller.do("promotions.promote_students", body=body, dry_run=True)
    refused = caller.send("promotions.promote_students", body=body)
    assert (refused.status_code, seen.id) == (422, None)
    body.fingerprint = seen.fingerprint
    made = caller.do("promotions.promote_students", body=body)
    outcome = caller.PromotionOutcome
    decisions = {decision.student.id: (decision.outcome, decision.to_batch) for decision in made.decisions}
    assert {student: (str(outcome), batch) for student, (outcome, batch) in decisions.items()} == {
        ids["GEN/001"]: (str(outcome.PROMOTED_ON_TRIAL), above.id),
        ids["GEN/002"]: (str(outcome.PROMOTED), above.id),
    }
    assert len(caller.do("enrollments.list_cohort_students", above.id)) == 2
    assert set(next_score_sheet(caller, following, taught)) == set(ids)
    (listed,) = caller.do("promotions.list_promotions", session=str(session.id)).data
    assert (listed.id, listed.counts.promoted) == (made.id, 1)
    assert caller.do("promotions.undo_promotion", made.id).deleted
    assert caller.do("promotions.get_promotion", made.id).undone_at is not None


def next_score_sheet(caller: Caller, session: Any, taught: Any) -> list[str]:
    """The admission numbers on a score sheet of the session that students were promoted into."""
    term = caller.do(
        "sessions.create_term",
        body=caller.NewTerm(session_id=session.id, term=caller.TermName.FIRST, display_name="First Term"),
    )
    assessment = caller.do("assessments.create_assessment", body=examination(caller, taught, term))
    sheet = load_workbook(BytesIO(caller.do("scoresheets.download_score_sheet", assessment.id)))
    return [row[0].value for row in sheet["Scores"].iter_rows(min_row=2)]


def publish(caller: Caller, cohort: Any, taught: Any) -> Any:
    """Submit a subject, and publish its class."""
    submitted = caller.do("submissions.submit_results", taught.id, body=caller.NewSubmission(term="FIRST"))
    assert (submitted.state, submitted.blanks) == (caller.SubmissionState.SUBMITTED, 0)
    body = caller.NewPublication(term="FIRST", batches=[cohort.id])
    (rehearsed,) = caller.do("publications.publish_results", body=body, dry_run=True)
    (made,) = caller.do("publications.publish_results", body=body)
    assert (rehearsed.id, rehearsed.version, rehearsed.changed) == (None, made.version, made.changed)
    return made


def results_of(caller: Caller, taught: Any) -> Any:
    return caller.do("results.list_cohort_subject_results", taught.id, term="FIRST")


def published(caller: Caller, taught: Any) -> dict[str, tuple[float, str, int]]:
    """The percent of each student with state and version, by admission number."""
    results = results_of(caller, taught)
    return {
        result.student.admission_number: (result.percent, result.state.value, result.version)
        for result in results
    }


def correct(caller: Caller, taught: Any, student: Any) -> Any:
    """Send another score of a student."""
    (line,) = (
        line
        for line in caller.do("scoresheets.list_cohort_subject_scores", taught.id)
        if line.student.id == student
    )
    (entry,) = line.gradebooks
    return caller.send("gradebooks.update_gradebook_entry", entry.id, body=caller.Score(score=52))


def give_traits(caller: Caller, cohort: Any, students: list[Any]) -> None:
    kind = caller.MetricType.PSYCHOMOTOR
    asked = {"batch_id": cohort.id, "term": "FIRST", "metric_type": kind}
    sheet = load_workbook(BytesIO(caller.do("metrics.download_metric_sheet", **asked)))
    for row in sheet["Metrics"].iter_rows(min_row=2):
        for cell in row[3:]:
            cell.value = 4
    upload = caller.MetricSheetUpload(metric_sheet=caller.file(sheet))
    done = caller.do("metrics.upload_metric_sheet", body=upload, batch_id=cohort.id)
    assert (done.rows, done.created) == (2, 2)
    records = caller.do("metrics.list_metrics", batch_id=cohort.id)
    assert {(record.admission_number, record.term, record.metric_type) for record in records} == {
        (student.admission_number, caller.TermName.FIRST, kind) for student in students
    }
    assert set(records[0].metric_scores.additional_properties.values()) == {4.0}
