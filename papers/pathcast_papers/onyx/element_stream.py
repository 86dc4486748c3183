"""Element streams: a message in items that say what they are, and stand for its text byte for byte.

A *number* is unsigned, below 2^32, seven bits a byte, lowest first; the highest bit is set in all
bytes but the last, and only the shortest form is read. A stream is a byte 1 (all names are in it)
or 2 and the eight bytes of a dictionary's version; the number of bytes of the text; and items. An
item begins with a number, whose lowest three bits are the kind and whose other bits are n:

| kind | item | text |
|---|---|---|
| 0 | n bytes of character data, then the end of the innermost open element | them, `</name>` |
| 1 | n bytes of character data, at least 1 | them |
| 2 | n bytes with references, sections, comments, instructions; the prolog; the epilog | them |
| 3, 4 | start tag with the name n; 4: the number of its attributes, and each | `<name a="v">` |
| 5, 6 | empty-element tag with the name n, likewise | `<name a="v"/>` |
| 7 | n bytes that are a tag written in any other way | them |

An attribute is a name (a number), a number whose lowest bit is 1 for `'` and 0 for `"` and whose
other bits are the length of the value, and the value. A name is 0, a number of bytes and the bytes,
for a new one; or its number: those of the dictionary from 1 on, then new ones in their order. No
run (0 with text, 1, 2) follows another of kind 1 or 2, so a text has one stream with a dictionary.

Example:
    >>> message = b'<order no="7"><item>tea</item><item>jam</item></order>'
    >>> stream = encode_stream(message)
    >>> stream is not None and decode_stream(stream) == message
    True

It puts the text together and leaves it to the parser to say what is wrong with that, so it takes
streams whose items are cut at odd places.

Source: 001, 4.3.2.
"""

from __future__ import annotations

import re
from typing import Final
from xml.parsers import expat

from pathcast.errors import LimitExceededError, MessageError
from pathcast.limits import Limits
from pathcast_papers.message.decoding import decode_message
from pathcast_papers.onyx.dictionaries import VERSION_BYTES, Dictionaries, Dictionary
from pathcast_papers.onyx.wire_fault import WireFormatError

IN_BAND: Final = 1
WITH_DICTIONARY: Final = 2

_TEXT_END, _TEXT, _RAW, _START, _START_ATTRIBUTES, _EMPTY, _EMPTY_ATTRIBUTES, _TAG = range(8)

_NAME: Final = rb"[-.0-:@-\xff]+"
_VALUE: Final = rb"(?:\"[^\"]*\"|'[^']*')"
_PLAIN_TAG: Final = re.compile(b"<(%s)((?: %s=%s)*)(/?)>" % (_NAME, _NAME, _VALUE))
_ANY_TAG: Final = re.compile(b"<(%s)(?:[^>\"']|%s)*>" % (_NAME, _VALUE))
_ATTRIBUTE: Final = re.compile(b" (%s)=(%s)" % (_NAME, _VALUE))
_MARKUP: Final = re.compile(rb"<!--.*?-->|<!(?!--).*?\]\]>|<\?.*?\?>", re.DOTALL)


def is_stream(message: bytes) -> bool:
    """Whether a message begins as a stream does, and no XML document."""
    return message[:1] in (b"\x01", b"\x02")


def encode_stream(message: bytes, dictionary: Dictionary | None = None) -> bytes | None:
    """The stream of a message; None if there is none or it would not be shorter.

    Args:
        message: As it was published.
        dictionary: Names that its reader knows by number.
    """
    try:
        decoded = decode_message(message)
        if decoded.codec not in ("utf-8", "us-ascii") or decoded.mark:
            return None
        stream = _Writer(message, dictionary).write()
    except (MessageError, _NoStreamError, expat.ExpatError):
        return None
    return stream if len(stream) < len(message) else None


class _NoStreamError(Exception):
    """A message cannot be cut into items."""


class _Writer:
    """One message on its way into a stream."""

    def __init__(self, message: bytes, dictionary: Dictionary | None) -> None:
        self._text = message
        names = () if dictionary is None else dictionary.names
        self._numbers = {name.encode(): number for number, name in enumerate(names, 1)}
        self._out = bytearray([IN_BAND])
        if dictionary is not None:
            self._out[:] = bytes([WITH_DICTIONARY]) + dictionary.version
        self._out += _number(len(message))
        self._open: list[bytes] = []

    def write(self) -> bytes:
        root = _root_start(self._text)
        self._run(_RAW, self._text[:root])
        at = self._start_tag(root)
        while self._open:
            at = self._content(at)
        self._run(_RAW, self._text[at:])
        return bytes(self._out)

    def _run(self, kind: int, run: bytes) -> None:
        if run:
            self._out += _number(len(run) << 3 | kind) + run

    def _content(self, start: int) -> int:
        text, at, is_plain = self._text, start, True
        while True:
            tag = text.find(b"<", at)
            if tag < 0:
                raise _NoStreamError
            if text[tag + 1 : tag + 2] not in (b"!", b"?"):
                break
            markup = _MARKUP.match(text, tag)
            if markup is None:
                raise _NoStreamError
            at, is_plain = markup.end(), False
        run = text[start:tag]
        is_plain = is_plain and b"&" not in run and b"]]>" not in run
        if text[tag + 1 : tag + 2] != b"/":
            self._run(_TEXT if is_plain else _RAW, run)
            return self._start_tag(tag)
        end = b"</" + self._open.pop() + b">"
        if not text.startswith(end, tag):
            raise _NoStreamError
        if is_plain:
            self._out += _number(len(run) << 3 | _TEXT_END) + run
        else:
            self._run(_RAW, run)
            self._out += _number(_TEXT_END)
        return tag + len(end)

    def _start_tag(self, at: int) -> int:
        tag = _PLAIN_TAG.match(self._text, at)
        if tag is None:
            tag = _ANY_TAG.match(self._text, at)
            if tag is None:
                raise _NoStreamError
            self._run(_TAG, tag[0])
            is_empty = tag[0].endswith(b"/>")
        else:
            attributes = _ATTRIBUTE.findall(tag[2])
            is_empty = tag[3] == b"/"
            self._name(tag[1], 3, (_EMPTY if is_empty else _START) + bool(attributes))
            if attributes:
                self._out += _number(len(attributes))
            for name, value in attributes:
                self._name(name, 0, 0)
                is_single = value[:1] == b"'"
                self._out += _number((len(value) - 2) << 1 | is_single) + value[1:-1]
        if not is_empty:
            self._open.append(tag[1])
        return tag.end()

    def _name(self, name: bytes, bits: int, kind: int) -> None:
        number = self._numbers.get(name)
        if number is None:
            self._numbers[name] = len(self._numbers) + 1
            self._out += _number(kind) + _number(len(name)) + name
        else:
            self._out += _number(number << bits | kind)


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _root_start(text: bytes) -> int:
    """Where the root element begins."""
    found: list[int] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda *_: found.append(parser.CurrentByteIndex)
    try:
        parser.Parse(text, True)
    except expat.ExpatError:
        if not found:
            raise
    return found[0]


def decode_stream(
    stream: bytes, known: Dictionaries | None = None, limits: Limits | None = None
) -> bytes:
    """The message that a stream stands for.

    Args:
        stream: The stream.
        known: Dictionaries that it may name.
        limits: How long the message may be.

    Raises:
        WireFormatError: It is no stream, or names a dictionary that is not known.
        LimitExceededError: It says that the message is longer than it may be.
        EncodingError: The text is not UTF-8.
    """
    text = _Reader(stream, known or Dictionaries()).read((limits or Limits()).message_bytes_max)
    decode_message(text, "UTF-8")
    return text


class _Reader:
    """One stream on its way into a text."""

    def __init__(self, stream: bytes, known: Dictionaries) -> None:
        self._stream = stream
        self._at = 1
        self._names: list[bytes] = []
        if stream[:1] == bytes([WITH_DICTIONARY]):
            version = self._run(VERSION_BYTES)
            dictionary = known.get(version)
            if dictionary is None:
                raise WireFormatError(f"no dictionary of version {version.hex()} is known", 1)
            self._names = [name.encode() for name in dictionary.names]
        elif stream[:1] != bytes([IN_BAND]):
            raise WireFormatError("the stream has a first byte that is no stream's", 0)

    def read(self, bytes_max: int) -> bytes:
        length = self._number()
        if max(length, len(self._stream)) > bytes_max:
            raise LimitExceededError(
                "limit.message_bytes",
                limit="message_bytes_max",
                given=max(length, len(self._stream)),
                maximum=bytes_max,
                line=1,
                column=1,
                offset=0,
            )
        out = bytearray()
        opened: list[bytes] = []
        was_run = False
        while self._at < len(self._stream):
            start = self._at
            n, kind = divmod(self._number(), 8)
            is_run = kind in (_TEXT, _RAW) or (kind == _TEXT_END and n > 0)
            if is_run and (n == 0 or was_run):
                raise WireFormatError("the stream has a run of text that follows another", start)
            was_run = kind in (_TEXT, _RAW)
            if kind in (_TEXT_END, _TEXT, _RAW):
                out += self._run(n)
            elif kind == _TAG:
                tag = self._run(n)
                found = re.match(b"<(%s|)" % _NAME, tag)
                if found is None:
                    raise WireFormatError(
                        'the stream has a tag that does not begin with "<"', start
                    )
                out += tag
                if not tag.endswith(b"/>"):
                    opened.append(found[1])
            else:
                out += self._tag(kind, n, start, opened)
            if kind == _TEXT_END:
                if not opened:
                    raise WireFormatError("the stream has an end, and no element is open", start)
                out += b"</" + opened.pop() + b">"
            if len(out) > length:
                raise _wrong_length(len(out), length, start)
        if len(out) != length:
            raise _wrong_length(len(out), length, self._at)
        return bytes(out)

    def _tag(self, kind: int, n: int, start: int, opened: list[bytes]) -> bytes:
        name = self._name(n, start)
        out = b"<" + name
        if kind in (_START_ATTRIBUTES, _EMPTY_ATTRIBUTES):
            count = self._number()
            if count == 0:
                raise WireFormatError("the stream has a tag with attributes that has none", start)
            for _ in range(count):
                at = self._at
                attribute = self._name(self._number(), at)
                length, is_single = divmod(self._number(), 2)
                quote = b"'" if is_single else b'"'
                out += b" " + attribute + b"=" + quote + self._run(length) + quote
        if kind >= _EMPTY:
            return out + b"/>"
        opened.append(name)
        return out + b">"

    def _name(self, n: int, at: int) -> bytes:
        if n == 0:
            self._names.append(self._run(self._number()))
            return self._names[-1]
        if n > len(self._names):
            raise WireFormatError(f"name number {n} of {len(self._names)} is asked for", at)
        return self._names[n - 1]

    def _run(self, length: int) -> bytes:
        run = self._stream[self._at : self._at + length]
        if len(run) < length:
            missing = length - len(run)
            reason = f"the stream ends {missing} bytes before something does"
            raise WireFormatError(reason, len(self._stream))
        self._at += length
        return run

    def _number(self) -> int:
        start, value = self._at, 0
        for shift in range(0, 35, 7):
            [byte] = self._run(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if (byte == 0 and shift) or value >= 1 << 32:
                    break
                return value
        raise WireFormatError("a number is not in its shortest form, or above 4294967295", start)


def _wrong_length(given: int, expected: int, offset: int) -> WireFormatError:
    reason = f"the message has {given} bytes so far, and {expected} are announced"
    return WireFormatError(reason, offset)
