"""Random queries that are close to a given message: most of them match, the others nearly do.

A walk from the root to a random element gives the steps; some become `//` or `*`, some get
predicates with values, positions or nested paths that the message has, and now and then a part is
spoilt.

Example:
    >>> import random
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers import parse
    >>> tree = parse(b"<order xmlns='urn:o'><item sku='7'>tea</item></order>", Limits())
    >>> query = random_query_for(random.Random(3), tree, "q1")
    >>> query.text, query.namespaces
    ('/n0:order[n0:item]', {'n0': 'urn:o'})

It asks the message alone, not a schema.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from generators.string_text import joined_string
from pathcast.message import MessageTree
from pathcast.model import Query

_INTEGER: Final = re.compile(r"\s*[0-9]{1,15}\s*", re.ASCII)
"""Exact as a double in every implementation."""


def random_query_for(random: Random, tree: MessageTree, query_id: str) -> Query:
    """One query close to a message, with the prefixes it uses bound."""
    writer = _Writer(random, tree)
    text = writer.path()
    return Query(query_id, text, writer.namespaces or None)


class _Writer:
    def __init__(self, random: Random, tree: MessageTree) -> None:
        self.random = random
        self.tree = tree
        self.namespaces: dict[str, str] = {}
        self.prefixes: dict[str, str] = {}

    def path(self) -> str:
        random, tree = self.random, self.tree
        element = random.randrange(len(tree))
        walk = []
        while element >= 0:
            walk.append(element)
            element = tree.parent[element]
        text, is_deep = "", False
        for element in reversed(walk):
            if random.randrange(5) == 0 and element != walk[0]:
                is_deep = True
                continue
            text += ("//" if is_deep or random.randrange(6) == 0 else "/") + self.step(element)
            is_deep = False
        return text

    def step(self, element: int) -> str:
        random = self.random
        name = "*" if random.randrange(6) == 0 else self.name(self.tree.name[element])
        text = name
        if random.randrange(8) == 0:
            text += f"[{self.position(element, name == '*')}]"
        while random.randrange(4) == 0:
            text += f"[{self.condition(element)}]"
        return text

    def name(self, name: tuple[str, str], *, is_attribute: bool = False) -> str:
        uri, local = name
        if uri == "http://www.w3.org/XML/1998/namespace":
            return f"xml:{local}"
        if not uri:
            return local
        if not is_attribute and self.random.randrange(12) == 0:
            return f"*:{local}"
        prefix = self.prefixes.setdefault(uri, f"n{len(self.prefixes)}")
        self.namespaces[prefix] = uri
        return f"{prefix}:*" if self.random.randrange(12) == 0 else f"{prefix}:{local}"

    def position(self, element: int, is_wildcard: bool) -> str:
        """The position of the element among its siblings, or one beside it."""
        tree, random = self.tree, self.random
        parent, number = tree.parent[element], 1
        if parent >= 0:
            for sibling in range(parent + 1, element):
                is_sibling = tree.parent[sibling] == parent
                number += is_sibling and (is_wildcard or tree.name[sibling] == tree.name[element])
        if random.randrange(4) == 0:
            number += 1
        if random.randrange(2):
            return str(number)
        return f"position() {random.choice(('<=', '>=', '=', '<', '>'))} {number}"

    def condition(self, element: int) -> str:
        tree, random = self.tree, self.random
        attributes = range(tree.attribute_start[element], tree.attribute_start[element + 1])
        texts = [
            text
            for text in range(tree.text_start[element], tree.text_end[element])
            if tree.text_parent[text] == element
        ]
        end = tree.element_end[element]
        if attributes and random.randrange(2):
            attribute = random.choice(attributes)
            name = self.name(tree.attribute_name[attribute], is_attribute=True)
            return self.compared(f"@{name}", tree.attribute_value[attribute])
        if texts and random.randrange(2):
            return self.compared("text()", tree.text_value[random.choice(texts)])
        if end > element + 1 and random.randrange(3):
            return self.nested(element, random.randrange(element + 1, end))
        return self.compared(
            ".", "".join(tree.text_value[tree.text_start[element] : tree.text_end[element]])
        )

    def nested(self, element: int, inner: int) -> str:
        """A path from an element to one inside it."""
        tree, random = self.tree, self.random
        parent = tree.parent[inner]
        if parent != element and random.randrange(2):
            return f".//{self.name(tree.name[parent])}/{self.name(tree.name[inner])}"
        text = self.name(tree.name[inner])
        if random.randrange(3) == 0:
            text += f"[{self.condition(inner)}]"
        return text if parent == element else f".//{text}"

    def compared(self, left: str, value: str) -> str:
        random = self.random
        if len(value) > 40 or random.randrange(4) == 0:
            return left if left != "." else ". != 'x'"
        if random.randrange(3) == 0 and _INTEGER.fullmatch(value):
            number = int(value) + random.choice((-1, 0, 0, 1))
            return f"{left} {random.choice(('=', '<', '<=', '>', '>=', '!='))} {number}"
        return f"{left} {random.choice(('=', '=', '=', '!='))} {joined_string(random, value)}"
