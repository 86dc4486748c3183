"""Hypothesis strategies over the generators of this room, so that failures shrink.

Example:
    >>> from hypothesis import given
    >>> from generators.strategies import messages, queries
    >>> @given(queries(), messages())
    ... def test_something(query, message): ...

Hypothesis is needed to import this module, and only this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.alphabet import ALPHABET, Alphabet
from generators.batches import random_split
from generators.expression_text import ExpressionShape, random_expression
from generators.histories import HistoryStep, random_history
from generators.message_text import MessageShape, random_message
from generators.query_text import QueryShape, random_query, rewritten, tree_of


def element_names(alphabet: Alphabet = ALPHABET) -> st.SearchStrategy[str]:
    """Local names of elements."""
    return st.sampled_from(alphabet.elements)


def attribute_names(alphabet: Alphabet = ALPHABET) -> st.SearchStrategy[str]:
    """Local names of attributes."""
    return st.sampled_from(alphabet.attributes)


def messages(
    alphabet: Alphabet = ALPHABET, shape: MessageShape | None = None
) -> st.SearchStrategy[bytes]:
    """Well-formed messages."""
    return st.randoms().map(lambda random: random_message(random, alphabet, shape))


def queries(
    alphabet: Alphabet = ALPHABET, shape: QueryShape | None = None
) -> st.SearchStrategy[str]:
    """Queries of the evaluated language."""
    return st.randoms().map(lambda random: random_query(random, alphabet, shape))


def expressions(
    alphabet: Alphabet = ALPHABET, shape: ExpressionShape | None = None
) -> st.SearchStrategy[str]:
    """Queries over all of XPath 1.0."""
    return st.randoms().map(lambda random: random_expression(random, alphabet, shape))


def notations(
    alphabet: Alphabet = ALPHABET, shape: QueryShape | None = None
) -> st.SearchStrategy[tuple[str, str]]:
    """Two notations of one query."""
    return st.tuples(queries(alphabet, shape), st.randoms()).map(
        lambda pair: (
            pair[0],
            rewritten(pair[1], tree_of(pair[0], alphabet.namespaces)),
        )
    )


def query_sets(
    alphabet: Alphabet = ALPHABET,
    shape: QueryShape | None = None,
    *,
    min_size: int = 1,
    max_size: int = 12,
) -> st.SearchStrategy[list[str]]:
    """Queries to be registered together, duplicates in the same and in other notations included."""

    @st.composite
    def drawn(draw: st.DrawFn) -> list[str]:
        texts = draw(st.lists(queries(alphabet, shape), min_size=min_size, max_size=max_size))
        random = draw(st.randoms())
        for text in list(texts):
            if random.randrange(6) == 0:
                texts.append(text)
            elif random.randrange(6) == 0:
                texts.append(rewritten(random, tree_of(text, alphabet.namespaces)))
        return texts

    return drawn()


def histories(
    texts: Sequence[str], *, max_length: int = 15
) -> st.SearchStrategy[list[HistoryStep]]:
    """Histories of an index over some queries."""
    return st.tuples(st.randoms(), st.integers(1, max_length)).map(
        lambda pair: random_history(pair[0], texts, pair[1])
    )


def batch_splits(items: Sequence[bytes]) -> st.SearchStrategy[list[list[bytes]]]:
    """Ways to cut messages into batches."""
    return st.randoms().map(lambda random: random_split(random, items))
