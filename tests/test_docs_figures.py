"""docs/figures.md says what its records say, in its tables and in the words beside them.

If these fail, the page shows numbers that no run has given, or says "the same" beside a table that
says otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")

from pathcast.bench.broker.definition import BrokerFigures
from pathcast.bench.broker.page import write_broker_page
from pathcast.bench.chunking.definition import ChunkingFigures
from pathcast.bench.chunking.page import write_chunking_page
from pathcast.bench.definitions import read_definition
from pathcast.bench.deployments.definition import DeploymentFigures
from pathcast.bench.deployments.page import write_deployments_page
from pathcast.bench.dht.definition import DhtFigures
from pathcast.bench.dht.page import write_dht_page
from pathcast.bench.figures.definition import FiguresDefinition
from pathcast.bench.figures.output import read_run
from pathcast.bench.figures.page import write_page
from pathcast.bench.figures.verdicts import Answer
from pathcast.bench.overlay.definition import OverlayFigures
from pathcast.bench.overlay.page import write_overlay_page
from pathcast.bench.placement.definition import PlacementFigures
from pathcast.bench.placement.page import write_placement_page
from pathcast.bench.wire.definition import WireFigures
from pathcast.bench.wire.page import write_wire_page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "figures.md"

if not PAGE.is_file():
    pytest.skip("not in a clone: there is no docs/figures.md", allow_module_level=True)

TEXT = PAGE.read_text(encoding="utf-8")

AGREEMENT = re.compile(r"the same|as in the paper|in all points|like the paper|as the paper says")
"""Words that say how a comparison with the paper ended."""

REFERENCE = re.compile(r"(?:Figures?|Tables?|[A-Z]+ =) [\d.]+(?: and [\d.]+)?|\(\d(?:\.\d)*\)")
"""Numbers of figures, of places on an axis and of sections."""

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")

BLOCK = re.compile(r"<!-- figures:(\w+) -->(.*?)<!-- /figures:\1 -->", re.DOTALL)


def sections() -> list[tuple[str, str, str]]:
    """Heading, what is between marks, and our own words, of every figure and table."""
    found = []
    for text in re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]:
        heading, rest = text.split("\n", 1)
        rest = re.split(r"^## ", rest, flags=re.MULTILINE)[0]
        block = " ".join(match[2] for match in BLOCK.finditer(rest))
        prose = [
            paragraph
            for paragraph in BLOCK.sub("", rest).split("\n\n")
            if not paragraph.strip().startswith("**Paper**")
        ]
        found.append((heading, block, " ".join(" ".join(prose).split())))
    return found


SECTIONS = sections()


def test_every_section_has_a_block_and_words() -> None:
    assert len(SECTIONS) == 59
    assert all(block for _, block, _ in SECTIONS)
    assert sum(bool(prose) for _, _, prose in SECTIONS) >= 33


def test_tables_are_what_the_records_give(tmp_path: Path) -> None:
    """Writing the page again from the records that it links to changes nothing."""
    linked = r"\[values\.csv and record\.json\]\(\.\./benchmarks/records/([\w-]+)\)"
    runs = [ROOT / "benchmarks" / "records" / run for run in re.findall(linked, TEXT)]
    first, second, third, fourth, thousand, times, hops, fifth, sixth, seventh = runs
    page = tmp_path / "figures.md"
    page.write_text(TEXT, encoding="utf-8")
    figures = read_definition(ROOT / "benchmarks", "figures", FiguresDefinition)
    assert write_page(page, first, *read_run(first), figures)
    broker = read_definition(ROOT / "benchmarks", "broker-figures", BrokerFigures)
    assert write_broker_page(page, second, *read_run(second), broker)
    placement = read_definition(ROOT / "benchmarks", "placement-figures", PlacementFigures)
    assert write_placement_page(page, third, *read_run(third), placement)
    overlay = read_definition(ROOT / "benchmarks", "overlay-figures", OverlayFigures)
    assert write_overlay_page(page, fourth, *read_run(fourth), overlay)
    assert write_overlay_page(page, thousand, *read_run(thousand), overlay)
    assert write_overlay_page(page, times, *read_run(times), overlay)
    assert write_overlay_page(page, hops, *read_run(hops), overlay)
    chunking = read_definition(ROOT / "benchmarks", "chunking-figures", ChunkingFigures)
    assert write_chunking_page(page, fifth, *read_run(fifth), chunking)
    wire = read_definition(ROOT / "benchmarks", "wire-figures", WireFigures)
    assert write_wire_page(page, sixth, *read_run(sixth), wire)
    dht = read_definition(ROOT / "benchmarks", "dht-figures", DhtFigures)
    assert write_dht_page(page, seventh, *read_run(seventh), dht)
    assert without_folders(page.read_text(encoding="utf-8")) == without_folders(TEXT)


def test_tables_of_the_page_on_scaling_are_what_its_records_give(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    linked = r"\[values\.csv and record\.json\]\(\.\./benchmarks/records/([\w-]+)\)"
    page = tmp_path / "scaling.md"
    page.write_text(text, encoding="utf-8")
    placement = read_definition(ROOT / "benchmarks", "placement-figures", PlacementFigures)
    chunking = read_definition(ROOT / "benchmarks", "chunking-figures", ChunkingFigures)
    deployments = read_definition(ROOT / "benchmarks", "deployments", DeploymentFigures)
    runs = re.findall(linked, text)
    assert len(runs) == 4
    for run in runs:
        directory = ROOT / "benchmarks" / "records" / run
        if "-placement-" in run:
            assert write_placement_page(page, directory, *read_run(directory), placement)
        elif "-deployments-" in run:
            assert write_deployments_page(page, directory, *read_run(directory), deployments)
        else:
            assert write_chunking_page(page, directory, *read_run(directory), chunking)
    assert without_folders(page.read_text(encoding="utf-8")) == without_folders(text)


def without_folders(text: str) -> str:
    """Links to records without the way there, which depends on where a page lies."""
    return re.sub(r"\]\([^)]*/records/", "](records/", text)


@pytest.mark.parametrize(("heading", "block", "prose"), SECTIONS, ids=[s[0] for s in SECTIONS])
def test_words_claim_no_more_than_the_tables(heading: str, block: str, prose: str) -> None:
    answers = re.findall(r"^\|[^|\n]+\|[^|\n]+\| ([^|\n]+) \|[^|\n]+\|$", block, re.MULTILINE)
    verdicts = [one for one in answers if one in {answer.value for answer in Answer}]
    claims = AGREEMENT.findall(prose)
    if claims:
        assert verdicts, f"{claims} without a statement that is judged"
        assert set(verdicts) == {Answer.HOLDS.value}, f"{claims} beside {verdicts}"


@pytest.mark.parametrize(("heading", "block", "prose"), SECTIONS, ids=[s[0] for s in SECTIONS])
def test_numbers_in_the_words_are_in_the_tables(heading: str, block: str, prose: str) -> None:
    shown = set(NUMBER.findall(block))
    said = NUMBER.findall(REFERENCE.sub("", prose))
    assert not [number for number in said if number not in shown]


def test_no_run_is_quoted_that_has_no_record() -> None:
    for heading, _, prose in SECTIONS:
        assert "--full" not in prose, heading
