"""Pairs of a subscription and a message, and what each implementation says of them.

An opinion is the tuple of the results as canonical XML, None if the message is not delivered, the
code of a construction error, or a `Skipped` with the name of the difference.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from generators import (
    VOCABULARIES,
    FlwrWidth,
    GeneratedFlwr,
    MessageTemper,
    random_flwr,
    random_flwr_message,
)
from oracles import SaxonError, SaxonOracle
from oracles.saxon_differences import (
    CONSTRUCTION_ERRORS,
    error_difference,
    text_difference,
)
from pathcast.errors import ConstructionError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.message.canonical import canonical, expanded
from pathcast.registry import Registry
from pathcast_papers.language.xquery import parse
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.xquery import evaluate

GENEROUS = Limits(
    evaluation_steps_max=20_000_000, result_bytes_max=1 << 28, result_ratio_max=1_000_000
)
"""No generated pair comes near: what goes over a limit has no answer to compare."""


_LONG_NUMBER = re.compile(rb"-?\d*\.\d{13,}")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Saxon has no opinion that counts.

    Attributes:
        difference: Its name in `oracles.saxon_differences`.
    """

    difference: str


Opinion: TypeAlias = tuple[bytes, ...] | str | Skipped | None


@dataclass(frozen=True, slots=True)
class Pair:
    """A generated subscription and a message for it.

    Attributes:
        seed: What to generate it from again.
        flwr: The subscription.
        message: The message.
    """

    seed: str
    flwr: GeneratedFlwr
    message: bytes

    def __str__(self) -> str:
        return (
            f"seed {self.seed}\n{self.flwr.text}\nnamespaces {dict(self.flwr.namespaces)}\n"
            f"message {self.message.decode()}"
        )


def pairs(
    width: FlwrWidth, vocabulary: str, seeds: range, hostilities: tuple[float, ...] = (0.0, 0.3)
) -> Iterator[Pair]:
    """Subscriptions of a width, each with one message for every temper."""
    chosen = VOCABULARIES[vocabulary]
    for number in seeds:
        seed = f"{width.value} {vocabulary} {number}"
        generator = random.Random(seed)
        flwr = random_flwr(generator, chosen, width)
        for hostility in hostilities:
            message = random_flwr_message(generator, chosen, MessageTemper(hostility=hostility))
            yield Pair(f"{seed} {hostility}", flwr, message)


def by_saxon(
    text: str, message: bytes, namespaces: Mapping[str, str] | None, delivered: str | None = None
) -> Opinion:
    """What Saxon says; `delivered` is the expression that is true for delivered messages."""
    known = text_difference(text, namespaces or {})
    if known is not None:
        return Skipped(known)
    oracle = SaxonOracle.shared()
    try:
        results = oracle.evaluate(text, message, namespaces)
        is_delivered = delivered is None or oracle.evaluate(delivered, message, namespaces) == (
            b"true",
        )
    except SaxonError as error:
        if error.code in CONSTRUCTION_ERRORS:
            return error.code
        difference = error_difference(error.code)
        if difference is None:
            raise
        return Skipped(difference)
    return tuple(map(canonical, results)) if is_delivered else None


def by_reference(text: str, message: bytes, namespaces: Mapping[str, str] | None) -> Opinion:
    """What the reference interpreter says."""
    program = parse(text, namespaces or {})
    try:
        evaluation = evaluate(program, _tree(message), GENEROUS)
    except ConstructionError as error:
        return error.code
    return tuple(map(canonical, evaluation.results)) if evaluation.is_delivered else None


@lru_cache(maxsize=4)
def _tree(message: bytes) -> MessageTree:
    return parse_message(message, GENEROUS)


def agree(ours: Opinion, saxons: Opinion) -> str | None:
    """The name of the difference that excuses two opinions; "" if they are equal, None if not."""
    if isinstance(saxons, Skipped):
        return saxons.difference
    if ours == saxons:
        return ""
    if isinstance(ours, str) and not isinstance(saxons, str):
        return "what-nobody-asks-for"
    if not isinstance(ours, tuple) or not isinstance(saxons, tuple):
        return None
    if _read(ours) == _read(saxons):
        return "carriage-return-alone"
    if list(map(_rounded, ours)) == list(map(_rounded, saxons)):
        return "digits-of-decimals"
    if list(map(expanded, ours)) == list(map(expanded, saxons)):
        if any(b' xmlns=""' in result for result in (*ours, *saxons)):
            return "undeclared-default"
        return "prefix-of-an-attribute"
    return None


def _read(results: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """As a reader would see them who takes a carriage return for a line feed."""
    return tuple(result.replace(b"&#xD;", b"\n") for result in results)


def by_broker(registry: Registry, messages: Sequence[bytes]) -> list[dict[str, Opinion]]:
    """What a registry says of each message: subscription id -> opinion, without the undelivered.

    A delivery without payload is one without results.
    """
    batch = registry.deliver(messages, [str(number) for number in range(len(messages))])
    assert batch.errors.num_rows == 0, batch.errors.to_pylist()
    found: list[dict[str, list[bytes | None]]] = [{} for _ in messages]
    columns = ("message_id", "subscription_id", "result_number", "fragment")
    for row in batch.table.select(list(columns)).to_pylist():
        results = found[int(row["message_id"])].setdefault(row["subscription_id"], [])
        assert row["result_number"] == len(results), "results are numbered in order"
        results.append(row["fragment"])
    said: list[dict[str, Opinion]] = [
        {
            name: tuple(canonical(result) for result in results if result is not None)
            for name, results in each.items()
        }
        for each in found
    ]
    for verdict in batch.verdicts.to_pylist():
        assert verdict["code"] in CONSTRUCTION_ERRORS, verdict
        assert verdict["subscription_id"] not in said[verdict["row"]], verdict
        said[verdict["row"]][verdict["subscription_id"]] = verdict["code"]
    return said


def _rounded(result: bytes) -> bytes:
    """With what a double cannot tell apart written alike."""
    return _LONG_NUMBER.sub(lambda found: b"%.13g" % float(found[0]), result)
