r"""The JVM's standard error: held back while it starts and ends, passed on between.

If the JVM starts, nothing is lost. If it does not, what it has said is hundreds of lines of which
one says why: `reason` finds that line, for the sentence that a person gets instead.

Example:
    >>> reason(
    ...     "WARN: something\n"
    ...     "Exception in thread \"main\" org.apache.spark.SparkException: no such master\n"
    ...     "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)\n"
    ... )
    'no such master'

It decides nothing about the JVM.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Final

_EXCEPTION: Final = re.compile(r"^.*\b[\w.$]+(?:Exception|Error): (?P<reason>.+)$", re.MULTILINE)
_WARNING: Final = ("WARN", "NOTE", "Picked up ")
_CHUNK_BYTES: Final = 65_536
_STANDARD_ERROR: Final = 2
_ENDS_SECONDS_MAX: Final = 2.0


class HeldStderr:
    """The standard error of a process that is about to be started.

    Attributes:
        write_end: File descriptor that the process gets as its standard error.
    """

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytearray | None = bytearray()
        self._thread = threading.Thread(target=self._relay, name="jvm-stderr", daemon=True)

    def started(self) -> None:
        """The process has its end; it is read from now on."""
        os.close(self.write_end)
        self._thread.start()

    def hand_on(self) -> None:
        """Pass the held text, and all that follows, to this process's standard error."""
        with self._lock:
            if self._held:
                os.write(_STANDARD_ERROR, self._held)
            self._held = None

    def hold(self) -> None:
        """From now on it is held back, as before `hand_on`."""
        with self._lock:
            self._held = bytearray()

    def text(self) -> str:
        """Return the held text; of a process that has ended, to its end."""
        self._thread.join(_ENDS_SECONDS_MAX)
        with self._lock:
            return bytes(self._held or b"").decode(errors="replace")

    def _relay(self) -> None:
        while chunk := os.read(self._read_end, _CHUNK_BYTES):
            with self._lock:
                if self._held is None:
                    os.write(_STANDARD_ERROR, chunk)
                else:
                    self._held += chunk
        os.close(self._read_end)


def reason(said: str) -> str:
    """The line that says why, of what a JVM has said that did not start."""
    found = _EXCEPTION.search(said)
    if found is not None:
        return found["reason"].strip()
    lines = (line.strip() for line in said.splitlines())
    return next((line for line in lines if line and not line.startswith(_WARNING)), "it is silent")
