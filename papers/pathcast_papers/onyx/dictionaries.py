"""Schema dictionaries: names that both ends of a link know by number.

A dictionary is a list of names as they are written, prefixes and all, most frequent first (the
first fifteen take a byte less). Its version is a digest of the list, so that nobody can say one
thing and mean another. What is not in it is said in the message: an old
dictionary makes messages larger, never wrong.

Example:
    >>> dictionary = Dictionary.of_messages([b"<order no='7'><item/><item/></order>"])
    >>> dictionary.names, len(dictionary.version)
    (('item', 'no', 'order'), 8)

It says nothing of what the names mean; that is the schema's part.

Source: 001, 4.3.2.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast_papers.message.door import parse_message

VERSION_BYTES: Final = 8
NAMES_MAX: Final = 65_536
"""Names of one dictionary."""
NAME_BYTES_MAX: Final = 1_024
"""Bytes of one name of a dictionary."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Names of elements and attributes by number.

    Attributes:
        names: As written, each once.
        version: Digest of the names.

    Raises:
        ConfigError: There are too many names, a name is too long, there twice, or no text.
    """

    names: tuple[str, ...]
    version: bytes = field(init=False)

    def __post_init__(self) -> None:
        if len(self.names) > NAMES_MAX:
            raise _invalid(f"{len(self.names):,} names are more than {NAMES_MAX:,}")
        digest = hashlib.sha256()
        seen: set[str] = set()
        for name in self.names:
            try:
                content = name.encode()
            except (AttributeError, UnicodeEncodeError):
                raise _invalid(f"{name!r} is no name") from None
            if not 0 < len(content) <= NAME_BYTES_MAX or name in seen:
                raise _invalid(f"{name[:40]!r} is empty, too long, or there twice")
            seen.add(name)
            digest.update(len(content).to_bytes(4, "little") + content)
        object.__setattr__(self, "version", digest.digest()[:VERSION_BYTES])

    @classmethod
    def of_messages(cls, messages: Iterable[bytes], limits: Limits | None = None) -> Dictionary:
        """The names of some messages, most frequent first.

        Args:
            messages: A sample of what will be sent.
            limits: What one of them may cost.

        Raises:
            MessageError: One of them is refused.
        """
        counts: Counter[str] = Counter()
        for message in messages:
            tree = parse_message(message, limits)
            details = tree.details
            prefixes = [] if details is None else [*details.prefix, *details.attribute_prefix]
            names = [local for _, local in [*tree.name, *tree.attribute_name]]
            counts.update(
                f"{prefix}:{local}" if prefix else local
                for prefix, local in zip(prefixes, names, strict=True)
            )
            declared = [] if details is None else details.declaration
            counts.update(f"xmlns:{prefix}" if prefix else "xmlns" for prefix, _ in declared)
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        return cls(tuple(ranked[:NAMES_MAX]))

    def to_bytes(self) -> bytes:
        """The form in which a catalogue carries it: its names, each ended by a line end."""
        return b"".join(name.encode() + b"\n" for name in self.names)

    @classmethod
    def from_bytes(cls, content: bytes) -> Dictionary:
        """What `to_bytes` gave, perhaps by somebody else.

        Raises:
            ConfigError: It is no list of names.
        """
        try:
            lines = content.decode().split("\n")
        except UnicodeDecodeError as error:
            raise _invalid(str(error)) from None
        if lines.pop():
            raise _invalid("the last name has no end")
        return cls(tuple(lines))


class Dictionaries:
    """The dictionaries that somebody knows, by version; they come and go while messages are read.

    A matcher or broker that is given them takes element streams as well as text.

    Args:
        dictionaries: Those known to begin with.

    Example:
        >>> known = Dictionaries([Dictionary(("a",))])
        >>> known.get(Dictionary(("b",)).version) is None
        True
    """

    def __init__(self, dictionaries: Iterable[Dictionary] = ()) -> None:
        self._lock = threading.Lock()
        self._known = {each.version: each for each in dictionaries}

    def add(self, dictionary: Dictionary) -> None:
        """Adds one; streams that name it can be read from the next batch on."""
        with self._lock:
            self._known = {**self._known, dictionary.version: dictionary}

    def remove(self, version: bytes) -> None:
        """Forgets one, if it is known; streams that name it are refused from the next batch on."""
        with self._lock:
            self._known = {key: each for key, each in self._known.items() if key != version}

    def get(self, version: bytes) -> Dictionary | None:
        """The dictionary of a version."""
        return self._known.get(version)

    def __iter__(self) -> Iterator[Dictionary]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)


def _invalid(reason: str) -> ConfigError:
    return ConfigError("config.invalid", key="dictionary", reason=reason)
