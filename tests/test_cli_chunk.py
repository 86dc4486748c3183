"""`pathcast chunk` from outside: cut, filtered and reported, a file gives what it gives as a whole.

If one of these fails, a large file that was cut loses a match or gets one that it does not have, or
an operator who cut it cannot see why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'")

from generators.chunking_cases import Case
from pathcast.chunking import Chunking, open_scheme, save_scheme
from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError, PathcastError

Call = Callable[..., Result]

QUERIES = "q1\t/a/b[x=1]/c\nq2\t/a/d\nq3\t//e\n"
MESSAGE = b"<a><b><x>1</x><c/></b><d/><f><e/></f></a>"


@pytest.fixture
def call() -> Call:
    """Runs a command in this process."""

    def run(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(build_app(), ["chunk", *map(str, arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def message(tmp_path: Path) -> Path:
    path = tmp_path / "m.xml"
    path.write_bytes(MESSAGE)
    return path


@pytest.fixture
def scheme(tmp_path: Path, call: Call) -> Path:
    queries, path = tmp_path / "queries.txt", tmp_path / "s.scheme"
    queries.write_text(QUERIES)
    assert call("prepare", queries, "--chunks", "2", "--out", path).exit_code == 0
    return path


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_message_that_was_cut_is_answered_as_a_whole(
    tmp_path: Path, call: Call, scheme: Path, message: Path
) -> None:
    [made] = lines(call("cut", scheme, message, "--into", tmp_path / "cut"))
    assert made["bytes"] == len(MESSAGE)
    assert made["error"] is None
    folder = Path(made["folder"])
    assert (folder / "0.xml").read_bytes() == b"<a><b><x>1</x><c/></b></a>"
    of_folder, of_message = lines(call("filter", scheme, folder, message))
    assert of_folder["matches"] == of_message["matches"] == ["q1", "q2", "q3"]


def test_parts_of_several_machines_are_the_answer_together(
    call: Call, scheme: Path, message: Path
) -> None:
    found = [
        lines(call("filter", scheme, message, "--chunk", part))[0]["matches"]
        for part in ("0", "1", "rest")
    ]
    assert found == [["q1"], ["q2"], ["q3"]]


@pytest.mark.parametrize("seed", range(12))
def test_generated_files_give_what_match_gives(tmp_path: Path, call: Call, seed: int) -> None:
    """Schemas with recursion, queries of all of XPath 1.0; with a schema and without."""
    random = Random(seed)
    case = Case(random, has_namespaces=seed % 3 == 0)
    chunking = Chunking(1 + seed % 5, case.paths if seed % 2 else None)
    queries = []
    for number in range(30):
        text = case.query()
        if text.startswith('"'):
            continue  # a field in quotes, in a file of queries
        try:
            chunking.register(f"q{number}", text, case.namespaces)
        except PathcastError:
            continue
        queries.append(f"q{number}\t{text}\n")
    scheme, listed = tmp_path / "s.scheme", tmp_path / "q.txt"
    save_scheme(chunking.scheme(), scheme)
    listed.write_text("".join(queries))
    opened = open_scheme(scheme).scheme
    made = chunking.scheme()
    assert (opened.chunks, opened.potpourri.queries) == (
        tuple(type(each)(each.prefix, each.filters, _unversioned(each)) for each in made.chunks),
        made.potpourri.queries,
    )
    messages = []
    for number in range(8):
        path = tmp_path / f"m{number}.xml"
        path.write_bytes(case.message())
        messages.append(path)
    bound = [f"--namespace={prefix}={uri}" for prefix, uri in case.namespaces.items()]
    arguments = ["match", "--queries", str(listed), *bound, *map(str, messages)]
    whole = CliRunner().invoke(build_app(), arguments)
    pieces = call("filter", scheme, *messages)
    assert [sorted(line["matches"]) for line in lines(pieces)] == [
        sorted(line["matches"]) for line in lines(whole)
    ]


def _unversioned(chunk: Any) -> Any:
    return type(chunk.queries)(chunk.queries.queries, 0)


def test_a_message_that_is_not_built_as_the_schema_says_is_evaluated_whole(
    tmp_path: Path, call: Call
) -> None:
    (tmp_path / "a.dtd").write_text("<!ELEMENT a (b*)><!ELEMENT b (c?)><!ELEMENT c EMPTY>")
    (tmp_path / "q.txt").write_text("q1\t//c\n")
    (tmp_path / "m.xml").write_bytes(b"<a><c/></a>")
    scheme = tmp_path / "s.scheme"
    prepared = call("prepare", tmp_path / "q.txt", "--schema", tmp_path / "a.dtd", "--out", scheme)
    assert "0 queries need the whole message" in prepared.stderr
    found = call("filter", scheme, tmp_path / "m.xml")
    assert lines(found)[0]["matches"] == ["q1"]
    assert "evaluated whole" in found.stderr


def test_what_chunks_do_not_answer_is_refused_and_the_others_are_taken(
    tmp_path: Path, call: Call
) -> None:
    (tmp_path / "q.txt").write_text("//a/b\nfor $x in //a return $x\n/a[\n")
    made = call("prepare", tmp_path / "q.txt", "--out", tmp_path / "s.scheme")
    assert made.exit_code == ExitCode.REFUSED
    assert "q.txt:2: chunks answer XPath queries" in made.stderr
    assert "q.txt:3: XPST0003" in made.stderr
    assert "1 queries" in made.stderr


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"format": "pathcast chunking scheme 0"}', b"\xff", b"[" * 9999],
)
def test_a_file_that_is_no_scheme_is_refused(
    tmp_path: Path, call: Call, message: Path, content: bytes
) -> None:
    (tmp_path / "bad").write_bytes(content)
    refused = call("filter", tmp_path / "bad", message)
    assert refused.exit_code == ExitCode.USAGE
    assert "no chunking scheme" in refused.stderr


def test_a_scheme_with_any_value_out_of_place_is_refused_or_read(
    tmp_path: Path, scheme: Path
) -> None:
    """Each value of a scheme is replaced by others: an error of the catalogue, or a scheme."""
    content = json.loads(scheme.read_text())

    def places(value: Any) -> list[tuple[Any, Any]]:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        below = [value[key] for key in keys if isinstance(value[key], dict | list)]
        return [(value, key) for key in keys] + [place for each in below for place in places(each)]

    for holder, key in places(content):
        kept = holder[key]
        others: tuple[Any, ...] = (None, 7, "x", [], {}, [["x"]])
        for other in others:
            holder[key] = other
            scheme.write_text(json.dumps(content))
            with suppress(ConfigError):
                open_scheme(scheme)
        holder[key] = kept


def test_a_refused_message_leaves_no_folder_that_counts(
    tmp_path: Path, call: Call, scheme: Path
) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_bytes(b"<a><b><x>1</x>")
    made = call("cut", scheme, bad, "--into", tmp_path / "cut")
    assert made.exit_code == ExitCode.REFUSED
    assert lines(made)[0]["error"]["line"] == 1
    assert call("filter", scheme, tmp_path / "cut" / "bad.xml").exit_code == ExitCode.USAGE
    bad.write_bytes(MESSAGE)
    assert call("cut", scheme, bad, "--into", tmp_path / "cut").exit_code == 0
    assert lines(call("filter", scheme, tmp_path / "cut" / "bad.xml"))[0]["matches"] == [
        "q1",
        "q2",
        "q3",
    ]


def test_folders_of_others_and_of_other_schemes_are_refused(
    tmp_path: Path, call: Call, scheme: Path, message: Path
) -> None:
    own = tmp_path / "cut" / "m.xml"
    own.mkdir(parents=True)
    (own / "letter.xml").write_text("mine")
    refused = call("cut", scheme, message, "--into", tmp_path / "cut")
    assert refused.exit_code == ExitCode.USAGE
    assert (own / "letter.xml").read_text() == "mine"
    call("cut", scheme, message, "--into", tmp_path / "other")
    scheme.write_text(scheme.read_text() + "\n")
    refused = call("filter", scheme, tmp_path / "other" / "m.xml")
    assert refused.exit_code == ExitCode.USAGE
    assert "another scheme" in refused.stderr


def test_a_chunk_that_has_changed_leaves_its_queries_undecided(
    tmp_path: Path, call: Call, scheme: Path, message: Path
) -> None:
    [made] = lines(call("cut", scheme, message, "--into", tmp_path / "cut"))
    Path(made["folder"], "0.xml").write_bytes(b"<a/>")
    message.unlink()
    found = call("filter", scheme, made["folder"])
    assert found.exit_code == ExitCode.REFUSED
    assert lines(found)[0]["matches"] == ["q2"]
    assert lines(found)[0]["undecided"] == ["q1", "q3"]


def test_the_report_says_how_much_of_the_message_a_chunk_has(
    tmp_path: Path, call: Call, scheme: Path, message: Path
) -> None:
    [made] = lines(call("cut", scheme, message, "--into", tmp_path / "cut"))
    told = call("report", scheme, made["folder"]).stdout
    assert "/a/b/c: 1 queries, 1 distinct, 26 bytes, 63.4%" in told
    assert "  and /a/b/x with content" in told
    assert "the whole message: 1 queries, 1 distinct, 41 bytes, 100.0%" in told
    [listed] = lines(call("report", scheme, "--format", "json"))
    assert [each["bytes"] for each in listed["chunks"]] == [None, None, None]


def test_a_message_through_a_pipe_is_cut_within_bounded_memory(tmp_path: Path, call: Call) -> None:
    """64 MiB pass a process that may have far less than that more than it begins with."""
    (tmp_path / "q.txt").write_text("q1\t/log/entry[@level = 7]/text\nq2\t/log/host\n")
    scheme = tmp_path / "s.scheme"
    assert call("prepare", tmp_path / "q.txt", "--out", scheme).exit_code == 0
    program = f"""
import sys
import resource
from pathlib import Path
from pathcast.chunking import cut_message, open_scheme
scheme = open_scheme(Path({str(scheme)!r}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = cut_message(scheme, Path("-"), Path({str(tmp_path / "cut")!r}))
print(made.size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    piece = b"<entry level='1'><text>" + b"x" * 1000 + b"</text></entry>"
    content = b"<log><host>h</host>" + piece * 64_000 + b"</log>"
    ended = subprocess.run(
        [sys.executable, "-c", program], input=content, stdout=subprocess.PIPE, check=True
    )
    size, grown = map(int, ended.stdout.split())
    assert size == len(content)
    kilobytes_a_unit = 1 if sys.platform != "darwin" else 1024
    assert grown / kilobytes_a_unit < 16 * 1024
