"""What the tests of the door share: the table of cases, real messages, trees as text, by lxml."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from lxml import etree

from pathcast.errors import KernelMissingError, MessageError
from pathcast.limits import Limits
from pathcast.message import ExpandedName, MessageTree
from pathcast_papers.message import parse_message
from shared_data import shared_path

ROOT = Path(__file__).resolve().parent.parent

Door: TypeAlias = Callable[[bytes, Limits, str | None], MessageTree]
"""One of the doors."""

DOORS = ("kernel", "reference")


def door(name: str) -> Door:
    """A door; skips the test, with the reason, when it is the kernel's and there is no kernel."""
    if name == "reference":
        return parse_message
    try:
        from pathcast import kernel
    except KernelMissingError as error:
        pytest.skip(str(error))
    return kernel.parse


def verdict(parse: Door, message: bytes, encoding: str | None = None) -> MessageTree | str:
    """The tree of a message, or the code of its refusal."""
    try:
        return parse(message, Limits(), encoding)
    except MessageError as error:
        return error.code


def is_same(found: MessageTree | str, expected: MessageTree | str) -> bool:
    """Whether two doors give the same verdict, or the same tree with the same details."""
    if isinstance(found, MessageTree) and isinstance(expected, MessageTree):
        return found == expected and found.details == expected.details
    return found == expected


@functools.cache
def cases() -> list[dict[str, Any]]:
    """The table of well-formedness cases."""
    table = tomllib.loads((ROOT / "testdata" / "wellformedness.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = table["case"]
    assert len(found) >= 200, "the table of cases has shrunk"
    return found


def message_of(case: dict[str, Any]) -> bytes:
    """The bytes of a case."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    message: str = case["message"]
    return message.encode()


def shared_documents() -> list[Path]:
    """Every file of the shared documents; skips the test if they are not here."""
    folders = [shared_path(name) for name in ("docs", "literature", "workloads/yfilter/docs")]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def dump(tree: MessageTree) -> str:
    """A tree as text: `(element @attribute="value" "text" (child))`."""
    pieces: list[str] = []
    open_elements: list[int] = []
    text = 0

    def texts_before(end: int) -> None:
        nonlocal text
        while text < end:
            pieces.append(f" {_quoted(tree.text_value[text])}")
            text += 1

    def close_before(element: int) -> None:
        while open_elements and tree.element_end[open_elements[-1]] <= element:
            texts_before(tree.text_end[open_elements.pop()])
            pieces.append(")")

    for element in range(len(tree)):
        close_before(element)
        texts_before(tree.text_start[element])
        pieces.append(f"{' ' if pieces else ''}({_written(tree.name[element])}")
        for at in range(tree.attribute_start[element], tree.attribute_start[element + 1]):
            value = _quoted(tree.attribute_value[at])
            pieces.append(f" @{_written(tree.attribute_name[at])}={value}")
        open_elements.append(element)
    close_before(len(tree))
    return "".join(pieces)


def _written(name: ExpandedName) -> str:
    uri, local = name
    return f"{{{uri}}}{local}" if uri else local


def _quoted(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def sorted_attributes(tree: MessageTree) -> MessageTree:
    """The same tree with the attributes of each element by name: their order means nothing."""
    names, values = list(tree.attribute_name), list(tree.attribute_value)
    for start, end in zip(tree.attribute_start, tree.attribute_start[1:], strict=False):
        pairs = sorted(zip(names[start:end], values[start:end], strict=True))
        names[start:end] = [name for name, _ in pairs]
        values[start:end] = [value for _, value in pairs]
    columns = {column: getattr(tree, column) for column in MessageTree.__slots__}
    return MessageTree(**{**columns, "attribute_name": names, "attribute_value": values})


def lxml_tree(message: bytes) -> MessageTree | str:
    """The tree that lxml gives, or what it finds wrong."""
    # Entities of the document itself are expanded; nothing is fetched.
    parser = etree.XMLParser(no_network=True, huge_tree=True, load_dtd=False)
    try:
        root = etree.fromstring(message, parser)
    except etree.XMLSyntaxError as error:
        return str(error)
    return _LxmlTree().build(root)


class _LxmlTree:
    def __init__(self) -> None:
        self.tree = MessageTree()
        self.open: list[tuple[int, Iterator[Any], str | None]] = []
        self.text: list[str] = []

    def build(self, root: Any) -> MessageTree:
        self.start(root, None)
        while self.open:
            number, children, tail = self.open[-1]
            child = next(children, None)
            if child is None:
                self.end_text(number)
                self.open.pop()
                self.tree.element_end[number] = len(self.tree)
                self.tree.text_end[number] = len(self.tree.text_value)
                self.text.extend([tail] if tail and self.open else [])
                continue
            self.end_text(number)
            if isinstance(child.tag, str):
                self.start(child, child.tail)
            elif child.tail:
                self.text.append(child.tail)
        self.tree.attribute_start.append(len(self.tree.attribute_name))
        return self.tree

    def start(self, element: Any, tail: str | None) -> None:
        tree, number = self.tree, len(self.tree)
        tree.name.append(self.name(element.tag))
        tree.parent.append(self.open[-1][0] if self.open else -1)
        tree.depth.append(len(self.open))
        tree.element_end.append(0)
        tree.attribute_start.append(len(tree.attribute_name))
        tree.text_start.append(len(tree.text_value))
        tree.text_end.append(0)
        for name, value in element.attrib.items():
            tree.attribute_name.append(self.name(name))
            tree.attribute_value.append(value)
        self.open.append((number, iter(element), tail))
        self.text.extend([element.text] if element.text else [])

    def end_text(self, element: int) -> None:
        if self.text:
            self.tree.text_parent.append(element)
            self.tree.text_value.append("".join(self.text))
            self.text.clear()

    @staticmethod
    def name(tag: str) -> ExpandedName:
        uri, brace, local = tag[1:].partition("}")
        return (uri, local) if brace and tag.startswith("{") else ("", tag)
