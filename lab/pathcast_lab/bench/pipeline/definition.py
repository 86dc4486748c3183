"""`lab/benchmarks/pipeline.toml`: how much of everything, and what the model assumes."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict


class PipelineSet(Strict):
    """What one set runs.

    Attributes:
        messages: Messages of the cases in Parquet, all different.
        queries: Selective filter queries, one a subscription.
        results: FLWR subscriptions.
        deliveries: How many of either a message gets, about.
        sample: Messages on which it is counted which queries are selective.
        dense_queries: Queries as they are generated; their matches are written as numbers.
        files: Messages as single files, and as many in Parquet.
        parts: Micro-batches of the run that shows what one costs.
        rate: Messages a second of the stream.
        seconds: How long they are written.
        rounds: How often each run is repeated.
    """

    messages: int = Field(ge=1)
    queries: int = Field(ge=1)
    results: int = Field(ge=1)
    deliveries: float = Field(gt=0)
    sample: int = Field(ge=1)
    dense_queries: int = Field(ge=1)
    files: int = Field(ge=1)
    parts: int = Field(ge=2)
    rate: int = Field(ge=1)
    seconds: float = Field(gt=0)
    rounds: int = Field(ge=1)


@dataclass(config=ConfigDict(extra="forbid"), frozen=True, kw_only=True)
class ModelQuestion:
    """What the model is asked.

    Attributes:
        workers: Numbers of workers, a core each.
        messages: Messages of one micro-batch.
        files: Files that they lie in.
        storage_bytes_a_second: What the storage that all workers share reads and writes. It cannot
            be measured on one machine: an assumption.
    """

    workers: tuple[int, ...]
    messages: int = Field(ge=1)
    files: int = Field(ge=1)
    storage_bytes_a_second: float = Field(gt=0)


class PipelineDefinition(BenchmarkDefinition[PipelineSet]):
    """The file.

    Attributes:
        cores: Cores of the sessions, from few to many; most cases run on the last only.
        model: What the model is asked.
    """

    cores: tuple[int, ...] = Field(min_length=1)
    model: ModelQuestion
