"""A source's rows as Arrow has them. It knows nothing of Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

SOURCE_SCHEMA: Final = pa.schema(
    [
        ("message_id", pa.string()),
        ("message", pa.binary()),
        pa.field("bytes", pa.int64(), nullable=False),
        ("code", pa.string()),
        ("reason", pa.string()),
    ]
)
"""`schemas.SOURCE` as Arrow has it."""
