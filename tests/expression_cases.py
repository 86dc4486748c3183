"""Expressions over all of XPath 1.0, messages, and which of them lxml says belong together."""

from __future__ import annotations

import random
from collections.abc import Mapping

from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    MessageShape,
    random_expression,
    random_message,
)
from oracles import LxmlQuery, lxml_tree
from oracles.lxml_differences import may_differ
from pathcast.limits import Limits
from pathcast.model import Query

ALPHABETS: Mapping[str, Alphabet] = {
    "plain": ALPHABET,
    "namespaces": ALPHABET_WITH_NAMESPACES,
}

ALTERNATIVES_MAX = 512
"""Alternatives of any query; a limit of the kernel (`language/compile/moving.rs`)."""

GENEROUS = Limits(evaluation_steps_max=20_000_000)
"""No generated pair comes near: what goes over the budget has no answer to compare."""


class Expressions:
    """Queries and messages from one seed.

    Attributes:
        truth: Query id -> numbers of the messages that satisfy it, by lxml; without the queries
            for which lxml is known to differ.
    """

    def __init__(self, alphabet: str, seed: int, queries: int = 60, messages: int = 16) -> None:
        chosen = ALPHABETS[alphabet]
        generator = random.Random(f"expressions {alphabet} {seed}")
        self.namespaces = dict(chosen.namespaces)
        self.texts = {
            f"q{number}": random_expression(generator, chosen) for number in range(queries)
        }
        shape = MessageShape(has_markup=True)
        self.messages = [random_message(generator, chosen, shape) for _ in range(messages)]
        self.trees = [lxml_tree(message) for message in self.messages]
        self.truth = {
            query_id: self.by_lxml(text)
            for query_id, text in self.texts.items()
            if may_differ(text) is None
        }

    @property
    def queries(self) -> list[Query]:
        return [Query(query_id, text, self.namespaces) for query_id, text in self.texts.items()]

    def by_lxml(self, text: str) -> frozenset[int]:
        """The numbers of the messages for which an expression is true."""
        compiled = LxmlQuery(Query("q", text, self.namespaces))
        return frozenset(number for number, tree in enumerate(self.trees) if compiled.matches(tree))

    @property
    def pairs(self) -> int:
        return len(self.truth) * len(self.messages)

    @property
    def matches(self) -> int:
        return sum(map(len, self.truth.values()))

    @property
    def telling(self) -> int:
        """Queries that some messages satisfy and some do not."""
        return sum(0 < len(rows) < len(self.messages) for rows in self.truth.values())
