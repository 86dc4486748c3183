"""Delivery on Spark: pipelines from a source of messages to inboxes.

Read in this order: `micro_batches` (what is pinned, answered, committed, published), `pipeline` (of
files), `replaying` (what is done, again), `query_run` (of a source that Spark reads), `delivery`,
`frames` and `frame_tasks` (of frames), `sources`, `files` and `listing` with `parquet`,
`bounded_memory`, `archives`,
`records`, `delta_source` and `delta_log`, and `journal` (what belongs to it), `book`, `last_valid`,
`generations` and `copies` (who wants what), `tasks`, `answering`, `joined_answers`, `message_times`
and `writing` (what a worker does), `ledger`, `outputs`, `delta`, `compacting`, `retention`,
`storage` and `unwritable` (what counts, and where), `workers`, `starting`, `session`, `java`,
`lost_connections` and `shipping` (who runs it), `settings`, `summary`, `progress`,
`status` and `metrics` (what people say and see).

Example:
    >>> from pathcast.spark import load_settings, run
    >>> summary = run(load_settings("pipeline.toml"))                       # doctest: +SKIP

Nothing outside this room imports pyspark, and importing this package does not import it either:
`settings`, `outputs` and `java` serve machines without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathcast.spark.bounded_memory import MEMORY_ENVIRONMENT
    from pathcast.spark.delivery import Delivery
    from pathcast.spark.frames import deliver
    from pathcast.spark.java import find_java
    from pathcast.spark.lost_connections import hidden_lost_connections
    from pathcast.spark.outputs import files_of, follow, inbox, read_output
    from pathcast.spark.pipeline import run
    from pathcast.spark.replaying import backfill, batches_between, redeliver
    from pathcast.spark.session import local_session
    from pathcast.spark.settings import PipelineSettings, load_settings
    from pathcast.spark.status import OutputWatch, PipelineStatus
    from pathcast.spark.storage import Storage
    from pathcast.spark.summary import Summary

__all__ = [
    "MEMORY_ENVIRONMENT",
    "Delivery",
    "OutputWatch",
    "PipelineSettings",
    "PipelineStatus",
    "Storage",
    "Summary",
    "backfill",
    "batches_between",
    "deliver",
    "files_of",
    "find_java",
    "follow",
    "hidden_lost_connections",
    "inbox",
    "load_settings",
    "local_session",
    "read_output",
    "redeliver",
    "run",
]

_HOME = {
    "MEMORY_ENVIRONMENT": "bounded_memory",
    "Delivery": "delivery",
    "OutputWatch": "status",
    "PipelineSettings": "settings",
    "PipelineStatus": "status",
    "Storage": "storage",
    "Summary": "summary",
    "backfill": "replaying",
    "batches_between": "replaying",
    "deliver": "frames",
    "files_of": "outputs",
    "find_java": "java",
    "follow": "outputs",
    "hidden_lost_connections": "lost_connections",
    "inbox": "outputs",
    "load_settings": "settings",
    "local_session": "session",
    "read_output": "outputs",
    "redeliver": "replaying",
    "run": "pipeline",
}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
