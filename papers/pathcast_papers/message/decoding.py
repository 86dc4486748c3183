r"""Bytes to text: which encoding a message is in, and whether it says the truth about it.

The caller's word goes before the byte order mark, that before the declaration. A declaration that
names another encoding than the one the bytes are in is an error, unless the caller has overruled it
(XML 1.0, 4.3.3 and appendix F).

Example:
    >>> decode_message(b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>").text[-5:]
    'é</a>'

It does not read the declaration beyond the name of the encoding; that is the parser's part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pathcast.errors import EncodingError

_DECLARATION: Final = re.compile(
    rb"<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:'[^'<&>]*'|\"[^\"<&>]*\")"
    rb"[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:'([A-Za-z][\w.-]*)'|\"([A-Za-z][\w.-]*)\")",
    re.ASCII,
)

_ALIASES: Final = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
    "utf-16": "utf-16 iso-10646-ucs-2 ucs-2 unicode csunicode",
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
    "us-ascii": "us-ascii ascii ansi_x3.4-1968",
    "iso-8859-1": "iso-8859-1 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 latin1 latin-1 l1 "
    "iso-ir-100 cp819 ibm819 csisolatin1",
    "iso-8859-2": "iso-8859-2 iso8859-2 iso_8859-2 latin2 l2",
    "iso-8859-3": "iso-8859-3 iso8859-3 iso_8859-3 latin3 l3",
    "iso-8859-4": "iso-8859-4 iso8859-4 iso_8859-4 latin4 l4",
    "iso-8859-5": "iso-8859-5 iso8859-5 iso_8859-5 cyrillic",
    "iso-8859-6": "iso-8859-6 iso8859-6 iso_8859-6 arabic",
    "iso-8859-7": "iso-8859-7 iso8859-7 iso_8859-7 greek greek8",
    "iso-8859-8": "iso-8859-8 iso8859-8 iso_8859-8 hebrew",
    "iso-8859-9": "iso-8859-9 iso8859-9 iso_8859-9 latin5 l5",
    "iso-8859-10": "iso-8859-10 iso8859-10 latin6 l6",
    "iso-8859-11": "iso-8859-11 iso8859-11 tis-620",
    "iso-8859-13": "iso-8859-13 iso8859-13",
    "iso-8859-14": "iso-8859-14 iso8859-14",
    "iso-8859-15": "iso-8859-15 iso8859-15 iso_8859-15 latin-9 l9",
    "iso-8859-16": "iso-8859-16",
    "windows-1250": "windows-1250 cp1250 x-cp1250",
    "windows-1251": "windows-1251 cp1251 x-cp1251",
    "windows-1252": "windows-1252 cp1252 x-cp1252",
    "windows-1253": "windows-1253 cp1253 x-cp1253",
    "windows-1254": "windows-1254 cp1254 x-cp1254",
    "windows-1255": "windows-1255 cp1255 x-cp1255",
    "windows-1256": "windows-1256 cp1256 x-cp1256",
    "windows-1257": "windows-1257 cp1257 x-cp1257",
    "windows-1258": "windows-1258 cp1258 x-cp1258",
    "cp874": "windows-874",
    "koi8-r": "koi8-r koi8 koi",
    "koi8-u": "koi8-u",
    "mac-roman": "macintosh mac x-mac-roman",
    "cp866": "ibm866 cp866 866",
    "gbk": "gbk gb2312 gb_2312-80 chinese x-gbk",
    "gb18030": "gb18030",
    "big5hkscs": "big5 big5-hkscs cn-big5",
    "euc-jp": "euc-jp x-euc-jp",
    "iso-2022-jp": "iso-2022-jp",
    "cp932": "shift_jis shift-jis sjis windows-31j ms_kanji x-sjis ms932",
    "cp949": "euc-kr windows-949 korean ks_c_5601-1987",
}
_CODECS: Final = {label: codec for codec, labels in _ALIASES.items() for label in labels.split()}
_WIDE: Final = ("utf-16", "utf-16-le", "utf-16-be")

_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\x00<", "utf-32"),
    (b"<\x00\x00\x00", "utf-32"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\x4c\x6f\xa7\x94", "ebcdic"),
)


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """The text of a message.

    Attributes:
        text: Without the byte order mark.
        codec: How it was decoded.
        mark: Bytes of the byte order mark.
        is_given: The caller has said the encoding, so the declaration has no say.
    """

    text: str
    codec: str
    mark: int
    is_given: bool

    def offset(self, characters: int) -> int:
        """Byte of the message where a character of the text begins."""
        # Characters that windows-1252 does not have were single bytes it does not have either.
        return self.mark + len(self.text[:characters].encode(self.codec, "replace"))


def decode_message(message: bytes, encoding: str | None = None) -> DecodedMessage:
    """Decodes a message.

    Args:
        message: The bytes as they arrived.
        encoding: What the caller knows of the encoding.

    Raises:
        EncodingError: Unknown encoding, bytes that are not text in it, or a false declaration.
    """
    if encoding is not None:
        codec = _codec(encoding, 0)
        mark = next((m for m, of in _MARKS if message.startswith(m) and _is_of(of, codec)), b"")
        if codec == "utf-16":
            codec = _order(message, mark)
        text = _decode(message[len(mark) :], codec, len(mark))
        return DecodedMessage(text, codec, len(mark), True)
    for mark, codec in _MARKS:
        if message.startswith(mark):
            if codec in ("utf-32", "ebcdic"):
                raise _unknown(codec.upper(), 0)
            text = _decode(message[len(mark) :], codec, len(mark))
            return DecodedMessage(text, codec, len(mark), False)
    if message[:2] in (b"\x00<", b"<\x00"):
        codec = "utf-16-be" if message.startswith(b"\x00") else "utf-16-le"
        return DecodedMessage(_decode(message, codec, 0), codec, 0, False)
    found = _DECLARATION.match(message)
    codec = "utf-8"
    if found:
        place = found.start(found.lastindex or 1)
        label = (found[1] or found[2]).decode("ascii")
        codec = _codec(label, place)
        if codec in _WIDE:
            raise _mismatch(label, "an encoding of 8-bit units", place, place)
    return DecodedMessage(_decode(message, codec, 0), codec, 0, False)


def check_declared(label: str, decoded: DecodedMessage) -> None:
    """Checks what a declaration says against the encoding that the message is in.

    Raises:
        EncodingError: They do not agree.
    """
    if decoded.is_given:
        return
    declared = _CODECS.get(label.lower())
    if declared == decoded.codec or (declared == "utf-16" and decoded.codec in _WIDE):
        return
    place = decoded.text.find(label)
    raise _mismatch(label, decoded.codec.upper(), place, decoded.offset(place))


def _is_of(of: str, codec: str) -> bool:
    return of == codec or (codec == "utf-16" and of in _WIDE)


def _order(message: bytes, mark: bytes) -> str:
    if mark:
        return "utf-16-be" if mark == b"\xfe\xff" else "utf-16-le"
    return "utf-16-le" if message[1:2] == b"\x00" else "utf-16-be"


def _codec(label: str, place: int) -> str:
    codec = _CODECS.get(label.strip().lower())
    if codec is None:
        raise _unknown(label, place)
    return codec


def _decode(body: bytes, codec: str, mark: int) -> str:
    try:
        return body.decode(codec)
    except UnicodeDecodeError as error:
        if codec == "windows-1252":
            return _decode_windows_1252(body)
        before = body[: error.start].decode(codec, "replace")
        line, column = line_and_column(before)
        raise EncodingError(
            "encoding.invalid",
            line=line,
            column=column,
            offset=mark + error.start,
            encoding=codec.upper(),
        ) from None


def _decode_windows_1252(body: bytes) -> str:
    # Bytes that the code page leaves unassigned are the C1 controls of the same number, as the web
    # has it.
    return "".join(
        chr(byte) if byte in _UNASSIGNED_1252 else bytes([byte]).decode("windows-1252")
        for byte in body
    )


_UNASSIGNED_1252: Final = frozenset(b"\x81\x8d\x8f\x90\x9d")


def line_and_column(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows a text."""
    ends = re.split(r"\r\n|\r|\n", before)
    return len(ends), len(ends[-1]) + 1


def _unknown(label: str, place: int) -> EncodingError:
    return EncodingError("encoding.unknown", line=1, column=place + 1, offset=place, encoding=label)


def _mismatch(declared: str, found: str, place: int, offset: int) -> EncodingError:
    return EncodingError(
        "encoding.mismatch",
        line=1,
        column=place + 1,
        offset=offset,
        declared=declared,
        found=found,
    )
