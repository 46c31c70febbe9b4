"""Erasing the stored data of a person after they left: their records stay, under a name saying nothing of them."""

from __future__ import annotations

from secrets import token_hex
from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, case, cast, column, delete, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.errors import Conflict, InUse
from school_service.core.facts import emptied
from school_service.core.idempotency import erase_answers
from school_service.core.read_models import Query, read_model
from school_service.core.records import get, lock_in_order, not_found, once_locked, unnest_rows
from school_service.core.statements import Executable, execute, statement
from school_service.features.attendance.registers.erasure import locking as locking_registers
from school_service.features.attendance.registers.erasure import without_name, without_words
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.classes.models import SubjectTeacher
from school_service.features.people.access import require_to_change
from school_service.features.people.employees.service import ENTITY as EMPLOYEE
from school_service.features.people.guardians.accounts import end_guardian
from school_service.features.people.guardians.of_students import remove_guardians
from school_service.features.people.guardians.reads import lock_account_of
from school_service.features.people.guardians.service import ENTITY as GUARDIAN
from school_service.features.people.guardians.service import lock_guardian, remove_links
from school_service.features.people.guardians.storing import storing
from school_service.features.people.models import (
    ACTIVE,
    WITHDRAWN,
    BankAccount,
    Contact,
    Employee,
    FormTeacher,
    Guardian,
    Invitation,
    NextOfKin,
    Student,
    StudentGuardian,
    User,
    UserIdentity,
    UserRole,
    UserSession,
)
from school_service.features.people.roles.administrators import require_administrator
from school_service.features.photos.reads import delete_photo
from school_service.features.results.models import (
    IssuedTranscript,
    Promotion,
    PromotionAmendment,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.school.models import CURRENT, Enrollment
from school_service.features.scores.models import Absence, Submission
from school_service.features.year.models import TermComment
from tenants.clock import now

STUDENT = "student"

FIRST_NAME = "Erased"
"""The first name of all erased people; the last name is random, and so are username and admission number."""


def record_copy(*, of: str, record_id: UUID) -> None:
    """Enter in the audit log the handing out of a copy of all stored data of a person."""
    audit_change(EXPORT, record_id, new={"data": of})


def check_student(*, id: UUID) -> None:
    """Check the existence of the student; raises NotFound."""
    get(Student, id)


def check_employee(*, id: UUID) -> None:
    """Check the existence of the employee, deleted or not; raises NotFound."""
    get(Employee, id)


def check_guardian(*, id: UUID) -> None:
    """Check the existence of the guardian; raises NotFound."""
    get(Guardian, id)


def erase_student(*, student_id: UUID, principal: Principal) -> UUID:
    """Erase a student's data; enrollments, results and graduation stay under a pseudonym. Twice is as once.

    Raises NotFound, Forbidden if the principal lacks a permission of the user, and Conflict while the student is
    enrolled, or if nobody would be left with every permission.
    """
    student, user = _lock(Student, student_id)
    if user.erased_at is None:
        enrolled = select(Enrollment.id).where(Enrollment.student_id == student.id, CURRENT).limit(1)
        if db.session.scalar(enrolled) is not None:
            raise InUse("The student is enrolled: take them out of the cohort first.")
        pseudonym = token_hex(16)
        remove_guardians(student.id)
        _erase_account(user, pseudonym, principal, without_words(student.id), _without_dates(student.id))
        student.admission_number = f"erased-{pseudonym}"
        _empty(student)
        if student.status == ACTIVE:
            student.status = WITHDRAWN
        _erase_words(student, user)
        _audit_erasure(STUDENT, student, contacts=_delete_contacts(user))
    return student_id


def erase_employee(*, employee_id: UUID, principal: Principal) -> UUID:
    """Erase the data of a deleted employee; department, category and position stay. Twice is as once.

    Raises NotFound, Forbidden if the principal lacks a permission of the user, and Conflict unless the employee is
    deleted, or if nobody would be left with every permission.
    """
    employee, user = _lock(Employee, employee_id)
    if user.erased_at is None:
        if employee.deleted_at is None:
            raise Conflict("The employee is not deleted: delete them first.")
        _erase_account(user, token_hex(16), principal)
        _empty(employee)
        db.session.execute(delete(FormTeacher).where(FormTeacher.employee_id == employee.id))
        db.session.execute(delete(SubjectTeacher).where(SubjectTeacher.employee_id == employee.id))
        # The contact that every employee has is emptied, others are deleted.
        contact = get(Contact, employee.contact_id, for_update=True)
        _empty(contact)
        _audit_erasure(
            EMPLOYEE,
            employee,
            contacts=[contact.id, *_delete_contacts(user, but=contact.id)],
            bank_account=_delete_part(BankAccount, employee.id),
            next_of_kin=_delete_part(NextOfKin, employee.id),
        )
    return employee_id


def erase_guardian(*, guardian_id: UUID, principal: Principal) -> UUID:
    """Erase a guardian's data: a pseudonym stays, without children and account. Twice is as once.

    The account goes with them, unless it is an employee's or a student's. Raises NotFound, Forbidden if the principal
    lacks a permission of the user, and Conflict while a child is enrolled, or if nobody would be left with every
    permission.
    """
    person = lock_guardian(
        guardian_id, before=_lock_registers(guardian_id), then=lock_account_of(guardian_id)
    )
    if person.row["erased_at"] is not None:
        return guardian_id
    enrolled = select(Enrollment.id).join(
        StudentGuardian, StudentGuardian.student_id == Enrollment.student_id
    )
    theirs = StudentGuardian.guardian_id == guardian_id
    if db.session.scalar(enrolled.where(theirs, CURRENT).limit(1)) is not None:
        raise InUse("A child of the guardian is enrolled: take them out of the cohort first.")
    pseudonym, user_id = token_hex(16), person.row["user_id"]
    remove_links(theirs)
    name = f"{FIRST_NAME} {pseudonym[:8].upper()}"
    person.row |= {**emptied(Guardian), "user_id": None, "full_name": name, "erased_at": now()}
    execute(*storing(changed=[person.row]))
    records: dict[str, Any] = {}
    if user_id is not None:
        records["contacts"] = _erase_account_of_guardian(UUID(user_id), pseudonym, principal)
    audit_change(
        GUARDIAN, guardian_id, old={"erased": False}, new={"erased": True, "user": user_id, **records}
    )
    return guardian_id


def _erase_account_of_guardian(user_id: UUID, pseudonym: str, principal: Principal) -> list[UUID]:
    """Erase an account, unless it is an employee's or a student's; returns the ids of the deleted contacts."""
    user = get(User, user_id, for_update=True)
    others = (select(model.id).where(model.user_id == user_id) for model in (Employee, Student))
    if any(db.session.scalar(other) is not None for other in others):
        require_to_change(principal, user_id, "Erasing this person")
        execute(*end_guardian(user_id))
        return []
    if user.erased_at is None:
        _erase_account(user, pseudonym, principal)
    return _delete_contacts(user)


def _empty(record: Any) -> None:
    """Empty the columns of an erased record marked for it."""
    for name, value in emptied(type(record)).items():
        setattr(record, name, value)


def _erase_words(student: Student, user: User) -> None:
    """Erase the words written about a student, and their identity on their cards and transcripts; figures stay."""
    of_student = {"synchronize_session": False}
    for model in (Absence, TermComment, PromotionDecision, PromotionAmendment):
        statement = update(model).where(model.student_id == student.id).values(emptied(model))
        db.session.execute(statement, execution_options=of_student)
    card, who = (
        ReportCard.card,
        {
            "admission_number": student.admission_number,
            "first_name": user.first_name,
            "middle_name": None,
            "last_name": user.last_name,
            "gender": "",
            "dob": None,
        },
    )
    erased = func.jsonb_set(card, ["student"], card["student"].concat(literal(who, JSONB)))
    comments = literal({"comments": {"form_teacher": None, "principal": None}}, JSONB)
    transcript = IssuedTranscript.transcript
    facts = dict.fromkeys(("admitted_on", "left_on", "former_school", "leaving_reason"))
    about = literal({**who, **facts}, JSONB)
    renamed = func.jsonb_set(transcript, ["student"], transcript["student"].concat(about))
    transcripts = (
        update(IssuedTranscript)
        .where(IssuedTranscript.student_id == student.id)
        .values(transcript=renamed)
        .returning(IssuedTranscript.id)
        .cte("transcripts")
    )
    db.session.execute(
        update(ReportCard)
        .where(ReportCard.student_id == student.id)
        .values(card=erased.op("||")(comments), **emptied(ReportCard))
        .add_cte(transcripts),
        execution_options=of_student,
    )


def _erase_signatory(user: User) -> None:
    """Replace the name of a signatory by the pseudonym: on submissions, publications and promotions.

    The rows are locked in order of id before: of two people erased at once each may have signed the same rows.
    """
    name, actor = f"{user.first_name} {user.last_name}", str(user.id)
    for model, acts in (
        (Submission, ("submitted",)),
        (Publication, ("published", "reopened")),
        (Promotion, ("committed", "undone")),
        (PromotionAmendment, ("amended",)),
    ):
        done = {act: getattr(model, f"{act}_by") == actor for act in acts}
        values: dict[str, Any] = {
            f"{act}_by_name": case((by_them, name), else_=getattr(model, f"{act}_by_name"))
            for act, by_them in done.items()
        }
        theirs = or_(*done.values())
        concerned = theirs if model is not Publication else or_(theirs, _has_submitter(actor))
        locking = lock_in_order(model, concerned)
        db.session.execute(
            update(model).where(theirs, once_locked(locking)).values(values),
            execution_options={"synchronize_session": False},
        )
    _erase_submitter(name, actor)


def _subjects_of_publication() -> Any:
    """Make the rows of the subjects of a publication, for any row of it: `key` and `value`."""
    listed = func.jsonb_each(Publication.rules["subjects"])
    return listed.table_valued(column("key", Text), column("value", JSONB)).render_derived(name="subject")


def _has_submitter(actor: str) -> Any:
    """Tell whether a publication names somebody as the submitter of a subject."""
    each = _subjects_of_publication()
    by_them = each.c.value["submitted_by"].astext == actor
    return select(each.c.key).where(by_them).correlate(Publication).exists()


def _erase_submitter(name: str, actor: str) -> None:
    """Replace the name of a submitter of subjects by the pseudonym, in publications locked before.

    The new rules are read and then written, since an UPDATE takes its values from Python. They pass as PostgreSQL's
    text of them: all else in them stays to the letter.
    """
    each = _subjects_of_publication()
    by_them = each.c.value["submitted_by"].astext == actor
    pseudonym = func.jsonb_build_object("submitted_by_name", cast(name, Text))
    erased = case((by_them, each.c.value.op("||")(pseudonym)), else_=each.c.value)
    subjects = select(func.jsonb_object_agg(each.c.key, erased)).correlate(Publication).scalar_subquery()
    rules = Publication.rules.op("||")(func.jsonb_build_object("subjects", subjects))
    rows = db.session.execute(select(Publication.id, cast(rules, Text)).where(_has_submitter(actor))).all()
    if rows:
        ids, texts = zip(*rows, strict=True)
        given = unnest_rows(id=(Uuid, list(ids)), rules=(Text, list(texts)))
        db.session.execute(
            update(Publication).where(Publication.id == given.c.id).values(rules=cast(given.c.rules, JSONB)),
            execution_options={"synchronize_session": False},
        )


@read_model
def _lock_registers(guardian_id: UUID) -> Query:
    """Lock the registers concerned by erasing a guardian's account."""
    return locking_registers(select(Guardian.user_id).where(Guardian.id == guardian_id).scalar_subquery())


def _lock(model: type[Any], record_id: UUID) -> tuple[Any, User]:
    """Lock a student or an employee, and their account, FOR NO KEY UPDATE; raises NotFound.

    Before, the registers concerned by the erasure, and between both the guardians: a student's, and the guardian with
    the account.
    """
    is_one = model.id == record_id
    account = select(model.user_id).where(is_one).scalar_subquery()
    registers = locking_registers(account, record_id if model is Student else None)
    person = select(model.id).where(is_one, once_locked(registers)).with_for_update(key_share=True)
    theirs = select(StudentGuardian.guardian_id).where(StudentGuardian.student_id == record_id)
    concerned = or_(Guardian.user_id == account, Guardian.id.in_(theirs))
    guardians = lock_in_order(Guardian, concerned, once_locked(person))
    row = db.session.execute(
        select(model, User)
        .join(User, User.id == model.user_id)
        .where(is_one, once_locked(guardians))
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        raise not_found(model)
    record, user = row
    return record, user


def _erase_account(user: User, pseudonym: str, principal: Principal, *together: Executable) -> None:
    """Erase an account; the statements `together` go out in one round trip with its own."""
    held = require_to_change(principal, user.id, "Erasing this person")
    was_deleted, moment = user.deleted_at is not None, now()
    user.username = f"erased-{pseudonym}"
    user.first_name, user.last_name = FIRST_NAME, pseudonym[:8].upper()
    _empty(user)
    user.session_number += 1
    user.deleted_at = user.deleted_at or moment
    user.erased_at = moment
    erase_answers()
    _erase_signatory(user)
    db.session.flush()
    actor, name = str(user.id), f"{user.first_name} {user.last_name}"
    unlinked = execute(
        *together,
        *without_name(actor, name),
        _rename_linker(actor, name),
        _rename_inviter(actor, name),
        _rename_giver(actor, name),
        _take_roles(user.id),
        _delete_sessions(user.id),
        _delete_identities(user.id),
        _delete_invitation(user.id),
        delete_photo(user.id),
        _unlink_guardian(user.id),
    )
    if unlinked is not None:
        audit_change(GUARDIAN, unlinked["id"], old={"user": user.id}, new={"user": None})
    if held.all_of_them and not was_deleted:
        require_administrator("Erasing this person")


def _deleting_of_user(model: type[Any]) -> Any:
    """Make the statement deleting a user's rows of a model, by the user's id."""

    @statement
    def deleting(user_id: UUID) -> Any:
        return delete(model).where(model.user_id == user_id)

    return deleting


def _renaming_maker(model: type[Any]) -> Any:
    """Make the statement replacing the name of the maker of rows of a model, by their id, by another."""

    @statement
    def renaming(actor: str, name: str) -> Any:
        return update(model).where(model.created_by == actor).values(created_by_name=name)

    return renaming


@statement
def _rename_giver(actor: str, name: str) -> Any:
    """Replace the name of the giver of passwords, by their id, by another."""
    given = update(User).where(User.password_given_by == actor)
    return given.values(password_given_by_name=name)


@statement
def _without_dates(student_id: UUID) -> Any:
    """Empty the first and the last day of a student in each class."""
    return update(Enrollment).where(Enrollment.student_id == student_id).values(emptied(Enrollment))


_take_roles, _delete_sessions, _delete_identities, _delete_invitation = map(
    _deleting_of_user, (UserRole, UserSession, UserIdentity, Invitation)
)
_rename_linker, _rename_inviter = map(_renaming_maker, (UserIdentity, Invitation))


@statement
def _unlink_guardian(account: UUID) -> Any:
    """Take the account from its guardian; the guardian stays, without one. Answers their id."""
    unlinking = update(Guardian).where(Guardian.user_id == account).values(user_id=None)
    return unlinking.returning(Guardian.id)


def _delete_contacts(user: User, but: UUID | None = None) -> list[UUID]:
    deleting = delete(Contact).where(Contact.owner_id == user.id)
    if but is not None:
        deleting = deleting.where(Contact.id != but)
    return list(db.session.scalars(deleting.returning(Contact.id)))


def _delete_part(model: type[Any], employee_id: UUID) -> UUID | None:
    deleted: UUID | None = db.session.scalar(
        delete(model).where(model.employee_id == employee_id).returning(model.id)
    )
    return deleted


def _audit_erasure(entity: str, record: Any, **records: Any) -> None:
    """Enter the erasure of a person in the audit log: only the ids, for the operator to find entries by."""
    db.session.flush()
    audit_change(
        entity, record.id, old={"erased": False}, new={"erased": True, "user": record.user_id, **records}
    )
