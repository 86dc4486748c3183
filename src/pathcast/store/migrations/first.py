"""The first schema: log, requests, leases, profiles, sources, catalogs and brokers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Makes the tables."""
    head = op.create_table(
        "head",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("start", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(head, [{"one": 1, "position": 0, "start": 0}])
    op.create_table(
        "log",
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("content", sa.Text),
    )
    op.create_table(
        "requests",
        sa.Column("request", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("id", sa.String, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
    op.create_table(
        "profiles",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("deliver", sa.String, nullable=False),
        sa.Column("namespaces", sa.JSON, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("pending", sa.Boolean, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_profiles_owner", "profiles", ["owner"])
    op.create_index("ix_profiles_host", "profiles", ["host"])
    op.create_table(
        "sources",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("location", sa.String, nullable=False),
        sa.Column("catalog", sa.BigInteger, nullable=False),
        sa.Column("messages_a_second", sa.Float, nullable=False),
        sa.Column("message_bytes", sa.Float, nullable=False),
        sa.Column("root", sa.String, nullable=False),
        sa.Column("pending", sa.Boolean, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "catalogs",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("schema", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_catalogs_source", "catalogs", ["source"])
    op.create_table(
        "brokers",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("location", sa.String, nullable=False),
        sa.Column("bandwidth", sa.Float, nullable=False),
        sa.Column("profiles_max", sa.BigInteger, nullable=False),
        sa.Column("partitions", sa.JSON, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
