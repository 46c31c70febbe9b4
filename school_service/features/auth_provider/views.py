"""The built-in provider's endpoints under /auth."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.auth.login_throttle import LoginThrottle
from school_service.features.auth_provider import service
from school_service.features.auth_provider.schemas import KeySetSchema, TokenRequestSchema, TokenSchema
from school_service.web.attempted_username import attempted_username
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import client_address
from school_service.web.request_scope import app_state

REALM = "token endpoint"
"""Where clients' attempts are counted, apart from those of schools' users."""

# Seconds: a new key is published for longer than this before it signs (docs/operators.md).
KEYS_MAX_AGE = 300

blp = Blueprint("auth", __name__, url_prefix="/auth", description="The built-in identity provider.")


@blp.route("/oauth/token")
class Tokens(MethodView):
    """Tokens for machine clients."""

    @blp.public
    @blp.answers(401, 403, 429)
    @blp.arguments(TokenRequestSchema)
    @blp.returns(TokenSchema)
    def post(self, credentials: dict[str, Any]) -> Any:
        """Issue a token to a machine client by its secret (client credentials)."""
        attempted_username(REALM, credentials["client_id"])
        return service.issue_token(
            app_state().verifier.key,
            client_id=credentials["client_id"],
            client_secret=credentials["client_secret"],
            audience=credentials["audience"],
            expected_audience=app_state().settings.auth_audience,
            throttle=LoginThrottle(REALM, client_address()),
        )


@blp.route("/.well-known/jwks.json")
class Keys(MethodView):
    """The keys that the service's tokens are signed with."""

    @blp.public
    @blp.returns(KeySetSchema, max_age=KEYS_MAX_AGE)
    def get(self) -> Any:
        """Show the public keys that verify the service's tokens."""
        return {"keys": app_state().verifier.keys.public_jwks}
