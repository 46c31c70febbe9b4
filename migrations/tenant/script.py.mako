"""${message}"""

from __future__ import annotations

% for line in imports:
${line}
% endfor
% if imports:

% endif
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
% if upgrades:
    ${upgrades}
% endif
