"""The parts of the benchmarks: what they would report if an engine, a clock or a file were off."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from oracles.engines import made_by, missing_reason

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
if KERNEL_MISSING := missing_reason("kernel"):
    pytest.skip(KERNEL_MISSING, allow_module_level=True)

from pathcast.errors import ConfigError, MissingDependencyError
from pathcast.model import Query
from pathcast.registry import Registry, Snapshot
from pathcast_lab.bench import checking
from pathcast_lab.bench.broker_node import BrokerNodeDefinition
from pathcast_lab.bench.capacity import CapacityDefinition
from pathcast_lab.bench.checking import Truth, check_nfa, check_reference
from pathcast_lab.bench.customise import CustomiseDefinition
from pathcast_lab.bench.definitions import (
    AdversarialDefinition,
    Aim,
    CompressionDefinition,
    ConditionsDefinition,
    DoorDefinition,
    FilterDefinition,
    MixedDefinition,
    RecordsDefinition,
    ThreadsDefinition,
    read_definition,
)
from pathcast_lab.bench.hop import HopDefinition
from pathcast_lab.bench.inputs import inputs_digest, open_source, standing_queries
from pathcast_lab.bench.measures import Measure, with_aims
from pathcast_lab.bench.pipeline.definition import PipelineDefinition
from pathcast_lab.bench.plot import draw
from pathcast_lab.bench.registration import RegistrationDefinition
from pathcast_lab.bench.restart import RestartDefinition
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import Spread, alternate, yardstick
from pathcast_lab.bench.wrong_count import WrongCountError

DEFINITIONS = Path(__file__).resolve().parent.parent / "lab" / "benchmarks"
MESSAGES = binary_array([b"<a><b/></a>", b"<a><c/></a>"])


def frozen(*texts: str, engine: str = "kernel") -> Snapshot:
    index = made_by(engine, Registry)
    assert not index.add(standing_queries(texts)).rejected
    return index.freeze()


def test_engines_that_differ_are_found() -> None:
    snapshot = frozen("/a/b", "//c")
    assert check_nfa("case", snapshot, frozen("/a/b", "//c", engine="nfa"), MESSAGES) == 2
    with pytest.raises(WrongCountError, match="message 0, 1 queries differ: 1 matches, 0 by"):
        check_nfa("case", snapshot, frozen("/a/x", "//c", engine="nfa"), MESSAGES)


def test_reference_that_differs_is_found() -> None:
    snapshot = frozen("/a/b", "//c")
    assert check_reference("case", snapshot, standing_queries(["/a/b"]), MESSAGES) == 1
    with pytest.raises(WrongCountError, match="message 0, 1 queries differ"):
        check_reference("case", snapshot, [Query("q1", "//b")], MESSAGES)


def test_refused_message_is_no_timing() -> None:
    batch = frozen("/a").match(binary_array([b"<a/>", b"<a"]))
    with pytest.raises(WrongCountError, match="1 matches, 2 by the yardstick"):
        checking.counts(batch)


def test_truth_knows_parts_of_the_stream() -> None:
    truth = Truth("case", [1, 10, 100, 1000])
    truth.confirm(110, 3, 1)
    with pytest.raises(WrongCountError):
        truth.confirm(111, 3, 1)


def test_both_take_turns_in_going_first() -> None:
    calls: list[str] = []
    alternate(lambda: calls.append("engine"), lambda: calls.append("lxml"), rounds=3)
    assert calls == ["engine", "lxml", "lxml", "engine", "engine", "lxml"]


def test_times_belong_to_the_call_that_took_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]

    def spend(ns: int) -> None:
        clock[0] += ns

    monkeypatch.setattr("pathcast_lab.bench.timing.time.perf_counter_ns", lambda: clock[0])
    assert alternate(lambda: spend(5), lambda: spend(70), rounds=2) == [(5, 70), (5, 70)]


def test_yardstick_without_lxml_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml.etree", None)
    with pytest.raises(MissingDependencyError, match=r"pathcast\[bench\]"):
        yardstick([b"<a/>"])


def test_queries_are_kept_and_begin_alike(tmp_path: Path) -> None:
    source = open_source("news", work=tmp_path)
    parameters = {"seed": 3, "wildcard": 0.2, "descendant": 0.2}
    many = source.queries(300, **parameters)  # type: ignore[arg-type]
    assert len(set(many)) == 300
    assert source.queries(100, **parameters) == many[:100]  # type: ignore[arg-type]
    [kept] = tmp_path.glob("queries-news-300-*.txt")
    kept.write_text("\n".join(["/kept", *many[1:]]), encoding="utf-8")
    assert source.queries(300, **parameters)[0] == "/kept"  # type: ignore[arg-type]
    other = source.queries(300, **{**parameters, "seed": 4})  # type: ignore[arg-type]
    assert other[0] != "/kept"
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_query_file_is_read_packed_and_must_hold_enough(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt.gz"
    path.write_bytes(gzip.compress(b"/a\n\n /b \n"))
    source = open_source("news", query_file=path)
    assert source.queries(2, seed=0, wildcard=0, descendant=0) == ["/a", "/b"]
    with pytest.raises(ConfigError, match="holds 2 queries, 3 are needed"):
        source.queries(3, seed=0, wildcard=0, descendant=0)
    path.write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        source.queries(1, seed=0, wildcard=0, descendant=0)


def test_digest_tells_inputs_apart() -> None:
    digests = {
        inputs_digest(["/a", "/b"], [b"<a/>"]),
        inputs_digest(["/a"], [b"<a/>"]),
        inputs_digest(["/a", "/b"], [b"<a/>", b"<b/>"]),
    }
    assert len(digests) == 3


def test_aims_belong_to_their_measure_case_and_number() -> None:
    spread = Spread(0.9, 0.1, 2.0)
    measures = [
        Measure("filter", "a", "warm", "x", spread, 10),
        Measure("filter", "b", "warm", "x", spread, 20),
        Measure("filter", "b", "cold", "x", spread, 20),
    ]
    aims = [Aim(measure="warm", queries=20, most=0.5), Aim(measure="cold", case="b", least=0.5)]
    assert [m.is_met for m in with_aims(measures, aims)] == [None, False, True]
    with pytest.raises(ValueError, match="exactly one"):
        Aim(measure="warm")


def test_shipped_definitions_say_all_three_sets() -> None:
    kinds: dict[
        str,
        type[
            MixedDefinition
            | DoorDefinition
            | RecordsDefinition
            | CompressionDefinition
            | RegistrationDefinition
            | ThreadsDefinition
            | CustomiseDefinition
            | PipelineDefinition
            | BrokerNodeDefinition
            | HopDefinition
            | RestartDefinition
            | CapacityDefinition
        ],
    ]
    kinds = {
        "filter": FilterDefinition,
        "conditions": ConditionsDefinition,
        "mixed": MixedDefinition,
        "adversarial": AdversarialDefinition,
        "door": DoorDefinition,
        "records": RecordsDefinition,
        "compression": CompressionDefinition,
        "registration": RegistrationDefinition,
        "threads": ThreadsDefinition,
        "customise": CustomiseDefinition,
        "pipeline": PipelineDefinition,
        "broker-node": BrokerNodeDefinition,
        "hop": HopDefinition,
        "restart": RestartDefinition,
        "capacity": CapacityDefinition,
    }
    # The figures have definitions of their own kind, and tests of their own.
    papers = ("", "broker-", "placement-", "chunking-", "overlay-", "wire-", "dht-")
    figures = {f"{paper}figures" for paper in papers}
    assert {path.stem for path in DEFINITIONS.glob("*.toml")} == {*kinds, *figures, "deployments"}
    for name, kind in kinds.items():
        definition = read_definition(DEFINITIONS, name, kind)
        assert set(definition.sets) == {"quick", "short", "full"}
        assert definition.bound.strip()


def test_definition_with_a_misspelt_key_is_refused(tmp_path: Path) -> None:
    text = (DEFINITIONS / "door.toml").read_text(encoding="utf-8")
    (tmp_path / "door.toml").write_text(text.replace("rounds", "round", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match="round"):
        read_definition(tmp_path, "door", DoorDefinition)


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    record = {"benchmarks": [{"name": "door", "results": [{}]}], "workload": {"name": "news"}}
    assert not draw(record, tmp_path / "plot.png")
    assert not list(tmp_path.iterdir())
