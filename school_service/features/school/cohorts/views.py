"""Cohorts and batches over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.school.cohorts import reads, service
from school_service.features.school.cohorts.schemas import (
    BatchChangesSchema,
    BatchSchema,
    CohortFilterSchema,
    CohortPlaceSchema,
    CohortSchema,
    ListedCohortSchema,
    NewBatchSchema,
    NewCohortSchema,
)
from school_service.features.school.models import Batch, Cohort
from school_service.web.blueprint import Blueprint

blp = Blueprint("cohorts", __name__, description="Classrooms in an academic session, and their arms.")


@blp.route("/cohorts")
class Cohorts(MethodView):
    """The school's cohorts."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns_list(ListedCohortSchema, if_empty=service.check_session)
    @blp.arguments(CohortFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the cohorts, the newest session first, or those of a session with their arms."""
        return reads.cohorts(**filters)

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(NewCohortSchema)
    @blp.returns(CohortSchema)
    def post(self, cohort: dict[str, Any]) -> Any:
        """Create a cohort, with its batches, by default one, A; the first one's id is the cohort's."""
        return reads.cohort(service.create_cohort(**cohort).id)


@blp.route("/cohorts/<uuid:id>")
class OneCohort(MethodView):
    """A cohort."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns(CohortSchema)
    def get(self, id: UUID) -> Any:
        """Show a cohort."""
        return reads.cohort(id)

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(CohortPlaceSchema)
    @blp.returns(CohortSchema)
    @blp.if_match(reads.cohort, row_lock(Cohort))
    def patch(self, cohort: dict[str, Any], id: UUID) -> Any:
        """Give a cohort another classroom, or another session as long as nothing has happened in it.

        A cohort that has, or had, students, or that has assessments or metrics, keeps its session.
        """
        return reads.cohort(service.change_cohort(cohort_id=id, **cohort).id)

    @blp.requires(Permission.COHORTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.cohort, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a cohort, and its arms, that no student ever was in and no subject is taught to."""
        return service.delete_cohort(cohort_id=id)


@blp.route("/cohorts/<uuid:id>/batches")
class Batches(MethodView):
    """The arms of a cohort."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns_list(BatchSchema, if_empty=service.check_cohort)
    def get(self, id: UUID) -> Any:
        """List the arms of a cohort by name."""
        return reads.batches(id)

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(NewBatchSchema)
    @blp.returns(BatchSchema)
    def post(self, batch: dict[str, Any], id: UUID) -> Any:
        """Add an arm to a cohort."""
        return reads.batch(service.create_batch(cohort_id=id, **batch).id)


@blp.route("/batches/<uuid:id>")
class OneBatch(MethodView):
    """An arm of a cohort."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns(BatchSchema)
    def get(self, id: UUID) -> Any:
        """Show an arm of a cohort."""
        return reads.batch(id)

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(BatchChangesSchema(partial=True))
    @blp.returns(BatchSchema)
    @blp.if_match(reads.batch, row_lock(Batch))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Give an arm another name; published results keep the old one."""
        return reads.batch(service.change_batch(batch_id=id, **changes))

    @blp.requires(Permission.COHORTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.batch, reads.lock_cohort_of, service.BATCH_DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete an arm that no student ever was in; the first of a cohort is deleted with the cohort alone."""
        return service.delete_batch(batch_id=id)
