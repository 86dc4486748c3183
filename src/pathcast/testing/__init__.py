"""Generators, strategies, oracles and asserts for tests of Pathcast and of what is built on it.

- `random_message`, `random_query`, `random_query_for`, `rewritten`, `random_history`,
  `random_split`, `random_routing_entries`: from a seed. `random_expression`: over all of XPath
  1.0. `random_family`, `random_valued_message`: many conditions at a place.
- `any_alphabet`, `random_name`: names of all of XML's characters. `in_some_encoding`: a message in
  another encoding.
- `random_flwr`, `random_flwr_message`: FLWR subscriptions and messages that they meet, over a
  `Vocabulary`, flat or recursive.
- `hostile_query`, `hostile_subscription`, `hostile_message`, `mixed`: rows that cannot be used,
  among rows that can.
- `SaxonOracle`: Saxon's opinion (needs `saxonche`); `canonical`, `expanded`: results in one
  notation.
- `pathcast.testing.strategies`: the same for Hypothesis (needs `hypothesis`).
- `lxml_matches`: lxml's opinion (needs `lxml`). `oracle_matches`: the oracle's.
- `assert_same_matches`: fails with what differs.
- `pathcast.testing.cost`: a search for messages and queries that cost more than they may (needs
  `lxml`).
- `ENGINES`, `missing_reason`: which engines can be tested here.

Example:
    >>> import random
    >>> seed = random.Random(7)
    >>> query, message = Query("q1", random_query(seed)), random_message(seed)
    >>> oracle_matches(query, message) == lxml_matches(query, message)
    True
"""

from __future__ import annotations

from pathcast.limits import Limits
from pathcast.message import parse_message
from pathcast.model import Query
from pathcast.query import compile_query
from pathcast.reference.oracle import holds
from pathcast.testing.alphabet import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    any_alphabet,
    random_name,
)
from pathcast.testing.asserts import assert_same_matches
from pathcast.testing.batches import random_split
from pathcast.testing.canonical import FragmentError, canonical, expanded
from pathcast.testing.content import FamilyShape, random_family, random_valued_message
from pathcast.testing.engines import ENGINES, missing_reason
from pathcast.testing.expression_text import ExpressionShape, random_expression
from pathcast.testing.flwr_frame import GeneratedFlwr
from pathcast.testing.flwr_messages import MessageTemper, random_flwr_message
from pathcast.testing.flwr_paths import FlwrWidth
from pathcast.testing.flwr_text import random_constant, random_flwr, random_notice
from pathcast.testing.flwr_vocabulary import VOCABULARIES, Vocabulary
from pathcast.testing.histories import (
    UNREADABLE,
    Compact,
    Freeze,
    HistoryStep,
    Match,
    Register,
    Remove,
    random_history,
)
from pathcast.testing.hostile_rows import (
    hostile_message,
    hostile_query,
    hostile_subscription,
    mixed,
)
from pathcast.testing.lxml_oracle import LxmlQuery, lxml_matches, lxml_tree, number_differs
from pathcast.testing.message_text import MessageShape, in_some_encoding, random_message
from pathcast.testing.query_for_message import random_query_for
from pathcast.testing.query_text import LINEAR, VALUES, QueryShape, random_query, rewritten
from pathcast.testing.routing_entries import random_routing_entries
from pathcast.testing.saxon import SaxonError, SaxonOracle, saxon_missing_reason

__all__ = [
    "ALPHABET",
    "ALPHABET_WITH_NAMESPACES",
    "ENGINES",
    "LINEAR",
    "UNREADABLE",
    "VALUES",
    "VOCABULARIES",
    "Alphabet",
    "Compact",
    "ExpressionShape",
    "FamilyShape",
    "FlwrWidth",
    "FragmentError",
    "Freeze",
    "GeneratedFlwr",
    "HistoryStep",
    "LxmlQuery",
    "Match",
    "MessageShape",
    "MessageTemper",
    "QueryShape",
    "Register",
    "Remove",
    "SaxonError",
    "SaxonOracle",
    "Vocabulary",
    "any_alphabet",
    "assert_same_matches",
    "canonical",
    "expanded",
    "hostile_message",
    "hostile_query",
    "hostile_subscription",
    "in_some_encoding",
    "lxml_matches",
    "lxml_tree",
    "missing_reason",
    "mixed",
    "number_differs",
    "oracle_matches",
    "random_constant",
    "random_expression",
    "random_family",
    "random_flwr",
    "random_flwr_message",
    "random_history",
    "random_message",
    "random_name",
    "random_notice",
    "random_query",
    "random_query_for",
    "random_routing_entries",
    "random_split",
    "random_valued_message",
    "rewritten",
    "saxon_missing_reason",
]


def oracle_matches(query: Query, message: bytes) -> bool:
    """Whether a message satisfies a query, by the oracle.

    Raises:
        QuerySyntaxError: The query cannot be read.
        MessageError: The door refuses the message.
    """
    tree = parse_message(message, Limits())
    return holds(compile_query(query.text, query.namespaces), tree)
