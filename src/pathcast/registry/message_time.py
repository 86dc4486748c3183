"""When messages were, as the kernel is told it.

Example:
    >>> one = datetime(1970, 1, 1, 0, 0, 1)
    >>> micros_of(one, 3), micros_of([one, None], 2)[0]
    ([1000000], 1000000)
    >>> micros_of(pa.array([1, 2], pa.timestamp("ms", "UTC")), 2)
    [1000, 2000]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import pyarrow as pa

from pathcast.errors import ConfigError
from pathcast.moments import us_of

ArrivalTimes: TypeAlias = datetime | Sequence[datetime | None] | pa.Array | pa.ChunkedArray
"""The time of all messages, or of each; one without a time zone is in UTC. An Arrow column is of
timestamps. A message without a time came just now."""


def micros_of(times: ArrivalTimes | None, messages: int) -> list[int]:
    """Microseconds since the beginning of 1970: one for each message, one for all, or none for now.

    Args:
        times: As they are given.
        messages: How many messages there are.

    Raises:
        ConfigError: There are not as many times as messages, or they are no times.
    """
    if times is None:
        return []
    if isinstance(times, datetime):
        return [_micros(times)]
    if isinstance(times, pa.Array | pa.ChunkedArray):
        if not pa.types.is_timestamp(times.type):
            raise _refused(f"a column of {times.type}, which is no timestamp")
        found = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())
        listed: list[int | None] = found.to_pylist()
    else:
        listed = [None if each is None else _micros(each) for each in times]
    if len(listed) != messages:
        raise _refused(f"{len(listed)} times for {messages} messages")
    now = _micros(datetime.now(UTC))
    return [now if each is None else each for each in listed]


def _micros(time: datetime) -> int:
    if not isinstance(time, datetime):
        raise _refused(f"{type(time).__name__}, which is no datetime")
    return us_of(time)


def _refused(reason: str) -> ConfigError:
    return ConfigError("config.invalid", key="times", reason=reason)
