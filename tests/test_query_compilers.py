"""The kernel's compiler of queries gives what the papers' compiler gives; so does its shortcut.

If one of these fails, a query is registered as other paths, or with another expression, than an
implementation of the same rules finds; `test_differential_compile.py` asks lxml which is right.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from expression_cases import ALPHABETS
from generators import random_expression, random_family, random_query
from pathcast import query
from pathcast.errors import QuerySyntaxError
from pathcast.kernel import canonical_form as shortcut
from pathcast.query import compile_query
from pathcast_papers import language

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

PARTS = (
    *("[", "]", "(", ")", "/", "//", "@", "..", "*", "|", "-", ",", ".//.[", "[1]", "[last()]"),
    *(" and ", " or ", "not(", "count(", "position()", " = ", " != ", " < ", "'a'", "1", "2.5"),
    *("text()", "string(", "contains(", "ancestor::", "self::", "parent::", "following::"),
    *("normalize-space(", "substring-before(", "concat(", "local-name(", "number(", "a", "n:a"),
)

LISTS = tuple(
    text
    for count in (2, 15, 17, 64, 65, 128, 130)
    for text in (
        f"//a[{' or '.join(f'@x={value}' for value in range(count))}]",
        f"//a[{' or '.join(f'.//k{value}' for value in range(count))}][b/c]/d",
        " | ".join(f"//a{value}/b" for value in range(count)),
        " and ".join(f"//a{value}/b" for value in range(count)),
        "/a[" * count + "b" + "]" * count,
        "not(" * count + "a" + ")" * count,
        "//a" + "/.." * count,
        "1" + "+1" * count + " = @x",
    )
)
"""Queries at the limits of alternatives and of depth."""


def outcome(room: Any, text: str, namespaces: Mapping[str, str]) -> tuple[Any, ...]:
    """What `pathcast.query` or the papers' `language` makes of a query, as texts."""
    try:
        compiled = room.compile_query(text, namespaces)
    except QuerySyntaxError as error:
        return error.code, error.params.get("offset", 0)
    together = [list(map(room.canonical_text, paths)) for paths in compiled.conjunctions]
    reasons = [(reason.text, reason.offset) for reason in compiled.reasons]
    return compiled.texts, together, compiled.expression, compiled.cost.value, reasons


def damaged(generator: random.Random, text: str) -> str:
    start = generator.randrange(len(text) + 1)
    end = min(len(text), start + generator.randrange(5))
    return text[:start] + generator.choice((*PARTS, "")) + text[end:]


def generated(seed: int, count: int) -> Iterator[tuple[str, Mapping[str, str]]]:
    generator = random.Random(seed)
    for _ in range(count):
        alphabet = ALPHABETS[generator.choice(sorted(ALPHABETS))]
        chance = generator.random()
        if chance < 0.1:
            yield from ((text, {}) for text in random_family(generator, 2))
        elif chance < 0.25:
            yield random_query(generator, alphabet), alphabet.namespaces
        else:
            text = random_expression(generator, alphabet)
            if chance > 0.7:
                text = damaged(generator, text)
            if chance > 0.9:
                text = f"//a[({text}) or not({random_expression(generator, alphabet)})]/b"
            yield text, alphabet.namespaces


def check(seed: int, count: int) -> None:
    costs: Counter[Any] = Counter()
    for text, namespaces in generated(seed, count):
        found = outcome(query, text, namespaces)
        assert found == outcome(language, text, namespaces), (text, namespaces)
        costs[found[3] if len(found) == 5 else "refused"] += 1
    assert set(costs) == {"indexed", "candidate-checked", "scan", "refused"}


def test_generated_queries_are_compiled_alike() -> None:
    check(1, 1_500)


@pytest.mark.nightly
def test_generated_queries_are_compiled_alike_at_length() -> None:
    for seed in range(1_000, 1_000 + NIGHTLY_EXAMPLES // 400):
        check(seed, 1_000)


@pytest.mark.parametrize("text", LISTS, ids=lambda text: f"{text[:14]}{len(text)}")
def test_queries_at_limits_are_compiled_alike(text: str) -> None:
    assert outcome(query, text, {}) == outcome(language, text, {})


def test_the_shortcut_gives_what_the_long_way_gives() -> None:
    taken = 0
    for text, namespaces in generated(2, 3_000):
        canonical = shortcut(text, namespaces)
        if canonical is not None:
            taken += 1
            compiled = compile_query(text, namespaces)
            assert (compiled.texts, compiled.expression) == ([canonical], None), text
    assert taken > 500
