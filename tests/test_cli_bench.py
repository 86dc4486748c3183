"""`pathcast bench`: counts, classes and which queries are the dearest. Times are not looked at."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from broker_engines import broker_engines, missing
from command_line import run_command
from every_engine import kernel_engines
from oracles.engines import EngineName, made_by
from pathcast import Query, Registry, Subscription
from pathcast.cli import bench, messages
from pathcast.cli.bench_costs import DearestQueries, Measured, MeasuredQuery, QueryClass, measured
from pathcast.cli.exits import ExitCode

DEAR = "//*[count(preceding::*) > 50]"


def run_bench(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """The command with so few passes as there can be."""
    return run_command("bench", "--rounds", "1", *arguments, stdin=stdin)


def facts_of(result: Result) -> dict[str, list[dict[str, Any]]]:
    """Kind of fact -> the lines of it, in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in result.stdout.splitlines():
        fact = json.loads(line)
        found.setdefault(fact["fact"], []).append(fact)
    return found


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def message(tmp_path: Path) -> Path:
    return written(tmp_path / "m.xml", "<m><a n='1'/><a n='2'/><b>5</b></m>")


class TestDearestIsNamed:
    @kernel_engines
    def test_a_dear_query_among_cheap_paths_is_first(
        self, engine: EngineName, tmp_path: Path
    ) -> None:
        # Otherwise nobody finds the one query that makes a service slow.
        items_max, cheap_max = 666, 500
        items = "".join(
            f"<i n='{n}'><name>{n}</name><price>{n}</price></i>" for n in range(items_max)
        )
        big = written(tmp_path / "big.xml", f"<r>{items}</r>")
        cheap = [f"/r/i[@n='{n}']/name" if n % 2 else f"/r/i/x{n}" for n in range(cheap_max)]
        checked = "checked\t//i[last()]/x"
        queries = written(tmp_path / "q.txt", *cheap, f"dear\t{DEAR}", checked)
        result = made_by(engine, run_bench, queries, big, "--seconds", "600", "--json")
        assert result.exit_code == ExitCode.OK
        facts = facts_of(result)
        assert [(each["class"], each["queries"]) for each in facts["class"]] == [
            ("paths", cheap_max // 2),
            ("paths with conditions", cheap_max // 2),
            ("candidate-checked", 1),
            ("scan", 1),
        ]
        # No candidate of the other query is in the message.
        [dear] = facts["query"]
        assert (dear["id"], dear["class"], dear["query"]) == ("dear", "scan", DEAR)
        assert dear["steps_per_message"] > 1_000
        # It was timed, whatever came out.
        assert dear["undecided"] == 0
        assert "not reached" not in facts
        # Why it is dear, and what to write instead.
        assert "uses the axis preceding, which only the evaluator knows" in dear["reasons"]
        assert any(line.startswith("PL401: ") and "//name[...]" in line for line in dear["advice"])

    @broker_engines
    def test_the_found_are_those_that_take_most_steps_alone(
        self, engine: EngineName, tmp_path: Path
    ) -> None:
        rng = random.Random(5)
        sizes = rng.sample(range(1, 40), 16)
        parts = "".join(f"<g{n}>{'<a/>' * size}</g{n}>" for n, size in enumerate(sizes))
        text = f"<m>{parts}</m>"
        texts = [f"//g{n}/a[last()]" for n in range(len(sizes))]
        queries = written(tmp_path / "q.txt", *texts)
        given = written(tmp_path / "m.xml", text)
        shown = made_by(
            engine, run_bench, queries, given, "--top", "3", "--seconds", "600", "--json"
        )
        alone: list[tuple[int, str]] = []
        for number, each in enumerate(texts, 1):
            index = made_by(engine, Registry)
            index.add([Query("q", each)])
            stats = index.freeze().match([text.encode()]).stats
            alone.append((stats.steps, str(number)))
        expected = [name for _, name in sorted(alone, reverse=True)[:3]]
        assert [each["id"] for each in facts_of(shown)["query"]] == expected

    def test_what_time_was_too_short_for_is_told(self, tmp_path: Path, message: Path) -> None:
        # A list that is cut short must not look like the whole of it.
        queries = written(tmp_path / "q.txt", *(f"//a[last() > {n}]" for n in range(8)))
        facts = facts_of(run_bench(queries, message, "--seconds", "0", "--json"))
        assert "query" not in facts
        [left] = facts["not reached"]
        [checked] = facts["class"]
        assert left["queries"] == 8
        assert left["steps_per_message"] == checked["steps_per_message"] > 0
        text = run_bench(queries, message, "--seconds", "0").stdout
        assert "not reached: 8 queries" in text
        assert "--seconds" in text

    def test_a_query_of_shared_paths_is_not_among_them(self, tmp_path: Path, message: Path) -> None:
        queries = written(tmp_path / "q.txt", "//a[@n = 1]", "//b")
        text = run_bench(queries, message).stdout
        assert text.endswith("none is evaluated by itself; shared paths answer them all\n")

    def test_queries_without_a_candidate_are_not_called_shared(
        self, tmp_path: Path, message: Path
    ) -> None:
        # Other messages may well have one: these queries are not cheap, they were not asked.
        queries = written(tmp_path / "q.txt", "//gone[last()]", "//b")
        text = run_bench(queries, message).stdout
        assert "shared paths answer them all" not in text
        assert text.endswith("1 may be evaluated by itself, and took no step on these messages\n")


class TestSearch:
    @pytest.mark.parametrize("total", [sum, max])
    @pytest.mark.parametrize("seed", range(20))
    def test_it_finds_what_measuring_each_would(self, seed: int, total: Any) -> None:
        """Whether queries share nothing of what they take, or all of it."""
        rng = random.Random(seed)
        count, top = rng.randrange(1, 300), rng.randrange(1, 12)
        costs = [rng.choice([0, 0, 1, 5, rng.randrange(10_000)]) for _ in range(count)]
        calls = 0

        def steps_of(queries: Sequence[MeasuredQuery]) -> int:
            nonlocal calls
            calls += 1
            return int(total(costs[int(each.row.id)] for each in queries))

        search = self._search(count, top, steps_of)
        search.run(deadline=float("inf"))
        expected = sorted((cost for cost in costs if cost), reverse=True)[:top]
        assert [steps for steps, _ in search.found] == expected
        assert all(costs[int(query.row.id)] == steps for steps, query in search.found)
        assert search.unreached == (0, 0)
        assert calls <= 2 * count

    def test_few_dear_ones_take_few_measurements(self) -> None:
        calls = 0

        def steps_of(queries: Sequence[MeasuredQuery]) -> int:
            nonlocal calls
            calls += 1
            return sum(each.row.id in ("17", "4000") for each in queries)

        search = self._search(5_000, 2, steps_of)
        search.run(deadline=float("inf"))
        assert sorted(query.row.id for _, query in search.found) == ["17", "4000"]
        assert calls < 60

    def test_an_interruption_loses_no_set(self) -> None:
        # Ctrl-C prints what was found, and how many queries were not reached.
        calls = 0

        def steps_of(queries: Sequence[MeasuredQuery]) -> int:
            nonlocal calls
            calls += 1
            if calls == 8:
                raise KeyboardInterrupt
            return len(queries)

        search = self._search(64, 64, steps_of)
        with pytest.raises(KeyboardInterrupt):
            search.run(deadline=float("inf"))
        assert search.unreached == (64, 64)

    @staticmethod
    def _search(count: int, top: int, steps_of: Any) -> DearestQueries:
        queries = [
            MeasuredQuery(Subscription(str(number), "", "//a"), QueryClass.SCAN)
            for number in range(count)
        ]
        search = DearestQueries(steps_of, top)
        search.add(queries, steps_of(queries))
        return search


class TestClasses:
    ROWS = (
        ("path", "//a", "ids", "paths"),
        ("condition", "//a[@n = 1]", "ids", "paths with conditions"),
        ("checked", "//a[last()]", "ids", "candidate-checked"),
        ("either", "//a | //b", "ids", "paths"),
        ("scan", "not(//c)", "ids", "scan"),
        ("whole", "//b", "message", "results, indexed"),
        ("nodes", "//a[last()]", "fragment", "results, candidate-checked"),
        ("program", "for $b in //b order by $b return <r>{$b}</r>", "ids", None),
        ("always", "<r>{count(//b)}</r>", "fragment", "results, scan"),
    )

    @kernel_engines
    def test_each_query_is_of_one_class(
        self, engine: EngineName, tmp_path: Path, message: Path
    ) -> None:
        head = "subscriber\tquery_id\tquery\tdeliver"
        rows = [f"ann\t{name}\t{query}\t{deliver}" for name, query, deliver, _ in self.ROWS]
        table = written(tmp_path / "s.tsv", head, *rows)
        facts = facts_of(made_by(engine, run_bench, table, message, "--json"))
        wanted: dict[str, int] = {}
        for _, _, _, query_class in self.ROWS:
            name = query_class or "results, candidate-checked"
            wanted[name] = wanted.get(name, 0) + 1
        assert {each["class"]: each["queries"] for each in facts["class"]} == wanted
        # Every query of a class that is evaluated takes steps here, and is found.
        classes = {name: query_class for name, _, _, query_class in self.ROWS}
        for each in facts["query"]:
            assert each["class"] == (classes[each["id"]] or "results, candidate-checked")

    @pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))
    def test_shared_plans_and_steps(self, tmp_path: Path, message: Path) -> None:
        table = written(
            tmp_path / "s.tsv",
            "subscriber\tquery_id\tquery\tsteps",
            "ann\tshared\tfor $a in //a where $a/@n > 1 return <r>{$a}</r>\t",
            "ann\trenamed\t//c\trename //a c",
        )
        facts = facts_of(run_bench(table, message, "--json"))
        assert [(each["class"], each["queries"]) for each in facts["class"]] == [
            ("results, indexed", 1),
            ("after steps", 1),
        ]
        [renamed] = facts["query"]
        # What the steps take counts, not only the query after them.
        assert (renamed["id"], renamed["steps"]) == ("renamed", ["rename //a c"])


class TestInputs:
    def test_what_is_refused_is_counted_and_the_others_are_measured(
        self, tmp_path: Path, message: Path
    ) -> None:
        queries = written(tmp_path / "q.txt", "//a", "//a[", "all\t//b")
        broken = written(tmp_path / "broken.xml", "<m><a></m>")
        result = run_bench(queries, message, broken, tmp_path / "gone.xml", "--json")
        assert result.exit_code == ExitCode.REFUSED
        facts = facts_of(result)
        [registered], [read] = facts["registration"], facts["messages"]
        assert (registered["registered"], registered["rejected"]) == (2, 1)
        assert (read["read"], read["refused"], read["unread"]) == (2, 1, 1)
        assert read["bytes"] == len(message.read_bytes()) + len(broken.read_bytes())
        assert [each["pass"] for each in facts["pass"]] == ["no query", "cold", "warm"]
        # Two queries hold of one of two messages.
        assert [each["matches_per_message"] for each in facts["pass"]] == [0, 1, 1]
        assert f"{queries}:2" in result.stderr
        assert f"{broken}: line 1" in result.stderr
        assert "gone.xml" in result.stderr

    def test_a_query_without_a_verdict_is_a_failure(self, tmp_path: Path, message: Path) -> None:
        queries = written(tmp_path / "q.txt", f"dear\t{DEAR}", "//a")
        result = run_bench(queries, message, "--limit", "evaluation_steps_max=3", "--json")
        assert result.exit_code == ExitCode.REFUSED
        assert "undecided: 1 pairs" in result.stderr
        [dear] = facts_of(result)["query"]
        assert dear["undecided"] == 1

    def test_messages_are_held_within_a_bound(
        self, tmp_path: Path, message: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Every pass needs them again: archives of any size must not fill the memory.
        monkeypatch.setattr(messages, "BATCH_MESSAGES_MAX", 2)
        monkeypatch.setattr(bench, "HELD_BYTES_MAX", 3 * len(message.read_bytes()))
        queries = written(tmp_path / "q.txt", "//a")
        result = run_bench(queries, *[message] * 9, "--json")
        [read] = facts_of(result)["messages"]
        assert read["read"] == 4
        assert "measured on the first 4 messages; the others were not read" in result.stderr

    def test_queries_come_from_standard_input(self, message: Path) -> None:
        facts = facts_of(run_bench("-", message, "--json", stdin=b"//a\n//b\n"))
        assert facts["registration"][0]["registered"] == 2
        assert run_bench("-", "-", stdin=b"//a").exit_code == ExitCode.USAGE

    def test_nothing_to_measure_is_said(self, tmp_path: Path, message: Path) -> None:
        empty, wrong = written(tmp_path / "e.txt"), written(tmp_path / "w.txt", "//a[")
        some = written(tmp_path / "q.txt", "//a")
        for queries, given, said in (
            (empty, message, "no query that can be used"),
            (wrong, message, "no query that can be used"),
            (some, tmp_path / "gone.xml", "no message that can be read"),
        ):
            result = run_bench(queries, given)
            assert (result.exit_code, result.stdout) == (ExitCode.REFUSED, "")
            assert said in result.stderr

    def test_conditions_that_never_hold_are_warned_of(self, tmp_path: Path, message: Path) -> None:
        queries = written(tmp_path / "q.txt", "//a[@n > 2 and @n < 1]")
        result = run_bench(queries, message)
        assert (result.exit_code, "PL201" in result.stderr) == (ExitCode.OK, True)


class TestOutput:
    def test_tables_in_order_without_control_codes(self, tmp_path: Path, message: Path) -> None:
        queries = written(tmp_path / "q.txt", "//a", f"dear\t{DEAR.replace('50', '0')}")
        text = run_bench(queries, message).stdout
        titles = ("registration", "messages", "throughput", "cost by class", "dearest queries")
        places = [text.index(title) for title in titles]
        assert places == sorted(places)
        assert "\x1b" not in text
        assert "\r" not in text
        assert "dear: //*[count(preceding::*) > 0]" in text

    @pytest.mark.parametrize(
        ("passes", "known"),
        [(1, ["no query"]), (2, ["no query", "cold"]), (4, ["no query", "cold", "warm"])],
    )
    def test_ctrl_c_prints_what_is_known(
        self,
        tmp_path: Path,
        message: Path,
        monkeypatch: pytest.MonkeyPatch,
        passes: int,
        known: list[str],
    ) -> None:
        calls = 0

        def interrupted(*given: Any) -> Measured:
            nonlocal calls
            calls += 1
            if calls == passes:
                raise KeyboardInterrupt
            return measured(*given)

        monkeypatch.setattr(bench, measured.__name__, interrupted)
        queries = written(tmp_path / "q.txt", "//a", DEAR)
        result = run_bench(queries, message, "--json")
        assert result.exit_code == ExitCode.INTERRUPTED
        assert [each["pass"] for each in facts_of(result)["pass"]] == known
        assert result.stderr.endswith("interrupted\n")

    def test_help_teaches_by_an_example(self) -> None:
        text = " ".join(run_command("bench", "--help").stdout.split())
        assert "pathcast bench queries.txt messages/" in text
        assert "Exit codes: 0 done" in text
