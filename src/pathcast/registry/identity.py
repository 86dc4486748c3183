"""Which delivery is which: the ids of messages and deliveries, versions of subscriptions and sets.

A delivery is the same delivery whenever and wherever it is computed: by a replayed micro-batch, by
another engine, in another process, and whoever else has subscribed or left since. Its id is
therefore made of what makes it, and of nothing else: the subscription as it is, the message and
the number of the result. This module is the one place that says how; the kernel makes those of
many deliveries.

    field(text)          = number of its characters in decimal digits, ":", the text
    content              = field(id) field(subscriber) field(query) field(deliver)
                           field(namespaces), field("xquery") where that was chosen, and a
                           field(step) for each step
    subscription version = first 16 bytes of BLAKE2b-256 ( content as UTF-8 )
    delivery id          = subscription version
                           + BLAKE2b-128 ( result number as u32, message id )   modulo 2^128
    message id           = the publisher's; hex BLAKE2b-128 ( bytes of the message ) without one

A subscription version and a delivery id are 16 bytes: columns hold the bytes, objects show them as
32 hexadecimal digits. Numbers are little endian. Both that are added are digests, so two deliveries
have one id by chance as rarely as if the sum were digested, and a message that thousands get is
digested once a result. The query is the text as it was registered: another wording is another
version. The namespaces are all that the subscription may use, those of its broker included, as
`namespaces_text` writes them. A subscription that leaves and comes again unchanged has the version
it had.

Example:
    >>> subscription_version(Subscription("s1", "ann", "//a"))
    '20dca70b1dc82f9a916b62c922b318e4'
    >>> delivery_id(subscription_version(Subscription("s1", "ann", "//a")), "m1", 0)
    '50fee4b05d0d5d5fd1d3c2bb3d01cbff'
    >>> message_id(b"<a/>")
    '61438e6ead4ad1ee9a180e66d356b587'
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

import pyarrow as pa

from pathcast.boundary import native, native_errors
from pathcast.limits import Limits
from pathcast.model import MessageBytes, Subscription

DIGEST_BYTES: Final = 16
"""128 bits: two of a trillion deliveries are the same by chance once in 10^14."""

_NUMBER: Final = struct.Struct("<I")
_LARGEST_ID: Final = (1 << (8 * DIGEST_BYTES)) - 1
_SET_BYTES: Final = 32
_SET_MODULUS: Final = 1 << (8 * _SET_BYTES)
_FORMAT: Final = b"pathcast subscriptions 3"


def message_id(message: MessageBytes) -> str:
    """The id of a message that its publisher gave none."""
    return blake2b(message, digest_size=DIGEST_BYTES).hexdigest()


def subscription_version(subscription: Subscription) -> str:
    """The version of one subscription: a digest of all that it is.

    Args:
        subscription: With all namespaces that it may use, as `Registry.get` gives it.
    """
    return _content_digest(subscription)[:DIGEST_BYTES].hex()


def delivery_id(version: str, message: str, result_number: int) -> str:
    """The id of one delivery.

    Args:
        version: Version of the subscription, from `subscription_version`.
        message: Id of the message.
        result_number: Place among the results of the subscription for the message.
    """
    content = _NUMBER.pack(result_number) + message.encode()
    digest = blake2b(content, digest_size=DIGEST_BYTES).digest()
    total = int.from_bytes(bytes.fromhex(version), "little") + int.from_bytes(digest, "little")
    return (total & _LARGEST_ID).to_bytes(DIGEST_BYTES, "little").hex()


def delivery_ids(
    versions: pa.FixedSizeBinaryArray,
    version_places: pa.Array,
    messages: Sequence[str],
    message_places: pa.Array,
    result_numbers: pa.Array,
) -> pa.FixedSizeBinaryArray:
    """The ids of many deliveries, made by the kernel.

    Args:
        versions: Versions of distinct subscriptions, `DIGEST_BYTES` each.
        version_places: For every delivery, the place of its subscription in `versions`.
        messages: Distinct ids of messages.
        message_places: Likewise.
        result_numbers: For every delivery.

    Cost: 15 ns a delivery, and 0.2 µs for each message and result number.
    """
    with native_errors():
        return native.delivery_ids(
            versions, version_places, list(messages), message_places, result_numbers
        )


class SetVersion:
    """The version of a set of subscriptions, kept up to date as they come and go.

    It is a digest of what decides the answers: the same subscriptions under the same limits have
    the same version in whatever order they came, and whatever came and went between. The digests
    of the members are added up modulo 2^256, so that a change costs what changes and not what is
    there.

    Args:
        limits: What one message may cost, and what its results may.
        total: The digests of the subscriptions that are there, added up, little endian.
        count: How many these are.

    Example:
        >>> one, other = SetVersion(Limits()), SetVersion(Limits())
        >>> a, b = Subscription("a", "desk", "/a"), Subscription("b", "desk", "/b")
        >>> for subscription in (a, b):
        ...     version = one.add(subscription)
        >>> for subscription in (b, a):
        ...     version = other.add(subscription)
        >>> one.text == other.text
        True
        >>> one.remove(b)
        >>> one.text == other.text
        False

    Source: Bellare and Micciancio, A New Paradigm for Collision-Free Hashing: Incrementality at
    Reduced Cost, EUROCRYPT 1997 (AdHash).
    """

    def __init__(self, limits: Limits, total: bytes = b"", count: int = 0) -> None:
        self._head = _FORMAT + limits.to_json().encode()
        self._sum = int.from_bytes(total, "little")
        self._count = count
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The version: 32 hexadecimal digits."""
        if self._text is None:
            count = struct.pack("<Q", self._count)
            digest = blake2b(self._head + count + self.total, digest_size=DIGEST_BYTES)
            self._text = digest.hexdigest()
        return self._text

    def add(self, subscription: Subscription) -> bytes:
        """A subscription, with all namespaces it may use, comes; gives its own version.

        Cost: about 2 µs.
        """
        return self._change(subscription, 1)

    def add_all(self, total: bytes, count: int) -> None:
        """Adds so many subscriptions by the sum of their digests, which the kernel has."""
        self._sum = (self._sum + int.from_bytes(total, "little")) % _SET_MODULUS
        self._count += count
        self._text = None

    @property
    def total(self) -> bytes:
        """The digests of the members, added up, little endian."""
        return self._sum.to_bytes(_SET_BYTES, "little")

    def remove(self, subscription: Subscription) -> None:
        """One goes."""
        self._change(subscription, -1)

    def _change(self, subscription: Subscription, count: int) -> bytes:
        digest = _content_digest(subscription)
        self._sum = (self._sum + count * int.from_bytes(digest, "little")) % _SET_MODULUS
        self._count += count
        self._text = None
        return digest[:DIGEST_BYTES]


def namespaces_text(namespaces: Mapping[str, str] | None) -> str:
    """Bindings of prefixes as one text; equal for equal bindings, empty for none."""
    if not namespaces:
        return ""
    return json.dumps(dict(namespaces), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _content_digest(subscription: Subscription) -> bytes:
    parts = (
        subscription.id,
        subscription.subscriber,
        subscription.query,
        subscription.deliver,
        namespaces_text(subscription.namespaces),
        # No step is called so; a text that is XPath 1.0 is so with or without a choice.
        *(("xquery",) if subscription.language == "xquery" else ()),
        *subscription.steps,
    )
    content = "".join([f"{len(part)}:{part}" for part in parts]).encode()
    return blake2b(content, digest_size=_SET_BYTES).digest()
