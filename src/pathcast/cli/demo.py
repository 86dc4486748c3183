"""`pathcast demo`: messages of three domains through the Spark pipeline, to inboxes.

It writes its input, runs the pipeline of `pathcast run` on local Spark, and shows what came of it.
It measures nothing: the first micro-batches of a JVM are no benchmark.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pathcast.cli.console import answers, extra, say
from pathcast.cli.exits import ExitCode
from pathcast.engine import Snapshot, engine_name
from pathcast.errors import ConfigError
from pathcast.workload.demo import DemoInput, write_demo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pathcast.spark.summary import Summary

MARKER = "pipeline.toml"
"""File by which a directory is known as that of an earlier demo, which may be replaced."""

INBOX_ROWS_SHOWN = 5

PIPELINE = """\
# What `make demo` ran. `pathcast run --describe` lists every key.
[source]
kind = "directory"
path = "messages"

[subscriptions]
path = "{subscriptions}"

[mode]
kind = "batch"
files_per_batch_max = 1500

[output]
path = "output"
format = "jsonl"
"""


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIRECTORY", help="Input and output; replaced."),
    ] = Path("demo-output"),
    messages: Annotated[
        int | None,
        typer.Option(min=10, help="Messages. Default: 3000; 300 on the reference engine."),
    ] = None,
    queries: Annotated[int, typer.Option(min=10, help="Standing queries.")] = 10_000,
    subscribers: Annotated[int, typer.Option(min=1, help="Subscribers.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same demo.")] = 0,
) -> ExitCode:
    """Show the whole way: messages, standing queries, Spark pipeline, one subscriber's inbox."""
    started = time.monotonic()
    engine = engine_name(None)
    if messages is None:
        messages = 300 if engine == "reference" else 3_000
    _clear(out)
    with extra("spark", "pathcast demo"):
        from pathcast.spark.pipeline import run
        from pathcast.spark.progress import progress_on
        from pathcast.spark.session import JVM_OPTIONS, local_session
        from pathcast.spark.settings import load_settings
    say(f"Engine: {engine}. Writing {messages:,} messages and {queries:,} queries to {out}")
    written = write_demo(
        out, messages=messages, queries=queries, subscribers=subscribers, seed=seed
    )
    say(
        f"{written.distinct_query_count:,} of the queries differ: structure, values, ranges, text, "
        "nested paths, and one in a hundred that only exact evaluation decides"
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
        _show_delivery(spark, written, settings.output.path, summary)
    finally:
        spark.stop()
    _show_what_next(out, pipeline)
    say(f"{time.monotonic() - started:.0f} s in all")
    return ExitCode.OK


def _clear(out: Path) -> None:
    """Takes out an earlier demo; anything else is left alone."""
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / MARKER).is_file():
        raise ConfigError(
            "config.invalid", key="--out", reason=f"{out} is there and is not an earlier demo"
        )
    shutil.rmtree(out)


def _show_summary(summary: Summary) -> None:
    out = answers()
    out.print()
    out.print(summary if out.is_terminal else summary.to_text())


def _show_delivery(spark: SparkSession, written: DemoInput, output: Path, summary: Summary) -> None:
    """The inbox of the subscriber with the most deliveries, and why one of them was made."""
    from pathcast.spark.outputs import inbox

    out = answers()
    if not summary.top_subscribers:
        out.print("\nNothing was delivered.")
        return
    subscriber, count = summary.top_subscribers[0]
    rows = inbox(spark, output, subscriber).orderBy("message_id", "query_id").collect()
    # One delivery a query: a query on structure alone would fill the place with itself.
    firsts = {row["query_id"]: row for row in reversed(rows)}
    shown = sorted(firsts.values(), key=lambda row: (row["message_id"], row["query_id"]))
    first = shown[:INBOX_ROWS_SHOWN]
    version = first[0]["snapshot_version"]
    snapshot = Snapshot.open(output / "_snapshots" / f"{version}.snapshot")
    out.print(f"\nInbox of {subscriber}, {count:,} deliveries because of {len(firsts):,} queries:")
    for row in first:
        text = snapshot.query(row["query_id"]).text
        out.print(f"  {row['message_id']}  because of {row['query_id']}  {text}")
    # The longest query shows most of what there is to explain.
    told = max(first, key=lambda row: len(snapshot.query(row["query_id"]).text))
    message = (written.messages / told["message_id"]).read_bytes()
    out.print(f"\nWhy {told['message_id']} was delivered:")
    out.print(str(snapshot.explain(told["query_id"], message)))


def _show_what_next(out: Path, pipeline: Path) -> None:
    messages, output = out / "messages", out / "output"
    answers().print(f"""
What lies where:
  {messages}              the messages, one file each
  {output / "matches"}        one row a message: the queries it satisfies
  {output / "inboxes"}        one row a delivery, in buckets of subscribers
  {output / "dead_letters"}   one row a refused message, with code, line and column

What to try next (source .venv/bin/activate puts pathcast on the PATH):
  pathcast run {pipeline} --set mode.kind=stream
      and then put another XML file into {messages}
  pathcast generate queries --domain news -n 20 > queries.txt
  pathcast match --queries queries.txt {messages}
  pathcast doctor""")
