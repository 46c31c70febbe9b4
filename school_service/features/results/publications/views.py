"""Publications over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.classes.cohort_subjects.reads import cohort_subject, lock_cohort_of
from school_service.features.classes.cohort_subjects.schemas import (
    CohortSubjectChangesSchema,
    CohortSubjectSchema,
)
from school_service.features.results.publications import reads, service
from school_service.features.results.publications.judging import Plan
from school_service.features.results.publications.schemas import (
    ChangedCardSchema,
    DryRunSchema,
    NewPublicationSchema,
    NewVersionSchema,
    PublicationFilterSchema,
    PublicationReopeningSchema,
    PublicationSchema,
    PublishedCardSchema,
    ReopenedPublicationSchema,
    ReopeningDryRunSchema,
)
from school_service.features.results.takers import service as takers
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run

blp = Blueprint(
    "publications", __name__, description="The released results of batches, version by version, frozen."
)


@blp.route("/publications")
class Publications(MethodView):
    """The released results."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.returns_page(PublicationSchema, if_empty=service.check_publication_filter)
    @blp.arguments(PublicationFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List publications, the newest first: all, or those that fit every filter."""
        return reads.publications(**filters)

    @blp.requires(Permission.RESULTS_WRITE, run=Run.COMPUTES)
    @blp.arguments(NewPublicationSchema)
    @blp.arguments(DryRunSchema, location="query")
    @blp.returns_list(NewVersionSchema)
    def post(self, body: dict[str, Any], options: dict[str, Any]) -> Any:
        """Publish the results of arms of a cohort in a term, all or none: every card is frozen as it is then.

        All that counts has to be submitted, and earlier terms published; 409 names the gaps, and subjects with takers
        in which nothing counts, unless `without_subjects` names them. The version after a reopened one is of the same
        students, gone since or not, and of newcomers with a part in the term.
        """
        act = service.rehearse if options["dry_run"] else service.publish
        return act(Plan(**body))


@blp.route("/publications/<uuid:id>")
class OnePublication(MethodView):
    """A version of a batch's results in a term."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.returns(PublicationSchema)
    def get(self, id: UUID) -> Any:
        """Show a publication."""
        return reads.publication(id)


@blp.route("/publications/<uuid:id>/changes")
class ChangesOfPublication(MethodView):
    """How a version differs from the one before."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.returns_list(ChangedCardSchema, if_empty=service.check_publication)
    def get(self, id: UUID) -> Any:
        """List the students whose own figures on the report card differ from the version before, by name.

        Their cards are to be printed again. Cards that differ in the figures of the class alone are not listed.
        """
        return service.changed_cards(publication_id=id)


@blp.route("/publications/<uuid:id>/cards")
class CardsOfPublication(MethodView):
    """The report cards of a version."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.returns_list(PublishedCardSchema, if_empty=service.check_publication)
    def get(self, id: UUID) -> Any:
        """List the report cards of a version, by name, whether it is replaced or withdrawn since or not."""
        return reads.cards_of(id)


@blp.route("/publications/<uuid:id>/reopening")
class ReopeningOfPublication(MethodView):
    """The reopening of a publication, or its withdrawal."""

    @blp.requires(Permission.RESULTS_WRITE)
    @blp.arguments(PublicationReopeningSchema)
    @blp.arguments(ReopeningDryRunSchema, location="query")
    @blp.returns(ReopenedPublicationSchema)
    def post(self, body: dict[str, Any], options: dict[str, Any], id: UUID) -> Any:
        """Reopen a publication, with the reason; or withdraw it, so that students and others see it no more.

        A reopened version is still shown, marked so, until the next one is published. A dry run answers the `chain` of
        acts until then.
        """
        act = service.rehearse_reopening if options["dry_run"] else service.reopen
        return act(publication_id=id, **body)


# A cohort subject's other operations are in a wing that knows nothing of publications.
@blp.route("/cohort-subjects/<uuid:id>", tags=["cohort-subjects"])
class ChangingCohortSubject(MethodView):
    """A subject taught to a cohort, to all of it or as an elective."""

    @blp.requires(Permission.COHORT_SUBJECTS_WRITE)
    @blp.arguments(CohortSubjectChangesSchema)
    @blp.returns(CohortSubjectSchema)
    @blp.if_match(cohort_subject, lock_cohort_of)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Make a cohort subject elective or compulsory; compulsory, all of the cohort take it at once.

        An elective keeps its takers. Terms with published results keep theirs, also when they are published again.
        409 names terms and classes while it is submitted and results are not published yet, or are reopened.
        """
        return takers.change_cohort_subject(cohort_subject_id=id, **changes)


@blp.route("/cohort-subjects/<uuid:id>/students", tags=["cohort-subjects"])
class StudentsOfCohortSubject(MethodView):
    """The students of a cohort subject."""

    @blp.requires(Permission.COHORT_SUBJECTS_WRITE)
    @blp.takes_ids()
    @blp.returns(CohortSubjectSchema)
    def patch(self, student_ids: list[UUID], id: UUID) -> Any:
        """Let students of the cohort take the subject, beside its takers."""
        return cohort_subject(takers.take_subject(cohort_subject_id=id, student_ids=student_ids))


@blp.route("/cohort-subjects/<uuid:id>/students/<uuid:student_id>", tags=["cohort-subjects"])
class StudentOfCohortSubject(MethodView):
    """A student in a cohort subject."""

    @blp.requires(Permission.COHORT_SUBJECTS_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID, student_id: UUID) -> Any:
        """Let a student drop an elective; scores stay."""
        return takers.drop_subject(cohort_subject_id=id, student_id=student_id)
