"""What the pages and the module texts name exists.

If these fail, a page sends its reader to a file, a module or a function that is no more, or leaves
one out of a list that is said to be all of them.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "pathcast"
PAPERS = ROOT / "papers" / "pathcast_papers"
LAB = ROOT / "lab" / "pathcast_lab"
CORE = ROOT / "kernel" / "core" / "src"

if not (ROOT / "ARCHITECTURE.md").is_file():
    pytest.skip("not in a clone: there are no pages beside the tests", allow_module_level=True)

PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md"))
    if path.name != "CHANGELOG.md" and not path.parent.name.startswith(".")
)
MODULES = sorted([*SOURCES.rglob("*.py"), *PAPERS.rglob("*.py"), *LAB.rglob("*.py")])

DOTTED = re.compile(r"\bpathcast(?:_lab|_papers)?(?:\.\w+)+")
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|rs|md|toml))(?::\w+)?`|\b(docs/[\w/-]+\.md)\b")
FOLDER = re.compile(r"`((?:src|tests|kernel|docs|lab|papers|tools|examples|testdata)/[\w/-]*)`")
TEST = re.compile(r"\b(test_\w+)\b")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

PLACEHOLDERS = {
    "NAME.toml",
    "PIPELINE.toml",
    "lab/benchmarks/NAME.toml",
    "broker.toml",
    "peer.toml",
    "registry.toml",
    "topology.toml",
}


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""


def texts() -> Iterator[tuple[str, Path, str]]:
    """Name, where its relative names begin, and text of every page and module."""
    for page in PAGES:
        yield str(page.relative_to(ROOT)), page.parent, page.read_text(encoding="utf-8")
    for module in MODULES:
        yield str(module.relative_to(ROOT)), module.parent, docstring(module)


TEXTS = list(texts())


def missing_part(name: str) -> str | None:
    """The part of a dotted name that does not exist; None if all of it does."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                return None  # a library that is not installed here
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return part
            found = getattr(found, part)
        return None
    return parts[0]


def exists(name: str, near: Path) -> bool:
    """Whether a file or folder is there: as seen from the root, the page, or a source folder."""
    roots = (
        ROOT,
        near,
        SOURCES,
        PAPERS,
        CORE,
        CORE.parent,
        ROOT / "lab/benchmarks",
        LAB,
    )
    return any((root / name).exists() for root in roots) or (
        "/" not in name and any(ROOT.glob(f"*/{name}"))
    )


@pytest.mark.parametrize(("name", "near", "text"), TEXTS, ids=[one[0] for one in TEXTS])
def test_files_modules_and_functions_exist(name: str, near: Path, text: str) -> None:
    found = {one.rstrip(".") for one in DOTTED.findall(text)}
    dotted = {one for one in found if not one.endswith((".toml", ".tsv", ".md"))}
    assert {one: part for one in sorted(dotted) if (part := missing_part(one))} == {}
    files = {one or other for one, other in FILE.findall(text)} | set(FOLDER.findall(text))
    assert sorted(one for one in files - PLACEHOLDERS if not exists(one, near)) == []


def test_the_texts_name_something() -> None:
    names = [one for _, _, text in TEXTS for one in DOTTED.findall(text)]
    files = [one for _, _, text in TEXTS for one in FILE.findall(text)]
    assert len(names) > 100
    assert len(files) > 50


def test_tests_that_are_named_exist() -> None:
    known = {path.stem for path in (ROOT / "tests").glob("*.py")}
    for path in (ROOT / "tests").glob("*.py"):
        known |= set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    for path in ROOT.glob("kernel/core/**/*.rs"):
        known |= set(re.findall(r"fn (test_\w+)", path.read_text(encoding="utf-8")))
    named = {one for name, _, text in TEXTS if name.endswith(".md") for one in TEST.findall(text)}
    # `test_differential_*` names many.
    assert [one for one in sorted(named) if not any(two.startswith(one) for two in known)] == []


def test_options_that_are_named_exist() -> None:
    commands = [*SOURCES.joinpath("cli").glob("*.py"), *LAB.joinpath("cli").glob("*.py")]
    code = [
        *commands,
        *(path for path in ROOT.glob("tools/*") if path.is_file()),
        ROOT / "Makefile",
    ]
    written = "\n".join(path.read_text(encoding="utf-8") for path in code)
    known = set(OPTION.findall(written)) | {"--help", "--find-links"}  # of Typer, of pip
    for path in commands:
        # Typer makes an option of a parameter that names none.
        found = re.findall(r"^    (\w+): ", path.read_text(encoding="utf-8"), re.MULTILINE)
        known |= {"--" + one.replace("_", "-") for one in found}
    named = {
        option: name
        for name, _, text in TEXTS
        if name.endswith(".md")
        for option in OPTION.findall(text)
    }
    assert len(named) > 20
    assert {option: name for option, name in named.items() if option not in known} == {}


READING = re.compile(r"(?:[Rr]ead in this order|[Rr]eading\s+order):(.*?)(?:\n\n|\Z)", re.DOTALL)


def reading_orders() -> list[tuple[str, Path, str]]:
    found = []
    for module in MODULES:
        if (order := READING.search(docstring(module))) is not None:
            found.append((str(module.relative_to(ROOT)), module.parent, order[1]))
    return found


@pytest.mark.parametrize(
    ("name", "folder", "order"), reading_orders(), ids=[one[0] for one in reading_orders()]
)
def test_reading_orders_name_modules(name: str, folder: Path, order: str) -> None:
    named = re.findall(r"`(\w+)`", order)
    assert named
    assert [one for one in named if not any(folder.glob(f"{one}*"))] == []


def core_modules(file: Path) -> set[str]:
    return set(re.findall(r"^(?:pub(?:\(\w+\))? )?mod (\w+);", file.read_text("utf-8"), re.M))


ROOMS = [CORE / room / "mod.rs" for room in sorted(core_modules(CORE / "lib.rs"))]


@pytest.mark.parametrize("file", [CORE / "lib.rs", *ROOMS], ids=lambda file: str(file.parent.name))
def test_the_kernel_s_reading_orders_are_all_of_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    order = "".join(line for line in text.splitlines(True) if line.startswith("//!"))
    assert core_modules(file)
    assert core_modules(file) == set(re.findall(r"`(\w+)`", order))


def test_the_list_of_the_kernel_s_modules_is_all_of_them() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = page[page.index("`kernel/core` is the same") : page.index("## Two languages")]
    modules = {room.parent.name for room in ROOMS}.union(*map(core_modules, ROOMS))
    assert len(modules) > 20
    assert modules == set(re.findall(r"`(\w+)`", listed))


def test_the_table_of_rooms_is_all_of_them() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `pathcast\.(\w+)` \|", page, re.MULTILINE))
    rooms = {path.stem for path in SOURCES.glob("*.py")} | {
        path.parent.name for path in SOURCES.glob("*/__init__.py")
    }
    assert listed == rooms - {"__init__", "__main__"}
