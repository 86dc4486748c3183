"""The kernel's reader of XQuery and that of the papers read the same language.

If these fail, a text has two trees or two refusals: a subscriber is told something that is not so,
or lint, projection and plans speak of another program than the one that runs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest

from generators import VOCABULARIES, random_flwr
from pathcast.boundary import native
from pathcast.errors import QuerySyntaxError
from pathcast.query import refusals as xpath
from pathcast.query.xquery import is_xquery, parse, refusals, without_comments
from pathcast_papers.language import xquery as papers
from pathcast_papers.language.xquery.comments import without_comments as blanked
from trees import of_papers, of_product
from xquery_cases import NAMESPACES
from xquery_damage import TEXTS, damaged
from xquery_writer import Writer

SCOPES: tuple[Mapping[str, str], ...] = (
    NAMESPACES,
    {},
    {"": "urn:d", "p": "urn:p"},
    {"fn": "urn:x", "s": "a b", "p": "{x}"},
    {"": "http://www.w3.org/2000/xmlns/", "p": "\udc80x"},
)
DELIVERED = (None, "fragment", "message", "ids")
CHARACTERS = "<>{}()[]'\"$/@:;,.=!&#x1a \n*|-+~éQ\u200d\r\t٣𝒳0"


class Reader(Protocol):
    """A reader of XQuery."""

    def __call__(
        self, text: str, namespaces: Mapping[str, str], deliver: str | None = None, /
    ) -> Any: ...


def reading(
    reader: Reader,
    tuples: Callable[[object], Any],
    text: str,
    scope: Mapping[str, str],
    deliver: str | None,
) -> Any:
    """The tree of a text, or all that is said of it."""
    try:
        return tuples(reader(text, scope, deliver))
    except QuerySyntaxError as error:
        return type(error).__name__, error.code, dict(error.params), str(error)


def compare(text: str, scope: Mapping[str, str], deliver: str | None) -> str:
    """Compares the readers; the code of the refusal, or "" for a tree."""
    expected = reading(papers.parse, of_papers, text, scope, deliver)
    assert reading(parse, of_product, text, scope, deliver) == expected, (text, scope, deliver)
    assert is_xquery(text) == papers.is_xquery(text), text
    assert without_comments(text) == blanked(text), text
    return "" if len(expected) == 2 else expected[1]


@pytest.mark.parametrize("deliver", DELIVERED)
@pytest.mark.parametrize("scope", SCOPES)
def test_cases(scope: Mapping[str, str], deliver: str | None) -> None:
    codes = Counter(compare(text, scope, deliver) for text in TEXTS)
    assert len(codes) > 10


def mutant(rng: random.Random, text: str) -> str:
    """A text with a character deleted, doubled, exchanged with the next one or put in."""
    at = rng.randint(0, len(text))
    here, following, rest = text[at : at + 1], text[at + 1 : at + 2], text[at + 2 :]
    replaced = rng.choice(
        (following, here + here + following, following + here, rng.choice(CHARACTERS) + here)
    )
    return text[:at] + replaced + rest


def many(seed: int, count: int) -> Counter[str]:
    """Compares the readers on texts that are whole, changed and damaged; codes by number."""
    rng, writer = random.Random(seed), Writer(seed)
    vocabularies = list(VOCABULARIES.values())
    codes: Counter[str] = Counter()
    for _ in range(count):
        text = rng.choice(
            (
                lambda: rng.choice(TEXTS),
                writer.subscription,
                lambda: random_flwr(rng, rng.choice(vocabularies)).text,
            )
        )()
        if rng.random() < 0.3:
            text = damaged(rng, text, rng.randint(1, 2))
        for _ in range(rng.randint(0, 2)):
            text = mutant(rng, text)
        codes[compare(text, rng.choice(SCOPES), rng.choice(DELIVERED))] += 1
    return codes


def test_changed_texts() -> None:
    codes = many(seed=7, count=3_000)
    assert 0.1 < codes[""] / codes.total() < 0.7
    assert len(codes) > 10


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_many_changed_texts(seed: int) -> None:
    many(seed=700 + seed, count=100_000)


def test_every_reason_has_a_sentence() -> None:
    reasons = native.refusal_reasons()
    assert len(reasons) > 90
    of_xpath = {*xpath.LIMITS, *xpath.SENTENCES}
    assert set(reasons) == {*refusals.EXPECTED, *refusals.SENTENCES, *of_xpath}
