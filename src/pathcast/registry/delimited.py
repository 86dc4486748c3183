r"""Text files with a record a line, its fields separated by tabs or commas, quoted or not.

Spreadsheets and CSV libraries quote a field that holds a quote, a separator or a line end, and
double the quotes in it (RFC 4180); people who write such a file by hand quote nothing, and a query
of theirs may begin with a quote: `"x" = //a`. The rule that serves both: a field is quoted if it
begins with a quote and the first quote after that which is not doubled stands at the end of the
field. Every other field is text as it stands. (A query that begins with a quote has a string
first, and something after it; the string alone would be no query.)

A quote that begins the last field of one line and ends that of a later line, where every line from
the one to the other looks like a record, may be either: such lines have a *fault*.

Example:
    >>> text = 'id\tquery\nq1\t"//a[@b = ""c""]"\nq2\t"x" = //a\n'
    >>> [record.fields for record in records(text)]
    [['id', 'query'], ['q1', '//a[@b = "c"]'], ['q2', '"x" = //a']]

It knows nothing of headers, comments and what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import ConfigError

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT_BYTES = 1024
"""Where a text is in UTF-16, its NULs show in the first characters."""


class TextPlace(NamedTuple):
    """Where a text stands in a file.

    Attributes:
        path: The file.
        line: The line that it begins in, or the number of a row that is in no line, from 1.
        column: Where it begins in the line, in characters from 1; None for a row that is in none.
        is_quoted: Whether the quotes in it are doubled in the file.

    Example:
        >>> place = TextPlace("s.tsv", 3, 7)
        >>> str(place), place.at("//a[", 4)
        ('s.tsv:3', (3, 11))
    """

    path: str
    line: int
    column: int | None = 1
    is_quoted: bool = False

    def at(self, text: str, offset: int) -> tuple[int, int | None]:
        """Line and column in the file of a character of the text, counted from 0."""
        if self.column is None:
            return self.line, None
        before = text[:offset]
        start = before.rfind("\n") + 1
        doubled = before.count('"', start) if self.is_quoted else 0
        column = (1 if start else self.column) + len(before) - start + doubled
        return self.line + before.count("\n"), column

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Record(NamedTuple):
    """A record.

    Attributes:
        line: The line that it begins in, from 1.
        fields: Its fields, without the marks of quoting.
        text: All of it, as it stands in the file.
        quoted: Numbers of the quoted fields, from 0.
        fault: Why it cannot be read; None where it can.
        starts: Where in `text` each field begins, after its quote; of a record without a quote
            nothing, since its fields say it.
    """

    line: int
    fields: list[str]
    text: str
    quoted: frozenset[int] = frozenset()
    fault: str | None = None
    starts: Sequence[int] = ()

    def place(self, number: int, path: str) -> TextPlace:
        """Where a field stands in the file of this name."""
        if self.starts:
            begin = self.starts[number]
        else:
            begin = sum(len(field) + 1 for field in self.fields[:number])
        before = self.text[:begin]
        column = begin - before.rfind("\n")
        return TextPlace(path, self.line + before.count("\n"), column, number in self.quoted)


def read_text(path: Path, *, keep_bytes: bool = False) -> str:
    """The text of a file.

    Args:
        path: The file.
        keep_bytes: Bytes that are not UTF-8 become lone surrogates, which nothing takes for text:
            what they stand in can be refused alone.

    Raises:
        ConfigError: It is not UTF-8.
        OSError: The file cannot be read.
    """
    return decode(path.read_bytes(), str(path), keep_bytes=keep_bytes)


def decode(content: bytes, name: str, *, keep_bytes: bool = False) -> str:
    """The text of a file's bytes; a byte order mark is taken off.

    Args:
        content: The bytes.
        name: Of the file, for errors.
        keep_bytes: As for `read_text`.

    Raises:
        ConfigError: They are not UTF-8.
    """
    if content.startswith(_WIDE_MARKS) or b"\0" in content[:_LOOKED_AT_BYTES]:
        raise _invalid(name, "UTF-16, or no text; save it as UTF-8 (spreadsheets: CSV UTF-8)")
    try:
        return content.decode("utf-8-sig", "surrogateescape" if keep_bytes else "strict")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"not UTF-8: {error.reason} at byte {error.start}, line {line}; save it as UTF-8"
        raise _invalid(name, reason) from error


def records(text: str, delimiter: str = "\t", fields_max: int | None = None) -> Iterator[Record]:
    r"""The records of a text, in order; lines that are empty are none.

    Args:
        text: With `\n` or `\r\n` between records.
        delimiter: A character.
        fields_max: No record has more fields: the last one holds the delimiters that are left.

    Cost:
        Linear.
    """
    begin, line = 0, 1
    splits = -1 if fields_max is None else fields_max - 1
    while begin < len(text):
        end = _line_end(text, begin)
        told = text[begin:end]
        if '"' in told:
            record, end = _quoted_record(text, begin, line, delimiter, fields_max)
            yield record
            line += record.text.count("\n")
        elif told:
            yield Record(line, told.split(delimiter, splits), told)
        line += 1
        begin = end + (2 if text.startswith("\r\n", end) else 1)


def _quoted_record(
    text: str, begin: int, line: int, delimiter: str, fields_max: int | None
) -> tuple[Record, int]:
    """A record that has a quote in its first line, and where it ends."""
    fields: list[str] = []
    starts: list[int] = []
    quoted: set[int] = set()
    at, end, fault = begin, _line_end(text, begin), None
    while True:
        is_last = len(fields) + 1 == fields_max
        stop = _quoted_end(text, at, delimiter, is_last=is_last)
        if stop is None:
            stop = -1 if is_last else text.find(delimiter, at, end)
            stop = end if stop < 0 else stop
            starts.append(at - begin)
            fields.append(text[at:stop])
        else:
            if stop > end:
                fault = fault or _fault(text, begin, at, stop, delimiter)
                end = _line_end(text, stop)
            quoted.add(len(fields))
            starts.append(at + 1 - begin)
            fields.append(text[at + 1 : stop - 1].replace('""', '"'))
        if stop == end:
            whole = text[begin:end]
            return Record(line, fields, whole, frozenset(quoted), fault, starts), end
        at = stop + len(delimiter)


def _fault(text: str, begin: int, at: int, stop: int, delimiter: str) -> str | None:
    """Why a quoted field of several lines may be several records, where it may."""
    rows = [line.split(delimiter) for line in text[begin:stop].splitlines()]
    is_last = delimiter not in text[at : _line_end(text, at)]
    width = len(rows[0])
    if width == 1 or not is_last or any(len(row) != width or not all(row) for row in rows):
        return None
    return (
        f"a quote begins the last field here and ends that of line +{len(rows) - 1}: if it is a "
        "quoted field, put all of the record on one line; if not, quote the field and double the "
        "quotes in it"
    )


def _quoted_end(text: str, at: int, delimiter: str, *, is_last: bool) -> int | None:
    """Where a quoted field that begins at `at` ends, after its quote; None where none begins."""
    if not text.startswith('"', at):
        return None
    close = text.find('"', at + 1)
    while close >= 0 and text.startswith('"', close + 1):
        close = text.find('"', close + 2)
    stop = close + 1
    if close < 0:
        return None
    is_end = stop == len(text) or text.startswith(("\n", "\r\n"), stop)
    return stop if is_end or (not is_last and text.startswith(delimiter, stop)) else None


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def _invalid(name: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=name, reason=reason)
