"""The native module, and how its errors become Pathcast's.

Example:
    >>> with native_errors():
    ...     native.canonical_form("//a", {})
    '//a'

Nothing else in the package imports `pathcast_kernel`.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
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


class native_errors:  # called as a function is; a generator would cost twice
    """Every call into the kernel runs in this: its errors become Pathcast's.

    Args:
        path: The file that the call is about, for the sentence of the error.

    Cost: 0.3 µs.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path | str = "") -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        # PyO3 derives its PanicException from BaseException and does not export it.
        if type(error).__name__ == "PanicException":
            raise KernelBugError("kernel.bug", reason=str(error)) from error
        if isinstance(error, native.SnapshotError):
            kind_found, found, expected = error.args
            is_version = kind_found == "version"
            detail = {"found": found, "expected": expected} if is_version else {"reason": found}
            raise SnapshotFormatError(
                f"snapshot.{kind_found}", path=str(self._path), **detail
            ) from None
