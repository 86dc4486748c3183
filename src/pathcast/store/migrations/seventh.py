"""Profiles have a period in which they are valid; those that were there before are always."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the columns."""
    for name in ("valid_from", "valid_until"):
        op.add_column("profiles", sa.Column(name, sa.String, nullable=False, server_default=""))
