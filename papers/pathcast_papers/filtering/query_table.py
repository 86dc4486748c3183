"""Distinct queries: those of the paper's class over its automaton, all others evaluated.

Queries that are compiled to the same are one *distinct query*. One that is a path of the class is a
plan in the automaton, through which a message goes once. Any other is evaluated, by itself, on
every message, so that nothing but the query says whether it holds.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language import compile_query
    >>> table = QueryTable(YFilter())
    >>> for number, text in enumerate(["//a//b", "//b[last() = 2]", "//c"]):
    ...     table.insert(compile_query(text), number)
    >>> table.match(parse_message(b"<a><b/></a>"), Limits())
    Satisfied(numbers=[0], over_budget=[], undecided=[], evaluations=1, steps=7)

Source: Diao et al., TODS 2003, sections 3.2.1 and 4.6, for the sharing.
"""

from __future__ import annotations

from typing import NamedTuple

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers.evaluation.xpath import Evaluator, OverBudgetError
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import CompiledQuery


class Satisfied(NamedTuple):
    """What one message satisfies.

    Attributes:
        numbers: Numbers of the queries that hold, ascending.
        over_budget: Numbers of the queries that have used up their own steps, ascending.
        undecided: Numbers of those that were left when the message had used up its own, ascending.
        evaluations: Expressions that were evaluated.
        steps: Steps that evaluations took.
    """

    numbers: list[int]
    over_budget: list[int]
    undecided: list[int]
    evaluations: int
    steps: int


class DistinctQuery:
    """Everything that is done once for queries that are compiled to the same.

    Attributes:
        compiled: What they are compiled to.
        plan: Its path in the automaton; None where it is evaluated.
        numbers: Numbers of the queries that it stands for.
    """

    def __init__(self, compiled: CompiledQuery) -> None:
        self.compiled = compiled
        self.plan = None if compiled.path is None else QueryPlan(compiled.path)
        self.numbers: list[int] = []


class QueryTable:
    """Distinct queries by what they are compiled to.

    Args:
        yfilter: The automaton that finds paths of the paper's class.
    """

    def __init__(self, yfilter: YFilter) -> None:
        self._yfilter = yfilter
        self._distinct: dict[CompiledQuery, DistinctQuery] = {}

    def __len__(self) -> int:
        """Number of distinct queries."""
        return len(self._distinct)

    def insert(self, compiled: CompiledQuery, number: int) -> None:
        """Adds a query under a number."""
        distinct = self._distinct.get(compiled)
        if distinct is None:
            distinct = self._distinct[compiled] = DistinctQuery(compiled)
            if distinct.plan is not None:
                self._yfilter.insert(distinct.plan)
        distinct.numbers.append(number)

    def renumber(self, numbers: dict[int, int]) -> None:
        """Gives queries other numbers, and takes out those that get none.

        Args:
            numbers: Number until now -> number from now on.
        """
        for compiled, distinct in list(self._distinct.items()):
            distinct.numbers = sorted(numbers[n] for n in distinct.numbers if n in numbers)
            if not distinct.numbers:
                del self._distinct[compiled]
                if distinct.plan is not None:
                    self._yfilter.delete(distinct.plan)

    def match(self, tree: MessageTree, limits: Limits) -> Satisfied:
        """The queries that hold for a message.

        Args:
            tree: The message.
            limits: How many steps the evaluation of one expression may take, and those of all.
        """
        found = self._yfilter.match(tree)
        numbers: list[int] = []
        over_budget: list[int] = []
        undecided: list[int] = []
        evaluations = steps = 0
        evaluator: Evaluator | None = None
        for distinct in self._distinct.values():
            if distinct.plan is not None:
                numbers += distinct.numbers if distinct.plan in found else ()
                continue
            left = limits.message_steps_max - steps
            evaluator = evaluator or Evaluator(tree)
            evaluator.steps_max = min(left, limits.evaluation_steps_max)
            evaluations += 1
            try:
                numbers += distinct.numbers if evaluator.holds(distinct.compiled.expression) else ()
            except OverBudgetError:
                is_its_own = limits.evaluation_steps_max <= left
                (over_budget if is_its_own else undecided).extend(distinct.numbers)
            finally:
                steps += min(evaluator.steps, evaluator.steps_max)
        return Satisfied(
            sorted(numbers), sorted(over_budget), sorted(undecided), evaluations, steps
        )
