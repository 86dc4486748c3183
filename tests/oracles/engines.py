"""Anything of the product, as the kernel, its plain NFA or the papers answer it.

Example:
    >>> from pathcast import Registry
    >>> len(made_by("nfa", Registry))
    0
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeAlias, TypeVar

from pathcast import Query, Registry, Snapshot
from pathcast.boundary import native
from pathcast.engine.matcher import matcher_options
from pathcast.errors import KernelMissingError
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX
from pathcast_papers import answered, instead_of_the_kernel, plain_nfa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathcast.query import Population

P = ParamSpec("P")
T = TypeVar("T")

EngineName: TypeAlias = Literal["kernel", "nfa", "reference"]

ENGINES: Final[tuple[EngineName, ...]] = ("reference", "kernel", "nfa")
"""Every engine; each must give the same answers."""


_CONTEXTS: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {
    "kernel": nullcontext,
    "nfa": plain_nfa,
    "reference": instead_of_the_kernel,
}


def made_by(engine: str | None, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a call of the product by an engine, which answers its methods too.

    Args:
        engine: Its name; None for the kernel.
        make: A class or function of the product.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    if engine in (None, "kernel"):
        return make(*args, **kwargs)
    return answered(_CONTEXTS[engine], make, *args, **kwargs)


def population_of(queries: Iterable[Query]) -> Population:
    """What queries ask for, which the product alone tells: the papers answer messages."""
    registry = Registry()
    registry.add(queries)
    return registry.population()


def running(
    snapshot: Snapshot,
    limits: Limits | None = None,
    *,
    threads: int | None = None,
    cache_bytes_max: int = CACHE_BYTES_MAX,
) -> Snapshot:
    """The same snapshot with other options."""
    options = matcher_options(limits or snapshot.limits, threads, cache_bytes_max)
    return type(snapshot)(snapshot._backend, options)


def missing_reason(engine: str) -> str | None:
    """Why an engine cannot be used; None if it can."""
    if engine == "reference":
        return None
    try:
        assert native.__version__
    except KernelMissingError as error:
        return str(error)
    return None
