"""Messages, queries, subscriptions and histories from a seed.

- `random_message`, `random_query`, `random_query_for`, `rewritten`, `random_history`,
  `random_split`, `random_routing_entries`. `random_expression`: over all of XPath 1.0.
  `random_family`, `random_valued_message`: many conditions at a place.
- `any_alphabet`, `random_name`: names of all of XML's characters. `in_some_encoding`: a message in
  another encoding.
- `random_flwr`, `random_flwr_message`: FLWR subscriptions and messages that they meet, over a
  `Vocabulary`, flat or recursive.
- `hostile_query`, `hostile_subscription`, `hostile_message`, `mixed`: rows that cannot be used,
  among rows that can.
- `generators.strategies`: the same for Hypothesis.
"""

from generators.alphabet import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    Alphabet,
    any_alphabet,
    random_name,
)
from generators.batches import random_split
from generators.content import FamilyShape, random_family, random_valued_message
from generators.expression_text import ExpressionShape, random_expression
from generators.flwr_frame import GeneratedFlwr
from generators.flwr_messages import MessageTemper, random_flwr_message
from generators.flwr_paths import FlwrWidth
from generators.flwr_text import random_constant, random_flwr, random_notice
from generators.flwr_vocabulary import VOCABULARIES, Vocabulary
from generators.histories import (
    UNREADABLE,
    Compact,
    Freeze,
    HistoryStep,
    Match,
    Register,
    Remove,
    random_history,
)
from generators.hostile_rows import hostile_message, hostile_query, hostile_subscription, mixed
from generators.message_text import MessageShape, in_some_encoding, random_message
from generators.query_for_message import random_query_for
from generators.query_text import LINEAR, VALUES, QueryShape, random_query, rewritten
from generators.routing_entries import random_routing_entries

__all__ = [
    "ALPHABET",
    "ALPHABET_WITH_NAMESPACES",
    "LINEAR",
    "UNREADABLE",
    "VALUES",
    "VOCABULARIES",
    "Alphabet",
    "Compact",
    "ExpressionShape",
    "FamilyShape",
    "FlwrWidth",
    "Freeze",
    "GeneratedFlwr",
    "HistoryStep",
    "Match",
    "MessageShape",
    "MessageTemper",
    "QueryShape",
    "Register",
    "Remove",
    "Vocabulary",
    "any_alphabet",
    "hostile_message",
    "hostile_query",
    "hostile_subscription",
    "in_some_encoding",
    "mixed",
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
]
