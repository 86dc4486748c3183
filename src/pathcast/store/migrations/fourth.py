"""Profiles have a former host; placements and samples of messages are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the columns and the tables."""
    former = sa.Column("former", sa.String, nullable=False, server_default="")
    handed = sa.Column("handed", sa.JSON, nullable=False, server_default="{}")
    op.add_column("profiles", former)
    op.add_column("profiles", handed)
    op.create_table(
        "placements",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("profiles", sa.BigInteger, nullable=False),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("unplaced", sa.Float, nullable=False),
        sa.Column("touched", sa.Float, nullable=False),
        sa.Column("visited", sa.Float, nullable=False),
        sa.Column("anew", sa.Float, nullable=False),
        sa.Column("measured_at", sa.BigInteger, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("wanted", sa.Boolean, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "samples",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("messages", sa.JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
