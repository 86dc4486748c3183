"""A reference algorithm under the clock: path navigation, and collecting query numbers.

MQPT has two parts (4.2.2): navigation, the cost of transitions driven by events, and collection,
marking the numbers of the satisfied queries in a bit set. Messages are parsed before the clock
runs. The clock is the thread's processor time, which other processes disturb least: an algorithm in
Python waits for nothing.

Example:
    >>> subject = ReferenceSubject(Algorithm.HYBRID, plans := plans_of(["/a/b", "//b", "/a/b"]))
    >>> len(plans), [sorted(plan.numbers) for plan in plans]
    (2, [[0, 2], [1]])

It checks nothing; `sweep` compares the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pathcast.message import MessageTree
from pathcast_papers.filtering.algorithm import Algorithm
from pathcast_papers.filtering.execution import Execution
from pathcast_papers.filtering.hybrid import Hybrid
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.xfilter import XFilter
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import NormalQuery, canonical_text, normalise

NormalForms: TypeAlias = dict[str, tuple[str, NormalQuery]]
"""Spelling -> canonical text and normal form."""


def plans_of(texts: Sequence[str], known: NormalForms | None = None) -> list[QueryPlan]:
    """The distinct queries of a list, each with its numbers in the list.

    Args:
        texts: The queries.
        known: Normal forms that were made before; is added to.

    Cost: about 0.2 ms for a spelling that is not known.
    """
    known = {} if known is None else known
    plans: dict[str, QueryPlan] = {}
    for number, text in enumerate(texts):
        found = known.get(text)
        if found is None:
            normal = normalise(text)
            found = known[text] = (canonical_text(normal), normal)
        plan = plans.get(found[0])
        if plan is None:
            plan = plans[found[0]] = QueryPlan(found[1])
        plan.numbers.append(number)
    return list(plans.values())


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over messages.

    Attributes:
        navigation_ns: From a tree to the distinct queries that it satisfies.
        collection_ns: From those to a bit set of query numbers.
    """

    navigation_ns: int
    collection_ns: int

    @property
    def total_ns(self) -> int:
        """MQPT."""
        return self.navigation_ns + self.collection_ns


class ReferenceSubject:
    """A reference algorithm with some queries.

    Args:
        algorithm: Which one.
        plans: The queries.

    Attributes:
        transitions: Transitions that `answers` has followed: of the automaton, or level checks that
            passed.
        predicates_tried: Predicates that `answers` has tried after the structure had matched.

    Raises:
        UnsupportedQueryError: A query is outside its fragment.
    """

    def __init__(self, algorithm: Algorithm, plans: Sequence[QueryPlan]) -> None:
        self.algorithm = algorithm
        self.filter = algorithm.new()
        for plan in plans:
            self.filter.insert(plan)
        self.transitions = 0
        self.predicates_tried = 0
        self._bits = bytes(sum(len(plan.numbers) for plan in plans) // 8 + 1)

    def answers(self, trees: Sequence[MessageTree]) -> list[list[int]]:
        """Numbers of the satisfied queries of each message, ascending."""
        filter_ = self.filter
        found = [
            sorted(number for plan in filter_.match(tree) for number in plan.numbers)
            for tree in trees
        ]
        if isinstance(filter_, (XFilter, Hybrid)):
            self.transitions = filter_.transitions
        elif isinstance(filter_, YFilter):
            self.transitions = sum(visits(filter_, tree)[0] for tree in trees)
            self.predicates_tried = filter_.predicates_tried
        return found

    def run(self, trees: Sequence[MessageTree]) -> Pass:
        """One pass. To be called while `undisturbed`."""
        clock, match = time.thread_time_ns, self.filter.match
        navigation = collection = 0
        for tree in trees:
            started = clock()
            satisfied = match(tree)
            navigated = clock()
            bits = bytearray(self._bits)
            for plan in satisfied:
                for number in plan.numbers:
                    bits[number >> 3] |= 1 << (number & 7)
            collected = clock()
            navigation += navigated - started
            collection += collected - navigated
        return Pass(navigation, collection)


def processor_ns(action: Callable[[], object]) -> int:
    """Processor time of one call in this thread."""
    started = time.thread_time_ns()
    action()
    return time.thread_time_ns() - started


def visits(yfilter: YFilter, tree: MessageTree) -> tuple[int, int]:
    """Transitions that a message makes in the automaton, and visits to accepting states."""
    execution = Execution(yfilter.nfa)
    transitions = accepting = 0
    for element in range(len(tree)):
        while len(execution.stack) - 1 > tree.depth[element]:
            execution.end_element()
        for entry in execution.start_element(element, *tree.name[element]):
            transitions += len(entry.predecessors)
            accepting += entry.state.is_accepting
    return transitions, accepting
