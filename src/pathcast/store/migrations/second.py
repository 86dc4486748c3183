"""Profiles have steps; those that were there before have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the column."""
    steps = sa.Column("steps", sa.JSON, nullable=False, server_default="[]")
    op.add_column("profiles", steps)
