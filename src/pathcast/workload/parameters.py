"""Parameters of a workload, named and checked.

Example:
    >>> QueryParameters(count=1000, depth_max=6, wildcard=0.2, descendant=0.2).distinct
    True
    >>> DocumentParameters(depth_max=0)
    Traceback (most recent call last):
    ...
    pathcast.errors.ConfigError: depth_max: 0 is not a whole number from 1 to 64

Source: 003, Table 2. The paper's letters stand beside the names below.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Literal, TypeAlias

from pathcast.errors import ConfigError

ValueKind: TypeAlias = Literal["integers", "plausible"]
"""Where values come from: the paper's integers from 1 on, or values as a reader would expect."""


class Fault(Enum):
    """A way to break a message, for tests and demonstrations of refusal."""

    TRUNCATED = "truncated"
    MISMATCHED_TAG = "mismatched-tag"
    UNDECLARED_ENTITY = "undeclared-entity"
    INVALID_UTF8 = "invalid-utf8"
    ENTITY_BOMB = "entity-bomb"
    TOO_DEEP = "too-deep"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentParameters:
    """How documents are generated. All odds are probabilities from 0 to 1.

    Attributes:
        count: Documents, 0 to 100,000,000.
        seed: Any whole number; the same seed gives the same bytes everywhere. It also draws the
            statistics (odds and number of values of every attribute and text).
        depth_max: D, levels, 1 to 64. Elements at levels 1 to D get whatever their content model
            allows, deeper ones only what it demands.
        repeats_max: RP, how often a repeatable particle is repeated under one parent, 1 to 100.
        optional_odds: That an optional particle (`?`) is there.
        implied_odds: That an `#IMPLIED` attribute is there; None as the statistics say.
        default_odds: That an attribute with a default is there; None as the statistics say.
        fixed_odds: That a `#FIXED` attribute is there.
        text_odds: That an element that may hold text does.
        values: Kind of values.
        values_max: Most values that one attribute or text can take (integers only), 1 to 1,000,000.
        elements_max: Elements of a document after which only required ones follow, 1 to 1,000,000.
        broken_ratio: Share of documents that are broken on purpose.
        faults: How they are broken, in equal shares.
        root: Root element; None takes the best candidate of the DTD.
    """

    count: int = 200
    seed: int = 0
    depth_max: int = 6
    repeats_max: int = 3
    optional_odds: float = 0.5
    implied_odds: float | None = None
    default_odds: float | None = None
    fixed_odds: float = 1.0
    text_odds: float = 1.0
    values: ValueKind = "integers"
    values_max: int = 20
    elements_max: int = 20_000
    broken_ratio: float = 0.0
    faults: tuple[Fault, ...] = tuple(Fault)
    root: str | None = None

    def __post_init__(self) -> None:
        check_whole(self, "count", 0, 100_000_000)
        check_whole(self, "seed", None, None)
        check_whole(self, "depth_max", 1, 64)
        check_whole(self, "repeats_max", 1, 100)
        check_whole(self, "values_max", 1, 1_000_000)
        check_whole(self, "elements_max", 1, 1_000_000)
        for name in ("optional_odds", "fixed_odds", "text_odds", "broken_ratio"):
            check_share(self, name)
        for name in ("implied_odds", "default_odds"):
            if getattr(self, name) is not None:
                check_share(self, name)
        _check_values(self.values)
        if self.broken_ratio and not self.faults:
            raise ConfigError(
                "config.invalid", key="faults", reason="none is named, but broken_ratio is above 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateMix:
    """Weights of the kinds of value predicates; only their proportions count.

    A step that cannot have the kind that was drawn (no attribute, no text) gets another one.

    Attributes:
        attribute_equal: `[@a=1]`
        attribute_compare: `[@a>=1]` with one of `<`, `<=`, `>`, `>=`, `!=`
        attribute_exists: `[@a]`
        text: `[text()=1]`
        position: `[2]`
    """

    attribute_equal: float = 1.0
    attribute_compare: float = 0.0
    attribute_exists: float = 0.0
    text: float = 0.2
    position: float = 0.2

    def __post_init__(self) -> None:
        weights = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, weight in weights.items():
            if not _is_number(weight) or not 0 <= weight < float("inf"):
                raise ConfigError(
                    "config.invalid", key=name, reason=f"{weight!r} is not a number from 0 on"
                )
        if not sum(weights.values()):
            raise ConfigError("config.invalid", key="mix", reason="all weights are 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameters:
    """How queries are generated.

    Attributes:
        count: Q, queries, 0 to 100,000,000.
        seed: Any whole number; the same seed gives the same queries everywhere.
        depth_max: D, location steps from the root on, those of a nested path included, 1 to 64.
        levels_max: Levels that a query reaches down, counting those that `//` skips, 1 to 128;
            None takes two more than `depth_max`, as documents of depth D go deeper than D where
            the DTD demands it.
        wildcard: W, probability of `*` at a location step, 0 to 1.
        descendant: DS, probability of `//` at a location step, 0 to 1.
        predicates: P, value predicates in each query, 0 to 100.
        nested_paths: NP, nested paths in each query, 0 to 20.
        name_skew: Zipf exponent of the choice among the children of an element, 0 (uniform) to 10.
        distinct: No two queries have the same text.
        mix: Kinds of value predicates.
        stop_odds: Probability that a path ends at a level though it could go on, 0 to 1.
        skip_odds: Probability that `//` leads one more level down, again and again, 0 to 1.
        values: Kind of values; see `statistics_seed`.
        values_max: As in `DocumentParameters`.
        repeats_max: RP of the documents, highest position asked for, 1 to 100.
        statistics_seed: Seed of the documents that the queries are meant for, so that both have
            the same values in mind; None takes `seed`.
        root: Root element; None takes the best candidate of the DTD.
    """

    count: int = 1000
    seed: int = 0
    depth_max: int = 6
    levels_max: int | None = None
    wildcard: float = 0.2
    descendant: float = 0.2
    predicates: int = 0
    nested_paths: int = 0
    name_skew: float = 0.0
    distinct: bool = True
    mix: PredicateMix = field(default_factory=PredicateMix)
    stop_odds: float = 0.1
    skip_odds: float = 0.5
    values: ValueKind = "integers"
    values_max: int = 20
    repeats_max: int = 3
    statistics_seed: int | None = None
    root: str | None = None

    def __post_init__(self) -> None:
        check_whole(self, "count", 0, 100_000_000)
        check_whole(self, "seed", None, None)
        check_whole(self, "depth_max", 1, 64)
        if self.levels_max is not None:
            check_whole(self, "levels_max", 1, 128)
        check_whole(self, "predicates", 0, 100)
        check_whole(self, "nested_paths", 0, 20)
        check_whole(self, "values_max", 1, 1_000_000)
        check_whole(self, "repeats_max", 1, 100)
        if self.statistics_seed is not None:
            check_whole(self, "statistics_seed", None, None)
        for name in ("wildcard", "descendant", "stop_odds", "skip_odds"):
            check_share(self, name)
        if not _is_number(self.name_skew) or not 0 <= self.name_skew <= 10:
            raise ConfigError(
                "config.invalid",
                key="name_skew",
                reason=f"{self.name_skew!r} is not a number from 0 to 10",
            )
        _check_values(self.values)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_whole(parameters: object, name: str, low: int | None, high: int | None) -> None:
    """Refuses a parameter that is no whole number within bounds, where there are some.

    Raises:
        ConfigError: It is something else.
    """
    value = getattr(parameters, name)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if low is None or high is None:
        if not is_whole:
            raise ConfigError("config.invalid", key=name, reason=f"{value!r} is not a whole number")
    elif not is_whole or not low <= value <= high:
        raise ConfigError(
            "config.invalid",
            key=name,
            reason=f"{value!r} is not a whole number from {low} to {high}",
        )


def check_share(parameters: object, name: str) -> None:
    """Refuses a parameter that is no number from 0 to 1.

    Raises:
        ConfigError: It is something else.
    """
    value = getattr(parameters, name)
    if not _is_number(value) or not 0 <= value <= 1:
        raise ConfigError(
            "config.invalid", key=name, reason=f"{value!r} is not a number from 0 to 1"
        )


def _check_values(values: str) -> None:
    if values not in ("integers", "plausible"):
        raise ConfigError(
            "config.invalid", key="values", reason=f'{values!r} is not "integers" or "plausible"'
        )
