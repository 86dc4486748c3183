"""What a dissemination engine has to offer, as protocols.

The module of an engine (`pathcast.engine.selection`) has a function `new_dissemination` of the
shape `DisseminationFactory`; the facades of this room speak to nothing else.

This module decides nothing and computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pathcast.limits import Limits
from pathcast.model import DeliveryAnswer, FewDeliveries, Gate, RegisterReport, Subscription

if TYPE_CHECKING:
    import pyarrow as pa

    from pathcast.message.dictionaries import Dictionaries
    from pathcast.query import CostClass


Budgets: TypeAlias = list[tuple[int, int]]
"""For each message of a batch, steps and bytes of results that it may take."""


class DisseminationBackend(Protocol):
    """Subscriptions that come and go while messages flow through them.

    Messages are those after the steps of subscriptions, which `pathcast.customize.stepped` does.

    `process` may be called from several threads at once; no other call overlaps with it or with
    another change: `pathcast.customize.broker` sees to that.
    """

    def subscribe(
        self,
        subscriptions: Sequence[Subscription],
        namespaces: Mapping[str, str],
        gates: Sequence[Gate | None] | None = None,
    ) -> RegisterReport:
        """Adds subscriptions. They count from the next batch on.

        Args:
            subscriptions: Their fields were looked at (`pathcast.engine.rows`). One with a bad
                query is reported and leaves no trace. When an id occurs twice, the
                first is taken and the error belongs to the second.
            namespaces: Bindings for prefixes that a subscription does not bind itself.
            gates: What `gates` of an engine gave for the same subscriptions in an earlier process,
                so that nothing needs to be compiled; None, all or one, where it is not known. An
                engine may do without.
        """

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes subscriptions out. All of them or, if an id is unknown, none.

        Raises:
            UnknownQueryError: No subscription has one of the ids.
        """

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use (None for none).

        Raises:
            UnknownQueryError: No subscription has this id.
        """

    def gates(self, ids: Sequence[str]) -> Sequence[Gate | None]:
        """What subscriptions were compiled to, for a snapshot file.

        None for one that the engine reads quickly from its text alone.

        Raises:
            UnknownQueryError: No subscription has one of the ids.
        """

    def process(
        self,
        messages: pa.Array,
        *,
        encoding: str | None = None,
        budgets: Budgets | None = None,
    ) -> DeliveryAnswer:
        """The results of every message of a `binary` or `large_binary` array, slices included.

        Args:
            messages: The messages as they arrived; a null has no deliveries and no error.
            encoding: Encoding of all messages where the caller knows it better than their
                declarations; "UTF-8" for what was text before.
            budgets: What each message may take, if less than the limits say.
        """

    def process_few(self, messages: list[bytes], budgets: Budgets | None = None) -> FewDeliveries:
        """As `process`, of so few messages that arrays would take longer than they do."""

    def explain(self, subscription_id: str) -> Mapping[str, object]:
        """The plan of a subscription and what it shares, as data that JSON can hold.

        Keys that every engine gives: "kind" ("xpath" or "xquery"), "plan" (lines of text, the
        operators from the leaves up), "gate" (list of paths), "expression" (text or None),
        "shared" (operator or path -> number of the other subscriptions that share it).

        Raises:
            UnknownQueryError: No subscription has this id.
        """

    def cost(self, subscription_id: str) -> CostClass:
        """What a subscription costs a message.

        Raises:
            UnknownQueryError: No subscription has this id.
        """

    def __len__(self) -> int:
        """Number of subscriptions."""

    def __contains__(self, subscription_id: object) -> bool:
        """Whether a subscription has this id."""


class DeliveryIdMaker(Protocol):
    """What makes the ids of many deliveries; see `pathcast.customize.identity`."""

    def __call__(
        self,
        versions: Sequence[bytes],
        version_places: pa.Array,
        messages: Sequence[str],
        message_places: pa.Array,
        result_numbers: pa.Array,
        /,
    ) -> pa.FixedSizeBinaryArray:
        """The ids, 16 bytes each; places and result numbers are `uint32` columns."""


class DisseminationFactory(Protocol):
    """The function `new_dissemination` of an engine's module."""

    def __call__(
        self,
        *,
        limits: Limits,
        threads: int,
        cache_bytes_max: int,
        streams: Dictionaries | None = None,
    ) -> DisseminationBackend:
        """A dissemination engine without subscriptions.

        Args:
            limits: What one message may cost, and what its results may.
            threads: Threads of one `process` call. The reference uses the caller's only.
            cache_bytes_max: Bytes that compiled label paths may take. The reference has no use
                for it.
            streams: Takes element streams, with these dictionaries; None refuses them.
        """
