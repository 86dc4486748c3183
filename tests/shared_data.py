"""Data that lies beside the project and is no part of it; tests that want it skip without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED_DATA = Path(
    os.environ.get("PATHCAST_SHARED_DATA")
    or Path(__file__).resolve().parent.parent.parent / "shared" / "data"
)


def shared_path(name: str) -> Path:
    """A file or directory of the shared data; the test is skipped if it is not here."""
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"shared data is not here: {path} (set PATHCAST_SHARED_DATA)")
    return path


def shared_dtd(name: str) -> Path:
    """A DTD of the shared data; the test is skipped without it."""
    return shared_path(f"dtd/{name}")
