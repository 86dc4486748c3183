"""A node of a network as a state machine: it takes events and returns effects.

A node knows no socket, no clock, no thread and no simulator. It is given an event (a message came,
a timer went off, a neighbour is there or gone) and the time, changes its state, and gives back a
list of effects, which whoever carries it does in that order: `pathcast.transport` with real
connections, a simulator with seeded ones. So one node code runs in both, and a seed that found
something finds it again.

`Save` before `Send` in a list means: only what is on disk is spoken of. A carrier that stops
between two effects has done the first ones and none of the later; a node is begun again from what
it saved.

Example:
    >>> class Echo:
    ...     def start(self, now: float) -> list[Effect]:
    ...         return []
    ...     def receive(self, sender: str, message: object, now: float) -> list[Effect]:
    ...         return [Send(sender, message)]
    ...     def wake(self, timer: str, now: float) -> list[Effect]:
    ...         return []
    ...     def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
    ...         return []
    >>> node: Node = Echo()
    >>> node.receive("b", "hello", now=0.0)
    [Send(to='b', message='hello')]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a node, best effort: it may be lost, doubled, late or overtaken."""

    to: str
    message: object


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `wake(timer)` in `after` seconds, instead of when it was set for before."""

    timer: str
    after: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Forget a timer; nothing if there is none of that name."""

    timer: str


@dataclass(frozen=True, slots=True)
class Save:
    """Keep `value` under `key` on this node's disk before anything that follows is done."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Forget:
    """Take `key` from this node's disk."""

    key: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand something to whoever stands behind this node: a subscriber, an operator."""

    to: str
    what: object


Effect = Send | Wake | Cancel | Save | Forget | Deliver


class SavedRecords(Mapping[str, bytes]):
    """The saved records of a node, of which some are read when they are asked for."""

    @abstractmethod
    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The records whose keys begin with a prefix, by their keys."""


def records_under(saved: Mapping[str, bytes], prefix: str) -> Iterator[tuple[str, bytes]]:
    """The records whose keys begin with a prefix, by their keys.

    Example:
        >>> list(records_under({"b/2": b"", "a": b"", "b/1": b""}, "b/"))
        [('b/1', b''), ('b/2', b'')]
    """
    if isinstance(saved, SavedRecords):
        return saved.under(prefix)
    return ((key, saved[key]) for key in sorted(saved) if key.startswith(prefix))


class Node(Protocol):
    """A node of a network, as a state machine without input or output."""

    def start(self, now: float) -> Sequence[Effect]:
        """Begin, after construction from what was saved (nothing, the first time)."""
        ...

    def receive(self, sender: str, message: object, now: float) -> Sequence[Effect]:
        """A message came from `sender`; it may be one that came before."""
        ...

    def wake(self, timer: str, now: float) -> Sequence[Effect]:
        """A timer went off."""
        ...

    def neighbour(self, name: str, up: bool, now: float) -> Sequence[Effect]:
        """The connection to a node was made, or was lost, and with it what was under way."""
        ...


def grouped(
    items: Sequence[Item], size: Callable[[Item], int], bytes_max: int, count_max: int
) -> Iterator[Sequence[Item]]:
    """Items in their order, few enough together to travel; one that is larger travels alone.

    Example:
        >>> [len(group) for group in grouped([4, 4, 4, 20, 1], lambda size: size, 10, 256)]
        [2, 1, 1, 1]
    """
    start = held = 0
    for at, item in enumerate(items):
        length = size(item)
        if at > start and (held + length > bytes_max or at - start == count_max):
            yield items[start:at]
            start, held = at, 0
        held += length
    if start < len(items):
        yield items[start:]
