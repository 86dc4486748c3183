"""What a run says: a line a micro-batch."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from pathcast.spark.ledger import Commit
from pathcast.spark.progress import (
    LineProgress,
    ProgressReport,
    describe,
    progress_on,
)
from pathcast.spark.summary import Summary

COMMIT = Commit(
    3,
    "s",
    "0123456789abcdef",
    messages=40,
    bytes=2_000_000,
    matches=7,
    deliveries=9,
    refused={"xml.end": 2},
    seconds=0.5,
)


def told(report: ProgressReport, stream: io.StringIO) -> str:
    report.begin("batch: directory in against 5 queries")
    report.batch(COMMIT)
    report.note("2 subscriptions were [rejected]")
    return stream.getvalue()


def test_piped_output_is_one_plain_line_a_batch() -> None:
    stream = io.StringIO()
    report = progress_on(Console(file=stream, width=40))
    assert isinstance(report, LineProgress)
    assert told(report, stream).splitlines() == [
        "batch: directory in against 5 queries",
        "batch 3: 40 messages, 7 matches, 2 refused, 0.50 s, 4.0 MB/s, snapshot 0123456789ab",
        "2 subscriptions were [rejected]",
    ]


def test_undecided_pairs_are_told() -> None:
    commit = replace(COMMIT, undecided=1200)
    assert "2 refused, 1,200 undecided, 0.50 s" in describe(commit)
    summary = Summary(output="out").with_commit(commit).with_commit(commit)
    assert summary.undecided == 2400
    assert "2,400 pairs of message and query" in summary.to_text()
    assert "undecided" not in Summary(output="out").with_commit(COMMIT).to_text()


def test_summary_adds_batches_up() -> None:
    summary = Summary(output="out").with_commit(COMMIT).with_commit(COMMIT)
    assert (summary.batches, summary.messages, summary.refused) == (2, 80, {"xml.end": 4})
    assert "4 (xml.end 4)" in summary.to_text()
