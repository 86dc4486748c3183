"""Which engine answers: the caller's word, else `PATHCAST_ENGINE`, else the kernel.

A kernel that cannot be imported is an error that says how to get it. The engine after the papers,
"reference", is what engines are tested against: it is no part of the product, and is used when it
is asked for and never otherwise.

Example:
    >>> name, module = select_engine("nfa")
    >>> name
    'nfa'
    >>> select_engine("turbo")
    Traceback (most recent call last):
    ...
    pathcast.errors.ConfigError: engine: 'turbo' is not one of kernel, nfa, reference

It caches nothing beyond Python's own table of modules.
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

ENGINES_GROUP: Final = "pathcast.engines"
"""Entry points of distributions that offer an engine: `pathcast-papers` offers "reference"."""

_NATIVE: Final = ("kernel", "nfa")


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


def engine_module(name: EngineName) -> EngineModule:
    """The module of an engine.

    Raises:
        ConfigError: No distribution that is installed offers it.
        KernelMissingError: The kernel is meant and cannot be imported.
    """
    if name in _NATIVE:
        try:
            return cast(EngineModule, importlib.import_module("pathcast.kernel"))
        except KernelMissingError as error:
            # The sentence says it all; the frames of the import system would bury it.
            raise error.with_traceback(None) from None
    from importlib.metadata import entry_points

    for offered in entry_points(group=ENGINES_GROUP, name=name):
        return cast(EngineModule, offered.load())
    raise ConfigError(
        "config.invalid",
        key="engine",
        reason=f"{name!r} comes with pathcast-papers, which is not installed: "
        "pip install ./papers in a clone",
    )


def select_engine(engine: str | None) -> tuple[EngineName, EngineModule]:
    """The engine that a request means, and its module.

    Raises:
        ConfigError: There is no engine of this name, or it is not installed.
        KernelMissingError: The kernel is meant and cannot be imported.
    """
    name = engine_name(engine)
    return name, engine_module(name)


def available_threads() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
