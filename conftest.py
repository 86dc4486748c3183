"""What the tests and the examples in docstrings have in common: what can be collected here."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is.
settings.register_profile(
    "pathcast", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pathcast")

# As `pathcast.transport` sets it, for tests that import gRPC first.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes objects that stay: to look through them again took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share Spark's session come first: they are the longest piece for one process.

    Keeps one part of what was chosen, if PATHCAST_PART says which: "2/5" is the second of five.
    Each part has every fifth test, so that long ones, which stand together, are spread.
    """
    items.sort(key=lambda item: not _shares_session(item.path))
    part = os.environ.get("PATHCAST_PART", "")
    if not part:
        return
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", part)
    if found is None or int(found[1]) > int(found[2]):
        raise pytest.UsageError(f"PATHCAST_PART is {part!r}; the second of five parts is '2/5'")
    chosen = slice(int(found[1]) - 1, None, int(found[2]))
    kept = items[chosen]
    del items[chosen]
    config.hook.pytest_deselected(items=list(items))
    items[:] = kept


def pytest_collection_finish() -> None:
    """Takes thousands of collected tests out of what every garbage collection looks at."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives a file to one process, and all that share Spark's session to the same.

    What a file makes once is made once then, and so is the session. The examples of the modules,
    hundreds of short files, come last and even out when the processes end.
    """
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = nodeid.partition("::")[0]
            return "Spark's session" if _shares_session(config.rootpath / file) else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@cache
def _shares_session(path: Path) -> bool:
    return path.name.startswith("test_") and "spark: SparkSession" in path.read_text("utf-8")


def pytest_unconfigure() -> None:
    """Gives them back, so that libraries find nothing of theirs left at the end."""
    gc.unfreeze()
