"""Which engine answers: the caller's word, else `PATHCAST_ENGINE`, else the kernel.

A kernel that cannot be imported is an error that says how to get it. The reference engine is used
when it is asked for and never otherwise.

Example:
    >>> name, module = select_engine("reference")
    >>> name
    'reference'
    >>> select_engine("turbo")
    Traceback (most recent call last):
    ...
    pathcast.errors.ConfigError: engine: 'turbo' is not one of kernel, nfa, reference

It holds no list of what is installed and caches nothing beyond Python's own table of modules.
"""

from __future__ import annotations

import importlib
import os
from typing import Final, cast, get_args

from pathcast.engine.backend import EngineModule
from pathcast.errors import ConfigError, KernelMissingError
from pathcast.model import EngineName

ENGINE_VARIABLE: Final = "PATHCAST_ENGINE"
"""Environment variable that names the engine where the caller does not."""

_MODULES: Final[dict[EngineName, str]] = {
    "kernel": "pathcast.kernel",
    "nfa": "pathcast.kernel",
    "reference": "pathcast.reference",
}


def engine_name(engine: str | None) -> EngineName:
    """The engine that a request means.

    Args:
        engine: The caller's choice; None leaves it to `PATHCAST_ENGINE`, then to the kernel.

    Raises:
        ConfigError: There is no engine of this name.
    """
    key = "engine" if engine is not None else ENGINE_VARIABLE
    name = engine if engine is not None else os.environ.get(ENGINE_VARIABLE) or "kernel"
    if name not in get_args(EngineName):
        raise ConfigError(
            "config.invalid",
            key=key,
            reason=f"{name!r} is not one of {', '.join(get_args(EngineName))}",
        )
    return cast(EngineName, name)


def select_engine(engine: str | None) -> tuple[EngineName, EngineModule]:
    """The engine that a request means, and its module.

    Raises:
        ConfigError: There is no engine of this name.
        KernelMissingError: The kernel is meant and cannot be imported.
    """
    name = engine_name(engine)
    try:
        module = importlib.import_module(_MODULES[name])
    except KernelMissingError as error:
        # The sentence says it all; the frames of the import system would bury it.
        raise error.with_traceback(None) from None
    return name, cast(EngineModule, module)


def available_threads() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
