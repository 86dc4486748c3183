"""Which messages may satisfy subscriptions with steps, before the steps are done.

What has to be in a message before (`before_steps`) is a query of an index; subscriptions that ask
for the same share it.

Example:
    >>> from pathcast.customize.steps import parse_steps
    >>> from pathcast.engine.matcher import matcher_options
    >>> from pathcast.limits import Limits
    >>> gates = StepGates(matcher_options(Limits(), 1, 1024))
    >>> steps = parse_steps(["rename //ol list"])
    >>> gates.add("s", steps, gate_texts(Subscription("s", "ann", "/n/list/li"), steps))
    >>> found = gates.match(pa.array([b"<n><ol><li/></ol></n>", b"<n/>"]))
    >>> found.rows(steps), found.subscriptions(steps, 0)
    ([0], ['s'])

It does no steps and answers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pathcast.customize.before_steps import conjunctions_before
from pathcast.customize.steps import Steps
from pathcast.engine import QueryIndex
from pathcast.engine.results import take_ids
from pathcast.model import MatcherOptions, Subscription

_GONE_MAX: Final = 1_024
"""Queries that have gone, before their room is given back once they are as many as those there."""

_Users = dict[Steps, dict[str, None]]
"""Series of steps -> ids of subscriptions."""


def gate_texts(subscription: Subscription, steps: Steps) -> tuple[str, ...]:
    """Queries of which a message has to satisfy one before the steps.

    Args:
        subscription: With all namespaces it may use.
        steps: Its steps, read.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: as `conjunctions_before`.
    """
    return tuple(paths.text for paths in conjunctions_before(subscription, steps))


class StepGates:
    """The gates of subscriptions with steps, which come and go.

    Args:
        options: As of the engine that answers.
    """

    def __init__(self, options: MatcherOptions) -> None:
        self._index = QueryIndex(limits=options.limits)
        self._matcher = self._index.matcher(
            threads=options.threads,
            cache_bytes_max=options.cache_bytes_max,
        )
        self._users: dict[str, _Users] = {}
        self._gone = 0

    def add(self, subscription_id: str, steps: Steps, texts: Sequence[str]) -> None:
        """A subscription comes.

        Args:
            subscription_id: Its id.
            steps: Its steps.
            texts: Its gate.

        Cost: 10 µs a text that is new.
        """
        self._index.register_gates(text for text in texts if text not in self._users)
        for text in texts:
            users = self._users.setdefault(text, {}).setdefault(steps, {})
            users[subscription_id] = None

    def remove(self, subscription_id: str, steps: Steps, texts: Sequence[str]) -> None:
        """It goes, as far as it has come."""
        for text in texts:
            users = self._users.get(text, {})
            users.get(steps, {}).pop(subscription_id, None)
            if not users.get(steps, True):
                del users[steps]
            if text in self._users and not users:
                del self._users[text]
                self._index.remove([text])
                self._gone += 1
        if self._gone > max(_GONE_MAX, len(self._users)):
            self._index.compact()
            self._gone = 0

    def match(self, messages: pa.Array, encoding: str | None = None) -> GateMatches:
        """Return the subscriptions that may be satisfied after their steps.

        Args:
            messages: `binary` or `large_binary`, as they came.
            encoding: Encoding of all messages where it is known: UTF-8, or none.
        """
        if encoding is not None:
            is_large = pa.types.is_large_binary(messages.type)
            messages = messages.view(pa.large_string() if is_large else pa.string())
        found = self._matcher.match(messages)
        lists = found.matches
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        rows = np.repeat(np.arange(len(lists)), lengths)
        numbers = lists.flatten().to_numpy(zero_copy_only=False)
        # Where it could not be told, it may be so.
        undecided = found.verdicts
        rows = np.concatenate([rows, undecided.column("row").to_numpy()])
        numbers = np.concatenate([numbers, undecided.column("query_number").to_numpy()])
        distinct, places = np.unique(numbers, return_inverse=True)
        users = [self._users[text] for text in take_ids(found.query_ids, distinct.tolist())]
        return GateMatches(rows, places, users)


class GateMatches:
    """The gates that messages of a batch have passed; it is used before these change.

    Args:
        rows: Message of each pair of message and gate.
        places: Gate of each.
        users: By place, who has the gate.
    """

    def __init__(
        self, rows: np.ndarray, places: np.ndarray, users: Sequence[Mapping[Steps, dict[str, None]]]
    ) -> None:
        self._rows = rows
        self._places = places
        self._users = users

    def rows(self, steps: Steps) -> list[int]:
        """Messages that may satisfy a subscription with these steps, ascending."""
        is_asked = np.array([steps in users for users in self._users], bool)
        found: list[int] = np.unique(self._rows[is_asked[self._places]]).tolist()
        return found

    def subscriptions(self, steps: Steps, row: int) -> list[str]:
        """The subscriptions with these steps that a message may satisfy, sorted."""
        passed = self._places[self._rows == row].tolist()
        return sorted({name for place in passed for name in self._users[place].get(steps, ())})
