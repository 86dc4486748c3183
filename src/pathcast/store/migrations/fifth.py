"""Changes have the time that they were made at; of those that were there before it is not known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the column, and an index to find the changes of one record."""
    op.add_column("log", sa.Column("at", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("ix_log_id", "log", ["id"])
