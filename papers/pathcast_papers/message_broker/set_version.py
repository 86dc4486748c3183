"""The version of a set of subscriptions, from nothing but what it says about itself.

It is the oracle of what `pathcast.registry.identity` keeps up to date and the kernel adds up.

Example:
    >>> a, b = Subscription("a", "ann", "//a"), Subscription("b", "bob", "//b")
    >>> set_version([a, b], Limits()) == set_version([b, a], Limits())
    True

It keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b

from pathcast.limits import Limits
from pathcast.model import Subscription


def sum_of_digests(subscriptions: Iterable[Subscription]) -> bytes:
    """The digests of subscriptions, added up modulo 2^256, little endian."""
    digests = (blake2b(_content(row), digest_size=32).digest() for row in subscriptions)
    total = sum(int.from_bytes(digest, "little") for digest in digests)
    return (total % (1 << 256)).to_bytes(32, "little")


def set_version(subscriptions: Iterable[Subscription], limits: Limits) -> str:
    """The version of subscriptions, each with all namespaces it may use, under limits."""
    rows = list(subscriptions)
    head = b"pathcast subscriptions 3" + limits.to_json().encode()
    count = len(rows).to_bytes(8, "little")
    return blake2b(head + count + sum_of_digests(rows), digest_size=16).hexdigest()


def _content(row: Subscription) -> bytes:
    bound = json.dumps(
        dict(row.namespaces or {}), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    texts = [row.id, row.subscriber, row.query, row.deliver, bound if row.namespaces else ""]
    if row.language == "xquery":
        texts.append("xquery")
    return "".join(f"{len(text)}:{text}" for text in [*texts, *row.steps]).encode()
