"""Keeps Py4J's tracebacks of a lost JVM off the terminal of a command that reports the loss itself.

A program that imports Pathcast owns its logging: only the command line hides these records.
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


@contextmanager
def hidden_lost_connections() -> Iterator[None]:
    """Hides, while inside, what Py4J logs of a lost connection or Ctrl-C, unless at level DEBUG."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(_is_shown)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, _LOST) or Path(record.pathname).parent != _PY4J:
        return True
    return logging.getLogger().isEnabledFor(logging.DEBUG)
