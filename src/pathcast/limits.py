"""Limits on the cost of one message, by name.

Example:
    >>> Limits(depth_max=64).depth_max
    64
    >>> Limits(depth_max=0)
    Traceback (most recent call last):
    ...
    pathcast.errors.ConfigError: depth_max: 0 is not a whole number from 1 on
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Literal

from pathcast.errors import ConfigError, SnapshotFormatError

KIB = 1024
MIB = 1024 * KIB

RESULT_BYTES_FREE = 4 * KIB
"""Results of this many bytes pass `Limits.result_ratio_max`, however short the message."""

STEP_SERIES_MAX = 256
"""Different series of steps of the subscriptions of one broker. Each has plans and caches of its
own, and takes some microseconds of a small message that may satisfy one of its subscriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBounds:
    """Bounds on a message that is read as it arrives, beside those of `Limits` that still count.

    Attributes:
        message_bytes_max: Bytes as they arrive; None for no bound.
        elements_max: Elements; None for no bound.
        held_bytes_max: Bytes that may have to be held of a message, each of these: one tag,
            comment, instruction or document type declaration; the names of all open elements; the
            namespaces declared on them; all distinct names. At least 128 KiB, at most 1 GiB.

    Example:
        >>> StreamBounds(held_bytes_max=1000)
        Traceback (most recent call last):
        ...
        pathcast.errors.ConfigError: held_bytes_max: 1000 is not from 131072 to 1073741824
    """

    message_bytes_max: int | None = None
    elements_max: int | None = None
    held_bytes_max: int = 8 * MIB

    def __post_init__(self) -> None:
        for name, low, high in (
            ("message_bytes_max", 1, 2**63),
            ("elements_max", 1, 2**63),
            ("held_bytes_max", 128 * KIB, 1024 * MIB),
        ):
            value = getattr(self, name)
            if value is None and name != "held_bytes_max":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                reason = f"{value!r} is not from {low} to {high}"
                raise ConfigError("config.invalid", key=name, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one message: the door's, the evaluator's for one query and for all, its results'.

    Attributes:
        message_bytes_max: Bytes as they arrive; also bounds the decoded text. 8 MiB holds any
            message of the 22 domains measured, and bounds the time one message can take.
        depth_max: Elements from the root to the deepest one, both counted.
        elements_max: Elements.
        attributes_max: Attributes of one element, namespace declarations included.
        attribute_value_bytes_max: Bytes of one attribute value after normalisation.
        entity_expansion_ratio_max: Bytes that entities may expand to, as a multiple of the bytes of
            the message; the smaller of this and `entity_expansion_bytes_max` holds.
        entity_expansion_bytes_max: Bytes that entities may expand to, whatever the message's size.
        names_max: Distinct names of elements and attributes.
        evaluation_steps_max: Steps that the exact evaluation of one query on one message may take.
            A step is a node that an axis visits, a predicate tried, a function called, or 64
            characters that a string function handles: counted, so that it never depends on the
            clock. A query that needs more gets a verdict of its own; the message is not refused.
        message_steps_max: Steps that one message may take over all queries: those of every exact
            evaluation, an element that a condition or a nested path is looked at for (64 nested
            paths with the same name at the same step count as one), and every condition of a query
            that no index decides. 50 million are about a second, and bound what a message may
            hold in memory besides its tree. Queries that are undecided when they are used up get
            a verdict each; what was decided stays. In customised delivery they bound the gates of
            all subscriptions together, and once more the subscriptions that are evaluated by
            themselves (programs and XPath without a shared plan), where 64 bytes that are written
            are a step, too. These are evaluated in the order of their ids: the first one for which
            the steps do not suffice, and all after it, get a verdict and no result. The reference
            engine shares nothing, so that it counts every evaluation, and no bytes.
            Steps of subscriptions that change messages (`pathcast.registry.steps`) are taken off
            the same budget: finding the elements, and 64 bytes of a message that are read or
            written. Subscriptions without such steps come first, then series by series in the order
            of their text; when it is used up, all that follow get a verdict.
        result_bytes_max: Bytes of all results together that one subscription may get from one
            message. A subscription that would get more gets a verdict of its own and no result.
        result_ratio_max: The same, as a multiple of the bytes of the message; results of up to
            4 KiB always pass it. It also bounds what steps make of a message.
        message_result_bytes_max: Bytes of all results together that all subscriptions may get from
            one message, equal results counted once, and 64 for the delivery of each; messages that
            are delivered as they arrived are not counted, those after steps are. Subscriptions are
            served in the order of their ids: the first one whose results do not fit, and all after
            it that would get a result, get a verdict and no result. Those with steps come after
            those without, series by series. 64 MiB is 80 times what the largest workload measured
            takes for a message, and bounds what a message can take of memory.
        dtd: "internal" reads the internal subset (never an external one), "refuse" refuses a
            message with a document type declaration.
    """

    message_bytes_max: int = 8 * MIB
    depth_max: int = 256
    elements_max: int = 1_000_000
    attributes_max: int = 256
    attribute_value_bytes_max: int = 64 * KIB
    entity_expansion_ratio_max: int = 10
    entity_expansion_bytes_max: int = 8 * MIB
    names_max: int = 10_000
    evaluation_steps_max: int = 1_000_000
    message_steps_max: int = 50_000_000
    result_bytes_max: int = MIB
    result_ratio_max: int = 20
    message_result_bytes_max: int = 64 * MIB
    dtd: Literal["internal", "refuse"] = "internal"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "dtd":
                if value not in ("internal", "refuse"):
                    raise ConfigError(
                        "config.invalid",
                        key="dtd",
                        reason=f'{value!r} is not "internal" or "refuse"',
                    )
            elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(
                    "config.invalid",
                    key=field.name,
                    reason=f"{value!r} is not a whole number from 1 on",
                )
            elif value > 2**31 - 1:
                raise ConfigError(
                    "config.invalid", key=field.name, reason=f"{value} is above 2147483647"
                )

    def to_json(self) -> str:
        """All limits as a JSON object, the form in which they travel with a snapshot file."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, path: str) -> Limits:
        """The limits that `to_json` has written into a snapshot file.

        One that is not named was not known where the file was written, and has its default.

        Args:
            text: What the file holds.
            path: The file, for the error.

        Raises:
            SnapshotFormatError: It is no such object, or names a limit that is not known here: the
                answers would be others than were agreed.

        Example:
            >>> Limits.from_json(Limits(depth_max=64).to_json(), "s.snapshot").depth_max
            64
        """
        try:
            named = json.loads(text)
            if isinstance(named, dict):
                return cls(**named)
            reason = "they are no object"
        except (ValueError, TypeError, RecursionError) as error:
            reason = str(error)
        reason = f"its limits cannot be used ({reason})"
        raise SnapshotFormatError("snapshot.damaged", path=path, reason=reason)
