"""What operators are told in the log: each event once, with a level, and as JSON on request."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

import pathcast
from pathcast.cli.log import JsonFormatter
from pathcast.transport.events import CAUSES_MAX, EVENTS, LOG, RareEvents, log_event
from pathcast.transport.watching import Watch
from test_broker_process import certificates

PACKAGE = Path(pathcast.__file__).parent


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged meanwhile, as JSON."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter())
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    yield out
    LOG.removeHandler(handler)
    LOG.setLevel(before)


def events(lines: io.StringIO) -> list[dict[str, object]]:
    """The lines so far."""
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_every_event_of_the_catalogue_is_logged_somewhere_and_documented() -> None:
    assert len(EVENTS) > 20
    files = [path for room in ("transport", "cli") for path in PACKAGE.glob(f"{room}/*.py")]
    text = "".join(path.read_text() for path in files)
    page = PACKAGE.parents[1] / "docs" / "brokers.md"
    if not page.is_file():
        pytest.skip("not in a clone: there is no docs/brokers.md")
    documented = page.read_text()
    for name in EVENTS:
        assert text.count(f'"{name}"') > 1, f"nothing logs {name}"
        assert f"`{name}`" in documented, f"docs/brokers.md does not name {name}"


def test_a_line_of_json_has_stable_keys(lines: io.StringIO) -> None:
    log_event("neighbour.lost", name="a", neighbour="b\n")
    (line,) = events(lines)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("time")))
    assert line == {
        "level": "warning",
        "event": "neighbour.lost",
        "message": "a has lost its connection to b\n",
        "params": {"name": "a", "neighbour": "b\n"},
    }


def test_what_strangers_cause_is_logged_once_in_a_period_for_each_cause(
    lines: io.StringIO,
) -> None:
    now = 0.0
    rare = RareEvents(lambda: now)

    def refuse(caller: str) -> None:
        rare.log("caller.refused", (caller,), caller=caller, address="h:1", reason="no")

    for _ in range(1000):
        refuse("ann")
    refuse("bob")
    assert [each["params"]["caller"] for each in events(lines)] == ["ann", "bob"]  # type: ignore[index]
    for number in range(1000):
        refuse(f"stranger{number}")
    assert len(events(lines)) == CAUSES_MAX
    now = 61.0
    refuse("carl")
    again, others, carl = events(lines)[CAUSES_MAX:]
    assert (again["params"]["caller"], again["params"]["again"]) == ("ann", 999)  # type: ignore[index]
    assert others["params"] == {"others": 1002 - CAUSES_MAX}
    assert carl["params"]["caller"] == "carl"  # type: ignore[index]


def test_a_log_that_fills_is_told_at_thresholds_and_when_it_has_room_again(
    lines: io.StringIO,
) -> None:
    share = 0.0
    watch = Watch("a", lambda: None, lambda: share)
    told: list[tuple[float, object]] = []
    for share in (0.2, 0.5, 0.6, 0.49, 0.55, 0.8, 0.76, 1.0, 1.0, 0.3, 0.2, 0.5):
        before = len(events(lines))
        watch.look(datetime.now(UTC))
        told += [(share, each["event"]) for each in events(lines)[before:]]
    filling = "log.filling"
    expected = [(0.5, filling), (0.8, filling), (1.0, filling), (0.2, "log.freed"), (0.5, filling)]
    assert told == expected


def test_a_certificate_that_ends_is_told_before_and_after(
    lines: io.StringIO, tmp_path: Path
) -> None:
    trustme = pytest.importorskip("trustme")
    files = certificates(tmp_path, trustme.CA(), "a")
    end = files.end()
    watch = Watch("a", lambda: files)
    for days in (40, 29, 28, 6.5, 0.5, -1, -2):
        watch.look(end - timedelta(days=days))
    found = [(each["event"], each["params"].get("days")) for each in events(lines)]  # type: ignore[attr-defined]
    expiring = "certificate.expiring"
    assert found == [(expiring, 29), (expiring, 6), (expiring, 0), ("certificate.expired", None)]
    files.certificate.write_text("nothing")
    watch.look(end)
    watch.look(end)
    (line,) = events(lines)[4:]
    assert "has no certificate" in str(line["message"])
