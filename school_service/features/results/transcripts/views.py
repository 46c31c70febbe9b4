"""Transcripts over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.policies import own_student
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import answered_beside
from school_service.features.results.transcripts import reads, service
from school_service.features.results.transcripts.schemas import TranscriptSchema
from school_service.web.app_state import current_user_id
from school_service.web.blueprint import Blueprint
from tenants.clock import now

blp = Blueprint("transcripts", __name__, description="Everything that was published of a student.")


@blp.route("/students/<uuid:id>/transcript")
class Transcript(MethodView):
    """The transcript of a student."""

    @blp.requires(own_student(Permission.RESULTS_READ), own=related("FSG"))
    @blp.returns(TranscriptSchema, if_empty=service.check_transcript)
    def get(self, id: UUID) -> Any:
        """Show the transcript of a student: every term that is published, the oldest session first.

        Students need no permission for their own: they see positions as the school shows them.
        """
        return answered_beside(reads.transcript(id, current_user_id()), {"generated_at": now()})
