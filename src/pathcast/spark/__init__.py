"""Matching on Spark: stages as functions of DataFrames, and the pipeline built from them.

Read in this order: `java` and `session` (what runs), `stages`, `dissemination` and `schemas` (what
is computed), `matching` and `delivering` (what workers do),
`directory`, `parquet_files` and `journal` (where messages come from), `settings`, `subscriptions`,
`ledger`, `outputs`, `stopping` and `pipeline` (what `pathcast run` does), `summary` and `progress`
(what it says), `dead_letters` (what is done about what went wrong).

Example:
    >>> from pathcast.spark import local_session, match_messages
    >>> spark = local_session()                                             # doctest: +SKIP
    >>> found = match_messages(frame, "queries.snapshot", "message", "id")  # doctest: +SKIP
    >>> found.matches.show(); found.dead_letters.show()                     # doctest: +SKIP

Nothing outside this room imports pyspark, and importing this package does not import it either:
`settings` and `java` serve machines without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathcast.spark.dissemination import DisseminatedMessages, disseminate
    from pathcast.spark.java import find_java
    from pathcast.spark.pipeline import run
    from pathcast.spark.session import local_session
    from pathcast.spark.settings import PipelineSettings, load_settings
    from pathcast.spark.stages import MatchedMessages, deliveries, match_messages
    from pathcast.spark.summary import Summary

__all__ = [
    "DisseminatedMessages",
    "MatchedMessages",
    "PipelineSettings",
    "Summary",
    "deliveries",
    "disseminate",
    "find_java",
    "load_settings",
    "local_session",
    "match_messages",
    "run",
]

_HOME = {
    "DisseminatedMessages": "dissemination",
    "MatchedMessages": "stages",
    "PipelineSettings": "settings",
    "Summary": "summary",
    "deliveries": "stages",
    "disseminate": "dissemination",
    "find_java": "java",
    "load_settings": "settings",
    "local_session": "session",
    "match_messages": "stages",
    "run": "pipeline",
}


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
