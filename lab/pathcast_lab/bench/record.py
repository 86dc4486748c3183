"""The record of a run: everything that was measured, as JSON.

Raw rounds are in it, so that another figure can be computed later without another run. Figures are
in it too, so that it can be read without this code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pathcast_lab.bench.inputs import Source
from pathcast_lab.bench.machine import Machine, commit, describe_machine, describe_software
from pathcast_lab.bench.run import Outcome, Plan

FORMAT = 1
"""Changes when a reader of older records would misread newer ones."""


def make_record(
    plan: Plan,
    outcomes: Iterable[Outcome],
    *,
    command: Sequence[str],
    started: datetime,
    before: Machine,
) -> dict[str, Any]:
    """The record.

    Args:
        plan: What was to run.
        outcomes: What came of it.
        command: Arguments of the command line; of absolute paths only the name is kept.
        started: When the run began, with time zone.
        before: The machine at that time.
    """
    return {
        "format": FORMAT,
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(part).name if Path(part).is_absolute() else part for part in command],
        "commit": commit(),
        "machine": before,
        "load_at_end": describe_machine()["load"],
        "software": describe_software(),
        "yardstick": "lxml.etree.fromstring over the same messages, alternately, in the same run",
        "set": plan.set_name,
        "workload": _workload(plan.source),
        "benchmarks": [_outcome(outcome) for outcome in outcomes],
    }


def write_record(record: dict[str, Any], directory: Path) -> Path:
    """Writes `DATE-COMMIT-SET.json`; its path."""
    directory.mkdir(parents=True, exist_ok=True)
    label = (record["commit"] or "no-commit")[:9]
    stamp = record["started"][:19].replace(":", "").replace("-", "")
    path = directory / f"{stamp}-{label}-{record['set']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def _workload(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "depth_max": source.depth,
        "query_file": source.query_file.name if source.query_file else None,
        "message_files": len(source.message_files),
        "values": source.values,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "title": outcome.title,
        "bound": outcome.bound,
        "failure": outcome.failure,
        "skipped": outcome.skipped,
        "measures": [asdict(measure) for measure in outcome.measures],
        "results": [asdict(result) for result in outcome.results],
    }
