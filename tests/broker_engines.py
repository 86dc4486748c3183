"""The mark that runs a test once for each engine that can disseminate; the others skip."""

from __future__ import annotations

import importlib

import pytest

from oracles import ENGINES, missing_reason
from oracles.engines import EngineName


def missing(engine: EngineName) -> str | None:
    """Why an engine cannot disseminate; None if it can."""
    reason = missing_reason(engine)
    if reason is not None or engine == "reference":
        return reason
    is_there = hasattr(importlib.import_module("pathcast_kernel"), "Dissemination")
    return None if is_there else "this kernel was built without dissemination"


broker_engines = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(missing(name) is not None, reason=str(missing(name)))
        )
        for name in ENGINES
    ],
)
