"""The log of a long-running process on standard error: lines of text, or of JSON.

A line of JSON has `time` (RFC 3339, UTC), `level`, `event` (a name of
`pathcast.transport.events.EVENTS`, or of a logger), `message` and the event's `params`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """Choices of `--log-format`."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """Choices of `--log-level`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line.

        Example:
            >>> record = logging.LogRecord("n", 20, "", 0, "%(who)s came", ({"who": "ann"},), None)
            >>> record.event = "caller.came"
            >>> json.loads(JsonFormatter().format(record))["params"]
            {'who': 'ann'}
        """
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            "params": dict(record.args) if isinstance(record.args, Mapping) else {},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def begin_log(
    format: LogFormat = LogFormat.TEXT,
    level: LogLevel = LogLevel.INFO,
) -> None:
    """Says on standard error what a process goes through, for as long as it runs."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if format is LogFormat.JSON else text)
    # Their levels are those of logging, by name; nobody else configures this process.
    logging.basicConfig(level=level.value.upper(), handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # A line for each call of a webhook, of which the events above say what matters.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def log_start(name: str) -> Callable[[str], None]:
    """Logs where a process listens, called with the address."""
    from pathcast.transport.events import log_event

    return lambda address: log_event("process.listening", name=name, address=address)
