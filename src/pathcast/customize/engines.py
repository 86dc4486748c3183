"""Which dissemination engine answers: the same choice as for filtering (`engine.selection`).

Example:
    >>> from pathcast.engine.matcher import matcher_options
    >>> from pathcast.limits import Limits
    >>> len(new_backend(matcher_options("reference", Limits(), 1, 1024)))
    0
"""

from __future__ import annotations

import importlib
from typing import Final, cast

from pathcast.customize.backend import (
    DeliveryIdMaker,
    DisseminationBackend,
    DisseminationFactory,
)
from pathcast.customize.identity import delivery_id_array
from pathcast.errors import KernelMissingError
from pathcast.model import EngineName, MatcherOptions

_MODULES: Final[dict[EngineName, str]] = {
    "kernel": "pathcast.kernel",
    "nfa": "pathcast.kernel",
    "reference": "pathcast.reference.dissemination",
}


def new_backend(options: MatcherOptions) -> DisseminationBackend:
    """An engine without subscriptions.

    Raises:
        KernelMissingError: The kernel is meant and cannot be imported.
    """
    try:
        module = importlib.import_module(_MODULES[options.engine])
    except KernelMissingError:
        raise
    except ImportError as error:
        raise KernelMissingError("kernel.missing", reason=str(error)) from error
    factory = cast(DisseminationFactory, module.new_dissemination)
    cache_bytes_max = 0 if options.engine == "nfa" else options.cache_bytes_max
    return factory(limits=options.limits, threads=options.threads, cache_bytes_max=cache_bytes_max)


def id_maker(engine: EngineName) -> DeliveryIdMaker:
    """What makes the ids of deliveries where this engine answers."""
    if engine == "reference":
        return delivery_id_array
    module = importlib.import_module("pathcast.kernel.delivery_ids")
    return cast(DeliveryIdMaker, module.delivery_ids)
