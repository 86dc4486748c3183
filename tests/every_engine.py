"""The mark that runs a test once for each engine; those that are not there skip with the reason."""

from __future__ import annotations

import pytest

from oracles import ENGINES, missing_reason
from oracles.engines import EngineName


def marked(names: tuple[EngineName, ...]) -> pytest.MarkDecorator:
    """The mark that runs a test once for each of some engines."""
    return pytest.mark.parametrize(
        "engine",
        [
            pytest.param(
                name,
                marks=pytest.mark.skipif(
                    missing_reason(name) is not None, reason=str(missing_reason(name))
                ),
            )
            for name in names
        ],
    )


engines = marked(ENGINES)

kernel_engines = marked(("kernel", "nfa"))
"""What a query costs, and so which has a verdict, is not the papers' matter: they evaluate all."""
