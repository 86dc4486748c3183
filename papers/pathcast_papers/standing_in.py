"""The algorithms of the papers in the kernel's place, under the product's own classes.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = answered(instead_of_the_kernel, Registry)
    >>> report = registry.add(Query("q1", "//b[. > 1]"))
    >>> list(registry.match(b"<a><b>2</b></a>").query_ids)
    ['q1']

Only calls inside `instead_of_the_kernel` are affected. `answered` runs every method of an object
in it, so that what the object makes later is made by the papers as well.

It is process-wide while it lasts: threads inside share it, and no other thread may make
anything by the kernel meanwhile. Places in the bytes
of a message (`pathcast.registry.selector`) stay the kernel's.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

from pathcast.boundary import ENGINE_VARIABLE
from pathcast.limits import Limits
from pathcast_papers.filtering.path_finder import ReferencePathFinder
from pathcast_papers.filtering.routing import ReferenceRoutingTable
from pathcast_papers.message_broker.frozen import FrozenRegistry
from pathcast_papers.message_broker.registry import ReferenceRegistry
from pathcast_papers.message_broker.restructuring import ReferenceRestructurings

P = ParamSpec("P")
T = TypeVar("T")
Context = Callable[[], AbstractContextManager[None]]


def _registry(limits: Limits, threads: int, cache_bytes_max: int) -> ReferenceRegistry:
    return ReferenceRegistry(limits)


_PLACES: Final[tuple[tuple[str, str, object], ...]] = (
    ("pathcast.engine.gates", "KernelRegistry", _registry),
    ("pathcast.engine.routing", "KernelRoutingTable", ReferenceRoutingTable),
    ("pathcast.engine.path_finder", "native_finder", ReferencePathFinder),
    ("pathcast.registry.registry", "KernelRegistry", _registry),
    ("pathcast.registry.snapshot", "open_snapshot", FrozenRegistry.open),
    ("pathcast.registry.restructuring", "Restructurings", ReferenceRestructurings),
)
"""Where the product takes something of the kernel: module, name, and what the papers have of it."""


class _Papers:
    """Puts the papers in the kernel's place, and the kernel back."""

    def __init__(self) -> None:
        self._kept: list[object] = []

    def begin(self) -> None:
        modules = [importlib.import_module(module) for module, _, _ in _PLACES]
        names = [name for _, name, _ in _PLACES]
        self._kept = [getattr(*each) for each in zip(modules, names, strict=True)]
        for module, (_, name, ours) in zip(modules, _PLACES, strict=True):
            setattr(module, name, ours)

    def end(self) -> None:
        for (module, name, _), theirs in zip(_PLACES, self._kept, strict=True):
            setattr(importlib.import_module(module), name, theirs)


class _PlainNfa:
    """Sets the environment variable, and gives it back the value that it had."""

    def __init__(self) -> None:
        self._before: str | None = None

    def begin(self) -> None:
        self._before = os.environ.get(ENGINE_VARIABLE)
        os.environ[ENGINE_VARIABLE] = "nfa"

    def end(self) -> None:
        del os.environ[ENGINE_VARIABLE]
        if self._before is not None:
            os.environ[ENGINE_VARIABLE] = self._before


class _Switch:
    """Begins something when the first thread comes in, and ends it with the last."""

    def __init__(self, switched: _Papers | _PlainNfa) -> None:
        self._switched = switched
        self._lock = threading.Lock()
        self._inside = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._switched.begin()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._switched.end()


_PAPERS: Final = _Switch(_Papers())
_PLAIN_NFA: Final = _Switch(_PlainNfa())


def instead_of_the_kernel() -> AbstractContextManager[None]:
    """The papers answer what is called inside, in place of the kernel."""
    return _PAPERS.on()


def plain_nfa() -> AbstractContextManager[None]:
    """The kernel's plain NFA answers what is made inside: `PATHCAST_ENGINE=nfa`."""
    return _PLAIN_NFA.on()


def answered(context: Context, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call inside a context; of an object, its methods run there too.

    Args:
        context: Makes the context, such as `instead_of_the_kernel`.
        make: A class or function of the product.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    with context():
        made = make(*args, **kwargs)
    if type(made).__module__.partition(".")[0] == "pathcast" and not isinstance(
        made, tuple | Enum | BaseException
    ):
        object.__setattr__(made, "__class__", _answering(cast(Any, type(made)), context))
    return made


@functools.cache
def _answering(cls: type, context: Context) -> type:
    """A class like another, of which every method runs in a context."""
    if hasattr(cls, "_answering_in"):
        return cls
    members: dict[str, Any] = {"__slots__": (), "_answering_in": context}
    members |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if isinstance(member, FunctionType) and (not name.startswith("__") or name == "__call__"):
            members[name] = _within(context, member)
        elif isinstance(member, property) and member.fget is not None:
            members[name] = property(_within(context, member.fget))
    return type(cls.__name__, (cls,), members)


def _within(context: Context, function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with context():
            made = function(*args, **kwargs)
        kind = type(made)
        is_theirs = kind.__module__.partition(".")[0] == "pathcast" and not is_dataclass(kind)
        if is_theirs and not isinstance(made, tuple | Enum | BaseException):
            object.__setattr__(made, "__class__", _answering(cast(Any, kind), context))
        return made

    return cast(Callable[P, T], run)
