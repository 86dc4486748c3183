"""Random schemas, messages that are built after them, queries of both, and what lxml selects.

Example:
    >>> from random import Random
    >>> case = Case(Random(4), has_namespaces=False)
    >>> case.paths.root, b"<a n='1'" in case.message()
    (('', 'a'), True)

lxml is imported when it is first needed.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from generators.alphabet import Alphabet
from generators.expression_text import ExpressionShape, random_expression
from generators.query_text import random_query
from oracles.lxml_oracle import in_xpath_1_names
from pathcast.query.notation import notation
from pathcast.query.reader import read_query
from pathcast.query.syntax import BinaryExpr, BinaryOperator, Expr, LocationPath
from pathcast.schema import ElementPaths, parse_dtd

LOCALS = ("a", "b", "c", "d", "e")
NAMESPACES = {"p": "urn:p"}


class Case:
    """A schema with recursion or without, messages and queries of its names.

    Args:
        random: Everything is drawn from it.
        has_namespaces: Whether some names are in a namespace.
    """

    def __init__(self, random: Random, *, has_namespaces: bool) -> None:
        self.random = random
        self.names = [
            f"p:{name}" if has_namespaces and random.randrange(3) == 0 else name for name in LOCALS
        ]
        self.namespaces = NAMESPACES if has_namespaces else {}
        is_recursive = random.randrange(2) == 0
        self.children: dict[str, list[str]] = {}
        for number, name in enumerate(self.names):
            below = self.names if is_recursive else self.names[number + 1 :]
            self.children[name] = [each for each in below if random.randrange(2)]
        if not self.children[self.names[0]]:
            self.children[self.names[0]] = [self.names[1]]
        declarations = "".join(
            f"<!ELEMENT {name} (#PCDATA{''.join('|' + each for each in below)})*>"
            for name, below in self.children.items()
        )
        self.paths = ElementPaths(
            parse_dtd(declarations), root=self.names[0], namespaces={"p": "urn:p", "": ""}
        )
        self.alphabet = Alphabet(elements=LOCALS, attributes=("x", "y"), namespaces=self.namespaces)
        self.number = 0

    def message(self) -> bytes:
        """A message with its elements numbered by an attribute."""
        self.number = 0
        prolog = self.random.choice(("", "<?xml version='1.0'?>", "<!-- <!DOCTYPE --><?p i?>\n"))
        declared = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in self.namespaces.items())
        return (prolog + self._element(self.names[0], 6, declared)).encode()

    def _element(self, name: str, depth: int, declared: str = "") -> str:
        random = self.random
        self.number += 1
        tag = f"{name}{declared} n='{self.number}'"
        for attribute in ("x", "y"):
            if random.randrange(3) == 0:
                tag += f" {attribute}='{random.choice(('1', '2', 'u', '>', '/'))}'"
        content = ""
        below = self.children[name]
        if below and depth and self.number < 60:
            for _ in range(random.randrange(5)):
                content += random.choice(("", "", "1", "u", "<!-- <b> -->", "<![CDATA[</b>]]>"))
                content += self._element(random.choice(below), depth - 1)
        content += random.choice(("", "", "1", "2", "<?p </b>?>"))
        if not content and random.randrange(2):
            return f"<{tag}/>"
        return f"<{tag}>{content}</{name}>"

    def query(self) -> str:
        """A query of any kind; its own names are more frequent than the schema allows."""
        random = self.random
        match random.randrange(3):
            case 0:
                return random_expression(random, self.alphabet, ExpressionShape(depth_max=3))
            case 1:
                return random_query(random, self.alphabet)
            case _:
                return self.schema_query()

    def schema_query(self) -> str:
        """A path down the schema, with `*`, `//`, `..` and conditions here and there."""
        random = self.random
        here, text = self.names[0], ""
        for number in range(random.randrange(1, 6)):
            below = [self.names[0]] if number == 0 else self.children[here]
            if not below:
                break
            here = random.choice(below)
            if random.randrange(6) == 0 and number:
                text += "/.."
            separator = "//" if random.randrange(4) == 0 else "/"
            text += separator + ("*" if random.randrange(6) == 0 else here)
            if random.randrange(3) == 0:
                text += self._condition(here)
        return text

    def _condition(self, here: str) -> str:
        random = self.random
        child = random.choice(self.children[here] or self.names)
        other = random.choice(self.names)
        return random.choice(
            (
                f"[{child}]",
                f"[{child}='1']",
                f"[not({child}/{other})]",
                f"[count({child}) > 1]",
                f"[{child}[2]]",
                f"[//{other}/@x = @y]",
                f"[/{self.names[0]}/{other}]",
                f"[../{other}/@x]",
                f"[following-sibling::{other}]",
                f"[preceding-sibling::*[1][self::{other}]]",
                f"[following::{other}]",
                f"[preceding::{other}[1]/@x = 1]",
                f"[ancestor::{other}/@y]",
                f"[descendant::{other}[last()]/@x]",
                "[2]",
                "[last()]",
                "[position() < 3][@x]",
                "[. = '1']",
                "[text()]",
                "[string-length() > 2]",
                "[@x or @y = 'u']",
                f"[.//{other}]",
                f"[*[2]/@x or {child}//{other}]",
                f"[({child}|{other})[1]/@n > 3]",
                f"[name(*) = '{child}']",
            )
        )


def from_document(text: str, namespaces: dict[str, str]) -> str:
    """A union of location paths as absolute ones: lxml begins at the root element."""
    branches: list[Expr] = [read_query(text, namespaces)]
    paths: list[Expr] = []
    while branches:
        branch = branches.pop()
        if isinstance(branch, BinaryExpr) and branch.operators[0] is BinaryOperator.UNION:
            branches += branch.operands
        elif isinstance(branch, LocationPath):
            paths.append(replace(branch, is_absolute=True))
        else:
            paths.append(branch)
    return " | ".join(notation(path) for path in paths)


def selected(text: str, tree: Any, namespaces: dict[str, str]) -> set[tuple[object, ...]]:
    """The nodes that lxml selects, by what they are and the number of their element.

    Raises:
        etree.XPathError: lxml does not read the query.
    """
    from lxml import etree

    found = etree.XPath(in_xpath_1_names(text), namespaces=namespaces or None)(tree)
    if not isinstance(found, list):
        raise etree.XPathError("no node-set")
    nodes: set[tuple[object, ...]] = set()
    for node in found:
        if isinstance(node, tuple):
            nodes.add(("namespace", *node))
        elif isinstance(node, str):
            parent = node.getparent()  # type: ignore[attr-defined]
            is_attribute = node.is_attribute  # type: ignore[attr-defined]
            kind = node.attrname if is_attribute else "text"  # type: ignore[attr-defined]
            nodes.add((kind, str(node), parent.get("n"), node.is_tail))  # type: ignore[attr-defined]
        elif isinstance(node.tag, str):
            content = etree.tostring(node, method="c14n", with_tail=False)
            nodes.add(("element", node.get("n"), content))
        else:
            nodes.add(("markup", etree.tostring(node, with_tail=False)))
    return nodes
