"""The native module, and how its errors become Pathcast's.

Example:
    >>> with native_errors():
    ...     native.canonical_form("//a", {})
    '//a'

Nothing else in the package imports `pathcast_kernel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pathcast.errors import KernelBugError, KernelMissingError, SnapshotFormatError

try:
    import pathcast_kernel as native
except ImportError as missing:
    raise KernelMissingError("kernel.missing", reason=str(missing)) from None

__all__ = ["native", "native_errors"]


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
