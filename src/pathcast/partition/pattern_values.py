r"""The values that messages have at places, found by the engine in one pass.

Example:
    >>> from pathcast.query import normalise, population_of
    >>> [place, _] = population_of(["q"], [[normalise("/a/b[@c = 1]")]]).places
    >>> values = PatternValues([place])
    >>> found = values.of([b"<a><b c='7'/><b c='&lt;'/></a>", b"<a"])
    >>> [(row, place, found.keys[key]) for row, place, key in zip(*found.columns())]
    [(0, 0, (0, 7.0, '')), (0, 0, (1, 0.0, '<'))]
    >>> list(found.errors)
    [1]

It compares nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import fromstring

import numpy as np

from pathcast.engine.messages import Messages, message_column
from pathcast.errors import KernelBugError, PathcastError
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.partition.placement import missing_of
from pathcast.partition.value_key import ValueKey, value_key
from pathcast.query import End, Place
from pathcast.registry import Registry

_REFERENCE: Final = re.compile("&(#x?[0-9A-F]+|amp|lt|gt|quot);")
_CHARACTERS: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}

_PLAIN: Final = re.compile(rb"<[^<>&\"']*>([^<>&\r]*)</[^<>]*>")
"""An element without attributes, with nothing but characters in it."""


@dataclass(frozen=True)
class FoundValues:
    """The values of messages at places.

    Attributes:
        rows: Place of the message in the batch, one a value; ascending.
        places: Number of the place.
        key_numbers: Number of the value's key.
        keys: The distinct keys.
        errors: Place in the batch -> refusal by the door.
        is_open: For each message, whether some of its values could not be had within the limits.
        is_missing: For each message, whether it is a null.
    """

    rows: np.ndarray
    places: np.ndarray
    key_numbers: np.ndarray
    keys: Sequence[ValueKey]
    errors: Mapping[int, PathcastError]
    is_open: np.ndarray
    is_missing: np.ndarray

    def columns(self) -> tuple[list[int], list[int], list[int]]:
        """Message, place and key of each value."""
        return self.rows.tolist(), self.places.tolist(), self.key_numbers.tolist()


class PatternValues:
    """Finds the values of places in messages.

    Args:
        places: The places, none of which ends at elements.
        limits: What one message may cost.
        threads: As for `Registry`.
    """

    def __init__(
        self,
        places: Sequence[Place],
        *,
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> None:
        self._registry = Registry(limits=limits, threads=threads)
        asked = [_subscription(number, place) for number, place in enumerate(places)]
        self._is_element = np.array([place.end is End.VALUE for place in places], dtype=np.int64)
        report = self._registry.add(asked)
        for name, error in report.rejected.items():
            raise KernelBugError("kernel.bug", reason=f"{places[int(name)]} is refused: {error}")

    def of(self, messages: Messages) -> FoundValues:
        """The values of every message.

        Cost: parsing, and about 1 µs a distinct value of the batch.
        """
        column = message_column(messages)
        is_missing = missing_of(column.arrays)
        batch = self._registry.deliver(messages)
        numbers = batch.numbers
        place_of = np.array([int(name) for name in batch.subscription_ids], dtype=np.int64)
        fragments = numbers.column("fragment")
        distinct = fragments.dictionary.dictionary_encode()
        at = distinct.indices.take(fragments.indices).to_numpy(zero_copy_only=False)
        places = place_of[numbers.column("subscription").to_numpy()]
        # Whether a fragment is an element or a text shows where it comes from, not its bytes.
        pairs, pair_of = np.unique(at * 2 + self._is_element[places], return_inverse=True)
        texts = distinct.dictionary.to_pylist()
        read = (_unescaped, _string_value)
        keys = [value_key(read[pair % 2](texts[pair // 2])) for pair in pairs.tolist()]
        is_open = np.zeros(len(is_missing), dtype=bool)
        is_open[batch.verdicts.column("row").to_numpy()] = True
        return FoundValues(
            numbers.column("row").to_numpy().astype(np.int64),
            places,
            pair_of,
            keys,
            dict(batch.refusals),
            is_open,
            is_missing,
        )


def measured_rates(places: Sequence[Place], messages: Messages) -> dict[Place, float]:
    """How many different values a message has at each place, on average over a sample.

    Args:
        places: The places.
        messages: The sample; refused and missing ones do not count.

    Example:
        >>> from pathcast.query import normalise, population_of
        >>> [*places, _] = population_of(["q"], [[normalise("/a[@x = 1]/b[. = 2]")]]).places
        >>> sample = [b"<a x='1'><b>1</b><b>2</b></a>", b"<a><b>3</b><b>3</b></a>"]
        >>> list(measured_rates(places, sample).values())
        [0.5, 1.5]
    """
    found = PatternValues(places).of(messages)
    pairs = np.stack([found.rows, found.places, found.key_numbers], axis=1)
    distinct = np.unique(pairs, axis=0) if len(pairs) else pairs
    counts = np.bincount(distinct[:, 1], minlength=len(places))
    usable = int((~found.is_missing).sum()) - len(found.errors)
    return {place: float(n) / max(usable, 1) for place, n in zip(places, counts, strict=True)}


def _subscription(number: int, place: Place) -> Subscription:
    path, namespaces = place.to_query()
    return Subscription(str(number), "", path, namespaces=namespaces)


def _string_value(fragment: bytes) -> str:
    """The string-value of an element that was copied from a message."""
    plain = _PLAIN.fullmatch(fragment)
    return plain[1].decode() if plain else "".join(fromstring(fragment).itertext())


def _unescaped(fragment: bytes) -> str:
    """Text as it was before it was written as XML."""
    text = fragment.decode()
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    name = reference[1]
    if name[0] != "#":
        return _CHARACTERS[name]
    return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))
