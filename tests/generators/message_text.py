"""Random messages: XML text with everything that a tree can come from.

Recursion, attributes, mixed text, CDATA sections, comments and processing instructions between
text, character references, an internal DTD subset with entities and attribute defaults, namespaces
declared anywhere.

Example:
    >>> import random
    >>> random_message(random.Random(11))
    b'<?p i?><c><c y="2"><![CDATA[2.]]><c><![CDATA[1]]></c></c></c>'

Every random choice comes from the given generator, so a seed, or Hypothesis, replays it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from generators.alphabet import ALPHABET, Alphabet


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShape:
    """What a random message may look like.

    Attributes:
        depth_max: Levels below the root.
        children_max: Children of an element, text not counted.
        has_odd_values: Whether values occur that libxml2 and XPath 1.0 read differently.
        has_dtd: Whether an internal subset with entities may occur.
        has_markup: Whether comments and processing instructions stand between elements, too, and
            `xml:lang` and attributes `i` of the type ID (`i1`, `i2`, ...) occur.
        has_defaults: Whether the internal subset may give elements attributes.
    """

    depth_max: int = 5
    children_max: int = 3
    has_odd_values: bool = False
    has_dtd: bool = True
    has_markup: bool = False
    has_defaults: bool = False


def random_message(
    random: Random, alphabet: Alphabet = ALPHABET, shape: MessageShape | None = None
) -> bytes:
    """One well-formed message, UTF-8."""
    return _Writer(random, alphabet, shape or MessageShape()).message().encode()


def in_some_encoding(random: Random, message: bytes) -> bytes:
    """A message in UTF-8, in an encoding that has its characters: 8-bit or wide, marked or not.

    Example:
        >>> in_some_encoding(Random(5), b"<a>1</a>")
        b'<?xml version="1.0" encoding="ISO-8859-1"?><a>1</a>'
    """
    text = message.decode().removeprefix('<?xml version="1.0"?>')
    codec, mark, name = random.choice(_ENCODINGS)
    declaration = f'<?xml version="1.0" encoding="{name}"?>' if name else ""
    try:
        return mark + (declaration + text).encode(codec)
    except UnicodeEncodeError:
        return message


_ENCODINGS: Final = (
    ("utf-8", b"", ""),
    ("utf-8", b"\xef\xbb\xbf", "UTF-8"),
    ("utf-16-le", b"\xff\xfe", ""),
    ("utf-16-be", b"\xfe\xff", "UTF-16"),
    ("iso-8859-1", b"", "ISO-8859-1"),
    ("iso-8859-7", b"", "ISO-8859-7"),
    ("shift_jis", b"", "Shift_JIS"),
)


class _Writer:
    def __init__(self, random: Random, alphabet: Alphabet, shape: MessageShape) -> None:
        self.random = random
        self.alphabet = alphabet
        self.shape = shape
        self.has_entity = shape.has_dtd and random.randrange(8) == 0
        self.ids: int | None = None

    def message(self) -> str:
        random = self.random
        has_ids = self.shape.has_markup and self.shape.has_dtd and random.randrange(10) == 0
        self.has_entity = self.has_entity and not has_ids
        self.ids = 0 if has_ids else None
        root, body = self.element(self.shape.depth_max, is_root=True)
        prolog = random.choice(("", "", '<?xml version="1.0"?>', "<!-- a -->\n", "<?p i?>"))
        if self.shape.has_markup and random.randrange(4) == 0:
            prolog += self.markup() + self.markup()
        declared = ""
        if has_ids:
            names = random.sample(self.alphabet.elements, 2)
            declared = "".join(f"<!ATTLIST {name} i ID #IMPLIED>" for name in names)
        elif self.has_entity:
            declared = f'<!ENTITY e "{self.entity_text()}"><!ENTITY f "2">'
        if self.shape.has_defaults and random.randrange(3) == 0:
            declared += self.defaults()
        if declared:
            prolog += f"<!DOCTYPE {root} [{declared}]>"
        tail = random.choice(("", "\n", "<!-- z -->"))
        if self.shape.has_markup and "<!--" not in prolog:
            # See "preceding-of-the-end" in `oracles.lxml_differences`.
            tail = ""
        return prolog + body + tail

    def defaults(self) -> str:
        """Attributes, namespace declarations among them, that some elements have by default."""
        random, alphabet = self.random, self.alphabet
        name = random.choice(alphabet.elements)
        declared = [
            f"{attribute} {random.choice(('CDATA', 'NMTOKENS'))} {self.quoted(self.value())}"
            for attribute in alphabet.attributes
        ]
        declared += [f'xmlns:{p} CDATA #FIXED "{uri}"' for p, uri in alphabet.namespaces.items()]
        declared.append('xml:lang CDATA "en"')
        chosen = random.sample(declared, random.randrange(1, len(declared) + 1))
        return f"<!ATTLIST {name} {' '.join(chosen)}><!-- {name} --><?p {name}?>"

    def entity_text(self) -> str:
        name = self.random.choice(self.alphabet.elements)
        return self.random.choice(("1", "u", f"<{name}>2</{name}>", f"1<{name}/>u", ""))

    def element(self, depth: int, *, is_root: bool = False) -> tuple[str, str]:
        """Name and text of an element with all its content."""
        random = self.random
        declared, name = self.name(is_root)
        start = name + declared + self.attributes()
        if depth == 0 or random.randrange(4) == 0:
            content = self.text() if random.randrange(2) else ""
        else:
            parts = []
            for _ in range(random.randrange(self.shape.children_max + 1)):
                if random.randrange(4) == 0:
                    parts.append(self.text())
                parts.append(self.element(depth - 1)[1])
                if self.shape.has_markup and random.randrange(5) == 0:
                    parts.append(self.markup())
            if random.randrange(4) == 0:
                parts.append(self.text())
            content = "".join(parts)
        if not content and random.randrange(2):
            return name, f"<{start}/>"
        return name, f"<{start}>{content}</{name}>"

    def name(self, is_root: bool) -> tuple[str, str]:
        """Namespace declarations and qualified name; prefixes are declared at the root."""
        random, alphabet = self.random, self.alphabet
        local = random.choice(alphabet.elements)
        if not alphabet.namespaces:
            return "", local
        declared = ""
        if is_root:
            declared = "".join(f' xmlns:{p}="{uri}"' for p, uri in alphabet.namespaces.items())
        if random.randrange(6) == 0:
            uri = random.choice(("", *alphabet.namespaces.values()))
            declared += f' xmlns="{uri}"'
        prefix = random.choice(("", "", *alphabet.namespaces))
        return declared, f"{prefix}:{local}" if prefix else local

    def attributes(self) -> str:
        random, alphabet = self.random, self.alphabet
        text = ""
        if self.shape.has_markup and random.randrange(6) == 0:
            text = f' xml:lang="{random.choice(("en", "en-US", "de", ""))}"'
        if self.ids is not None and random.randrange(2):
            self.ids += 1
            text += f' i="i{self.ids}"'
        for name in alphabet.attributes:
            if random.randrange(3) == 0:
                text += f" {name}={self.quoted(self.value())}"
            if alphabet.namespaces and random.randrange(6) == 0:
                prefix = random.choice(tuple(alphabet.namespaces))
                text += f" {prefix}:{name}={self.quoted(self.value())}"
        return text

    def markup(self) -> str:
        return self.random.choice(("<!--u-->", "<!-- 2 -->", "<?p 1?>", "<?q?>", "<?p  u v ?>"))

    def quoted(self, value: str) -> str:
        return quoteattr(value, {"\n": "&#10;", "é": self.random.choice(("é", "&#233;"))})

    def value(self) -> str:
        values = self.alphabet.values
        if self.shape.has_odd_values and self.random.randrange(3) == 0:
            values = self.alphabet.odd_values
        return self.random.choice(values)

    def text(self) -> str:
        """Character data in some notation, perhaps with something between."""
        random = self.random
        value = self.value()
        match random.randrange(8):
            case 0:
                return f"<![CDATA[{value}]]>"
            case 1:
                return f"{escape(value)}<!-- c -->{escape(self.value())}"
            case 2:
                return f"{escape(value)}<?p i?>"
            case 3:
                return f"<![CDATA[]]>{escape(value)}"
            case 4:
                return "".join(f"&#{ord(character)};" for character in value)
            case 5 if self.has_entity:
                return random.choice(("&e;", "&f;", f"{escape(value)}&e;&f;", "&f;&f;"))
            case _:
                return escape(value)
