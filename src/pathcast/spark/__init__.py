"""Delivery on Spark: pipelines from a source of messages to inboxes.

Read in this order: `micro_batches` (what is pinned, answered, committed, published), `pipeline` (of
files), `replaying` (what is done, again), `query_run` (of a source that Spark reads), `delivery`,
`frames` and `frame_tasks` (of frames), `sources`, `files` and `listing` with `parquet`,
`bounded_memory`, `archives`, `records`, `delta_source` and `delta_log`, and `journal` (what belongs
to it), `book`, `last_valid`, `generations` and `copies` (who wants what), `tasks`, `answering`,
`joined_answers`, `message_times` and `writing` (what a worker does), `ledger`, `outputs`, `delta`,
`compacting`, `retention`, `storage` and `unwritable` (what counts, and where), `workers`,
`session`, `java` and `shipping` (who runs it), `settings`, `summary`, `progress`, `status` and
`metrics` (what people say and see).

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
    from pathcast.spark.outputs import files_of, follow, inbox, read_output
    from pathcast.spark.pipeline import run
    from pathcast.spark.replaying import backfill, batches_between, redeliver
    from pathcast.spark.session import hidden_lost_connections, local_session
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
    name: module
    for module, names in {
        "bounded_memory": ("MEMORY_ENVIRONMENT",),
        "delivery": ("Delivery",),
        "frames": ("deliver",),
        "java": ("find_java",),
        "outputs": ("files_of", "follow", "inbox", "read_output"),
        "pipeline": ("run",),
        "replaying": ("backfill", "batches_between", "redeliver"),
        "session": ("hidden_lost_connections", "local_session"),
        "settings": ("PipelineSettings", "load_settings"),
        "status": ("OutputWatch", "PipelineStatus"),
        "storage": ("Storage",),
        "summary": ("Summary",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
