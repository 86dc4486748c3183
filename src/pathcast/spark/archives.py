"""Messages that are packed together: each member of a zip or tar archive, or a .gz file, is one.

    day.zip, day.tar, day.tar.gz, day.tgz      id "day.zip!folder/1.xml"
    1.xml.gz                                   id "1.xml.gz!1.xml"

Members are read one by one and never held together. A member that is larger than a message may be
is refused: one whose header says so is not expanded, any other only so far. Folders and links are
none, and neither are members with a name, or a folder, that begins with a dot or an underscore. An
archive that cannot be read to its end, or has two members of one name, is unread as a whole.

A large zip is several units, since its members can be found without reading those before them; a
tar archive is one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Final, TypeAlias

import pyarrow as pa

from pathcast.errors import PathcastError
from pathcast.limits import MIB
from pathcast.spark.files import (
    FILE_COST_BYTES,
    FileMessage,
    FileReader,
    FoundFile,
    Unit,
    in_batches,
    read_each,
    read_parts,
    shown,
)

ZIP_UNIT_BYTES: Final = 8 * MIB
ZIP_UNITS_MAX: Final = 16
"""A zip is cut into pieces of this size at least, and no more of them: each reads its directory."""

MEMBER_COST_BYTES: Final = 1024
"""Finding a member costs about as much as so many bytes of it."""

HEADER_BYTES_MAX: Final = MIB
"""Names and attributes of a member of a tar archive that stand before it."""

DIRECTORY_BYTES_MAX: Final = 16 * MIB
"""Directory of a zip, some 150,000 members: the library holds ten times as much of it."""

MEMBERS_MAX: Final = 1_000_000
"""Members of an archive, whose names are remembered: 80 MB."""

Members: TypeAlias = Generator[FileMessage, None, None]
"""With names in the place of ids."""


@dataclass(frozen=True)
class ArchiveReader(FileReader):
    """Reads each member of an archive as a message; a larger one than allowed is refused."""

    message_bytes_max: int

    def units(self, file: FoundFile) -> list[Unit]:
        """The archive, or ranges of the members of a zip."""
        if not file.name.endswith(".zip"):
            return [Unit(file.name, file.size + FILE_COST_BYTES)]
        with self.storage.open(file.name) as handle, _opened_zip(handle) as opened:
            members = opened.infolist()
        costs = [member.file_size + MEMBER_COST_BYTES for member in members]
        aim = max(ZIP_UNIT_BYTES, sum(costs) // ZIP_UNITS_MAX)
        units: list[Unit] = []
        start = cost = 0
        for number, each in enumerate(costs):
            cost += each
            if cost >= aim or number == len(costs) - 1:
                units.append(Unit(file.name, cost, (start, number + 1, len(costs))))
                start, cost = number + 1, 0
        return units

    def read(
        self, units: Iterable[Unit], unread: dict[str, PathcastError]
    ) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Read the members of units; arguments as of `FileReader.read`."""
        singles: list[Unit] = []
        others: list[Unit] = []
        for unit in units:
            (singles if _is_single(unit.name) else others).append(unit)
        messages = read_each(singles, unread, self._single)
        for batch in in_batches(messages, self.message_bytes_max):
            yield batch, None
        yield from read_parts(others, unread, self._batches)

    def _single(self, name: str) -> FileMessage:
        """The message of a .gz file."""
        with self.storage.open(name) as handle, gzip.GzipFile(fileobj=handle) as opened:
            if not handle.read(1):
                raise EOFError("it is empty")
            handle.seek(0)
            # One byte more than allowed is enough to see that it is too large.
            content = opened.read(self.message_bytes_max + 1)
        message_id = f"{shown(name)}!{shown(PurePosixPath(name).stem)}"
        is_large = len(content) > self.message_bytes_max
        return message_id, None if is_large else content, len(content)

    def _batches(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        with self.storage.open(unit.name) as handle:
            is_zip = unit.name.endswith(".zip")
            members = self._of_zip(handle, unit) if is_zip else self._of_tar(handle, unit.name)
            with closing(members):
                named = (
                    (f"{shown(unit.name)}!{shown(name)}", c, size) for name, c, size in members
                )
                yield from in_batches(named, self.message_bytes_max)

    def _of_zip(self, handle: IO[bytes], unit: Unit) -> Members:
        start, stop, count = unit.groups
        with _opened_zip(handle) as opened:
            members = opened.infolist()
            if len(members) != count:
                raise zipfile.BadZipFile("it changed while it was read")
            # Names are of the whole archive: two of one name may be in two units.
            names = _Names()
            counts = [_is_file(member) and names.take(member.filename) for member in members]
            for number in range(start, stop):
                member, content, length = members[number], None, members[number].file_size
                if not counts[number]:
                    continue
                if length <= self.message_bytes_max:
                    content = _unpacked(opened, member)
                yield member.filename, content, length

    def _of_tar(self, handle: IO[bytes], name: str) -> Members:
        is_packed = name.endswith((".gz", ".tgz"))
        plain: IO[bytes] = gzip.GzipFile(fileobj=handle) if is_packed else handle  # type: ignore[assignment]
        source = _TarSource(plain)
        names = _Names()
        with tarfile.TarFile(fileobj=source) as opened:  # type: ignore[arg-type]
            for member in opened:
                # The library keeps every member for those who ask again.
                opened.members.clear()  # type: ignore[attr-defined]
                is_message = member.size <= self.message_bytes_max
                source.allow(HEADER_BYTES_MAX + (member.size if is_message else 0))
                if not member.isreg() or not names.take(member.name):
                    continue
                content = None
                if is_message:
                    inside = opened.extractfile(member)
                    assert inside is not None
                    content = inside.read()
                yield member.name, content, member.size
            source.check_end()


class _TarSource:
    """A tar archive as a file that is read forwards, no more than is allowed.

    `tarfile` takes a damaged header, and the lack of any, for the end of an archive, and reads what
    stands before a member (names, attributes, where a sparse one has data) however much there is.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._last = b""
        self.allow(HEADER_BYTES_MAX)

    def allow(self, size: int) -> None:
        """Allows so many bytes to be read from here on."""
        self._left = size + tarfile.RECORDSIZE

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError(
                f"more than {HEADER_BYTES_MAX:,} bytes of names or attributes before a member"
            )
        self._last = self._file.read(size)
        return self._last

    def seek(self, position: int) -> int:
        return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()

    def check_end(self) -> None:
        """That what was read last is the mark at the end, and that only zeros follow it.

        The check value of what is packed is compared on the way.
        """
        if self._last != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("it is cut short, or damaged")
        while rest := self._file.read(MIB):
            if rest.strip(b"\0"):
                raise tarfile.ReadError("something follows its end")


class _Names:
    """Names of members that were taken; a digest of each, since a name may be a megabyte."""

    def __init__(self) -> None:
        self._taken: set[bytes] = set()

    def take(self, name: str) -> bool:
        """Whether a member counts by its name.

        Raises:
            ValueError: There was one of the same name, whose id would stand for two messages; or
                there are too many.
        """
        if any(part.startswith((".", "_")) for part in name.split("/") if part not in ("", ".")):
            return False
        if not name:
            raise ValueError("a member has no name")
        digest = hashlib.blake2b(os.fsencode(name), digest_size=8).digest()
        if digest in self._taken:
            raise ValueError(f"two members have the name {shown(name)}")
        if len(self._taken) == MEMBERS_MAX:
            raise ValueError(f"it has more than {MEMBERS_MAX:,} members; pack them into several")
        self._taken.add(digest)
        return True


class _ZipSource:
    """A zip archive whose directory is bounded: the library reads all of it in one call."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self.is_listed = False

    def read(self, size: int = -1) -> bytes:
        if not self.is_listed and size > DIRECTORY_BYTES_MAX:
            raise zipfile.BadZipFile(
                f"its directory has {size:,} bytes, more than {DIRECTORY_BYTES_MAX:,}; pack its "
                "members into several archives, or into a tar archive"
            )
        return self._file.read(size)


def _opened_zip(handle: IO[bytes]) -> zipfile.ZipFile:
    """A zip archive and its members."""
    source = _ZipSource(handle)
    opened = zipfile.ZipFile(source)
    source.is_listed = True
    return opened


def _unpacked(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The content of a member, whose length and check value are those of the directory."""
    # The library gives the decompressors of bzip2 and LZMA no bound.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(
            f"{member.filename!r} is packed by method {member.compress_type}; pack it with deflate"
        )
    with opened.open(member) as inside:
        content = inside.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise zipfile.BadZipFile(f"{member.filename!r} is damaged: it is not what was packed")
    return content


def _is_single(name: str) -> bool:
    return name.endswith(".gz") and not name.endswith(".tar.gz")


def _is_file(member: zipfile.ZipInfo) -> bool:
    """Neither a folder nor a link; systems without modes leave them empty."""
    mode = member.external_attr >> 16
    return not member.filename.endswith("/") and stat.S_IFMT(mode) in (0, stat.S_IFREG)
