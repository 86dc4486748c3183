"""The kernel's compiler agrees with the papers' reader, and its shortcut with the long way.

If one of these fails, a query is registered as other paths, or with another expression, than its
text says; `test_differential_compile.py` asks lxml whether necessary paths are necessary.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from expression_cases import ALPHABETS
from generators import random_expression, random_family, random_query
from pathcast import query
from pathcast.boundary import native
from pathcast.errors import QuerySyntaxError
from pathcast.query import compile_query
from pathcast_papers import language

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

PARTS = (
    *("[", "]", "(", ")", "/", "//", "@", "..", "*", "|", "-", ",", ".//.[", "[1]", "[last()]"),
    *(" and ", " or ", "not(", "count(", "position()", " = ", " != ", " < ", "'a'", "1", "2.5"),
    *("text()", "string(", "contains(", "ancestor::", "self::", "parent::", "following::"),
    *("normalize-space(", "substring-before(", "concat(", "local-name(", "number(", "a", "n:a"),
)


def outcome(room: Any, text: str, namespaces: Mapping[str, str]) -> Any:
    """The query that a room makes of a text, or code and offset of its refusal."""
    try:
        return room.compile_query(text, namespaces)
    except QuerySyntaxError as error:
        return error.code, error.params.get("offset", 0)


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


def check(text: str, namespaces: Mapping[str, str]) -> str:
    """Compares what both make of a query, and says what it costs, or that it is refused."""
    read = outcome(language, text, namespaces)
    compiled = outcome(query, text, namespaces)
    if isinstance(read, tuple) or isinstance(compiled, tuple):
        assert compiled == read, text
        return "refused"
    if read.path is not None:
        again = compile_query(read.text)
        assert (compiled.alternatives, compiled.expression) == (again.alternatives, None), text
        assert len(compiled.alternatives) == 1, text
    elif compiled.expression is not None:
        assert compiled.expression == language.expression_text(read.expression), text
        assert compiled.reasons, text
    return str(compiled.cost.value)


def check_many(seed: int, count: int) -> None:
    costs = {check(text, namespaces) for text, namespaces in generated(seed, count)}
    assert costs == {"indexed", "candidate-checked", "scan", "refused"}


def test_generated_queries_are_compiled_as_they_are_read() -> None:
    check_many(1, 2_000)


@pytest.mark.nightly
def test_generated_queries_are_compiled_as_they_are_read_at_length() -> None:
    for seed in range(1_000, 1_000 + NIGHTLY_EXAMPLES // 400):
        check_many(seed, 1_000)


def test_the_shortcut_gives_what_the_long_way_gives() -> None:
    taken = 0
    for text, namespaces in generated(2, 3_000):
        canonical = native.canonical_form(text, dict(namespaces))
        if canonical is not None:
            taken += 1
            compiled = compile_query(text, namespaces)
            assert (compiled.texts, compiled.expression) == ([canonical], None), text
    assert taken > 500


@pytest.mark.parametrize(
    ("text", "alternatives", "cost"),
    [
        (f"//a[{' or '.join(f'@x{n}=1' for n in range(120))}]", 120, "indexed"),
        (" | ".join(f"//a{n}/b" for n in range(100)), 100, "indexed"),
        ("//a[@x=1 or @y=2][@u=1 or @v=2 or @w=3]/b[@z or @t]", 12, "indexed"),
        (" and ".join(f"//a{n}/b" for n in range(20)), 1, "candidate-checked"),
        ("//a//b//c/ancestor::*[@x]", 5, "indexed"),
    ],
)
def test_alternatives_of_lists_and_of_ways(text: str, alternatives: int, cost: str) -> None:
    compiled = compile_query(text)
    assert (len(compiled.alternatives), compiled.cost.value) == (alternatives, cost)
