"""Sources say whether their messages are validated; of those that were there before none are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds the column."""
    validated = sa.Column("validated", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("catalogs", validated)
