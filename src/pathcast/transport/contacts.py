"""Peers that find each other: whoever knows one learns of all, and remembers them.

A process greets every peer that it knows of: it says its own address, and is told of all whom the
other knows. Whom it learns of so it greets in turn, until it has greeted all; so whoever joins by
way of one known peer is soon known to all, and calls, or is called by, each. What it has learned is
in the file `contacts.json` of its directory, so a process that begins again finds the ring when
those that its settings name are gone.

An address counts as its peer says it; what others say of it counts only as long as it is not known.
Nobody is forgotten: a peer that is gone for good is called in vain, now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from pathcast.errors import PathcastError, PeerRefusedError
from pathcast.transport.client import BrokerClient
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.frames import decode
from pathcast.transport.grpc_streams import Address
from pathcast.transport.security import Authenticator
from pathcast.transport.service import GuardedMethods

FILE: Final = "contacts.json"
METHODS: Final = "pathcast.Peer"
GREET_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.2
PAUSE_SECONDS_MAX: Final = 10.0
"""Pauses before who did not answer is greeted again: the first, and what doubling ends with."""

CONTACTS_MAX: Final = 4096


class Contact(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A peer, and where it listens."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    address: Annotated[str, Meta(max_length=300, pattern=r"^\S+:[0-9]{1,5}$")]


class _Greeting(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A process's own address, then the addresses of all processes that it knows."""

    me: Contact
    others: Annotated[tuple[Contact, ...], Meta(max_length=CONTACTS_MAX)] = ()


_ENCODE: Final = msgspec.msgpack.Encoder().encode
_GREETINGS: Final = msgspec.msgpack.Decoder(_Greeting)
_SAVED: Final = msgspec.json.Decoder(list[Contact])


class Contacts(GuardedMethods):
    """The processes that one process knows, and the greetings it exchanges with them.

    Args:
        name: Of the process.
        gate: Who may greet it.
        directory: Where the file is.
        address: How to call a peer that listens at HOST:PORT.
        take_up: Called with name and HOST:PORT of a peer that is new, or has moved.
    """

    def __init__(
        self,
        name: str,
        gate: Authenticator,
        directory: Path,
        address: Callable[[str, str], Address],
        take_up: Callable[[str, str], None],
    ) -> None:
        super().__init__(gate)
        self._name = name
        self._file = directory / FILE
        self._address = address
        self._take_up = take_up
        self._mine = Contact(name, "?:0")
        self._known: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._offer_answer(f"/{METHODS}/Greet", self._greeted)

    @contextlib.asynccontextmanager
    async def greeting(self, mine: str, known: Mapping[str, str]) -> AsyncIterator[None]:
        """Greets whom it knows of, and whom it learns of, meanwhile.

        Args:
            mine: HOST:PORT where this process is called.
            known: Name -> HOST:PORT, of the settings.
        """
        self._mine = Contact(self._name, mine)
        saved = self._saved()
        self._learn([*(Contact(*each) for each in known.items()), *saved])
        try:
            yield
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _saved(self) -> list[Contact]:
        try:
            return _SAVED.decode(self._file.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            # Others know what was in it.
            log_event("contacts.unreadable", file=str(self._file), reason=str(error))
            return []

    async def _greeted(self, data: bytes, context: Any) -> bytes:
        caller = self._admit(context, "neighbour")
        said = decode(_GREETINGS, data, caller)
        if said.me.name != caller:
            raise PeerRefusedError("peer.name", name=caller, found=said.me.name)
        self._is_at(said.me)
        self._learn(said.others)
        return self._said()

    def _said(self) -> bytes:
        others = (Contact(*each) for each in sorted(self._known.items()))
        return _ENCODE(_Greeting(self._mine, tuple(others)))

    def _learn(self, contacts: Iterable[Contact]) -> None:
        """Somebody says where these are; those that are not known are greeted."""
        for each in contacts:
            if each.name not in (self._name, *self._known) and len(self._known) < CONTACTS_MAX:
                self._is_at(each)
                self._tasks[each.name] = asyncio.create_task(self._greet(each.name))

    def _is_at(self, contact: Contact) -> None:
        """A peer is there, by its own word or because nobody knows better."""
        if contact.name == self._name or self._known.get(contact.name) == contact.address:
            return
        if contact.name not in self._known and len(self._known) >= CONTACTS_MAX:
            return
        self._known[contact.name] = contact.address
        self._save()
        self._take_up(contact.name, contact.address)

    def _save(self) -> None:
        rows = [Contact(*each) for each in sorted(self._known.items())]
        new = self._file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(rows))
        new.replace(self._file)

    async def _greet(self, name: str) -> None:
        """Greets one, until it has answered."""
        pause = PAUSE_SECONDS
        while True:
            try:
                said = await self._call(self._address(name, self._known[name]))
                break
            except PathcastError as error:
                log_event("contact.silent", name=self._name, **reason_of(error))
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_SECONDS_MAX)
        self._learn(said.others)

    async def _call(self, address: Address) -> _Greeting:
        async with BrokerClient(self._name, address, service=METHODS) as client:
            answer = await client.call("Greet", self._said(), GREET_SECONDS)
        said = decode(_GREETINGS, answer, address.name)
        if said.me.name != address.name:
            raise PeerRefusedError("peer.name", name=address.name, found=said.me.name)
        return said
