"""Whether a recursive execution has come to its end: credits, each with a name.

A credit is a visit: the state and the element name it. It is given out with the question for the
visit, and thrown back to the publisher with the names of those given out in its stead. The
execution is over when every credit that was ever named has come back. A visit that is asked for
twice, by two sources or because an answer was lost, is one credit, so nothing is counted twice; and
what is missing has a name, so that it is asked for again, it alone.

Weights that are split and added up would not do: where a question may be put twice, a weight may
come back twice, and hide another that is lost.

Example:
    >>> start, child = Visit("start", 0), Visit("start/a", 1)
    >>> ledger = Ledger(start)
    >>> ledger.came_back(start, [child]), ledger.missing
    (True, {Visit(key='start/a', element=1): None})
    >>> ledger.came_back(child, []), ledger.came_back(child, []), ledger.is_over
    (True, False, True)

Source: not in 000, whose recursive execution has no end. Mattern 1989 for credits.
"""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.dht.piece_messages import Visit


class Ledger:
    """Credits of one execution.

    Args:
        start: The visit it begins with.

    Attributes:
        missing: Credits that have been named and have not come back, in the order of their names
            becoming known.
        back: Those that have.
    """

    def __init__(self, start: Visit) -> None:
        self.missing: dict[Visit, None] = {start: None}
        self.back: set[Visit] = set()

    @property
    def is_over(self) -> bool:
        """Whether all are back."""
        return not self.missing

    def came_back(self, visit: Visit, given_out: Iterable[Visit]) -> bool:
        """A credit came back; whether it is the first time.

        Those given out count even if it is not: two peers may have done the visit.
        """
        is_new = visit not in self.back
        self.back.add(visit)
        self.missing.pop(visit, None)
        self.give_out(given_out)
        return is_new

    def give_out(self, visits: Iterable[Visit]) -> None:
        """Credits have been named."""
        for visit in visits:
            if visit not in self.back:
                self.missing[visit] = None
