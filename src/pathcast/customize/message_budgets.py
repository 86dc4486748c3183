"""Budgets of a batch's messages over all stages that process them.

`Limits.message_steps_max` and `Limits.message_result_bytes_max` are for a message, however many
engines serve it: those that come first take what they take, and the next are given what is left.

Example:
    >>> budgets = MessageBudgets(Limits(message_steps_max=10), 2)
    >>> budgets.spend_text(1, b"x" * 640)
    >>> budgets.left([0, 1])[0][0], budgets.left([0, 1])[1][0]
    (10, 0)
    >>> budgets.used_up(0), budgets.used_up(1).code
    (None, 'limit.message_steps')

It stops nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pathcast.errors import MessageBudgetError, PathcastError, ResultLimitError
from pathcast.limits import Limits
from pathcast.model import Spent

BYTES_PER_STEP: Final = 64
"""Bytes read or written that count as a step, as where the kernel evaluates."""


class MessageBudgets:
    """The remaining budget of each message of a batch.

    Args:
        limits: What each may take.
        messages: How many there are.

    Attributes:
        restructuring_steps: Steps that all messages have taken outside of engines: for finding
            elements, and for texts that were read and written.
    """

    def __init__(self, limits: Limits, messages: int) -> None:
        self._limits = limits
        self._steps = [limits.message_steps_max] * messages
        self._result_bytes = [limits.message_result_bytes_max] * messages
        self.restructuring_steps = 0

    def left(self, rows: Iterable[int]) -> list[tuple[int, int]]:
        """Steps and bytes of results that are left to some messages."""
        return [(max(0, self._steps[row]), max(0, self._result_bytes[row])) for row in rows]

    def spend_steps(self, row: int, steps: int) -> None:
        """A message has taken steps."""
        self._steps[row] -= steps
        self.restructuring_steps += steps

    def spend_text(self, row: int, text: bytes) -> None:
        """A text was read or written for a message."""
        self.spend_steps(row, 1 + len(text) // BYTES_PER_STEP)

    def spend(
        self,
        spent: Sequence[Spent],
        places: Sequence[int] | None = None,
        restructured: Sequence[bytes] = (),
    ) -> None:
        """An engine has served messages.

        Args:
            spent: What it said.
            places: Where each of its messages stands in the batch; None if it was given all.
            restructured: Its messages, if they are not those that came: one that is delivered is a
                result.
        """
        for each in spent:
            row = each.message if places is None else places[each.message]
            self._steps[row] -= each.steps
            self._result_bytes[row] -= each.result_bytes
            if each.has_message and restructured:
                self._result_bytes[row] -= len(restructured[each.message])

    def used_up(self, row: int) -> PathcastError | None:
        """Why no more may be done for a message; None if more may."""
        if self._steps[row] <= 0:
            maximum = self._limits.message_steps_max
            told: Mapping[str, str | int] = {"limit": "message_steps_max", "maximum": maximum}
            return MessageBudgetError("limit.message_steps", **told)
        if self._result_bytes[row] <= 0:
            maximum = self._limits.message_result_bytes_max
            told = {"limit": "message_result_bytes_max", "maximum": maximum}
            return ResultLimitError("limit.message_result_bytes", **told)
        return None
