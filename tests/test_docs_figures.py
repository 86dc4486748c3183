"""docs/figures.md says what its records say, in its tables and in the words beside them.

If these fail, the page shows numbers that no run has given, or says "the same" beside a table that
says otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")

from pathcast_lab.bench.definitions import read_definition
from pathcast_lab.bench.figures.output import read_run
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_lab.cli.figures import PAPERS

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

NOT_OF_THE_RUN = ("**Paper**", "**Known since**")
"""How paragraphs begin whose numbers are not of the run above them."""

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
            if not paragraph.strip().startswith(NOT_OF_THE_RUN)
        ]
        found.append((heading, block, " ".join(" ".join(prose).split())))
    return found


SECTIONS = sections()


def test_every_section_has_a_block_and_words() -> None:
    assert len(SECTIONS) == 61
    assert all(block for _, block, _ in SECTIONS)
    assert sum(bool(prose) for _, _, prose in SECTIONS) >= 33


@pytest.mark.parametrize(("name", "runs"), [("figures.md", 12), ("scaling.md", 4)])
def test_tables_are_what_the_records_give(tmp_path: Path, name: str, runs: int) -> None:
    """Writing a page again from the records that it links to changes nothing."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    record = r"\.\./lab/benchmarks/records/(\w+-\w+-([\w-]+)-(?:short|full))"
    linked = re.findall(rf"\[values\.csv and record\.json\]\({record}\)", text)
    assert len(linked) == runs
    page = tmp_path / name
    page.write_text(text, encoding="utf-8")
    for run, benchmark in linked:
        paper = PAPERS[benchmark]()
        directory = ROOT / "lab" / "benchmarks" / "records" / run
        definition = read_definition(ROOT / "lab" / "benchmarks", benchmark, paper.definition)
        assert paper.page.write(page, directory, *read_run(directory), definition.figures)
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
