"""Distinct queries over the automaton: which paths each has, what is left to evaluate, who it is.

A query is compiled to paths, of which one must be found, and to an expression where the paths do
not say all of it. Queries that are compiled to the same are one *distinct query*; paths that
several distinct queries have are one plan in the automaton. A message goes through the automaton
once; every distinct query with a path found in it is a candidate, and holds if it has no expression
or its expression is true.

Example:
    >>> from pathcast.message import parse_message
    >>> from pathcast_papers.language import compile_query
    >>> table = QueryTable(YFilter())
    >>> for number, text in enumerate(["//a | //b", "//b[last() = 2]", "//c"]):
    ...     table.insert(compile_query(text), number)
    >>> table.match(parse_message(b"<a><b/></a>"), Limits())
    Satisfied(numbers=[0], over_budget=[], undecided=[], evaluations=1, steps=7)

Source: Diao et al., TODS 2003, sections 3.2.1 and 4.6, for the sharing; the split is ours.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers.evaluation.xpath import Evaluator, OverBudgetError
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.yfilter import YFilter
from pathcast_papers.language import CompiledQuery, read_expression

_Key: TypeAlias = tuple[tuple[str, ...], str | None]


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
        plans: Its paths.
        expression: Its expression, if it has one.
        numbers: Numbers of the queries that it stands for.
    """

    def __init__(self, plans: list[QueryPlan], expression: str | None) -> None:
        self.plans = plans
        self.expression = None if expression is None else read_expression(expression)
        self.numbers: list[int] = []


class QueryTable:
    """Distinct queries by what they are compiled to.

    Args:
        yfilter: The automaton that finds their paths.
    """

    def __init__(self, yfilter: YFilter) -> None:
        self._yfilter = yfilter
        self._distinct: dict[_Key, DistinctQuery] = {}
        self._plans: dict[str, QueryPlan] = {}
        self._users: dict[QueryPlan, list[DistinctQuery]] = {}

    def __len__(self) -> int:
        """Number of distinct queries."""
        return len(self._distinct)

    def insert(self, compiled: CompiledQuery, number: int) -> None:
        """Adds a query under a number."""
        texts = tuple(compiled.texts)
        key = (texts, compiled.expression)
        distinct = self._distinct.get(key)
        if distinct is None:
            plans = []
            for text, alternative in zip(texts, compiled.alternatives, strict=True):
                plan = self._plans.get(text)
                if plan is None:
                    plan = self._plans[text] = QueryPlan(alternative)
                    self._yfilter.insert(plan)
                plans.append(plan)
            distinct = self._distinct[key] = DistinctQuery(plans, compiled.expression)
            for plan in plans:
                self._users.setdefault(plan, []).append(distinct)
        distinct.numbers.append(number)

    def renumber(self, numbers: dict[int, int]) -> None:
        """Gives queries other numbers, and takes out those that get none.

        Args:
            numbers: Number until now -> number from now on.
        """
        for key, distinct in list(self._distinct.items()):
            distinct.numbers = sorted(numbers[n] for n in distinct.numbers if n in numbers)
            if not distinct.numbers:
                del self._distinct[key]
                for plan in distinct.plans:
                    self._users[plan].remove(distinct)
        for text, plan in list(self._plans.items()):
            if not self._users[plan]:
                del self._plans[text], self._users[plan]
                self._yfilter.delete(plan)

    def match(self, tree: MessageTree, limits: Limits) -> Satisfied:
        """The queries that hold for a message.

        Args:
            tree: The message.
            limits: How many steps the evaluation of one expression may take, and those of all.
        """
        found = self._yfilter.match(tree)
        candidates = {distinct: None for plan in found for distinct in self._users[plan]}
        numbers: list[int] = []
        over_budget: list[int] = []
        undecided: list[int] = []
        evaluations = steps = 0
        evaluator: Evaluator | None = None
        for distinct in candidates:
            if distinct.expression is not None:
                left = limits.message_steps_max - steps
                evaluator = evaluator or Evaluator(tree)
                evaluator.steps_max = min(left, limits.evaluation_steps_max)
                evaluations += 1
                try:
                    holds = evaluator.holds(distinct.expression)
                except OverBudgetError:
                    is_its_own = limits.evaluation_steps_max <= left
                    (over_budget if is_its_own else undecided).extend(distinct.numbers)
                    continue
                finally:
                    steps += min(evaluator.steps, evaluator.steps_max)
                if not holds:
                    continue
            numbers += distinct.numbers
        return Satisfied(
            sorted(numbers), sorted(over_budget), sorted(undecided), evaluations, steps
        )
