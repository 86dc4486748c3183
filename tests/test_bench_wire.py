"""`pathcast-lab bench wire-figures`: what it compares, keeps and writes.

If these fail, a figure may show sizes and times of formats that do not give the messages back, or
say that a statement of the paper holds when it does not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pathcast[bench]'"
)
pytest.importorskip("zstandard", reason="zstandard is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.workload import domain_graph
from pathcast_lab.bench.definitions import default_directory, read_definition
from pathcast_lab.bench.figures.output import read_run
from pathcast_lab.bench.figures.point import Place
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_lab.bench.wire import experiments
from pathcast_lab.bench.wire.definition import WireFigures, WireSet
from pathcast_lab.bench.wire.experiments import WireExperiment
from pathcast_lab.bench.wire.page import measured_costs
from pathcast_lab.bench.wire.statements import COMPLEXITIES, STATEMENTS, judge
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_lab.cli import build_app
from pathcast_papers.onyx.wire import encode
from pathcast_papers.onyx.wire_formats import WireFormat, best_format


@pytest.fixture(scope="module")
def definition() -> WireFigures:
    return read_definition(default_directory(), "wire-figures", WireFigures)


def experiment(definition: WireFigures) -> WireExperiment:
    few = definition.model_copy(update={"complexities": ((4, 1),)})
    return WireExperiment(few, domain_graph("news"), lambda _: None, [])


def test_every_format_has_a_size_and_a_delay_of_its_steps(definition: WireFigures) -> None:
    one = experiment(definition)
    figures = {figure.name: figure for figure in definition.figures}
    sizes = WireSet(messages=4, rounds=2)
    [size], [delay] = (list(one.run(figures[name], sizes)) for name in ("7", "8"))
    assert {value.series for value in size} == {format.value for format in WireFormat}
    found = {(value.series, value.measure): value.spread.median for value in delay}
    for name in ("text", "stream+zlib", "dictionary+zstd"):
        steps = [
            time for (series, step), time in found.items() if series == name and step != "delay"
        ]
        assert found[name, "delay"] == pytest.approx(sum(steps))
    assert ("text", "serialise") not in found
    assert found["text", "read"] > 0
    assert len(one.checks) == 1, "one complexity is measured once"
    costs = measured_costs([*size, *delay], "4-1")
    assert set(costs) == set(WireFormat)
    assert best_format(1.0, costs).value != "text"
    [links] = one.run(figures["links"], sizes)
    assert {value.x for value in links} == set(figures["links"].bandwidths)
    [connections] = one.run(figures["connections"], sizes)
    assert all(value.spread.least > 0 for value in connections)
    assert len(connections) == 2


def test_a_format_that_changes_messages_voids_its_times(
    definition: WireFigures, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = encode

    def wrong(messages, format, *rest, **named):  # type: ignore[no-untyped-def]
        packed = right(messages, format, *rest, **named)
        if format is not WireFormat.STREAM:
            return packed
        other = right([b"<a>other</a>"], WireFormat.TEXT)
        return pa.concat_arrays([packed.slice(1), other])

    monkeypatch.setattr(experiments, "encode", wrong)
    with pytest.raises(WrongCountError, match="4-1, stream"):
        list(experiment(definition).run(definition.figures[0], WireSet(messages=3, rounds=1)))


def test_statements_are_judged_by_values() -> None:
    def sizes(dictionary: float) -> list[object]:
        return [
            Place("7", variant, series, place, 0).value("size", "B", size)
            for place, variant in enumerate(COMPLEXITIES)
            for series, size in (("text", 1000.0), ("stream", 900.0), ("dictionary", dictionary))
        ]

    good, bad = judge("7", sizes(300.0)), judge("7", sizes(990.0))  # type: ignore[arg-type]
    assert [good[0].answer, good[1].answer] == [Answer.HOLDS, Answer.HOLDS]
    assert bad[1].answer is Answer.FAILS
    assert good[2].answer is Answer.UNMEASURED
    assert {name for name in STATEMENTS if not judge(name, [])} == set()


def test_a_run_is_recorded_and_written_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    names = ["wire_run", "wire_7", "wire_8", "wire_links", "wire_connections"]
    page.write_text("".join(f"<!-- figures:{n} -->\n<!-- /figures:{n} -->\n" for n in names))
    options = ["--quick", "--out", str(tmp_path), "--page", str(page)]
    result = CliRunner().invoke(build_app(), ["bench", "wire-figures", *options])
    assert result.exit_code == 0, result.output
    [run] = tmp_path.glob("*-wire-figures-quick")
    record, values = read_run(run)
    assert [figure["name"] for figure in record["figures"]] == ["7", "8", "links", "connections"]
    assert all(figure["is_complete"] for figure in record["figures"])
    assert {value.figure for value in values} == {"7", "8", "links", "connections"}
    text = page.read_text(encoding="utf-8")
    assert "| dictionary+zstd |" in text
    assert "the paper says" in text
    assert (run / "wire-figure-7.png").is_file()
