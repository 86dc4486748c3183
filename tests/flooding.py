"""A node for tests of carriers: what is published anywhere is delivered everywhere, once.

Every message is kept for each neighbour until that neighbour has said that it is on its disk, and
sent again when a connection is made and every half second: the simplest store-and-forward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pathcast.errors import ConfigError
from pathcast.protocol import Deliver, Effect, Forget, Node, Save, Send, Wake
from pathcast.transport.carrier import NodeAdapter
from pathcast.transport.frames import Codec, Flow


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A client's message."""

    id: str
    body: bytes


class Item(msgspec.Struct, frozen=True, tag=True):
    """A message on its way."""

    id: str
    body: bytes


class Taken(msgspec.Struct, frozen=True, tag=True):
    """An item is on the sender's disk."""

    id: str


class Count(msgspec.Struct, frozen=True, tag=True):
    """Asks how many messages a node has seen, or says it."""

    seen: int = 0


class FloodingNode:
    """Delivers all messages to the subscriber "reader"."""

    def __init__(self, name: str, neighbours: Sequence[str], saved: Mapping[str, bytes]) -> None:
        self.name = name
        self.up: set[str] = set()
        self.seen = {key.removeprefix("seen/") for key in saved if key.startswith("seen/")}
        self.out: dict[str, dict[str, bytes]] = {each: {} for each in neighbours}
        for key, value in saved.items():
            kind, _, rest = key.partition("/")
            if kind == "out":
                neighbour, _, message = rest.partition("/")
                self.out[neighbour][message] = value

    def start(self, now: float) -> list[Effect]:
        return [Wake("again", 0.5)]

    def receive(self, sender: str, message: object, now: float) -> list[Effect]:
        match message:
            case Publish(id=""):
                raise ConfigError("config.invalid", key="id", reason="is empty")
            case Publish(id, body):
                return self._spread(sender, id, body)
            case Item(id, body):
                return [*self._spread(sender, id, body), Send(sender, Taken(id))]
            case Taken(id):
                known = self.out.get(sender, {}).pop(id, None)
                return [] if known is None else [Forget(f"out/{sender}/{id}")]
            case Count():
                return [Send(sender, Count(len(self.seen)))]
        raise AssertionError(message)

    def _spread(self, sender: str, id: str, body: bytes) -> list[Effect]:
        if id in self.seen:
            return []
        self.seen.add(id)
        effects: list[Effect] = [Save(f"seen/{id}", b""), Deliver("reader", (id, body))]
        for neighbour, waiting in self.out.items():
            if neighbour != sender:
                waiting[id] = body
                effects.append(Save(f"out/{neighbour}/{id}", body))
                effects.append(Send(neighbour, Item(id, body)))
        return effects

    def wake(self, timer: str, now: float) -> list[Effect]:
        again = [effect for name in sorted(self.up) for effect in self._resend(name)]
        return [*again, Wake("again", 0.5)]

    def neighbour(self, name: str, up: bool, now: float) -> list[Effect]:
        if not up:
            self.up.discard(name)
            return []
        self.up.add(name)
        return self._resend(name)

    def _resend(self, name: str) -> list[Effect]:
        waiting = list(self.out.get(name, {}).items())[:1000]
        return [Send(name, Item(id, body)) for id, body in waiting]


def _flow(message: object) -> Flow:
    return Flow.MESSAGE if isinstance(message, Item | Publish) else Flow.CONTROL


def _delivery(what: object) -> tuple[str, bytes]:
    assert isinstance(what, tuple)
    return what


def _backlog(node: Node) -> dict[str, int]:
    assert isinstance(node, FloodingNode)
    return {name: len(waiting) for name, waiting in node.out.items()}


CODEC = Codec([Publish, Item, Taken, Count], _flow)


def flooding(name: str, neighbours: Sequence[str]) -> NodeAdapter[FloodingNode]:
    """The kind of a flooding node with these neighbours."""
    return NodeAdapter(
        lambda saved, life: FloodingNode(name, neighbours, saved),
        CODEC,
        _delivery,
        _backlog,
        roles={Publish: "publish", Count: "operate"},
        gap=lambda gap: f"{gap.first} to {gap.last} were dropped".encode(),
        describe=lambda node: {"seen": len(node.seen)},
    )
