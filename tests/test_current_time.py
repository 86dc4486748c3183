"""The time of a message is what it is given, wherever it is asked for.

If these fail, a replay delivers something else than the first time, or a subscription compares with
the time of another message.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from broker_engines import broker_engines
from oracles.engines import EngineName, made_by
from pathcast import Registry, Subscription
from pathcast.errors import ConfigError

NOON = datetime(2026, 2, 28, 12, 0, 0, 123_456, tzinfo=UTC)
TIMES = "<t>{//a/@n}{current-dateTime(), current-date(), current-time(), implicit-timezone()}</t>"
ROWS = [
    Subscription("late", "ann", "//a[xs:dateTime(@until) < current-dateTime()]", "ids"),
    Subscription("said", "ann", TIMES),
    Subscription("stepped", "ann", TIMES, steps=("drop //c",)),
    Subscription("bound", "ann", "for $a in //a where $a/@n < current-dateTime() return $a"),
]
MESSAGE = b"<m><a n='1' until='2026-02-28T12:00:00Z'><c/></a></m>"


def asked(engine: EngineName) -> Registry:
    registry: Registry = made_by(engine, Registry, threads=1)
    assert registry.add(ROWS).accepted == len(ROWS)
    return registry


def said(registry: Registry, messages: Any, times: Any) -> list[tuple[int, str, bytes | None]]:
    found = registry.deliver(messages, times=times).results
    return [(row, name, fragment) for row, name, _, fragment in found]


@broker_engines
def test_each_message_has_its_time(engine: EngineName) -> None:
    registry = asked(engine)
    later = NOON.astimezone(timezone(timedelta(hours=5))) + timedelta(days=1)
    told = said(registry, [MESSAGE, None, MESSAGE], [NOON - timedelta(seconds=1), NOON, later])
    first = b"2026-02-28T11:59:59.123456Z 2026-02-28Z 11:59:59.123456Z PT0S"
    second = b"2026-03-01T12:00:00.123456Z 2026-03-01Z 12:00:00.123456Z PT0S"
    texts = {(row, name): fragment for row, name, fragment in told}
    assert texts == {
        (0, "said"): b'<t n="1">' + first + b"</t>",
        (0, "stepped"): b'<t n="1">' + first + b"</t>",
        (2, "late"): None,
        (2, "said"): b'<t n="1">' + second + b"</t>",
        (2, "stepped"): b'<t n="1">' + second + b"</t>",
    }


@broker_engines
def test_one_time_is_that_of_all_and_a_column_is_one_of_each(engine: EngineName) -> None:
    registry = asked(engine)
    one = said(registry, [MESSAGE] * 6, NOON)
    column = pa.array([NOON] * 6, pa.timestamp("us", "UTC"))
    naive = [NOON.replace(tzinfo=None)] * 6
    assert len(one) == 18
    assert one == said(registry, [MESSAGE] * 6, column) == said(registry, [MESSAGE] * 6, naive)


@broker_engines
def test_without_a_time_it_is_now(engine: EngineName) -> None:
    registry, begun = asked(engine), datetime.now(UTC)
    for times in (None, [None, None], pa.array([None, None], pa.timestamp("ms", "UTC"))):
        told = said(registry, [MESSAGE] * 2, times)
        fragments = [text for _, name, text in told if name == "said"]
        for fragment in fragments:
            assert fragment is not None
            found = datetime.fromisoformat(fragment[9:].split()[0].decode())
            assert begun - timedelta(seconds=1) <= found <= datetime.now(UTC)
        assert len(set(fragments)) == 1


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ([NOON], "1 times for 2 messages"),
        (["2026-01-01T00:00:00", NOON], "str, which is no datetime"),
        (pa.array([1, 2]), "a column of int64"),
    ],
)
def test_what_is_no_time_of_the_messages_is_refused(times: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        asked("kernel").deliver([MESSAGE] * 2, times=times)
