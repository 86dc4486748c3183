"""Which dissemination engine answers: the same choice as for filtering (`engine.selection`).

Example:
    >>> from pathcast.engine.matcher import matcher_options
    >>> from pathcast.limits import Limits
    >>> len(new_backend(matcher_options("nfa", Limits(), 1, 1024)))
    0
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa

from pathcast.customize.backend import (
    DeliveryIdMaker,
    DisseminationBackend,
    DisseminationFactory,
)
from pathcast.customize.identity import delivery_id_array
from pathcast.engine.selection import engine_module
from pathcast.model import EngineName, MatcherOptions


def new_backend(options: MatcherOptions) -> DisseminationBackend:
    """An engine without subscriptions.

    Raises:
        ConfigError: No distribution that is installed offers the engine.
        KernelMissingError: The kernel is meant and cannot be imported.
    """
    module: Any = engine_module(options.engine)
    factory: DisseminationFactory = module.new_dissemination
    cache_bytes_max = 0 if options.engine == "nfa" else options.cache_bytes_max
    return factory(
        limits=options.limits,
        threads=options.threads,
        cache_bytes_max=cache_bytes_max,
        streams=options.streams,
    )


def id_maker(engine: EngineName) -> DeliveryIdMaker:
    """What makes the ids of deliveries where this engine answers."""
    if engine == "reference":
        return delivery_id_array
    module = importlib.import_module("pathcast.kernel.delivery_ids")
    return cast(DeliveryIdMaker, module.delivery_ids)


def original_maker(options: MatcherOptions) -> Callable[[bytes], bytes] | None:
    """What makes of an element stream the message that it stands for; None where none is taken.

    A stream that is refused stays as it is: nothing of it is delivered.
    """
    known = options.streams
    if known is None:
        return None
    module = engine_module(options.engine)

    def original(message: bytes) -> bytes:
        array = pa.array([message], pa.binary())
        [found] = module.decode_streams(array, known, options.limits)[0].to_pylist()
        return message if found is None else found

    return original
