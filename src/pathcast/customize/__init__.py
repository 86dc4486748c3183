"""Customised delivery: subscriptions in, messages as their subscribers asked for them out.

What answers behind it is a dissemination engine (`pathcast.customize.backend`): the native kernel
or the reference.
"""

from __future__ import annotations

from pathcast.customize.backend import DisseminationBackend, DisseminationFactory

__all__ = ["DisseminationBackend", "DisseminationFactory"]
