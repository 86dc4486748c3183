"""`pathcast top`: how a pipeline, broker or peer is doing, live in the terminal.

Of a pipeline it reads what the pipeline writes: its commits. Of a URL it reads a page of metrics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from urllib.request import urlopen

import typer
from rich.live import Live
from rich.text import Text

from pathcast.cli.columns import in_bytes, number
from pathcast.cli.console import answers, extra
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.outputs import find_output
from pathcast.errors import ConfigError
from pathcast.limits import MIB

if TYPE_CHECKING:
    from pathcast.spark import PipelineStatus

TOP_EPILOG: Final = (
    "Work is counted in steps, not in time: pathcast bench pipeline.toml MESSAGE... measures the "
    "time of the dearest. " + EXIT_CODES_HELP
)

ANSWER_SECONDS: Final = 5.0
"""How long a page of metrics may take."""

PAGE_BYTES_MAX: Final = 16 * MIB
"""Bytes of a page of metrics that are read."""

VERSION_SHOWN: Final = 12
"""Characters of the version of a snapshot that are shown."""

_PREFIX: Final = "pathcast_"

Table: TypeAlias = list[tuple[str, ...]]
"""Rows of columns."""


class MetricSample(NamedTuple):
    """A value of a page of metrics.

    Attributes:
        value: As the page has it.
        is_counted: Whether it only grows, so that its rate says something.
    """

    value: float
    is_counted: bool


def top(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PIPELINE.toml|OUTPUT|URL",
            help="The TOML file of a pipeline, or its output, a directory; or the URL of a page of "
            "metrics, such as http://127.0.0.1:9464 of a run (mode.metrics), a broker or a peer.",
        ),
    ],
    once: Annotated[bool, typer.Option("--once", help="Print one table, and end.")] = False,
    interval: Annotated[
        float,
        typer.Option("--interval", metavar="SECONDS", min=0.1, help="Between two looks."),
    ] = 2.0,
    window: Annotated[
        float,
        typer.Option(
            "--window", metavar="SECONDS", min=1, help="Of a pipeline: what rates are over."
        ),
    ] = 60.0,
) -> ExitCode:
    """Show how a pipeline, broker or peer is doing, again and again.

    Of a pipeline: the last micro-batch and the one that runs, messages, bytes
    and deliveries a second, refusals by reason, lag (from when the oldest
    file of the last micro-batch was written to its commit), time by stage,
    the snapshot of the subscriptions and its age, and the hundred dearest
    subscriptions with their shares of the work that single queries take. It
    is read from the output, whether or not the pipeline runs, and nothing has
    to be switched on.

    Of a page of metrics: what grows, with its rate between two looks, and all
    else as it is; with --once after one interval.

        pathcast top pipeline.toml
        pathcast top http://127.0.0.1:9464 --once
    """
    is_page = place.startswith(("http://", "https://"))
    tables = _of_page(place, interval) if is_page else _of_pipeline(place, interval, window)
    if once:
        for table in islice(tables, 1):
            _print(table)
        return ExitCode.OK
    out = answers()
    if not out.is_terminal:
        for table in tables:
            _print(table)
            out.print()
            typer.get_text_stream("stdout").flush()
    with Live(console=out, auto_refresh=False) as live:
        for table in tables:
            live.update(Text("\n".join(_lines(table)), no_wrap=True), refresh=True)
    return ExitCode.OK


def _of_pipeline(place: str, interval: float, window: float) -> Iterator[Table]:
    with extra("spark", "pathcast top"):
        from pathcast.spark import OutputWatch
        from pathcast.spark.storage import as_storage
    found, settings = find_output(place)
    output = as_storage(found)
    checkpoint = output.below("_checkpoint") if settings is None else settings.checkpoint
    watch = OutputWatch(output, checkpoint, window)
    while True:
        yield _status(str(output), watch.look())
        time.sleep(interval)


def _status(place: str, status: PipelineStatus) -> Table:
    window = f"in {number(status.window_seconds)} s"
    rows: Table = [("output", place)]
    counted = status.counted
    done = "none is complete"
    if status.batch_id is not None:
        done = f"{status.batch_id:,}, complete {_ago(status.at, status.committed_at)}"
    if status.running is not None:
        which, since = status.running
        done += f"; {which:,} was begun {_ago(status.at, since)}"
    rows.append(("micro-batch", done))
    if status.generation is not None:
        held, taken_up_at = status.generation, status.generation_at
        told = f"{held.subscriptions:,} with {held.queries:,} queries, snapshot "
        told += held.version[:VERSION_SHOWN]
        told += "" if taken_up_at is None else f", taken up {_ago(status.at, taken_up_at)}"
        rows.append(("subscriptions", told))
    if status.lag_seconds is not None:
        rows.append(("lag", f"{_seconds(status.lag_seconds)} for the oldest file of the last"))
    rows += [("",), (window, "a second", "all")]
    for name, count in (
        ("messages", counted.messages),
        ("matches", counted.matches),
        ("deliveries", counted.deliveries),
        ("refused", sum(counted.refused.values())),
        ("undecided", counted.undecided),
        ("unread files", counted.unread),
    ):
        rows.append((name, number(count / status.window_seconds), f"{count:,}"))
    a_second = in_bytes(round(counted.bytes / status.window_seconds))
    rows.insert(-5, ("bytes", a_second, in_bytes(counted.bytes)))
    rows.append(("",))
    if counted.batches:
        each = _seconds(status.seconds / counted.batches)
        rows.append(("micro-batches", f"{counted.batches:,}, {each} each"))
    total = sum(status.stages.values())
    if total:
        shares = (f"{name} {seconds / total:.0%}" for name, seconds in status.stages.items())
        rows.append(("time of tasks", ", ".join(shares)))
    for code, count in sorted(counted.refused.items(), key=lambda each: -each[1]):
        rows.append((f"refused: {code}", f"{count:,}"))
    if status.dearest:
        rows += [("",), ("dearest", "of the work", "subscriber")]
    for dear in status.dearest:
        takers = f" and {dear.takers - 1:,} more" if dear.takers > 1 else ""
        share = f"{dear.steps / counted.work:.1%}"
        rows.append((dear.subscription_id, share, (dear.subscriber or "nobody") + takers))
    return rows


def _of_page(url: str, interval: float) -> Iterator[Table]:
    before, at = _read_page(url), time.monotonic()
    while True:
        time.sleep(interval)
        now, before_at = _read_page(url), at
        at = time.monotonic()
        yield _samples(url, now, before, at - before_at)
        before = now


def _read_page(url: str) -> dict[str, MetricSample]:
    """The samples of a page by name and labels.

    Raises:
        ConfigError: Nobody answers there, or with something else.
    """
    with extra("net", "pathcast top of a URL"):
        from prometheus_client.parser import text_string_to_metric_families
    try:
        if urlsplit(url).path in ("", "/"):
            url = url.rstrip("/") + "/metrics"
        with urlopen(url, timeout=ANSWER_SECONDS) as answer:
            text = answer.read(PAGE_BYTES_MAX).decode()
        families = list(text_string_to_metric_families(text))
    except (OSError, HTTPException, ValueError) as error:
        told = str(getattr(error, "reason", error)).partition("\n")[0] or type(error).__name__
        reason = f"{told}; a run shows metrics where mode.metrics says, a broker or peer where "
        reason += "`metrics` in its section says"
        raise ConfigError("config.invalid", key=url, reason=reason) from error
    found: dict[str, MetricSample] = {}
    for family in families:
        is_counted = family.type in ("counter", "histogram", "summary")
        for sample in family.samples:
            if sample.name.endswith(("_bucket", "_created")):
                continue
            labels = ", ".join(f"{value}" for _, value in sorted(sample.labels.items()))
            name = sample.name.removeprefix(_PREFIX) + (f" {labels}" if labels else "")
            found[name] = MetricSample(sample.value, is_counted)
    return found


def _samples(
    url: str, now: Mapping[str, MetricSample], before: Mapping[str, MetricSample], seconds: float
) -> Table:
    rows: Table = [("page", url), ("",), ("counted", "a second", "all")]
    for name, sample in now.items():
        if sample.is_counted and sample.value:
            # Of a process that has begun anew meanwhile, there is nothing to compare with.
            grown = sample.value - before.get(name, sample).value
            rows.append((name, number(max(0.0, grown) / seconds), number(sample.value)))
    rows += [("",), ("as it is",)]
    rows += [
        (name, number(each.value))
        for name, each in now.items()
        if not each.is_counted and not math.isnan(each.value)
    ]
    return rows


def _print(table: Table) -> None:
    out = answers()
    for line in _lines(table):
        out.print(line)


def _lines(table: Table) -> list[str]:
    """Rows with their columns under each other; the last column of a row may be of any length."""
    first = max(len(row[0]) for row in table)
    second = max((len(row[1]) for row in table if len(row) > 2), default=0)
    return [_line(row, (first, second)) for row in table]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, *row[len(widths) :]]).rstrip()


def _ago(now: float, then: float) -> str:
    return f"{_seconds(max(0.0, now - then))} ago"


def _seconds(seconds: float) -> str:
    """A time with two digits or so.

    Example:
        >>> _seconds(0.04), _seconds(12.3), _seconds(200), _seconds(7_500), _seconds(200_000)
        ('0.04 s', '12 s', '3.3 min', '2.1 h', '2.3 d')
    """
    for least, size, unit in ((86_400, 86_400, "d"), (3_600, 3_600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
