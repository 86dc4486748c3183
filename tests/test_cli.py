"""The command line from outside: what it prints where, and what its exit codes say."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from command_line import run_command
from pathcast.boundary import MissingKernel
from pathcast.cli import app
from pathcast.cli.exits import ExitCode
from pathcast.errors import MissingDependencyError, extra
from patience import PATIENCE_SECONDS, wait_until

Call = Callable[..., Result]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in this process."""

    return run_command


def spawn(*arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Runs a command in a process of its own, with pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "pathcast", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.txt"
    path.write_text("# prices\n//quote[price > 100]\nall\t/quotes/quote\n", encoding="utf-8")
    return path


@pytest.fixture
def message(tmp_path: Path) -> Path:
    path = tmp_path / "message.xml"
    path.write_bytes(b"<quotes><quote><price>120</price></quote></quotes>")
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.xml"
    path.write_bytes(b"<quotes>\n<quote></quotes>")
    return path


def lines_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


class TestMatch:
    def test_one_line_of_json_a_message(self, call: Call, queries: Path, message: Path) -> None:
        result = call("match", "--queries", queries, message, message)
        assert result.exit_code == ExitCode.OK
        expected = {
            "message": str(message),
            "matches": ["2", "all"],
            "undecided": [],
            "error": None,
        }
        assert lines_of(result) == [expected, expected]
        assert result.stderr == ""

    def test_a_broken_message_is_reported_in_its_place(
        self, call: Call, queries: Path, message: Path, broken: Path
    ) -> None:
        result = call("match", "--queries", queries, broken, message)
        refused, matched = lines_of(result)
        assert set(refused) == {"message", "matches", "undecided", "error"}
        assert set(refused["error"]) == {"code", "message", "line", "column", "offset"}
        assert (refused["matches"], refused["error"]["line"]) == ([], 2)
        assert matched["matches"] == ["2", "all"]
        # A script must be able to see that something was refused without reading every line.
        assert result.exit_code == ExitCode.REFUSED

    def test_a_missing_message_is_reported_in_its_place(
        self, call: Call, queries: Path, message: Path, tmp_path: Path
    ) -> None:
        result = call("match", "--queries", queries, tmp_path / "gone.xml", message)
        gone, matched = lines_of(result)
        assert gone["error"]["code"] == "message.unreadable"
        assert matched["error"] is None
        assert result.exit_code == ExitCode.REFUSED

    def test_an_undecided_query_is_warned_of(
        self, call: Call, tmp_path: Path, message: Path
    ) -> None:
        path = tmp_path / "heavy.txt"
        path.write_text("heavy\tcount(//*[last()]) > 1\nplain\t/quotes/quote\n")
        limit = ("--limit", "evaluation_steps_max=3")
        result = call("match", "--queries", path, *limit, message)
        (line,) = lines_of(result)
        assert (line["matches"], line["undecided"]) == (["plain"], ["heavy"])
        assert line["error"] is None
        told = " ".join(result.stderr.split())
        assert "warning:" in told
        assert "query heavy: evaluation_steps_max" in told
        # A missing match must not look like a message that nobody asked for.
        assert result.exit_code == ExitCode.REFUSED
        assert call("match", "--queries", path, message).exit_code == ExitCode.OK

    def test_standard_input(self, call: Call, queries: Path) -> None:
        result = call("match", "--queries", queries, "-", stdin=b"<quotes><quote/></quotes>")
        (line,) = lines_of(result)
        assert (line["message"], line["matches"], line["error"]) == ("-", ["all"], None)

    def test_a_bad_query_is_named_with_its_line_and_the_others_count(
        self, call: Call, queries: Path, message: Path
    ) -> None:
        queries.write_text("/quotes[\n/quotes\n", encoding="utf-8")
        result = call("match", "--queries", queries, message)
        assert lines_of(result)[0]["matches"] == ["2"]
        assert f"{queries}:1: XPST0003" in result.stderr
        assert result.exit_code == ExitCode.REFUSED

    def test_without_a_usable_query_nothing_is_matched(
        self, call: Call, queries: Path, message: Path
    ) -> None:
        queries.write_text("# nothing yet\n", encoding="utf-8")
        result = call("match", "--queries", queries, message)
        assert (result.stdout, result.exit_code) == ("", ExitCode.REFUSED)

    def test_limits_reach_the_door(self, call: Call, queries: Path, message: Path) -> None:
        result = call("match", "--queries", queries, "--limit", "depth_max=2", message)
        assert lines_of(result)[0]["error"]["code"] == "limit.depth"

    def test_namespaces_reach_the_queries(self, call: Call, queries: Path, message: Path) -> None:
        queries.write_text("//p:quote\n", encoding="utf-8")
        message.write_bytes(b"<a xmlns='urn:q'><quote/></a>")
        result = call("match", "--queries", queries, "--namespace", "p=urn:q", message)
        assert lines_of(result)[0]["matches"] == ["1"]

    @pytest.mark.parametrize("options", [["--threads", "0"], ["--limit", "depth_max=0"], ["--x"]])
    def test_a_command_line_that_cannot_be_used(
        self, call: Call, queries: Path, message: Path, options: list[str]
    ) -> None:
        result = call("match", "--queries", queries, *options, message)
        assert (result.stdout, result.exit_code) == ("", ExitCode.USAGE)
        assert result.stderr

    @pytest.mark.parametrize("option", [["--engine", "nfa"], ["--engine=kernel"]])
    def test_the_option_that_has_ended_says_what_to_do_instead(
        self, call: Call, queries: Path, message: Path, option: list[str]
    ) -> None:
        result = call("match", "--queries", queries, *option, message)
        assert (result.stdout, result.exit_code) == ("", ExitCode.USAGE)
        assert "PATHCAST_ENGINE=nfa" in " ".join(result.stderr.replace("│", " ").split())

    def test_the_reader_of_a_pipe_may_leave(self, queries: Path, message: Path) -> None:
        # `pathcast match ... | head -1` must end at once, without a traceback.
        many = message.parent / "many"
        many.mkdir()
        for number in range(3_000):
            (many / f"{number}.xml").write_bytes(message.read_bytes())
        process = spawn("match", "--queries", queries, many)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
        assert process.wait() == ExitCode.PIPE_CLOSED
        assert said == ""


class TestCheck:
    def test_every_fault_is_shown_with_line_caret_and_summary(
        self, call: Call, tmp_path: Path
    ) -> None:
        path = tmp_path / "queries.txt"
        path.write_text("/a/b\n/a/b[\n# fine\nx\t/a[or]\nx\t//c\n/a | $b\n", encoding="utf-8")
        result = call("check", path)
        shown = result.stdout
        assert [f"{path}:{line}: " in shown for line in (1, 2, 4, 5, 6)] == [
            False,
            True,
            False,
            True,
            True,
        ]
        assert "^" in shown
        assert "the id x is taken" in shown
        assert result.stderr == "queries: 5, with faults: 3\n"
        assert result.exit_code == ExitCode.REFUSED

    def test_a_file_without_faults(self, call: Call, queries: Path) -> None:
        result = call("check", queries)
        assert (result.stdout, result.exit_code) == ("", ExitCode.OK)


class TestExplain:
    def test_a_query_that_does_not_match_is_an_answer(self, call: Call, message: Path) -> None:
        result = call("explain", "/quotes/quote[price > 200]", message)
        assert result.exit_code == ExitCode.OK
        assert "no match" in result.stdout
        assert "120" in result.stdout, "the value that was seen is what a person looks for"

    def test_what_can_never_match_is_warned_of(self, call: Call, message: Path) -> None:
        result = call("explain", "/quotes/quote[price > 'high']", message)
        assert "warning: PL201: no message can satisfy the query" in result.stderr

    def test_a_refused_query_is_shown_with_a_caret(self, call: Call, message: Path) -> None:
        result = call("explain", "/quotes[", message)
        assert (result.stdout, result.exit_code) == ("", ExitCode.REFUSED)
        assert "^" in result.stderr

    def test_a_refused_message_is_a_failure(self, call: Call, broken: Path) -> None:
        assert call("explain", "/quotes", broken).exit_code == ExitCode.REFUSED


class TestGenerate:
    def test_queries_are_the_same_for_the_same_seed(self, call: Call) -> None:
        arguments = ("generate", "queries", "--domain", "news", "-n", "50", "--seed", "7")
        first, second = call(*arguments), call(*arguments)
        assert first.exit_code == ExitCode.OK
        assert len(set(first.stdout.splitlines())) == 50
        assert first.stdout == second.stdout
        assert first.stdout != call(*arguments[:-1], "8").stdout

    def test_documents_and_queries_fit_each_other(self, call: Call, tmp_path: Path) -> None:
        dtd, out, queries = tmp_path / "a.dtd", tmp_path / "docs", tmp_path / "queries.txt"
        dtd.write_text("<!ELEMENT a (b*, c?)><!ELEMENT b (#PCDATA)><!ELEMENT c EMPTY>")
        common = ("--dtd", dtd, "--seed", "1")
        made = call("generate", "documents", *common, "--out", out, "-n", "20")
        assert "20 documents" in made.stderr
        written = call(
            "generate", "queries", *common, "-n", "3", "--set", "distinct=false", "--out", queries
        )
        assert written.exit_code == ExitCode.OK
        result = call("match", "--queries", queries, out)
        assert result.exit_code == ExitCode.OK
        assert len(lines_of(result)) == 20
        assert any(line["matches"] for line in lines_of(result))

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["--domain", "news", "--set", "distinct=perhaps"],
            ["--domain", "news", "--set", "no_such=1"],
            ["--domain", "news", "--wildcard", "2"],
            ["--domain", "no such domain"],
        ],
    )
    def test_parameters_that_cannot_be_used(self, call: Call, arguments: list[str]) -> None:
        result = call("generate", "queries", *arguments)
        assert (result.stdout, result.exit_code) == ("", ExitCode.USAGE)


class TestDoctor:
    def test_says_what_is_there(self, call: Call) -> None:
        result = call("doctor", "--json")
        parts = {line["part"]: line for line in lines_of(result)}
        assert parts["engine kernel"]["found"] is not None
        assert parts["pyarrow"]["found"] == metadata.version("pyarrow")
        assert result.exit_code == ExitCode.OK

    def test_fails_if_the_kernel_cannot_run(
        self, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As on a machine where the kernel was never built.
        for module in list(sys.modules.values()):
            if module.__name__.startswith("pathcast.kernel") and hasattr(module, "native"):
                monkeypatch.setattr(module, "native", MissingKernel("it was never built"))
        result = call("doctor", "--json")
        parts = {line["part"]: line for line in lines_of(result)}
        assert parts["engine kernel"]["found"] is None
        assert "pip install pathcast-kernel" in parts["engine kernel"]["remark"]
        assert result.exit_code == ExitCode.ENVIRONMENT

    def test_every_library_of_every_extra_is_named(self, call: Call) -> None:
        parts = {line["part"] for line in lines_of(call("doctor", "--json"))}
        required = metadata.requires("pathcast") or []
        assert len(required) > 20
        libraries = {re.split(r"[^\w.-]", one)[0] for one in required if "'dev'" not in one}
        assert libraries <= parts

    def test_is_plain_when_piped(self, call: Call) -> None:
        assert "\x1b" not in call("doctor").stdout


class TestRun:
    def test_every_key_is_described(self, call: Call) -> None:
        result = call("run", "--describe")
        assert result.exit_code == ExitCode.OK
        for words in ("[source]", "[output]", "compact_files"):
            assert words in result.stdout

    def test_a_wrong_key_is_named(self, call: Call, tmp_path: Path) -> None:
        path = tmp_path / "pipeline.toml"
        path.write_text("[sauce]\n", encoding="utf-8")
        result = call("run", path)
        assert result.exit_code == ExitCode.USAGE
        assert "sauce" in result.stderr

    def test_a_library_that_lacks_what_it_needs_says_so(self) -> None:
        with (
            pytest.raises(MissingDependencyError, match="libpq not found") as caught,
            extra("postgresql", "a store in PostgreSQL"),
        ):
            raise ImportError("libpq not found")
        assert "pip install 'pathcast[postgresql]'" in str(caught.value)

    def test_a_missing_library_names_the_extra(
        self, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = tmp_path / "pipeline.toml"
        path.write_text("", encoding="utf-8")
        for name in [n for n in sys.modules if n.split(".")[0] == "pyspark"]:
            monkeypatch.delitem(sys.modules, name)
        for name in [n for n in sys.modules if n.startswith("pathcast.spark.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "pyspark", None)
        result = call("run", path)
        assert result.exit_code == ExitCode.ENVIRONMENT
        assert "pip install 'pathcast[spark]'" in result.stderr


def test_exit_codes_are_documented_as_they_are() -> None:
    page = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
    if not page.is_file():
        pytest.skip("not in a clone: the documentation is not beside the tests")
    rows = re.findall(r"^\| (\d+) \| `([A-Z_]+)` \|", page.read_text(encoding="utf-8"), re.M)
    assert {name: int(code) for code, name in rows} == {c.name: int(c) for c in ExitCode}


class TestProcess:
    def test_version(self, call: Call) -> None:
        assert call("--version").stdout == f"pathcast {metadata.version('pathcast')}\n"

    def test_help_tells_the_exit_codes(self, call: Call) -> None:
        text = " ".join(call("--help").stdout.split())
        for words in ("Exit codes", "130 interrupted", "3 something is missing"):
            assert words in text

    def test_output_has_no_control_codes_even_when_colours_are_wanted_on_terminals(
        self, queries: Path, message: Path
    ) -> None:
        process = spawn("match", "--queries", queries, message, env={"TERM": "xterm-256color"})
        out, said = process.communicate()
        assert "\x1b" not in out + said

    def test_no_kernel_is_an_error_that_says_how_to_get_it(self, queries: Path) -> None:
        code = (
            "import sys; sys.modules['pathcast_kernel'] = None\n"
            "from pathcast.cli import main\n"
            f"sys.argv = ['pathcast', 'match', '--queries', {str(queries)!r}, '-']\n"
            "main()"
        )
        env = {k: v for k, v in os.environ.items() if k != "PATHCAST_ENGINE"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=env,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == ExitCode.ENVIRONMENT
        assert "pip install pathcast-kernel" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == "", "never a silent fallback"

    def test_ctrl_c_ends_quietly(self, queries: Path, tmp_path: Path) -> None:
        fifo = tmp_path / "slow.xml"
        os.mkfifo(fifo)
        process = spawn("match", "--queries", queries, fifo)
        writer = self._open_when_read(fifo, process)
        try:
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            os.close(writer)
        assert (process.returncode, out, said) == (ExitCode.INTERRUPTED, "", "interrupted\n")

    @staticmethod
    def _open_when_read(fifo: Path, reader: subprocess.Popen[str]) -> int:
        """Opens a pipe for writing as soon as the command reads its message from it."""

        def opened() -> int | None:
            assert reader.poll() is None, reader.communicate()
            with contextlib.suppress(OSError):
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            return None

        writer = wait_until(opened)
        assert writer is not None
        return writer


def test_the_list_of_commands_says_what_their_help_begins_with() -> None:
    summaries = {name: place.summary for name, place in app.COMMANDS.items()} | app.GROUPS
    for name, summary in summaries.items():
        command = app._made(name)
        text = " ".join((command.short_help or command.help).split("\n\n")[0].split())
        assert summary == text, name


def test_the_list_of_commands_needs_no_engine() -> None:
    """If this fails, `pathcast --help` takes several times as long."""
    code = (
        "import sys\nfrom pathcast.cli import main\nsys.argv = ['pathcast', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'pyarrow', 'pydantic', 'pathcast.engine', 'grpc'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "inbox" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"
