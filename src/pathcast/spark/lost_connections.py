"""Keeps Py4J's tracebacks of a lost JVM off the terminal of a command that reports the loss itself.

Py4J logs a connection that ends in the middle of a call at level ERROR with its traceback, partly
on the root logger, and `SparkLostError` then says the same in a sentence. A program that imports
Pathcast owns its logging: only the command line hides these records.

Example:
    >>> with hidden_lost_connections():
    ...     [type(hidden).__name__ for hidden in logging.getLogger().filters]
    ['LostConnectionFilter']
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import py4j
from py4j.protocol import Py4JNetworkError

_PY4J: Final = Path(py4j.__file__).parent
_LOGGERS: Final = (None, "py4j.java_gateway", "py4j.clientserver")
"""The root logger and Py4J's: a logger's filter does not apply to records of its descendants."""
_LOST: Final = (Py4JNetworkError, OSError, EOFError, KeyboardInterrupt)
"""Ends of a call in its middle; of the last one the command says "interrupted"."""


class LostConnectionFilter(logging.Filter):
    """Refuses Py4J's records of a call that lost its connection or was interrupted."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is shown.

        Args:
            record: A record of any logger.

        Returns:
            False for a record that Py4J made while it handled a lost connection or Ctrl-C; True for
            every other record, and for all of them where the root logger is at level DEBUG.
        """
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, _LOST) or Path(record.pathname).parent != _PY4J:
            return True
        return logging.getLogger().isEnabledFor(logging.DEBUG)


@contextmanager
def hidden_lost_connections() -> Iterator[None]:
    """Filter the loggers that Py4J writes to while inside."""
    hidden = LostConnectionFilter()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(hidden)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hidden)
