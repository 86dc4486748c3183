"""Profiles have a language; those that were there before chose none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("profiles", sa.Column("language", sa.String))
