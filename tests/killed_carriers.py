"""A carrier that ends as a kill of its process ends it."""

from __future__ import annotations

from pathcast.transport.carrier import Carrier, _Group


async def abandon(carrier: Carrier) -> None:
    """End a carrier; what is not on its disk yet is lost."""
    carrier._group = _Group()
    await carrier._end()
    await carrier.neighbours.stop()
