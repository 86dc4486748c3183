"""The kernel reads the same language as `pathcast.query.xquery`.

If these fail, a subscription is taken in one way of registering and refused in another, or stands
in the kernel although nobody ever said what is wrong with it.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable

import pytest

from pathcast.errors import QuerySyntaxError
from pathcast.limits import Limits
from pathcast.query.xquery import parse
from pathcast.testing import VOCABULARIES, random_flwr
from xquery_cases import ACCEPTED, NAMESPACES, REFUSED, WRONG
from xquery_damage import damaged
from xquery_writer import Writer

IsTaken = Callable[[str], bool]


@pytest.fixture(scope="module")
def is_taken() -> IsTaken:
    """Whether the kernel takes a text as a program."""
    try:
        kernel = importlib.import_module("pathcast_kernel")
    except ImportError as error:
        pytest.skip(f"the native kernel is not installed: {error}")
    broker = kernel.Dissemination(Limits(), 1, 1 << 20)
    numbers = iter(range(1 << 40))

    def ask(text: str) -> bool:
        id_ = str(next(numbers))
        taken = broker.subscribe_compiled(id_, text, "ids", NAMESPACES, True, ["/*"], None, None)
        if taken:
            broker.unsubscribe([id_])
        return bool(taken)

    return ask


def is_parsed(text: str) -> bool:
    try:
        parse(text, NAMESPACES)
    except QuerySyntaxError:
        return False
    return True


@pytest.mark.parametrize("text", [*ACCEPTED, *(text for text, *_ in (*REFUSED, *WRONG))])
def test_cases(is_taken: IsTaken, text: str) -> None:
    assert is_taken(text) == is_parsed(text)


def agreement(is_taken: IsTaken, seed: int, count: int) -> tuple[int, int]:
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
        expected = is_parsed(text)
        assert is_taken(text) == expected, text
        parsed += expected
    return parsed, count


def test_damaged_texts(is_taken: IsTaken) -> None:
    parsed, count = agreement(is_taken, seed=9, count=1_500)
    assert 0.1 < parsed / count < 0.6


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_many_damaged_texts(is_taken: IsTaken, seed: int) -> None:
    agreement(is_taken, seed=200 + seed, count=30_000)
