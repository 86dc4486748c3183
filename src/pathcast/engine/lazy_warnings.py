"""The warnings of a registration, looked for when somebody reads them.

Example:
    >>> rows = [Query("q1", "//a[b and not(b)]"), Query("q2", "//a[")]
    >>> warnings = LazyWarnings(rows, {1}, {})
    >>> [(warning.query_id, warning.code) for warning in warnings]
    [('q1', 'PL201')]

It registers nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, overload

from pathcast.model import Query, QueryLanguage, QueryWarning, Subscription

_Asked: TypeAlias = tuple[str, int, QueryLanguage | None]
"""Text, the object of the namespaces, and language."""


class LazyWarnings(Sequence[QueryWarning]):
    """The warnings of the rows of a call, in their order.

    Args:
        rows: The rows of a call; not changed by anybody from now on.
        refused: Places of those that were not taken up.
        namespaces: Prefixes for all of them.

    A copy, and what is pickled, is a tuple.

    Cost: nothing until it is read; then what `warnings_of` costs, once for equal texts.
    """

    __slots__ = ("_found", "_namespaces", "_refused", "_rows")

    def __init__(
        self, rows: Sequence[object], refused: Collection[int], namespaces: Mapping[str, str]
    ) -> None:
        self._rows = rows
        self._refused = refused
        self._namespaces = namespaces
        self._found: tuple[QueryWarning, ...] | None = None

    def _read(self) -> tuple[QueryWarning, ...]:
        if self._found is None:
            known: dict[_Asked, tuple[QueryWarning, ...]] = {}
            found: list[QueryWarning] = []
            for place, row in enumerate(self._rows):
                if place not in self._refused:
                    assert isinstance(row, Query | Subscription)
                    found += self._of(row, known)
            # Nobody needs the rows any more.
            self._found, self._rows = tuple(found), ()
        return self._found

    def _of(
        self, row: Query | Subscription, known: dict[_Asked, tuple[QueryWarning, ...]]
    ) -> tuple[QueryWarning, ...]:
        # Its patterns take longer to compile than all else that a registration needs.
        from pathcast.query.query_warnings import warnings_of

        text = row.text if isinstance(row, Query) else row.query
        # Rows that bind prefixes alike share the object, which outlives the call.
        key = text, id(row.namespaces), row.language
        if key not in known:
            bound = {**self._namespaces, **(row.namespaces or {})}
            known[key] = warnings_of(row.id, text, bound, row.language)
        # Most queries have none; of those that have, one text may have several ids.
        return tuple(replace(warning, query_id=row.id) for warning in known[key])

    @overload
    def __getitem__(self, place: int) -> QueryWarning: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[QueryWarning]: ...
    def __getitem__(self, place: int | slice) -> QueryWarning | Sequence[QueryWarning]:
        return self._read()[place]

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())

    def __reduce__(self) -> tuple[type, tuple[tuple[QueryWarning, ...]]]:
        return tuple, (self._read(),)
