"""What commands take for messages and queries: whatever a pipeline reads, pipes, standard input.

If one of these failed, a file that a pipeline delivers could not be tried on the command line, or a
command would wait for ever for a pipe that it found.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from command_line import run_command
from pathcast.cli.clients import publish_files
from pathcast.cli.exits import ExitCode
from pathcast.cli.messages import PACKED_SUFFIXES, read_messages
from pathcast.errors import LimitExceededError, UnreadableMessageError
from pathcast.limits import Limits
from pathcast.spark.sources import PATTERNS

Call = Callable[..., Result]

GOOD = b"<a><b>1</b></a>"
BAD = b"<a><b>"
LONG = b"<a>" + 90 * b" " + b"<b/></a>"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in this process."""

    return run_command


@pytest.fixture
def unblocked() -> Iterator[Callable[[Path], None]]:
    """Makes a pipe whose readers come to an end, so that a test of who reads it does not hang."""
    pipes: list[Path] = []
    is_over = threading.Event()

    def release() -> None:
        while not is_over.wait(0.05):
            for pipe in pipes:
                # Fails while nobody reads.
                with contextlib.suppress(OSError):
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=release)
    thread.start()

    def make(path: Path) -> None:
        os.mkfifo(path)
        pipes.append(path)

    yield make
    is_over.set()
    thread.join()


@contextlib.contextmanager
def pipe_of(content: bytes) -> Iterator[str]:
    """The name of a pipe that gives this and ends, as the shell's <(...) makes one."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with messages of every kind, some of which cannot be used; and queries beside it."""
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.xml").write_bytes(GOOD)
    (folder / "sub" / "c.XML").write_bytes(BAD)
    (folder / "._a.xml").write_bytes(b"hidden")
    (folder / "notes.txt").write_bytes(b"no message")
    rows = {"message_id": ["m1", "m2", "m3", None], "message": [GOOD, None, BAD, GOOD]}
    pq.write_table(pa.table(rows), folder / "p.parquet")
    pq.write_table(pa.table({"id": ["m1"], "message": [GOOD]}), folder / "old.parquet")
    with zipfile.ZipFile(folder / "day.zip", "w") as archive:
        archive.writestr("x/1.xml", GOOD)
        archive.writestr("2.xml", LONG)
    (folder / "g.xml.gz").write_bytes(gzip.compress(GOOD))
    (folder / "torn.zip").write_bytes(b"PK")
    (tmp_path / "q.txt").write_text("//b\n")
    return tmp_path


def told(result: Result) -> dict[str, Any]:
    """Name of a message -> ids of queries, or the code of the error."""
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len({row["message"] for row in rows}) == len(rows)
    return {
        row["message"]: row["error"]["code"] if row["error"] else row["matches"] for row in rows
    }


def test_packed_files_are_those_that_pipelines_take_for_such() -> None:
    patterns = [pattern for kind in ("parquet", "archive") for pattern in PATTERNS[kind]]
    assert patterns
    for pattern in patterns:
        assert pattern.removeprefix("*") in PACKED_SUFFIXES
    assert all(any(fnmatch(f"x{end}", each) for each in patterns) for end in PACKED_SUFFIXES)


def test_a_folder_of_all_kinds(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    result = call("match", "--queries", "q.txt", "--limit", "message_bytes_max=90", "in")
    found = told(result)
    # The second row is null; the fourth has no id, and is called by its digest.
    digest = next(name for name in found if len(name) == len("in/p.parquet!") + 32)
    assert found == {
        "in/a.xml": ["1"],
        "in/sub/c.XML": "xml.end",
        "in/p.parquet!m1": ["1"],
        "in/p.parquet!m2": "message.unreadable",
        "in/p.parquet!m3": "xml.end",
        digest: ["1"],
        "in/old.parquet": "message.unreadable",
        "in/day.zip!x/1.xml": ["1"],
        "in/day.zip!2.xml": "limit.message_bytes",
        "in/g.xml.gz!g.xml": ["1"],
        "in/torn.zip": "message.unreadable",
    }
    assert result.exit_code == ExitCode.REFUSED
    # Named one by one they are the same; so is a file: URL.
    names = ["in/a.xml", "in/p.parquet", "in/day.zip", "file://in/g.xml.gz", "in/old.parquet"]
    single = told(call("match", "--queries", "q.txt", "--limit", "message_bytes_max=90", *names))
    assert single.items() <= found.items()
    assert len(single) == 9


def test_the_error_of_a_column_names_columns_and_setting(call: Call, place: Path) -> None:
    result = call("match", "--queries", place / "q.txt", place / "in" / "old.parquet")
    error = json.loads(result.stdout)["error"]["message"]
    assert error.startswith(str(place / "in" / "old.parquet"))
    assert "source.id_column" in error
    assert "id, message" in error


def test_the_source_of_a_pipeline_is_read_with_its_settings(call: Call, place: Path) -> None:
    (place / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tall\t//b\n")
    file = place / "p.toml"
    file.write_text(
        '[source]\nkind = "parquet"\npath = "in"\nid_column = "id"\npattern = "old*"\n'
        '[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    )
    result = call("match", "--queries", file, file)
    assert told(result) == {"m1": ["all"]}
    assert "1 of 8 files" in result.stderr
    assert result.exit_code == ExitCode.OK
    file.write_text(file.read_text().replace("old*", "none*"))
    assert "0 of 8 files" in call("match", "--queries", file, file).stderr
    file.write_text(file.read_text().replace('path = "in"', 'path = "gone"'))
    found = told(call("match", "--queries", place / "q.txt", file))
    assert found == {str(file): "file.unreadable"}


def test_urls(call: Call, place: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    root = f"/test-urls-{os.getpid()}"
    try:
        memory.put(str(place / "in"), root, recursive=True)
        whole = told(call("match", "--queries", place / "q.txt", f"memory:/{root}"))
        here = told(call("match", "--queries", place / "q.txt", place / "in"))
        names = {
            name.replace(str(place / "in"), f"memory:/{root}"): each for name, each in here.items()
        }
        # Names of files of a place count as a pipeline takes them: *.xml in lower case.
        names.pop(f"memory:/{root}/sub/c.XML")
        assert whole == names
        for name in ("a.xml", "p.parquet!m1", "day.zip!x/1.xml"):
            url = f"memory:/{root}/{name}"
            assert told(call("match", "--queries", place / "q.txt", url)) == {url: ["1"]}
    finally:
        memory.rm(root, recursive=True)
    for url in (f"memory:/{root}/a.xml", f"memory:/{root}", "nothing-knows://a/b.xml", "memory://"):
        found = told(call("match", "--queries", place / "q.txt", url, place / "in" / "a.xml"))
        assert found[url] in ("file.unreadable", "message.unreadable", "config.invalid")
        assert found[str(place / "in" / "a.xml")] == ["1"]


def test_every_command_reads_them(call: Call, place: Path) -> None:
    one, many = place / "in" / "g.xml.gz", place / "in" / "day.zip"
    result = call("transform", "//b", one, many)
    assert result.stdout.split() == ["<b>1</b>", "<b>1</b>", "<b/>"]
    out = place / "out"
    call("transform", "//b", many, place / "in" / "p.parquet", "--out", out)
    assert {"1.0.xml", "2.0.xml", "m1.0.xml"} < {path.name for path in out.iterdir()}
    assert call("explain", "//b", one).stdout.startswith("query: match")
    assert call("explain", "//b", f"{many}!x/1.xml").stdout.startswith("query: match")
    several = call("explain", "//b", many)
    assert several.exit_code == ExitCode.REFUSED
    assert f"such as {many}!x/1.xml" in several.stderr
    assert "no message of this id" in call("explain", "//b", f"{many}!9").stderr
    doubtful = place / "doubtful.txt"
    doubtful.write_text("//bb\n")
    found = call("lint", doubtful, "--sample", many)
    assert "did you mean `b`" in found.stdout


@pytest.mark.parametrize("name", ["f.xml", "f.parquet", "f.zip"])
def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(
    call: Call, place: Path, unblocked: Callable[[Path], None], name: str
) -> None:
    folder = place / "pipes"
    folder.mkdir()
    (folder / "z.xml").write_bytes(GOOD)
    unblocked(folder / name)
    result = call("match", "--queries", place / "q.txt", folder)
    # Not as an empty message: what comes through the pipe is not ours.
    assert told(result) == {
        str(folder / name): "message.unreadable",
        str(folder / "z.xml"): ["1"],
    }
    result = call("transform", "//b", folder)
    assert (result.stdout, result.exit_code) == ("<b>1</b>\n", ExitCode.REFUSED)
    result = call("lint", place / "q.txt", "--sample", folder)
    assert f"{name} is left out of the sample: {folder / name} cannot be read" in result.stderr


def test_a_pipe_in_a_folder_of_subscriptions_is_refused(
    call: Call, place: Path, unblocked: Callable[[Path], None]
) -> None:
    folder = place / "subscriptions"
    folder.mkdir()
    (folder / "z.xq").write_text("//b")
    unblocked(folder / "f.xq")
    result = call("check", folder)
    assert "f.xq: a pipe or device in a folder is not read" in result.stdout
    assert "subscriptions: 2, rejected: 1" in result.stderr


def test_what_a_folder_has_besides_files(call: Call, place: Path) -> None:
    folder = place / "odd"
    (folder / "closed").mkdir(parents=True)
    (folder / "z.xml").write_bytes(GOOD)
    (folder / "loop.xml").symlink_to("loop.xml")
    (folder / "gone.xml").symlink_to("nowhere.xml")
    (folder / "up").symlink_to("..")
    with socket.socket(socket.AF_UNIX) as server:
        # A name of a socket may have some hundred bytes only.
        here = Path.cwd()
        os.chdir(folder)
        try:
            server.bind("s.xml")
        finally:
            os.chdir(here)
        (folder / "closed").chmod(0)
        try:
            result = call("match", "--queries", place / "q.txt", folder)
        finally:
            (folder / "closed").chmod(0o700)
    found = told(result)
    refused = {str(folder / name) for name in ("loop.xml", "gone.xml", "s.xml")}
    closed = set() if os.geteuid() == 0 else {"closed"}
    refused |= {str(folder / name) for name in closed}
    assert found == {str(folder / "z.xml"): ["1"], **dict.fromkeys(refused, "message.unreadable")}
    assert "up: a link to a folder, which is not followed" in result.stderr


def test_a_folder_that_cannot_be_listed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Root may list everything, so the system's refusal is made here.
    (tmp_path / "closed").mkdir()
    (tmp_path / "z.xml").write_bytes(GOOD)
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = {each.name: each.content for each in read_messages([str(tmp_path)], Limits())}
    assert found[str(tmp_path / "z.xml")] == GOOD
    assert isinstance(found[str(tmp_path / "closed")], UnreadableMessageError)


def test_an_empty_folder_is_told(call: Call, place: Path) -> None:
    (place / "empty").mkdir()
    result = call("match", "--queries", place / "q.txt", place / "empty")
    assert (result.stdout, result.exit_code) == ("", ExitCode.OK)
    assert "no message in it" in result.stderr


def test_queries_come_through_pipes(call: Call, place: Path) -> None:
    message = place / "in" / "a.xml"
    table = b"subscriber\tquery_id\tquery\nann\tall\t//b\n"
    for content, matches in ((b"//b\n", ["1"]), (b"x\t//b\n", ["x"]), (table, ["all"])):
        with pipe_of(content) as pipe:
            result = call("match", "--queries", pipe, message)
        assert told(result) == {str(message): matches}
        result = call("match", "--queries", "-", message, stdin=content)
        assert told(result) == {str(message): matches}
    missing = call("match", "--queries", place / "gone.txt", message)
    assert missing.exit_code == ExitCode.USAGE
    # A terminal wraps the line, where the name of the folder says.
    assert "does not exist" in " ".join(missing.stderr.replace("│", " ").split())


SUITE = b'[[case]]\nname = "n"\nquery = "//b"\nmessage = "<b/>"\ndelivered = true\n'


@pytest.mark.parametrize(
    ("command", "content", "expected"),
    [
        ("check PIPE", b"//b[\n", ":1: XPST0003"),
        ("lint PIPE", b"//b[\n", "PL001"),
        ("lint QUERIES --format json --sample PIPE", GOOD, '"findings": []'),
        ("match --queries QUERIES PIPE", GOOD, '"matches": ["1"]'),
        ("explain //b PIPE", GOOD, "query: match"),
        ("explain @PIPE MESSAGE", b"//b", "query: match"),
        ("transform //b PIPE", GOOD, "<b>1</b>"),
        ("transform @PIPE MESSAGE", b"//b", "<b>1</b>"),
        # Files beside them may be asked for, which standard input has no place for.
        ("lint QUERIES --format json --dtd /PIPE", b"<!ELEMENT b EMPTY>", '"findings": []'),
        ("generate queries -n 1 --dtd /PIPE", b"<!ELEMENT b EMPTY>", "b\n"),
        ("test /PIPE", SUITE, "passed"),
    ],
)
def test_every_file_may_be_a_pipe(
    call: Call, place: Path, command: str, content: bytes, expected: str
) -> None:
    names = {"QUERIES": str(place / "q.txt"), "MESSAGE": str(place / "in" / "a.xml")}

    def words(pipe: str) -> list[str]:
        plain = command.replace("/PIPE", "PIPE").split()
        return [names.get(word, word.replace("PIPE", pipe)) for word in plain]

    with pipe_of(content) as pipe:
        result = call(*words(pipe))
    assert expected in result.stdout
    if "/PIPE" not in command:
        again = call(*words("-"), stdin=content)
        assert expected in again.stdout
        assert again.exit_code == result.exit_code


def test_standard_input_is_not_read_twice(call: Call, place: Path) -> None:
    for command in (
        ["match", "--queries", "-", "-"],
        ["match", "--queries", place / "q.txt", "-", "-"],
        ["lint", "-", "--sample", "-"],
        ["transform", "@-", "-"],
        ["explain", "@-", "-"],
    ):
        result = call(*command, stdin=b"//b")
        assert result.exit_code == ExitCode.USAGE
        assert "can be read once only" in result.stderr


def test_names_that_no_file_has(call: Call, place: Path) -> None:
    [message] = read_messages(["a\0.xml"], Limits())
    assert isinstance(message.content, UnreadableMessageError)
    assert list(read_messages([], Limits())) == []


def test_a_row_above_the_limit_says_so_in_the_words_of_the_source(place: Path) -> None:
    limits = Limits(message_bytes_max=90)
    errors = {
        each.name: each.content for each in read_messages([str(place / "in/day.zip")], limits)
    }
    error = errors[str(place / "in/day.zip!2.xml")]
    alike = LimitExceededError(
        "limit.message_bytes", limit="message_bytes_max", given=len(LONG), maximum=90
    )
    assert not isinstance(error, bytes)
    assert (error.code, str(error)) == (alike.code, str(alike))


def test_messages_of_one_name_or_one_content_are_all_published(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Rows of Parquet may have one id: by their names, one would be published and both be told.
    rows = {"message_id": ["m", "m", "n"], "message": [b"<a/>", b"<b/>", b"<a/>"]}
    pq.write_table(pa.table(rows), place / "same.parquet")
    sent: list[bytes] = []

    async def publish(messages: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        sent.extend(body for _, body in messages)
        return {id: "no room" for id, body in messages if body == b"<b/>"}

    code = asyncio.run(publish_files([str(place / "same.parquet")], Limits(), publish))
    assert (sorted(sent), code) == ([b"<a/>", b"<b/>"], ExitCode.REFUSED)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["error"] for line in lines] == [None, "no room", None]
