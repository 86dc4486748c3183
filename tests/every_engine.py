"""The mark that runs a test once for each engine; those that are not there skip with the reason."""

from __future__ import annotations

import pytest

from oracles import ENGINES, missing_reason

engines = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                missing_reason(name) is not None, reason=str(missing_reason(name))
            ),
        )
        for name in ENGINES
    ],
)
