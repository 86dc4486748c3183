"""What is under the keys that a peer owns, states or pieces: read, and changed one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pathcast.dht.courier import Courier
from pathcast.dht.messages import Value
from pathcast.dht.substrate import Substrate

__all__ = ["StateStore"]

Stored = TypeVar("Stored")
Kept = TypeVar("Kept")
_TRIES = 20
_KNOWN_MAX = 4096


class StateStore(Generic[Stored, Kept]):
    """States, or pieces, of one peer.

    Args:
        substrate: Where records are.
        courier: For timers.
        retry_seconds: Before a record is read again that could not be.
        decoded: Gives, of a key and the value of its record, what is changed and what is read.
        encoded: Gives the value for what was changed.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        retry_seconds: float,
        decoded: Callable[[str, bytes | None], tuple[Stored, Kept]],
        encoded: Callable[[Stored], bytes],
    ) -> None:
        self._substrate = substrate
        self._courier = courier
        self._retry_seconds = retry_seconds
        self._decode = decoded
        self._encode = encoded
        self._known: dict[str, tuple[int, Stored, Kept]] = {}
        self._readers: dict[str, list[Callable[[Kept | None], None]]] = {}
        self._changes: dict[
            str, list[tuple[Callable[[Stored], Stored], Callable[[Stored | None], None]]]
        ] = {}

    def read(self, key: str, then: Callable[[Kept | None], None]) -> None:
        """What is under a key; None if this peer does not own it (any more)."""
        readers = self._readers.setdefault(key, [])
        readers.append(then)
        if len(readers) == 1 and key not in self._changes:
            self._read(key, _TRIES)

    def change(
        self,
        key: str,
        change: Callable[[Stored], Stored],
        then: Callable[[Stored | None], None],
    ) -> None:
        """Change what is under a key.

        Args:
            key: Of the state or piece.
            change: Gives what is new; may be called several times.
            then: Gets what is new, or None if this peer cannot store it (any more); then it may
                have been stored all the same.
        """
        queue = self._changes.setdefault(key, [])
        queue.append((change, then))
        if len(queue) == 1 and key not in self._readers:
            self._change(key, _TRIES)

    def _read(self, key: str, left: int) -> None:
        def has_read(value: Value | None) -> None:
            if value is None and left and self._substrate.owns(key):
                self._again(lambda: self._read(key, left - 1))
                return
            held = None if value is None else self._decoded(key, value)[1]
            # A reader may have something to change, which then is begun by that.
            is_waited_for = key in self._changes
            for then in self._readers.pop(key):
                then(held)
            if is_waited_for:
                self._change(key, _TRIES)

        self._substrate.read(key, has_read)

    def _change(self, key: str, left: int) -> None:
        queue = self._changes[key]

        def has_read(value: Value | None) -> None:
            if value is None:
                stored(None, 0)
                return
            before = state = self._decoded(key, value)[0]
            count = len(queue)
            states = []
            for change, _ in queue:
                state = change(state)
                states.append(state)
            if state == before:
                stored(states, count)
            else:
                data = self._encode(state)
                self._substrate.write(
                    key, data, value.version, lambda done: stored(states if done else None, count)
                )

        def stored(states: list[Stored] | None, count: int) -> None:
            if states is None and left and self._substrate.owns(key):
                self._again(lambda: self._change(key, left - 1))
                return
            done = queue[:count] if states is not None else list(queue)
            del queue[: len(done)]
            if not queue:
                del self._changes[key]
            if key in self._readers:
                self._read(key, _TRIES)  # which goes on with what is left to change
            elif queue:
                self._again(lambda: self._change(key, _TRIES))
            for place, (_, then) in enumerate(done):
                then(None if states is None else states[place])

        self._substrate.read(key, has_read)

    def _again(self, then: Callable[[], None]) -> None:
        self._courier.after(self._retry_seconds, then)

    def _decoded(self, key: str, value: Value) -> tuple[Stored, Kept]:
        known = self._known.get(key)
        if known is None or known[0] != value.version:
            known = value.version, *self._decode(key, value.value)
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[key] = known
        return known[1], known[2]
