"""Benchmarks as data: sizes, seeds, bounds and expected counts, read from TOML.

A definition lies in `lab/benchmarks/NAME.toml` of a clone. It says in words which bound the
benchmark should come near and why, and in numbers what each set (quick, short, full) runs, what to
aim for, and how many matches there are.

Example:
    >>> Aim(measure="warm by lxml", queries=500_000, most=1.0).is_met(0.8)
    True

It does not run anything and has no defaults of its own for what a set must say.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pathcast.errors import ConfigError

SetName: TypeAlias = Literal["quick", "short", "full"]
"""How long a run may take: seconds, minutes, or as long as a million queries need."""


class Strict(BaseModel):
    """Unknown keys are mistakes, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SetType = TypeVar("SetType", bound=Strict)


class Aim(Strict):
    """A bound that a measure should keep.

    Attributes:
        measure: Name of the measure.
        queries: Number of queries that it holds for; None for any.
        case: Case that it holds for, where cases have names; None for any.
        messages: Number of messages that it holds for, where that matters; None for any.
        most: It should not be above this.
        least: It should not be below this.
    """

    measure: str
    queries: int | None = None
    case: str | None = None
    messages: int | None = None
    most: float | None = None
    least: float | None = None

    @model_validator(mode="after")
    def _has_one_bound(self) -> Aim:
        if (self.most is None) == (self.least is None):
            raise ValueError("an aim needs exactly one of most and least")
        return self

    def is_met(self, value: float) -> bool:
        """Whether a measured value keeps the bound."""
        return value <= self.most if self.most is not None else value >= (self.least or 0.0)

    def __str__(self) -> str:
        return f"<= {self.most:g}" if self.most is not None else f">= {self.least:g}"


class Expected(Strict):
    """A known count of matches.

    Attributes:
        case: Name of the case.
        inputs: Digest of its queries and messages; the count says nothing about others.
        matches: Matches of all messages.
    """

    case: str
    inputs: str
    matches: int


class FilterSet(Strict):
    """What one set of `filter`, `mixed`, `conditions` or `adversarial` runs.

    Attributes:
        queries: Q, each a case of its own.
        warm_up: Messages that a matcher is warmed with, and that the warm figure is of.
        unseen: Further messages, seen once each; a multiple of 4.
        cold: Messages of the first pass of a new matcher.
        rounds: Alternations with the yardstick.
        fresh_rounds: Matchers made anew for the cold pass and for unseen messages.
        later: Queries registered one by one: half of them in rows, half with messages between.
        builds: How often the index is built.
        check_messages: Messages that the plain NFA answers too.
        check_queries: Queries that the reference engine answers too, on `check_sample` messages.
        check_sample: See `check_queries`.
    """

    queries: tuple[int, ...]
    warm_up: int = Field(ge=1)
    unseen: int = Field(ge=4, multiple_of=4)
    cold: int = Field(ge=1)
    rounds: int = Field(ge=1)
    fresh_rounds: int = Field(ge=1)
    later: int = Field(ge=20)
    builds: int = Field(ge=1)
    check_messages: int = Field(ge=1)
    check_queries: int = Field(ge=1)
    check_sample: int = Field(ge=1)


class BenchmarkDefinition(Strict, Generic[SetType]):
    """What every benchmark says.

    Attributes:
        title: One line.
        bound: What the figures should come near, and why.
        seed: Of queries and messages.
        sets: What each set runs.
        aims: Bounds.
    """

    title: str
    bound: str
    seed: int
    sets: dict[SetName, SetType]
    aims: tuple[Aim, ...] = ()


class MixedDefinition(BenchmarkDefinition[FilterSet]):
    """`lab/benchmarks/mixed.toml`.

    Attributes:
        expected: Known counts.
    """

    expected: tuple[Expected, ...] = ()


class AdversarialDefinition(MixedDefinition):
    """`lab/benchmarks/adversarial.toml`: as `mixed`, and which families of queries run."""

    families: tuple[str, ...]


class FilterDefinition(MixedDefinition):
    """`lab/benchmarks/filter.toml`: attributes as in `MixedDefinition`, and how queries are drawn.

    Attributes:
        depth_max: D of queries and messages, by workload; "" for the others.
        wildcard: W.
        descendant: DS.
    """

    depth_max: dict[str, int]
    wildcard: float
    descendant: float


class Condition(Strict):
    """A kind of query with more than a linear path.

    Attributes:
        name: Of the case.
        predicates: P, value predicates in each query, all on attributes.
        nested_paths: NP, nested paths in each query.
        asks: Kind of `stories.KINDS` that the queries are of, on stories in place of the messages
            of the workload; "" for queries of the workload.
        queries: Set -> Q; none in a set that is not named.
    """

    name: str
    predicates: int = 0
    nested_paths: int = 0
    asks: str = ""
    queries: dict[SetName, tuple[int, ...]]


class ConditionsDefinition(FilterDefinition):
    """`lab/benchmarks/conditions.toml`: as `filter`, for several kinds of query.

    No messages are unseen.
    """

    conditions: tuple[Condition, ...]


class FilesSet(Strict):
    """One set of `compression`: messages generated a workload, files a domain, rounds."""

    generated: int = Field(ge=1)
    files_a_domain: int = Field(ge=1)
    rounds: int = Field(ge=1)


class DoorSet(FilesSet):
    """One set of `door`: calls with one message each are so many a round."""

    calls: int = Field(ge=1)


class DoorDefinition(BenchmarkDefinition[DoorSet]):
    """`lab/benchmarks/door.toml`."""


class CompressionDefinition(BenchmarkDefinition[FilesSet]):
    """`lab/benchmarks/compression.toml`; of its messages one half is the sample."""


class ThreadsSet(Strict):
    """What one set of `threads` runs: Q, messages, how often a batch holds each, rounds."""

    queries: int = Field(ge=1)
    messages: int = Field(ge=1)
    repeats: int = Field(ge=1)
    rounds: int = Field(ge=1)


class ThreadsDefinition(BenchmarkDefinition[ThreadsSet]):
    """`lab/benchmarks/threads.toml`, and how many threads."""

    threads: int = Field(ge=2)


class RecordsSet(Strict):
    """What one set of `records` runs: messages, how often the file holds each, rounds."""

    messages: int = Field(ge=1)
    repeats: int = Field(ge=1)
    rounds: int = Field(ge=1)


class RecordsDefinition(BenchmarkDefinition[RecordsSet]):
    """`lab/benchmarks/records.toml`, and how many threads."""

    threads: int = Field(ge=2)


Definition = TypeVar("Definition", bound=BaseModel)


def read_definition(directory: Path, name: str, kind: type[Definition]) -> Definition:
    """The definition of one benchmark.

    Args:
        directory: Where definitions lie.
        name: Name of the benchmark; the file is `NAME.toml`.
        kind: What the file must say.

    Raises:
        ConfigError: There is no such file, or it says something else.
    """
    path = directory / f"{name}.toml"
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        reason = f"{directory} holds no {path.name}; definitions are in lab/benchmarks of a clone"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        reason = f"{path.name}: {error}"
    raise ConfigError("config.invalid", key="--definitions", reason=reason)


def default_directory() -> Path:
    """`lab/benchmarks` of the clone that this package lies in."""
    return Path(__file__).resolve().parents[2] / "benchmarks"
