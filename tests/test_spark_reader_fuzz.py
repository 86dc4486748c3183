"""Damaged files of every kind of source: a dead letter at most, the neighbours delivered.

Mutations of real files: bits flipped, pieces cut out, repeated, filled with one byte, or taken from
another file. Whatever comes of one, the reader says it in `unread` and goes on, and what it gives
has the columns that were promised. PATHCAST_NIGHTLY=<seconds> makes the nightly run longer; each
failure shows the seed that repeats it.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from oracles import missing_reason
from pathcast.errors import ConfigError, PathcastError
from pathcast.limits import Limits
from pathcast.records import Splitter, record_path
from pathcast.spark import schemas
from pathcast.spark.archives import ArchiveReader
from pathcast.spark.files import DirectoryReader, FileReader, FoundFile
from pathcast.spark.outputs import read_output
from pathcast.spark.parquet import ParquetReader, columns_of
from pathcast.spark.records import RecordReader
from pathcast.spark.sources import passed_columns, units_of
from pathcast.spark.storage import Storage
from test_spark_bad_files import deliver, outcome, parquet_of, zip_of

MIB: Final = 1 << 20
BYTES_MAX: Final = 100_000
HELD_BYTES_MAX: Final = 400 << 20
"""A process that has read nothing takes 150 MB."""

EXTRA: Final = pa.schema([pa.field("region", pa.string()), pa.field("tags", pa.list_(pa.string()))])


def members(seed: int) -> dict[str, bytes]:
    chance = random.Random(seed)
    texts = [chance.randbytes(chance.randint(0, 300)).hex() for _ in range(chance.randint(1, 12))]
    return {f"{n}.xml": f"<m><a n='{n}'/>{text}</m>".encode() for n, text in enumerate(texts)}


def tar_of(seed: int, mode: Any) -> bytes:
    target = io.BytesIO()
    formats = (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)
    with tarfile.open(fileobj=target, mode=mode, format=formats[seed % 3]) as opened:
        for name, content in members(seed).items():
            member = tarfile.TarInfo(name * (40 if seed % 4 == 3 and seed % 3 < 2 else 1))
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


def parquet(seed: int) -> bytes:
    chance = random.Random(seed)
    chosen = members(seed)
    count = len(chosen)
    table = pa.table(
        {
            "message_id": list(chosen),
            "message": pa.array(list(chosen.values()), chance.choice([pa.binary(), pa.string()])),
            "region": [chance.choice(["n", "s", None]) for _ in range(count)],
            "tags": [chance.choice([["x"], [], None, ["y", "z"]]) for _ in range(count)],
        }
    )
    target = io.BytesIO()
    pq.write_table(
        table,
        target,
        row_group_size=chance.choice([2, 100]),
        compression=chance.choice(["none", "snappy", "zstd", "gzip", "brotli", "lz4"]),
        use_dictionary=chance.random() < 0.5,
        data_page_version=chance.choice(["1.0", "2.0"]),
        data_page_size=chance.choice([200, MIB]),
        store_schema=chance.random() < 0.7,
        write_page_index=chance.random() < 0.5,
    )
    return target.getvalue()


def records(seed: int) -> bytes:
    body = b"<!-- c --><![CDATA[x]]>".join(members(seed).values())
    return b"<?xml version='1.0'?><r xmlns='u'>" + body + b"</r>"


def zstandard(content: bytes) -> bytes:
    codec = pa.Codec("zstd")
    return bytes(codec.compress(content, asbytes=True))


METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

FILES: Final[Mapping[str, Callable[[int], bytes]]] = {
    "a.xml": lambda seed: next(iter(members(seed).values())),
    "a.parquet": parquet,
    "a.zip": lambda seed: zip_of(members(seed), METHODS[seed % 2]),
    "a.tar": lambda seed: tar_of(seed, "w"),
    "a.tgz": lambda seed: tar_of(seed, "w:gz"),
    "a.gz": lambda seed: gzip.compress(next(iter(members(seed).values()))),
    "r.xml": records,
    "r.xml.gz": lambda seed: gzip.compress(records(seed)),
    "r.xml.zst": lambda seed: zstandard(records(seed)),
}


def reader_of(root: Path, name: str) -> FileReader:
    storage = Storage(root)
    if name == "a.xml":
        return DirectoryReader(storage, BYTES_MAX)
    if name == "a.parquet":
        return ParquetReader(storage, "message", "message_id", 64 * MIB, extra=EXTRA)
    if name.startswith("r."):
        limits = Limits(message_bytes_max=BYTES_MAX)
        return RecordReader(storage, Splitter(record_path("/u:r/u:m", {"u": "u"}), limits), 300)
    return ArchiveReader(storage, BYTES_MAX)


def mutated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """A file with one to four faults."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        if not found:
            break
        at = chance.randrange(len(found))
        # Headers and footers are where a byte means most.
        if chance.random() < 0.4:
            at = chance.choice([at % 64, len(found) - 1 - at % min(len(found), 200)])
            at = min(max(at, 0), len(found) - 1)
        size = chance.choice([1, 2, 4, 8, 64, 500])
        match chance.randrange(8):
            case 0 | 1:
                found[at] ^= 1 << chance.randrange(8)
            case 2:
                found[at : at + size] = bytes([chance.choice([0, 0xFF, 0x7F, 0x80])]) * size
            case 3:
                found[at : at + size] = chance.randbytes(size)
            case 4:
                del found[at:]
            case 5:
                del found[at : at + size]
            case 6:
                found[at:at] = found[at : at + size]
            case 7:
                place = chance.randrange(len(other))
                found[at : at + size] = other[place : place + size]
    return bytes(found)


def read_all(reader: FileReader, name: str, size: int) -> tuple[int, dict[str, PathcastError]]:
    """Rows of a file, and why it was unread; whatever comes has the columns that were promised."""
    unread: dict[str, PathcastError] = {}
    rows = 0
    names = [*schemas.SOURCE.names, *reader.extra.names]
    for batch, file in reader.read(units_of(reader, [FoundFile(name, size, 1)], unread), unread):
        assert batch.schema.names[: len(names)] == names or name.startswith("r.")
        batch.validate(full=True)
        assert file in (None, name)
        rows += len(batch)
    for error in unread.values():
        assert error.message.encode()
    return rows, unread


def one(root: Path, name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    whole, other = FILES[name](seed % 50), FILES[chance.choice(list(FILES))](seed % 50 + 1)
    content = mutated(whole, other, chance)
    (root / name).write_bytes(content)
    try:
        read_all(reader_of(root, name), name, len(content))
        if name == "a.parquet":
            there = [FoundFile(name, len(content), 1)]
            with suppress(ConfigError):
                passed_columns(
                    ("region",),
                    lambda: columns_of(Storage(root), there, ("region",)),
                    None,
                    "delta",
                )
    except BaseException:
        print(f"seed {seed} of {name}", file=sys.stderr)
        raise


def available() -> list[str]:
    has_kernel = missing_reason("kernel") is None
    return [name for name in FILES if has_kernel or not name.startswith("r.")]


@pytest.mark.parametrize("name", available())
def test_files_as_they_were_written_are_read(tmp_path: Path, name: str) -> None:
    for seed in range(12):
        content = FILES[name](seed)
        (tmp_path / name).write_bytes(content)
        rows, unread = read_all(reader_of(tmp_path, name), name, len(content))
        assert rows
        assert not unread


@pytest.mark.parametrize("name", available())
def test_damaged_files_are_told_and_nothing_else(tmp_path: Path, name: str) -> None:
    for seed in range(60):
        one(tmp_path, name, seed)


def test_damage_that_ended_the_process_of_a_reader(tmp_path: Path) -> None:
    # Sizes of levels in the footer that are not those of the column: the library checks them where
    # nothing catches what it throws, if it is asked for a column chunk before it has read one.
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import test_spark_reader_fuzz as fuzz\n"
        "for seed in range(1795467650, 1795467670):\n"
        "    fuzz.one(Path(sys.argv[2]), 'a.parquet', seed)\n"
    )
    call = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def seconds() -> float:
    return float(os.environ.get("PATHCAST_NIGHTLY", "120"))


RUN = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_spark_reader_fuzz as fuzz
end, seed = time.monotonic() + float(sys.argv[4]), int(sys.argv[5])
while time.monotonic() < end:
    print(seed, file=open(sys.argv[2] + "/seed", "w"))
    fuzz.one(Path(sys.argv[2]), sys.argv[3], seed)
    seed += 1
status = Path("/proc/self/status").read_text()
print(seed, next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("name", available())
def test_damaged_files_for_a_long_time(tmp_path: Path, name: str) -> None:
    # In a process of its own: a fault of a library may end it, and its memory is looked at.
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is told in /proc alone")
    first = int(time.time()) if "PATHCAST_NIGHTLY" in os.environ else 1000
    share = str(seconds() / len(available()))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(Path(__file__).parent), str(tmp_path), name, share,
         str(first)],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, (
        f"seed {(tmp_path / 'seed').read_text()} of {name}: {done.returncode}\n{done.stderr}"
    )
    last, peak = map(int, done.stdout.split())
    assert last > first + 10
    assert peak * 1024 < HELD_BYTES_MAX


KINDS: Final = {
    "a.xml": "directory",
    "a.parquet": "parquet",
    "a.zip": "archive",
    "a.tgz": "archive",
    "r.xml": "records",
}


def neighbours(name: str) -> Iterator[tuple[str, bytes]]:
    """Two good files of the same kind, before and after."""
    ending = name.partition(".")[2]
    for stem in ("0", "z"):
        if name == "a.parquet":
            table = {"message_id": [f"{stem}.parquet"], "message": [b"<m><a/></m>"]}
            yield f"{stem}.{ending}", parquet_of({**table, "region": ["n"], "tags": [["x"]]})
        elif name == "r.xml":
            yield f"{stem}.{ending}", b"<r xmlns='u'><m><a/></m></r>"
        else:
            yield f"{stem}.{ending}", FILES[name](0)


@pytest.mark.parametrize("format", ["parquet", "jsonl", "delta"])
@pytest.mark.parametrize("name", [name for name in KINDS if name in available()])
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 12))]
)
def test_neighbours_of_damaged_files_are_delivered(
    tmp_path: Path, name: str, format: str, seed: int
) -> None:
    if format == "delta":
        pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    (tmp_path / "in").mkdir()
    overrides = [f"output.format={format}"]
    if name == "a.parquet":
        overrides.append('source.columns=["region", "tags"]')
    if name == "r.xml":
        overrides += ["source.record=/u:r/u:m", "source.record_namespaces.u=u"]
        overrides.append("subscriptions.namespaces={'' = 'u'}")
    (tmp_path / "good").mkdir()
    for file, content in neighbours(name):
        for folder in ("in", "good"):
            (tmp_path / folder / file).write_bytes(content)
    chance = random.Random(f"{name} {seed}")
    for number in range(8):
        content = mutated(FILES[name](number), FILES["a.zip"](number), chance)
        (tmp_path / "in" / f"bad{number}{Path(name).suffix}").write_bytes(content)
    kind = KINDS[name]
    deliver(tmp_path, kind, *overrides, "source.path=good", "output.path=alone")
    deliver(tmp_path, kind, *overrides)
    alone = read_output(tmp_path / "alone", "inboxes").column("message_id").to_pylist()
    assert len(alone) >= 2
    got, _ = outcome(tmp_path)
    assert all(got[message_id] for message_id in alone), f"seed {seed}"
    assert deliver(tmp_path, kind, *overrides).messages == 0
