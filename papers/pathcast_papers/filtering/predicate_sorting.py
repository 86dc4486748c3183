"""Predicate sorting: the predicates of a query in the order of their selectivity.

Selection Postponed tries the predicates of a query on a path match one after the other and stops at
the first that fails; so the one that fails most often should come first. How often a predicate is
true is estimated from statistics of the messages seen so far: how often an attribute occurs in the
elements of a name, and how many values it takes.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> statistics = StreamStatistics()
    >>> for value in "123":
    ...     statistics.observe(parse(f'<a x="1" y="{value}"/>'.encode(), Limits()))
    >>> table = PredicateTable(statistics)
    >>> table.insert(plan := QueryPlan(normalise("/a[@x=1][@y=1]")))
    >>> [round(statistics.selectivity(predicate), 2) for predicate in table.of(plan)]
    [1.0, 0.33]
    >>> table.sort()
    >>> [round(statistics.selectivity(predicate), 2) for predicate in table.of(plan)]
    [0.33, 1.0]

The order never changes an answer, only its cost.

Source: Diao et al., TODS 2003, section 5.3 (estimates, figure 24), figure 20 (the table).
Differs: the paper knows the statistics from its generator; here they are counted on the stream.
It leaves out the formulas for other operators and for wildcards. Taken here: `!=` is what `=`
leaves; an order holds for a third and a part of a string for a tenth of the values; a wildcard has
the statistics of all elements; a position k holds for one element in as many as a parent has
children of that name, if it has k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.message import MessageTree
from pathcast_papers.filtering.predicate import Predicate, is_named, predicates_of
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.language import (
    AttributeCondition,
    Comparison,
    Name,
    NameTest,
    Operator,
    Position,
    TextCondition,
    ValueCondition,
)

VALUES_MAX: Final = 1_000
"""Values of one attribute, or of the text under one name, that are told apart."""

ORDER_SHARE: Final = 1 / 3
"""Share of the values for which `<`, `<=`, `>` or `>=` is taken to be true."""

PART_SHARE: Final = 1 / 10
"""Share of the values for which a test of a part of the string is taken to be true."""


COUNTED_FIRST: Final = 16
"""Messages of a stream that are all counted."""

COUNTED_THEN: Final = 16
"""Of so many later messages one is counted."""


class ValueStatistics:
    """How often something occurs, and which values it takes.

    Attributes:
        count: Occurrences.
        values: Different values, the first `VALUES_MAX`.
    """

    __slots__ = ("count", "values")

    def __init__(self) -> None:
        self.count = 0
        self.values: set[str] = set()

    def observe(self, value: str) -> None:
        """Counts one occurrence."""
        self.count += 1
        if len(self.values) < VALUES_MAX:
            self.values.add(value)


class ElementStatistics:
    """What is known of the elements of one name, or of all elements.

    Attributes:
        count: Elements.
        parents: Different parents of them.
        attributes: Expanded name -> its statistics.
        text: Of text nodes that are children.
    """

    __slots__ = ("attributes", "count", "parents", "text")

    def __init__(self) -> None:
        self.count = 0
        self.parents = 0
        self.attributes: dict[tuple[str, str], ValueStatistics] = {}
        self.text = ValueStatistics()

    def share(self, found: ValueStatistics | None, compare: Comparison | None) -> float:
        """Share of the elements for which something occurs and compares as asked."""
        if found is None or not found.count:
            return 0.0
        occurs = min(1.0, found.count / self.count)
        if compare is None:
            return occurs
        equal = 1 / len(found.values)
        match compare.operator:
            case Operator.EQ:
                return occurs * equal
            case Operator.NE:
                return occurs * (1 - equal)
            case Operator.LT | Operator.LE | Operator.GT | Operator.GE:
                return occurs * ORDER_SHARE
            case _:
                return occurs * PART_SHARE


class StreamStatistics:
    """Statistics of the messages seen so far.

    Attributes:
        messages: How many.
    """

    def __init__(self) -> None:
        self.messages = 0
        self._all = ElementStatistics()
        self._by_name: dict[tuple[str, str], ElementStatistics] = {}

    def observe(self, tree: MessageTree) -> None:
        """Counts one message.

        Cost: a few look-ups an element, attribute and text node.
        """
        self.messages += 1
        families: set[tuple[int, tuple[str, str] | None]] = set()
        for element, name in enumerate(tree.name):
            own = self._by_name.get(name)
            if own is None:
                own = self._by_name[name] = ElementStatistics()
            for statistics, key in ((own, name), (self._all, None)):
                statistics.count += 1
                family = (tree.parent[element], key)
                if family not in families:
                    families.add(family)
                    statistics.parents += 1
                for at in range(tree.attribute_start[element], tree.attribute_start[element + 1]):
                    found = statistics.attributes.setdefault(
                        tree.attribute_name[at], ValueStatistics()
                    )
                    found.observe(tree.attribute_value[at])
        for parent, value in zip(tree.text_parent, tree.text_value, strict=True):
            self._by_name[tree.name[parent]].text.observe(value)
            self._all.text.observe(value)

    def selectivity(self, predicate: Predicate) -> float:
        """Estimated share of the elements at the predicate's step for which it is true, 0 to 1.

        An element or attribute that was never seen has 0.
        """
        statistics = self._statistics(predicate.step.test)
        if statistics is None or not statistics.count:
            return 0.0
        condition = predicate.condition
        match condition:
            case None:
                return _position_share(statistics, predicate.step.stages[predicate.stage].positions)
            case AttributeCondition(Name(uri, local), compare):
                return statistics.share(statistics.attributes.get((uri, local)), compare)
            case AttributeCondition(test, compare):
                shares = (
                    statistics.share(found, compare)
                    for name, found in statistics.attributes.items()
                    if is_named(name, test)
                )
                return min(1.0, sum(shares))
            case TextCondition(compare) | ValueCondition(compare):
                return statistics.share(statistics.text, compare)
            case _:
                return 1.0

    def _statistics(self, test: NameTest) -> ElementStatistics | None:
        if isinstance(test, Name):
            return self._by_name.get((test.uri, test.local))
        return self._all


class PredicateTable:
    """The predicates stored with each query, by step number (figure 20).

    Args:
        statistics: What `sort` goes by; None for a table that keeps the order of the queries.
    """

    def __init__(self, statistics: StreamStatistics | None = None) -> None:
        self._statistics = statistics
        self._rows: dict[QueryPlan, tuple[Predicate, ...]] = {}
        self._seen = 0
        self._sorted_at = 0

    def insert(self, plan: QueryPlan) -> None:
        """Stores the predicates of a query."""
        predicates = tuple(predicates_of(plan))
        self._rows[plan] = self._ordered(predicates) if self._sorted_at else predicates

    def delete(self, plan: QueryPlan) -> None:
        """Drops the predicates of a query."""
        del self._rows[plan]

    def of(self, plan: QueryPlan) -> tuple[Predicate, ...]:
        """The predicates of a query, in the order in which they are tried."""
        return self._rows[plan]

    def observe(self, tree: MessageTree) -> None:
        """Counts a message, and sorts again when twice as many were counted as the last time.

        After the first `COUNTED_FIRST` messages one in `COUNTED_THEN` is counted.

        Cost: sorting takes logarithmically many of the messages.
        """
        if self._statistics is None:
            return
        self._seen += 1
        if self._seen > COUNTED_FIRST and self._seen % COUNTED_THEN:
            return
        self._statistics.observe(tree)
        if self._statistics.messages >= max(1, 2 * self._sorted_at):
            self.sort()

    def sort(self) -> None:
        """Sorts the predicates of every query, the most selective first."""
        if self._statistics is not None:
            self._sorted_at = self._statistics.messages
            for plan, predicates in self._rows.items():
                self._rows[plan] = self._ordered(predicates)

    def _ordered(self, predicates: Sequence[Predicate]) -> tuple[Predicate, ...]:
        if self._statistics is None or len(predicates) < 2:
            return tuple(predicates)
        return tuple(sorted(predicates, key=self._statistics.selectivity))


def _position_share(statistics: ElementStatistics, positions: Sequence[Position]) -> float:
    """Share of the elements that stand at some positions in the list they count in."""
    siblings = statistics.count / statistics.parents
    share = 1.0
    for position in positions:
        match position.operator:
            case Operator.EQ:
                share *= 1 / siblings if position.number <= siblings else 1 / (2 * siblings)
            case Operator.NE:
                share *= 1 - 1 / (2 * siblings)
            case _:
                share *= ORDER_SHARE
    return share
