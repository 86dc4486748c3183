"""The kernel's rooms and modules are a hierarchy: no module uses itself over others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parent.parent / "kernel" / "core" / "src"
ROOMS = ("xml", "language", "engine", "registry", "files")
"""The folders of the crate, from the lowest to the highest; a module is a part of one of them."""

Path_ = tuple[str, ...]
TOKEN = re.compile(r"\w+|::|[{},*]|\S")
COMMENT_OR_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r#".*?"#|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL
)
TESTS = re.compile(r"#\[cfg\(test\)\]\nmod tests \{.*", re.DOTALL)

pytestmark = pytest.mark.skipif(
    not CORE.is_dir(), reason="not in a clone: there is no kernel beside the tests"
)


def paths_in(text: str) -> Iterator[Path_]:
    """Yields every path that begins with `crate` or `super`, the groups of a `use` written out.

    Example:
        >>> list(paths_in("use crate::nfa::{Nfa, growing::A}; fn f(x: super::C) {}"))
        [('crate', 'nfa', 'Nfa'), ('crate', 'nfa', 'growing', 'A'), ('super', 'C')]
    """
    tokens = TOKEN.findall(text)

    def read(at: int, before: Path_) -> tuple[int, list[Path_]]:
        if tokens[at] == "{":
            found: list[Path_] = []
            while tokens[at] != "}":
                at, inner = read(at + 1, before) if tokens[at + 1] != "}" else (at + 1, [])
                found += inner
            return at + 1, found
        here = (*before, tokens[at])
        if tokens[at + 1 : at + 2] == ["::"] and re.match(r"\w|[{*]", tokens[at + 2]):
            return read(at + 2, here)
        if tokens[at + 1 : at + 2] == ["as"]:
            return at + 3, [here]
        return at + 1, [here]

    at = 0
    while at < len(tokens):
        if tokens[at] in {"crate", "super"} and tokens[at + 1] == "::":
            at, found = read(at, ())
            yield from found
        else:
            at += 1


def module_of(path: Path_) -> str:
    """Returns the module that a path of the crate lies in."""
    return "::".join(path[:2])


def uses_of(file: Path) -> Iterator[Path_]:
    """Yields the paths that a file names outside its tests, from the root of the crate."""
    parts = file.relative_to(CORE).with_suffix("").parts
    home = parts[:-1] if parts[-1] == "mod" else parts
    text = TESTS.sub("", COMMENT_OR_TEXT.sub("", file.read_text(encoding="utf-8")))
    for path in paths_in(text):
        ups = sum(part == "super" for part in path)
        absolute = path[1:] if path[0] == "crate" else (*home[: len(home) - ups], *path[ups:])
        if absolute:
            yield absolute


def uses() -> dict[tuple[str, str], str]:
    """Returns which module uses which, and a file where it does."""
    found: dict[tuple[str, str], str] = {}
    for file, here in modules().items():
        for path in uses_of(file):
            if module_of(path) != here:
                found.setdefault((here, module_of(path)), str(file.relative_to(CORE)))
    return found


def modules() -> dict[Path, str]:
    """Returns files and their modules; the lists of modules are left out."""
    lists = {CORE / "lib.rs", *(CORE / room / "mod.rs" for room in ROOMS)}
    return {
        file: module_of(file.relative_to(CORE).with_suffix("").parts)
        for file in sorted(CORE.rglob("*.rs"))
        if file not in lists
    }


def test_a_use_is_of_a_module() -> None:
    """A name that a room exports again would hide which module it comes from."""
    found = uses()
    known = set(modules().values())
    assert len(known) > 20
    assert len(found) > 100
    assert {two for _, two in found} - known == set()


def test_a_room_uses_only_rooms_below_it() -> None:
    def level(module: str) -> int:
        return ROOMS.index(module.split("::")[0])

    upwards = {pair: file for pair, file in uses().items() if level(pair[0]) < level(pair[1])}
    assert upwards == {}


def test_no_module_uses_itself_over_others() -> None:
    found = uses()
    order = TopologicalSorter[str]()
    for one, two in sorted(found):
        order.add(one, two)
    try:
        order.prepare()
    except CycleError as error:
        steps = [f"{two} uses {one} ({found[two, one]})" for one, two in pairwise(error.args[1])]
        pytest.fail("a circle: " + ", ".join(steps))
