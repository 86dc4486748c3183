r"""Random messages of a vocabulary: flat or recursive, as publishers write them and as nobody does.

Example:
    >>> import random
    >>> random_flwr_message(random.Random(0), BOOK, MessageTemper(hostility=0))[:40]
    b'<?xml version="1.0"?><book><title>\'"]}{<'

Every message is well-formed. `hostility` says how often it leaves its vocabulary and what else a
reader of XML must stand: values that are no numbers, markup between text, references and CDATA
sections, an internal subset with entities and attribute defaults, namespaces declared anew, for
nothing, or under another prefix. `random_message` has a different purpose: its messages have no
shape at all, and few path matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from generators.flwr_vocabulary import BOOK, Vocabulary

__all__ = ["BOOK", "WILD", "MessageTemper", "random_flwr_message"]

_NUMBERS = ("0", "1", "1", "2", "2", "3", "4", "10", "25", "1994", "2.5", "0.5", "-1", "007", " 2 ")
_NO_NUMBERS = ("", "x", "1e3", "INF", "1,5", "0x1", "+3", "12 EUR", "-", "1.0")
_WILD_NUMBERS = ("NaN", *_NO_NUMBERS)
_ODD_TEXTS = (
    "",
    " ",
    "]]>",
    "a&b",
    "<",
    "x\ry",
    "x\ty",
    "\n",
    "'\"",
    "{$s}",
    "\U0001f600",
    "\u0085",
)
_MARKUP = ("<!--c-->", "<!-- a - b -->", "<?pi?>", "<?pi x='1' ?>")


WILD: Final = 0.5
"""From here on a message is no case for Saxon: see "the-word-nan" in `saxon_differences`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTemper:
    """How a message behaves.

    Attributes:
        hostility: From 0, a message of its vocabulary, to 1, as much of the rest as is possible;
            from `WILD` on with values that Saxon reads in its own way.
        repeats_max: Occurrences of a child.
        elements_max: No more elements are begun once there are this many.
    """

    hostility: float = 0.15
    repeats_max: int = 2
    elements_max: int = 60


def random_flwr_message(
    random: Random, vocabulary: Vocabulary, temper: MessageTemper | None = None
) -> bytes:
    """One well-formed message in UTF-8."""
    return _Writer(random, vocabulary, temper or MessageTemper()).message().encode()


class _Writer:
    def __init__(self, random: Random, vocabulary: Vocabulary, temper: MessageTemper) -> None:
        self.random = random
        self.vocabulary = vocabulary
        self.temper = temper
        self.elements = 0
        # Its own prefixes: a query binds its prefixes itself. None: as the default namespace.
        self.prefixes = {
            uri: prefix if not self.is_odd() else random.choice((f"{prefix or 'd'}x", "ns0", "n-1"))
            for prefix, uri in vocabulary.namespaces.items()
        }
        if len(set(self.prefixes.values())) < len(self.prefixes):
            self.prefixes = {uri: prefix for prefix, uri in vocabulary.namespaces.items()}
        self.has_entities = self.is_odd(0.4)

    def is_odd(self, odds: float = 1.0) -> bool:
        """Whether something unusual happens here; always asks the generator once."""
        return self.random.random() < self.temper.hostility * odds

    def message(self) -> str:
        random = self.random
        declared = "".join(
            f" xmlns{':' if prefix else ''}{prefix}={quoteattr(uri)}"
            for uri, prefix in self.prefixes.items()
        )
        root = self.vocabulary.root
        body = self.element(root, self.vocabulary.depth_max, declared)
        prolog = random.choice(("", "", "", '<?xml version="1.0"?>', "<!-- p -->\n"))
        if self.is_odd(0.3):
            prolog += random.choice(_MARKUP)
        if self.has_entities:
            prolog += self.subset(self.written(root))
        return prolog + body + random.choice(("", "", "\n", "<!-- end -->"))

    def subset(self, root: str) -> str:
        entity = self.random.choice(("XML", "2", "<!--e-->x", "", "&#38;#38;"))
        text = f'<!ENTITY own "{entity}">'
        if self.is_odd(2.0):
            element = self.written(self.random.choice(tuple(self.vocabulary.elements)))
            text += f'<!ATTLIST {element} given CDATA "default">'
        return f"<!DOCTYPE {root} [{text}]>"

    def written(self, name: str) -> str:
        """A name of the vocabulary as this message writes it."""
        prefix, _, local = name.rpartition(":")
        uri = self.vocabulary.namespaces.get(prefix)
        if uri is not None:
            prefix = self.prefixes[uri]
        return f"{prefix}:{local}" if prefix else local

    def written_attribute(self, name: str) -> str | None:
        """The same for an attribute; None if this message cannot write it."""
        if ":" not in name:
            return name
        written = self.written(name)
        return written if ":" in written else None

    def element(self, name: str, depth: int, declared: str = "") -> str:
        random = self.random
        self.elements += 1
        kind = self.vocabulary.elements[name]
        if self.is_odd(0.5):
            declared += self.redeclared(declared)
        tag = self.written(name)
        start = tag + declared + self.attributes(name)
        parts: list[str] = []
        if kind.content in ("number", "text"):
            parts.append(self.characters(is_number=kind.content == "number"))
            if self.is_odd(0.3):
                parts.append(random.choice((*_MARKUP, self.characters(is_number=False))))
        if depth > 0:
            parts += self.children(name, depth)
        if kind.content == "mixed":
            for _ in range(random.randrange(3)):
                parts.insert(random.randrange(len(parts) + 1), self.characters(is_number=False))
        if random.randrange(3) == 0 and kind.content == "":
            parts = [text for part in parts for text in ("\n ", part)]
        content = "".join(parts)
        if not content and random.randrange(2):
            return f"<{start}/>"
        return f"<{start}>{content}</{tag}>"

    def children(self, name: str, depth: int) -> list[str]:
        random = self.random
        names: list[str] = []
        for child in self.vocabulary.elements[name].children:
            names += [child] * random.randrange(self.temper.repeats_max + 1)
        if self.is_odd():
            names.append(random.choice(tuple(self.vocabulary.elements)))
        if self.is_odd():
            random.shuffle(names)
        parts: list[str] = []
        for child in names:
            if self.elements >= self.temper.elements_max:
                break
            if self.is_odd(0.5):
                parts.append(random.choice((*_MARKUP, self.characters(is_number=False))))
            parts.append(self.element(child, depth - 1))
        return parts

    def redeclared(self, declared: str) -> str:
        """Declarations that change no name of the vocabulary, or only to another spelling."""
        if declared:
            return ""
        choices = [' xmlns:unused="urn:unused"', ' xmlns:z="urn:z"']
        choices += [
            f" xmlns:{prefix}={quoteattr(uri)}" for uri, prefix in self.prefixes.items() if prefix
        ]
        if "" not in self.prefixes.values():
            # Children without a prefix leave the vocabulary here: as hostile as can be.
            choices += [' xmlns="urn:elsewhere"', ' xmlns=""']
        return self.random.choice(choices)

    def attributes(self, name: str) -> str:
        text = ""
        names = list(self.vocabulary.elements[name].attributes)
        if self.is_odd(0.3):
            names.append("xml:lang")
        if self.is_odd(0.3):
            names.append("stray")
        self.random.shuffle(names)
        for attribute in names:
            written = self.written_attribute(attribute)
            if written is not None and self.random.randrange(5):
                value = self.value(is_number=self.vocabulary.is_number("@" + attribute))
                if attribute == "xml:lang":
                    value = self.random.choice(("en", "de-CH", ""))
                text += f" {written}={quoteattr(value)}"
        return text

    def value(self, *, is_number: bool) -> str:
        if self.is_odd(0.4 if is_number else 0.5):
            words = _NO_NUMBERS if self.temper.hostility < WILD else _WILD_NUMBERS
            return self.random.choice(words if is_number else _ODD_TEXTS)
        if is_number:
            return self.random.choice(_NUMBERS)
        texts = self.vocabulary.texts
        return self.random.choice(texts if self.random.randrange(2) else texts[:2])

    def characters(self, *, is_number: bool) -> str:
        """Character data in one of its notations."""
        value = self.value(is_number=is_number)
        if not self.is_odd(2.0):
            return _escaped(value)
        match self.random.randrange(6):
            case 0 if "]]>" not in value and "\r" not in value:
                return f"<![CDATA[{value}]]>"
            case 1:
                return "".join(f"&#{ord(character)};" for character in value)
            case 2:
                return _escaped(value) + self.random.choice(_MARKUP) + _escaped(value)
            case 3 if self.has_entities:
                return _escaped(value) + "&own;"
            case 4:
                return "<![CDATA[]]>" + _escaped(value)
            case _:
                return _escaped(value)


def _escaped(value: str) -> str:
    return escape(value, {"\r": "&#13;"})
