"""The steps that one evaluation may take.

A step is a node that an axis visits, a predicate tried, a function called, a tuple made, an item
put into a sequence or a constructor, or 64 characters handled. Counting them never depends on the
clock; other engines count otherwise, so that only the order of magnitude agrees.

Example:
    >>> budget = Budget(2)
    >>> budget.charge(2)
    >>> budget.charge(1)
    Traceback (most recent call last):
    ...
    pathcast_papers.evaluation.xpath.evaluator.OverBudgetError
"""

from __future__ import annotations

import math

from pathcast_papers.evaluation.xpath import OverBudgetError
from pathcast_papers.evaluation.xpath.evaluator import CHARACTERS_PER_STEP


class Budget:
    """A bound on steps.

    Args:
        steps_max: The bound; none if not given.

    Attributes:
        steps: Steps taken; more than the bound when that was gone over.
        steps_max: The bound.
    """

    def __init__(self, steps_max: int | None = None) -> None:
        self.steps = 0
        self.steps_max = math.inf if steps_max is None else steps_max

    def charge(self, steps: int) -> None:
        """Takes steps.

        Raises:
            OverBudgetError: There are not as many left.
        """
        self.steps += steps
        if self.steps > self.steps_max:
            raise OverBudgetError

    def charge_text(self, characters: int) -> None:
        """Takes the steps of a text of some length.

        Raises:
            OverBudgetError: There are not as many left.
        """
        self.charge(characters // CHARACTERS_PER_STEP)
