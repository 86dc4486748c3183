"""Faults of Spark's own sources and sinks in a sentence, with what is to be done.

Example:
    >>> connector_for("4.1.1")
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1'
    >>> connector_for("4.3.0")
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0'

It starts nothing and does not import pyspark before it is asked.
"""

from __future__ import annotations

import json
import re
from typing import Final

KAFKA: Final = "kafka"
"""Name of Spark's format for Kafka."""

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"

CONNECTOR_LAST: Final = (4, 2, 0)
"""The newest connector that was published; it works on the releases of Spark that follow."""

_MISSING: Final = re.compile(
    "KAFKA_DATA_SOURCE_NOT_ENABLED|DATA_SOURCE_NOT_FOUND|Failed to find data source"
)

_LOST: Final = re.compile(r"set the source option failOnDataLoss to false\.\s+Reason: (.*)")
"""What the connector for Kafka says of offsets, with topic and partition, after some advice."""

_OF_TASK: Final = re.compile(r"Job aborted due to stage failure: .* executor [^)]*\): (.*)")
"""What a job that failed says of its task, beside the task's own words."""


def connector_for(version: str) -> str:
    """Returns the coordinates of the connector for Kafka that fits a version of PySpark."""
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    return f"{CONNECTOR}:{'.'.join(map(str, min(release, CONNECTOR_LAST)))}"


def fault_of(error: Exception, format: str) -> str:
    """Returns what PySpark or Py4J says of a source or sink that failed, in a line."""
    from py4j.protocol import Py4JJavaError
    from pyspark import __version__

    from pathcast.spark.session import causes

    told = causes(error)[0] if isinstance(error, Py4JJavaError) else str(error)
    told = told.strip().partition("\n")[0]
    of_task = _OF_TASK.search(told)
    if of_task is not None:
        told = of_task[1]
    if _MISSING.search(told) is None:
        return f"{format}: {told}"
    package = connector_for(__version__) if format == KAFKA else "GROUP:ARTIFACT:VERSION"
    return (
        f"{format}: this Spark does not have it; name the package that has it in spark.conf: "
        f'"spark.jars.packages" = "{package}"'
    )


def offsets_between(before: str, after: str) -> int:
    """Returns how many offsets of Kafka lie between two positions.

    Args:
        before: A position, as Spark writes it in JSON; empty where nobody knows.
        after: A later one. Partitions that the first does not have are left out.

    Example:
        >>> offsets_between('{"orders":{"0":3}}', '{"orders":{"0":9,"1":4}}')
        6
    """
    known = json.loads(before or "{}") or {}
    return sum(
        int(offset) - int(known[topic][partition])
        for topic, partitions in (json.loads(after or "{}") or {}).items()
        for partition, offset in partitions.items()
        if partition in known.get(topic, {})
    )


def lost_offsets(error: Exception) -> str | None:
    """Returns which offsets of Kafka are gone that were not read; None where none are told."""
    found = _LOST.search(str(error))
    return None if found is None else found[1].strip().removesuffix(".")
