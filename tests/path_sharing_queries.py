"""Queries, messages and DTDs for the tests of path sharing, and what the results must be.

The oracle follows the definition of a FLWR expression: for each element that the binding path
selects, each condition, then each return path, all by walking the tree from scratch.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pathcast.message import MessageTree
from pathcast_papers.language.xquery import (
    PaperCondition,
    PaperQuery,
    PaperReturn,
    PaperStep,
    Target,
)
from pathcast_papers.language.xquery.syntax import Comparator, NameTest, Variable

ANY = NameTest(None, None)

BOOK_DTD = """
<!ELEMENT book (title, author+, section*)>
<!ELEMENT author (#PCDATA)>
<!ELEMENT title (#PCDATA | emph)*>
<!ELEMENT emph (#PCDATA)>
<!ELEMENT section (title, (p | figure | section)*)>
<!ATTLIST section id CDATA #IMPLIED difficulty CDATA #IMPLIED>
<!ELEMENT p (#PCDATA | emph)*>
<!ELEMENT figure (title, image)>
<!ATTLIST figure id CDATA #IMPLIED>
<!ELEMENT image EMPTY>
<!ATTLIST image id CDATA #IMPLIED>
"""

BIB_DTD = """
<!ELEMENT bib (book*)>
<!ELEMENT book (title, (author+ | editor+), publisher, price)>
<!ATTLIST book id CDATA #IMPLIED>
<!ELEMENT author (last, first)>
<!ELEMENT editor (last, first, affiliation)>
<!ELEMENT title (#PCDATA)>
<!ELEMENT last (#PCDATA)>
<!ELEMENT first (#PCDATA)>
<!ELEMENT affiliation (#PCDATA)>
<!ELEMENT publisher (#PCDATA)>
<!ELEMENT price (#PCDATA)>
"""


@dataclass(frozen=True)
class Shape:
    """A vocabulary: what may stand in what (the likelier, the more often), and the root."""

    root: str
    children: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...] = ("id",)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.children)


BOOK = Shape(
    "book",
    {
        "book": ("title", "author", "section", "section", "section"),
        "author": (),
        "title": ("emph",),
        "emph": (),
        "section": ("title", "p", "figure", "section", "section", "section"),
        "p": ("emph",),
        "figure": ("title", "image"),
        "image": (),
    },
)

BIB = Shape(
    "bib",
    {
        "bib": ("book",),
        "book": ("title", "author", "editor", "publisher", "price"),
        "author": ("last", "first"),
        "editor": ("last", "first", "affiliation"),
        "title": (),
        "last": (),
        "first": (),
        "affiliation": (),
        "publisher": (),
        "price": (),
    },
)


def disorderly(shape: Shape) -> Shape:
    """What no DTD of the shape allows: every element may stand in some others, and unknown ones."""
    children = {
        name: (*inner, *shape.names[-3:], "other") for name, inner in shape.children.items()
    }
    return Shape(shape.root, {**children, "other": shape.names}, shape.attributes)


def random_message(random: Random, shape: Shape, *, elements: int = 45, depth: int = 9) -> bytes:
    """A message whose parents and children are those of a shape."""
    left = elements

    def element(name: str, level: int) -> str:
        nonlocal left
        left -= 1
        attributes = "".join(
            f' {attribute}="{random.randrange(4)}"'
            for attribute in shape.attributes
            if random.random() < 0.5
        )
        content = [random.choice(("", "", "1", "2", "x", " 2 "))]
        for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
            if left > 0 and level < depth and shape.children[name]:
                content.append(element(random.choice(shape.children[name]), level + 1))
                content.append(random.choice(("", "", "", "1", "y")))
        return f"<{name}{attributes}>{''.join(content)}</{name}>"

    return element(shape.root, 1).encode()


def random_query(random: Random, shape: Shape, *, wildcards: float = 0.1) -> PaperQuery:
    """A query of the paper's class that follows the shape most of the time."""

    def steps(
        above: str | None, length: int, conditions: float = 0.0
    ) -> tuple[tuple[PaperStep, ...], str | None]:
        found: list[PaperStep] = []
        here = above
        for _ in range(length):
            is_descendant = random.random() < 0.5
            choices: Sequence[str]
            if here is None:
                choices = shape.names if is_descendant else (shape.root,)
            else:
                choices = shape.children[here]
                if is_descendant:
                    choices = (*choices, *sorted(_below(shape, here)))
            if not choices:
                break
            # What nests is what matters.
            nested = [name for name in choices if name in shape.children[name]]
            name = random.choice(nested if nested and random.random() < 0.5 else choices)
            is_wild = random.random() < wildcards
            found.append(
                PaperStep(
                    is_descendant,
                    ANY if is_wild else NameTest("", name),
                    tuple(
                        condition(steps(name, random.choice((0, 0, 0, 1)))[0])
                        for _ in range(2)
                        if random.random() < conditions
                    ),
                )
            )
            here = name
        return tuple(found), here

    def condition(path: tuple[PaperStep, ...]) -> PaperCondition:
        target = random.choice(tuple(Target))
        attribute = None
        if target is Target.ATTRIBUTE:
            attribute = NameTest("", random.choice(shape.attributes))
            if random.random() < 0.1:
                attribute = ANY
        if random.random() < 0.2 and (path or target is not Target.ELEMENT):
            return PaperCondition(path, target, attribute, None, None)
        constant = random.choice(("1", "2", "x", "12", 1.0, 2.0, 3.0))
        comparator = random.choice((Comparator.EQ, Comparator.NE, *Comparator))
        return PaperCondition(path, target, attribute, comparator, constant)

    binding, end = steps(None, random.randrange(1, 4), 0.2)
    predicates = tuple(
        condition(steps(end, random.choice((0, 1, 1, 2, 2, 3)))[0])
        for _ in range(random.choice((0, 0, 1, 1, 2, 3)))
    )
    returns = tuple(
        PaperReturn(steps(end, random.choice((0, 1, 1, 2, 2, 3)))[0], Target.ELEMENT, None)
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    return PaperQuery(binding, predicates, returns, Variable("v"), None, "v")


def paper_query(
    binding: str,
    predicates: Sequence[tuple[str, str, str | float]],
    returns: Sequence[str | tuple[()]],
) -> PaperQuery:
    """A query from texts: paths of names and `*`; conditions as path, operator, constant.

    A return path `()` is the bound node, a condition on `@name` asks for an attribute.
    """
    return PaperQuery(
        paper_steps(binding),
        tuple(_paper_condition(*predicate) for predicate in predicates),
        tuple(PaperReturn(paper_steps(path or ""), Target.ELEMENT, None) for path in returns),
        Variable("v"),
        None,
        "v",
    )


def paper_steps(text: str) -> tuple[PaperStep, ...]:
    """The steps of a path; its predicates may be comparisons of one attribute."""
    found: list[PaperStep] = []
    for slashes, name, test in re.findall(r"(//|/|^)([^/\[]+)(\[[^]]*\])?", text):
        conditions: tuple[PaperCondition, ...] = ()
        if test:
            attribute, comparator, constant = re.findall(r"\[@(\w+)([<>=!]+)(.*)\]", test)[0]
            conditions = (_paper_condition(f"@{attribute}", comparator, float(constant)),)
        name_test = ANY if name == "*" else NameTest("", name)
        found.append(PaperStep(slashes == "//", name_test, conditions))
    return tuple(found)


def _paper_condition(path: str, comparator: str, constant: str | float) -> PaperCondition:
    steps, at, attribute = path.rpartition("@")
    if not at:
        return PaperCondition(
            paper_steps(path), Target.ELEMENT, None, Comparator(comparator), constant
        )
    name = NameTest("", attribute)
    path_steps = paper_steps(steps.rstrip("/"))
    return PaperCondition(path_steps, Target.ATTRIBUTE, name, Comparator(comparator), constant)


def _below(shape: Shape, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for child in shape.children[waiting.pop()]:
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def expected_groups(
    query: PaperQuery, tree: MessageTree
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """What a query gives for a message, by definition."""
    return tuple(
        tuple(tuple(selected(tree, path.steps, bound)) for path in query.returns)
        for bound in selected(tree, query.binding, -1)
        if all(_holds(tree, condition, bound) for condition in query.predicates)
    )


def selected(tree: MessageTree, steps: Sequence[PaperStep], start: int) -> list[int]:
    """Elements that steps select from an element, or from the document node (-1)."""
    here = {start}
    for step in steps:
        here = {
            element
            for element in range(len(tree))
            if (
                any(above in here for above in _ancestors(tree, element))
                if step.is_descendant
                else tree.parent[element] in here
            )
            and step.name.uri in (None, tree.name[element][0])
            and step.name.local in (None, tree.name[element][1])
            and all(_holds(tree, condition, element) for condition in step.conditions)
        }
    return sorted(here)


def _ancestors(tree: MessageTree, element: int) -> Iterator[int]:
    while element >= 0:
        element = tree.parent[element]
        yield element


_OPERATORS: dict[Comparator, Callable[[object, object], bool]] = {
    Comparator.EQ: operator.eq,
    Comparator.NE: operator.ne,
    Comparator.LT: operator.lt,  # type: ignore[dict-item]
    Comparator.LE: operator.le,  # type: ignore[dict-item]
    Comparator.GT: operator.gt,  # type: ignore[dict-item]
    Comparator.GE: operator.ge,  # type: ignore[dict-item]
}


def _holds(tree: MessageTree, condition: PaperCondition, start: int) -> bool:
    values: list[str] = []
    for element in selected(tree, condition.steps, start):
        texts = range(tree.text_start[element], tree.text_end[element])
        if condition.target is Target.ELEMENT:
            values.append("".join(tree.text_value[text] for text in texts))
        elif condition.target is Target.TEXT:
            values += [tree.text_value[text] for text in texts if tree.text_parent[text] == element]
        else:
            assert condition.attribute is not None
            values += [
                tree.attribute_value[number]
                for number in range(
                    tree.attribute_start[element], tree.attribute_start[element + 1]
                )
                if condition.attribute.local in (None, tree.attribute_name[number][1])
            ]
    if condition.operator is None:
        return bool(values)
    compare = _OPERATORS[condition.operator]
    if isinstance(condition.constant, str):
        return any(compare(value, condition.constant) for value in values)
    return any(compare(_number(value), condition.constant) for value in values)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
