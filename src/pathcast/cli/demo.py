"""`pathcast demo`: messages of three domains through the Spark pipeline, to inboxes.

Half of the subscriptions are FLWR expressions, whose subscribers get each message in the shape that
they asked for; the others are told of it. The command writes this input, runs the pipeline of
`pathcast run` on local Spark, and shows what came of it, one message before and after.
It measures nothing: the first micro-batches of a JVM are no benchmark.
"""

from __future__ import annotations

import shutil
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow.compute as pc
import typer
from rich.console import Console

from pathcast.cli.console import answers, extra, say
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.registry import Registry, Snapshot
from pathcast.workload import DemoInput, write_demo

if TYPE_CHECKING:
    from pathcast.spark import PipelineSettings, Storage, Summary

MARKER = "pipeline.toml"
"""File by which a directory is known as that of an earlier demo, which may be replaced."""

INBOX_ROWS_SHOWN = 5
LINES_SHOWN = 16
WIDTH_SHOWN = 160
SHAPED_SHARE = 0.5

PIPELINE = """\
# What `make demo` ran. `pathcast run --describe` lists every key.
[source]
kind = "directory"
path = "messages"

[subscriptions]
path = "{subscriptions}"

[mode]
kind = "batch"
files_per_batch_max = 5000

[output]
path = "output"
"""


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIRECTORY", help="Input and output; replaced."),
    ] = Path("demo-output"),
    messages: Annotated[
        int,
        typer.Option(min=10, help="Messages."),
    ] = 20_000,
    queries: Annotated[
        int,
        typer.Option(min=10, help="Subscriptions."),
    ] = 10_000,
    subscribers: Annotated[int, typer.Option(min=1, help="Subscribers.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same demo.")] = 0,
) -> ExitCode:
    """Show the whole way: messages, subscriptions, Spark pipeline, one subscriber's inbox."""
    started = time.monotonic()
    clear_demo(out, MARKER)
    with extra("spark", "pathcast demo"):
        from pathcast.spark import load_settings, run
        from pathcast.spark.progress import progress_on
        from pathcast.spark.session import JVM_OPTIONS, local_session
    say(f"Writing {messages:,} messages and {queries:,} queries to {out}")
    written = write_demo(
        out,
        messages=messages,
        queries=queries,
        subscribers=min(subscribers, queries),
        seed=seed,
        shaped=SHAPED_SHARE,
    )
    say(
        f"{written.distinct_query_count:,} of the queries differ: half of them are FLWR "
        "expressions that shape what they deliver, half are paths whose subscribers get a notice"
    )
    pipeline = out / MARKER
    pipeline.write_text(PIPELINE.format(subscriptions=written.subscriptions.name), encoding="utf-8")
    settings = load_settings(pipeline)
    say("Starting Spark on this machine")
    # A short run: code that is compiled once, quickly, beats code that is compiled well.
    spark = local_session(
        settings.spark.master,
        conf=settings.spark.conf,
        jvm_options=(*JVM_OPTIONS, "-XX:TieredStopAtLevel=1"),
    )
    try:
        summary = run(settings, progress=progress_on(Console(stderr=True)), spark=spark)
        _show_summary(summary)
    finally:
        spark.stop()
    _show_what_next(out, pipeline, _show_delivery(written, settings))
    say(f"{time.monotonic() - started:.0f} s in all")
    return ExitCode.OK


def clear_demo(out: Path, marker: str) -> None:
    """Takes out an earlier demonstration, which has a file of that name; anything else is left.

    Raises:
        ConfigError: There is something else.
    """
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / marker).is_file():
        reason = f"{out} is there and is not an earlier demonstration"
        raise ConfigError("config.invalid", key="--out", reason=reason)
    shutil.rmtree(out)


def _show_summary(summary: Summary) -> None:
    answers().print(f"\n{summary.to_text()}")


def _show_delivery(written: DemoInput, settings: PipelineSettings) -> str:
    """The inbox of the subscriber with the most results, one message before and after; whose."""
    from pathcast.spark import read_output

    out, output = answers(), settings.output.storage
    rows = read_output(output, "inboxes")
    rows = rows.filter(pc.is_valid(rows.column("fragment")))
    if not len(rows):
        out.print("\nNo result was delivered.")
        return "SUBSCRIBER"
    counts = pc.value_counts(rows.column("subscriber")).to_pylist()
    subscriber: str = max(counts, key=lambda each: (each["counts"], each["values"]))["values"]
    mine = rows.filter(pc.equal(rows.column("subscriber"), subscriber))
    keys = ("message_id", "subscription_id", "result_number")
    found = mine.sort_by([(key, "ascending") for key in keys]).to_pylist()
    # One delivery a subscription: one that takes everything would fill the place with itself.
    firsts = {row["subscription_id"]: row for row in reversed(found)}
    shown = sorted(firsts.values(), key=lambda row: (row["message_id"], row["subscription_id"]))
    out.print(f"\nInbox of {subscriber}: {len(found):,} results of {len(firsts):,} subscriptions:")
    for row in shown[:INBOX_ROWS_SHOWN]:
        told = f"{row['message_id']}  because of {row['subscription_id']}"
        out.print(f"  {told}  {len(row['fragment'].encode()):,} bytes")
    # The longest of the short ones shows most and still fits.
    fitting = [row for row in shown if len(row["fragment"].splitlines()) <= LINES_SHOWN]
    chosen = max(fitting or shown, key=lambda row: len(row["fragment"]))
    _show_before_and_after(written, output, chosen)
    return subscriber


def _show_before_and_after(written: DemoInput, output: Storage, row: dict[str, Any]) -> None:
    from pathcast.spark.generations import Generation

    out = answers()
    with Generation.read(output, row["snapshot_version"]).files(output) as files:
        registry = Registry.of(Snapshot.open(files.queries), threads=1)
    plan = registry.explain(row["subscription_id"])
    out.print(f"\nWhat {plan.subscription.subscriber} has asked for ({plan.subscription.id}):")
    out.print(textwrap.indent(plan.subscription.query, "  "))
    message = (written.messages / row["message_id"]).read_bytes()
    out.print(f"\nBefore: {row['message_id']}, {len(message):,} bytes")
    out.print(_excerpt(message.decode(errors="replace")))
    out.print(f"\nAfter: result {row['result_number']} of it, delivery {row['delivery_id'].hex()}")
    out.print(_excerpt(row["fragment"]))
    shared = {what: count for what, count in plan.shared.items() if count}
    if shared:
        out.print("\nShared with other subscriptions:")
        for what, count in shared.items():
            out.print(f"  {what}: {count:,}")


def _excerpt(text: str) -> str:
    """The first lines of a text, indented."""
    lines = text.splitlines()
    shown = [line if len(line) <= WIDTH_SHOWN else line[: WIDTH_SHOWN - 1] + "…" for line in lines]
    more = len(shown) - LINES_SHOWN
    if more > 0:
        shown = [*shown[:LINES_SHOWN], f"… and {more:,} more lines"]
    return textwrap.indent("\n".join(shown), "  ")


def _show_what_next(out: Path, pipeline: Path, who: str) -> None:
    messages, output = out / "messages", out / "output"
    answers().print(f"""
What lies where:
  {messages}              the messages, one file each
  {output / "inboxes"}        one row a delivery with its result, sorted by subscriber
  {output / "dead_letters"}   one row a refused message, with code, line and column

What to try next (source .venv/bin/activate puts pathcast on the PATH):
  pathcast run {pipeline} --set mode.kind=stream
      and then put another XML file into {messages}
  pathcast inbox {who} --output {output} --follow
  pathcast transform 'for $h in //headline return <title>{{$h/text()}}</title>' {messages} | head
  pathcast generate queries --domain news -n 20 > queries.txt
  pathcast match --queries queries.txt {messages}
  pathcast doctor""")
