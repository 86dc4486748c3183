"""What a placement of queries is, whatever it places them by."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pathcast.engine.messages import Messages
from pathcast.partition import Touched
from pathcast.query import Population


class Placement(Protocol):
    """Says where queries go, and which partitions a message can match. Immutable."""

    @property
    def partitions(self) -> int:
        """Number of partitions, the don't-care partition counted."""

    @property
    def dont_care(self) -> int | None:
        """Number of the don't-care partition; None if there is none."""

    def place(self, population: Population) -> np.ndarray:
        """Where each query goes: `uint32`."""

    def touched(self, messages: Messages) -> Touched:
        """Which partitions each message can match; never too few."""
