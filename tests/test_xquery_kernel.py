"""The kernel reads the same language as `pathcast.query.xquery`, and means the same by it.

If these fail, a subscription is taken in one way of registering and refused in another, or stands
in the kernel although nobody ever said what is wrong with it.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from generators import VOCABULARIES, random_flwr
from pathcast.errors import KernelBugError, PathcastError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.message.canonical import canonical
from pathcast.model import DeliverMode, Subscription
from pathcast.query.xquery import is_xquery
from pathcast.query.xquery import refusal_of as reason_of
from pathcast_papers.evaluation.xpath import Document
from pathcast_papers.language.xquery import parse as read
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.xquery import evaluate, holds
from pattern_writer import PatternWriter
from typed_writer import TypedWriter
from xquery_cases import ACCEPTED, NAMESPACES, REFUSED, WRONG, refusal_of
from xquery_damage import damaged
from xquery_writer import Writer

TIME = 1_772_323_199_123_456
"""2026-02-28T23:59:59.123456Z, in microseconds since 1970."""


def is_taken(text: str) -> bool:
    """Whether the kernel takes a text as a notice; as a result, it takes what Python does."""
    kernel = pytest.importorskip("pathcast_kernel")
    taken = [kernel.compile_subscription(text, NAMESPACES, way) for way in ("ids", "fragment")]
    assert (taken[1] is not None) == is_right(text, "fragment"), text
    return taken[0] is not None


def is_right(text: str, deliver: str) -> bool:
    """Whether Python finds nothing wrong with a text."""
    return isinstance(reason_of(text, NAMESPACES, deliver), KernelBugError)


@pytest.mark.parametrize("text", [*ACCEPTED, *(text for text, *_ in (*REFUSED, *WRONG))])
def test_cases(text: str) -> None:
    assert is_taken(text) == is_right(text, "ids")


def agreement(seed: int, count: int) -> tuple[int, int]:
    """Compares the two on texts that are whole and damaged; how many are parsed, of how many."""
    rng, writer = random.Random(seed), Writer(seed)
    vocabularies = list(VOCABULARIES.values())
    parsed = 0
    for _ in range(count):
        text = rng.choice(
            (
                lambda: rng.choice(ACCEPTED),
                lambda: rng.choice(REFUSED)[0],
                lambda: rng.choice(WRONG)[0],
                writer.subscription,
                lambda: random_flwr(rng, rng.choice(vocabularies)).text,
            )
        )()
        text = damaged(rng, text, rng.randint(0, 3))
        expected = is_right(text, "ids")
        assert is_taken(text) == expected, text
        parsed += expected
    return parsed, count


def test_damaged_texts() -> None:
    parsed, count = agreement(seed=9, count=1_500)
    assert 0.1 < parsed / count < 0.6


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_many_damaged_texts(seed: int) -> None:
    agreement(seed=200 + seed, count=30_000)


def delivered_as(text: str) -> DeliverMode:
    """How a text is delivered: as a notice where a result would be a boolean."""
    return "ids" if refusal_of(text) == "subscription.fragment" else "fragment"


def by_reference(text: str, deliver: DeliverMode, message: MessageTree) -> list[bytes | None] | str:
    """What the reference delivers, or the code of its verdict."""
    program = read(text)
    limits = Limits(result_ratio_max=1_000_000)
    document = Document(message, TIME)
    try:
        if deliver == "ids":
            return [None] if holds(program, document, limits) else []
        return [canonical(result) for result in evaluate(program, document, limits).results]
    except PathcastError as error:
        return error.code


def compared(writer: Writer, batches: int) -> int:
    """Subscriptions with dynamic errors, by both engines; how many pairs had results."""
    from pathcast.kernel.registry import KernelRegistry

    limits = Limits(result_ratio_max=1_000_000)
    delivered = 0
    for _ in range(batches):
        texts = [writer.notice() if n % 2 else writer.subscription() for n in range(30)]
        # What XPath is too is XQuery in a sequence.
        texts = [text if is_xquery(text) else f"({text}, ())" for text in texts]
        ways = [delivered_as(text) for text in texts]
        messages = [writer.message() for _ in range(8)]
        engine = KernelRegistry(limits=limits, threads=1, cache_bytes_max=1 << 20)
        subscriptions = [
            Subscription(str(number), "u", text, deliver)
            for number, (text, deliver) in enumerate(zip(texts, ways, strict=True))
        ]
        assert engine.subscribe(subscriptions, {}).rejected == {}
        answer = engine.process(pa.array(messages, pa.binary()), times=[TIME])
        found: dict[tuple[int, int], list[bytes | None] | str] = {}
        for row in answer.rows.to_pylist():
            place = row["message"], int(answer.subscription_ids[row["subscription"]])
            results = found.setdefault(place, [])
            assert isinstance(results, list)
            at = row["fragment"]
            results.append(None if at is None else canonical(answer.fragments[at].as_py()))
        for message, subscription, error in answer.verdicts:
            found[message, int(answer.subscription_ids[subscription])] = error.code
        trees = [parse_message(source) for source in messages]
        for number, text in enumerate(texts):
            for at, source in enumerate(messages):
                expected = by_reference(text, ways[number], trees[at])
                assert found.get((at, number), []) == expected, (text, source)
                delivered += bool(expected)
    return delivered


def test_what_xquery_has_errors_for_is_evaluated_alike() -> None:
    assert is_taken("//a, 1")
    assert compared(Writer(12), batches=4) > 100


def test_types_are_evaluated_alike() -> None:
    assert compared(TypedWriter(13), batches=6) > 300


def test_texts_are_evaluated_alike() -> None:
    assert compared(PatternWriter(15), batches=4) > 100


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_texts_are_evaluated_alike_at_length(seed: int) -> None:
    assert compared(PatternWriter(500 + seed), batches=100) > 2_500


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_types_are_evaluated_alike_at_length(seed: int) -> None:
    assert compared(TypedWriter(400 + seed), batches=150) > 5_000


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_more_of_what_xquery_has_errors_for(seed: int) -> None:
    assert is_taken("//a, 1")
    compared(Writer(300 + seed), batches=150)
