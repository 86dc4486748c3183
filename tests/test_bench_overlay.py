"""`pathcast-lab bench overlay-figures`: what it measures, keeps and writes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from oracles import missing_reason
from pathcast_lab.bench.overlay.state import (
    BYTES,
    network,
    root_tables_bytes,
    spanning_tree_bytes,
)
from pathcast_lab.bench.overlay.topology import breadth_first

if missing_reason("kernel") is not None:
    pytest.skip(str(missing_reason("kernel")), allow_module_level=True)


def test_tables_hold_what_stands_behind_them() -> None:
    """Counted again, link by link, from who is behind whom."""
    random = Random(1)
    neighbours = network(random, 12)
    own = [random.getrandbits(40) for _ in neighbours]

    def behind(parent: list[int], away: int, start: int) -> int:
        found, waiting, seen = 0, [start], {away, start}
        while waiting:
            at = waiting.pop()
            found |= own[at]
            for other in range(len(own)):
                if other not in seen and (parent[other] == at or parent[at] == other):
                    seen.add(other)
                    waiting.append(other)
        return found.bit_count()

    _, parent = breadth_first(neighbours, 0)
    links = [(at, above) for at, above in enumerate(parent) if above >= 0]
    both = sum(behind(parent, a, b) + behind(parent, b, a) for a, b in links)
    assert spanning_tree_bytes(neighbours, own) == BYTES * both
    one_root = sum(behind(parent, above, at) for at, above in links)
    assert root_tables_bytes(neighbours, own, range(1)) == BYTES * one_root


def test_a_quick_run_writes_record_plot_and_page(tmp_path: Path) -> None:
    from pathcast_lab.cli import build_app

    page = tmp_path / "page.md"
    names = ["budgets", "forms", "state", "projection", "restructuring", "hops"]
    names += ["links", "broad_interests", "shapes", "pareto"]
    names += ["changes", "in_force", "host_brokers", "capacity"]
    blocks = ["run", "thousand_run", "times_run", "hops_run", *names]
    marks = (f"<!-- figures:overlay_{each} --><!-- /figures:overlay_{each} -->" for each in blocks)
    page.write_text("\n".join(marks), encoding="utf-8")
    arguments = ["bench", "overlay-figures", "--quick", "--out", tmp_path / "out", "--page", page]
    result = CliRunner().invoke(build_app(), [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    [directory] = (tmp_path / "out").iterdir()
    record = json.loads((directory / "record.json").read_text(encoding="utf-8"))
    assert [figure["name"] for figure in record["figures"]] == names
    assert all(figure["is_complete"] and figure["checks"] for figure in record["figures"])
    drawn = {path.stem.removeprefix("overlay-") for path in directory.glob("*.png")}
    assert drawn == {"budgets", "hops", "pareto", "in_force", "host_brokers"}
    assert all(path.stat().st_size > 10_000 for path in directory.glob("*.png"))
    written = page.read_text(encoding="utf-8")
    headings = ["wrongly forwarded", "pairs wrongly held", "of one tree", "routed and cut"]
    headings += ["a further hop", "exact tables"]
    headings += ["changes a second", "p99", "closest brokers", "a root takes a message"]
    assert all(heading in written for heading in headings)
    for before, after in itertools.pairwise(written.index(heading) for heading in headings):
        assert before < after
