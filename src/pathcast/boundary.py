"""The native module, and how its errors become Pathcast's.

Example:
    >>> with native_errors():
    ...     native.canonical_form("//a", {})
    '//a'

Nothing else in the package imports `pathcast_kernel`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from pathcast.errors import (
    ConfigError,
    KernelBugError,
    KernelMissingError,
    SnapshotFormatError,
)


class MissingKernel:
    """In the place of the native module where it cannot be imported: each use says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        raise KernelMissingError("kernel.missing", reason=self._reason)


try:
    import pathcast_kernel as native
except ImportError as missing:
    native = MissingKernel(str(missing))  # type: ignore[assignment]

__all__ = ["ENGINE_VARIABLE", "cache_bytes", "is_plain_nfa", "native", "native_errors"]

ENGINE_VARIABLE: Final = "PATHCAST_ENGINE"
"""Environment variable for debugging: "nfa" runs the kernel's plain NFA, without its lazy DFA."""


def is_plain_nfa() -> bool:
    """Whether the plain NFA answers, for debugging: `PATHCAST_ENGINE=nfa`.

    Raises:
        ConfigError: The variable says something else than "kernel" or "nfa".
    """
    asked = os.environ.get(ENGINE_VARIABLE) or "kernel"
    if asked not in ("kernel", "nfa"):
        reason = f"{asked!r} is not one of kernel, nfa; leave it out, or say nfa to debug"
        raise ConfigError("config.invalid", key=ENGINE_VARIABLE, reason=reason)
    return asked == "nfa"


def cache_bytes(asked: int) -> int:
    """Bytes that compiled label paths may take; 0, which is the plain NFA, where it is to answer.

    Args:
        asked: Bytes, from 1 on.

    Raises:
        ConfigError: `PATHCAST_ENGINE` says something else than "kernel" or "nfa".
    """
    return 0 if is_plain_nfa() else asked


@contextmanager
def native_errors(path: Path | str = "") -> Iterator[None]:
    """Every call into the kernel runs in this: its errors become Pathcast's.

    Args:
        path: The file that the call is about, for the sentence of the error.
    """
    try:
        yield
    except native.SnapshotError as error:
        kind, found, expected = error.args
        detail = {"found": found, "expected": expected} if kind == "version" else {"reason": found}
        raise SnapshotFormatError(f"snapshot.{kind}", path=str(path), **detail) from None
    except BaseException as error:
        # PyO3 derives its PanicException from BaseException and does not export it.
        if type(error).__name__ != "PanicException":
            raise
        raise KernelBugError("kernel.bug", reason=str(error)) from error
