"""Which engines can be tested here, and why not the others.

Example:
    >>> missing_reason("reference") is None
    True
"""

from __future__ import annotations

from typing import Final

from pathcast.engine import select_engine
from pathcast.errors import KernelMissingError
from pathcast.model import EngineName

ENGINES: Final[tuple[EngineName, ...]] = ("reference", "kernel", "nfa")
"""Every engine; each must give the same answers."""


def missing_reason(engine: EngineName) -> str | None:
    """Why an engine cannot be used; None if it can."""
    try:
        select_engine(engine)
    except KernelMissingError as error:
        return str(error)
    return None
