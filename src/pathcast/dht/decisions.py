"""Which queries a whole message satisfies: the exact decision where a gate was found.

Source: 000, section 5.3 (predicates after structure). Differs: the whole query is evaluated, by the
project's engine, so branches, positions and every other condition are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pathcast.model import Query
from pathcast.registry import Registry

Asked: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""A query and its prefixes."""

_QUERIES_MAX = 10_000
_FORGET_AFTER = 256
"""Of so many messages a query has to be asked for one, or it is forgotten."""


class CandidateIndex:
    """Queries that were candidates at a peer of late, in one index."""

    def __init__(self) -> None:
        self._count = 0
        self._clear()

    def _clear(self) -> None:
        self._registry = Registry(threads=1)
        self._ids: dict[Asked, str] = {}
        self._refused: dict[str, str] = {}
        self._used: set[Asked] = set()
        self._messages = 0

    def decide(self, body: bytes, queries: Iterable[Asked]) -> dict[Asked, bool | str]:
        """Decide queries on a message.

        Args:
            body: The message.
            queries: Queries that were compiled before.

        Returns:
            By query; a text says why it could not be decided.
        """
        queries = list(dict.fromkeys(queries))
        if len(self._ids) + len(queries) > _QUERIES_MAX:
            self._clear()
        self._forget_unused()
        self._used.update(queries)
        for asked in queries:
            if asked not in self._ids:
                self._count += 1
                self._ids[asked] = name = str(self._count)
                text, bound = asked
                report = self._registry.add([Query(name, text, dict(bound))])
                for error in report.rejected.values():
                    self._refused[name] = str(error)
        found = self._registry.match(body)
        if found.error is not None:
            return dict.fromkeys(queries, str(found.error))
        satisfied, undecided = set(found.query_ids), dict(found.verdicts)
        answers: dict[Asked, bool | str] = {}
        for asked in queries:
            name = self._ids[asked]
            if name in self._refused:
                answers[asked] = self._refused[name]
            elif name in undecided:
                answers[asked] = str(undecided[name])
            else:
                answers[asked] = name in satisfied
        return answers

    def _forget_unused(self) -> None:
        self._messages += 1
        if self._messages <= _FORGET_AFTER:
            return
        names = {self._ids.pop(asked) for asked in self._ids.keys() - self._used}
        self._registry.remove(names - self._refused.keys())
        for name in names & self._refused.keys():
            del self._refused[name]
        self._used, self._messages = set(), 1
