"""Command lines, names of files and queries that are not UTF-8: a sentence and an exit code.

If these fail, a stray byte in a name or an argument ends a command in a traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode

Call = Callable[..., Result]

STRAY = "caf\udce9"
"""What Python makes of the bytes `caf\xe9`."""
MESSAGE = b"<quotes><quote><price>120</price></quote></quotes>"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in this process; an error that is none of the catalogue fails the test."""

    def run(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(build_app(), [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a stray byte in its name, and files with such names in it."""
    folder = tmp_path / STRAY
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"this file system has UTF-8 names only ({error})")
    (folder / f"{STRAY}.xml").write_bytes(MESSAGE)
    (folder / f"{STRAY}.txt").write_bytes(b"dear\t//quote[price > 100]\n/caf\xe9\ncaf\xe9\t/a\n")
    (folder / f"{STRAY}.xq").write_bytes(b"//price")
    (folder / f"bad-{STRAY}.xq").write_bytes(b"//price[. = 'caf\xe9']")
    (folder / f"{STRAY}.dtd").write_bytes(b"<!ELEMENT caf\xe9 EMPTY>")
    (folder / f"{STRAY}.toml").write_bytes(
        b"[[case]]\nname = 'odd \\\\u0000'\nquery = '//a'\nmessage = '<a/>'\nexpect = '<b/>'\n"
    )
    return folder


def test_match(call: Call, place: Path) -> None:
    done = call("match", place, "--queries", place / f"{STRAY}.txt")
    assert done.exit_code == ExitCode.REFUSED
    assert "refused: 2 queries, 0 messages" in done.stderr
    [line] = done.stdout.splitlines()
    found = json.loads(line)
    assert found["matches"] == ["dear"]
    # A strict reader of JSON refuses the escape of a lone surrogate, and the line with it.
    assert found["message"].encode().endswith(b"caf\\udce9.xml")


def test_check(call: Call, place: Path) -> None:
    done = call("check", place / f"{STRAY}.txt")
    assert done.exit_code == ExitCode.REFUSED
    assert "txt:2: XPST0003: found a lone surrogate" in done.stdout
    assert "txt:3: the id has a lone surrogate, U+DCE9, at character 3" in done.stdout
    assert "queries: 3, with faults: 2" in done.stderr


@pytest.mark.parametrize("format_", ["text", "json"])
def test_lint(call: Call, place: Path, format_: str) -> None:
    done = call(
        "lint", place / f"{STRAY}.txt", "--sample", place, "--format", format_, "--fail-on", "error"
    )
    assert done.exit_code == ExitCode.REFUSED
    if format_ == "json":
        told = json.loads(done.stdout)
        assert [each["line"] for each in told["findings"] if each["code"] == "PL001"] == [2, 3]
        assert done.stdout.encode("ascii")
    else:
        assert done.stdout.count("PL001 error") == 2
        # The caret stands under the fault.
        lines = done.stdout.splitlines()
        at = lines.index("  /caf\\udce9")
        assert lines[at + 1].index("^") == lines[at].index("\\udce9")


def test_lint_with_a_dtd_that_is_not_utf8(call: Call, place: Path) -> None:
    done = call("lint", place / f"{STRAY}.txt", "--dtd", place / f"{STRAY}.dtd")
    assert done.exit_code == ExitCode.REFUSED
    assert "cannot be read as a DTD" in done.stderr


@pytest.mark.parametrize("format_", ["text", "json"])
def test_transform(call: Call, place: Path, format_: str) -> None:
    done = call("transform", f"@{place / f'{STRAY}.xq'}", place, "--format", format_)
    assert done.exit_code == ExitCode.OK
    if format_ == "json":
        assert json.loads(done.stdout)["fragment"] == "<price>120</price>"
    else:
        assert done.stdout == "<price>120</price>\n"


def test_transform_into_files(call: Call, place: Path) -> None:
    done = call("transform", "//price", place, "--out", place / "out")
    assert done.exit_code == ExitCode.OK
    assert (place / "out" / f"{STRAY}.0.xml").read_bytes() == b"<price>120</price>"


def test_explain(call: Call, place: Path) -> None:
    done = call("explain", "//price", place / f"{STRAY}.xml")
    assert done.exit_code == ExitCode.OK
    done = call("explain", "for $q in //quote return <q>{$q}</q>", "--with", place)
    assert done.exit_code == ExitCode.REFUSED
    # The file that is not UTF-8; the one whose name is not can be used.
    assert done.stderr.count("error: ") == 1
    assert "not UTF-8: invalid continuation byte" in done.stderr


def test_suites(call: Call, place: Path) -> None:
    report = place / f"{STRAY}.junit.xml"
    done = call("test", place / f"{STRAY}.toml", "--junit", report)
    assert done.exit_code == ExitCode.REFUSED
    case = ElementTree.parse(report).getroot()[0]
    assert case.get("classname", "").encode().endswith(b"caf\\udce9.toml")


def test_a_suite_that_is_not_utf8_or_names_no_file(call: Call, tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_bytes(b"[[case]]\nname = 'caf\xe9'\n")
    assert call("test", suite).exit_code == ExitCode.USAGE
    suite.write_bytes(
        b"[[case]]\nname = 'x'\nquery = '//a'\nmessage_file = \"a\\u0000\"\nexpect = '<b/>'\n"
    )
    done = call("test", suite)
    assert (done.exit_code, "null" in done.stderr) == (ExitCode.USAGE, True)


COMMANDS = ("match", "check", "lint", "transform", "explain", "test")
OPTIONS = {
    "match": ("--queries", "--namespace", "--limit", "--threads"),
    "check": ("--namespace",),
    "lint": ("--namespace", "--limit", "--sample", "--dtd", "--root", "--ignore", "--comparisons"),
    "transform": ("--namespace", "--limit", "--threads", "--format"),
    "explain": ("--namespace", "--limit", "--with", "--format"),
    "test": ("--junit",),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("seed", range(12))
def test_any_command_line(call: Call, place: Path, command: str, seed: int) -> None:
    random = Random(f"{command} {seed}")
    files = [str(path) for path in sorted(place.iterdir())]
    words = [
        *files,
        STRAY,
        f"@{STRAY}",
        f"@{place / STRAY}.xq",
        f"//a[. = '{STRAY}']",
        f"<{STRAY}>{{//a}}</{STRAY}>",
        f"//{STRAY}",
        "//price",
        "//p:price",
        "\ud83d\ude00",
        "",
        "-",
    ]
    values = [f"p={STRAY}", f"{STRAY}=urn:p", f"depth_max={STRAY}", f"depth_max={'9' * 5000}"]
    arguments = [random.choice(words) for _ in range(random.randint(1, 3))]
    for option in random.sample(OPTIONS[command], random.randint(0, min(2, len(OPTIONS[command])))):
        arguments += [option, random.choice([*values, *words])]
    done = call(command, *arguments)
    assert done.exit_code in set(ExitCode)
    if done.exit_code != ExitCode.OK:
        assert done.output.strip(), "it failed without a word"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_process_of_its_own(place: Path, encoding: str) -> None:
    # Python decodes the command line itself; the output may carry less than the queries have.
    (place / "greek.txt").write_text("//\u03b1\u03b2[\n//price[\n", encoding="utf-8")
    arguments = [b"check", os.fsencode(place / "greek.txt")]
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"pathcast", *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (ExitCode.REFUSED, False)
    assert done.stdout.count(b"XPST0003") == 2
