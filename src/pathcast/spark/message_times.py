"""When messages say they were made: the column `message_time` of inboxes.

`source.time` names a column that is passed through (`source.columns`), or is an XPath, which begins
with a slash or an axis of its own and is evaluated on each message that is delivered; the first
node counts. A time is an `xs:dateTime` or an `xs:date`; without a zone it is UTC.

Example:
    >>> times = MessageTimes("//@at", (), Limits())
    >>> batch = pa.record_batch({"message": [b"<m at='2026-11-22T10:00:00+02:00'/>", b"<m/>"]})
    >>> [each and each.isoformat() for each in times.of(batch).to_pylist()]
    ['2026-11-22T08:00:00+00:00', None]

A message without such a time, or with another text there, has none: the column is null, and the run
counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final
from xml.sax.saxutils import unescape

import pyarrow as pa

from pathcast.errors import invalid_setting
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.moments import moment_of
from pathcast.registry import Registry
from pathcast.spark.schemas import TIME

_OPEN: Final = b"<t>"
_CLOSE: Final = b"</t>"


def is_path(time: str) -> bool:
    """Returns whether `source.time` is an XPath, not the name of a column."""
    return "/" in time or "::" in time or "@" in time


@dataclass(frozen=True)
class MessageTimes:
    """Finds the times of messages; pickled, and compiled by each worker once.

    Cost: of a path, reading each message that is delivered once more; of a column, nothing.
    """

    time: str
    namespaces: Sequence[tuple[str, str]]
    limits: Limits

    @property
    def is_path(self) -> bool:
        """Whether messages have to be read for their times."""
        return is_path(self.time)

    def check(self) -> None:
        """Returns if the path can be evaluated.

        Raises:
            ConfigError: It is no XPath, or gives no nodes.
        """
        if is_path(self.time):
            assert self._registry is not None

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Returns the time of each message of a batch; null where it has none.

        Raises:
            ConfigError: The column is neither text nor a time.
        """
        if self._registry is None:
            return self._of_column(batch.column(self.time))
        texts: list[str | None] = [None] * len(batch)
        found = self._registry.deliver(batch.column("message"))
        numbers = found.numbers
        results = numbers.column("fragment").to_pylist()
        for row, result in zip(numbers.column("row").to_pylist(), results, strict=True):
            texts[row] = _text_of(result)
        return _times(texts)

    @cached_property
    def _registry(self) -> Registry | None:
        if not is_path(self.time):
            return None
        registry = Registry(self.limits, dict(self.namespaces), threads=1)
        query = f"<t>{{string(({self.time})[1])}}</t>"
        report = registry.add([Subscription("time", "", query, "fragment")])
        for error in report.rejected.values():
            raise invalid_setting("source.time", f"{self.time}: {error.message}")
        return registry

    def _of_column(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if pa.types.is_timestamp(kind):
            if kind.tz is None:
                column = column.cast(pa.timestamp(kind.unit, "UTC"))
            return column.cast(TIME, safe=False)
        if pa.types.is_date(kind):
            return column.cast(pa.timestamp("us")).cast(TIME)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return _times(column.to_pylist())
        raise invalid_setting(
            "source.time", f"column {self.time!r} is {kind}, which is neither a time nor text"
        )


def _text_of(result: bytes) -> str:
    return unescape(result.removeprefix(_OPEN).removesuffix(_CLOSE).decode())


def _times(texts: Sequence[str | None]) -> pa.Array:
    return pa.array([None if text is None else _time_of(text) for text in texts], TIME)


def _time_of(text: str) -> datetime | None:
    try:
        return moment_of(text.strip())
    except ValueError:
        return None
