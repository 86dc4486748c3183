"""Families of queries, as data that can be changed a little at a time.

Example:
    >>> predicate = Predicate(kind="attribute is its number", value=0)
    >>> family = Family(steps=(Step(is_deep=True, predicates=(predicate,)),), count=2)
    >>> [family.query(number) for number in range(2)]
    ['//a[@x="0"]', '//a[@x="1"]']
    >>> family.model_copy(update={"form": "flwr"}).query(0)
    '<o>{for $v in //a[@x="0"] return <p>{$v}</p>}</o>'

A family is one text with a number in it: its queries share what they can, and differ in a value or
in a name that no message has.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Final, Literal

from pydantic import Field

from cost.messages import ATTRIBUTES, NAMES, Gene

QUERIES_MAX: Final = 1_000
"""Queries of a candidate."""

STEPS_MAX: Final = 6
"""Steps of a path."""

NESTING_MAX: Final = 2
"""Predicates inside one another."""

ANY: Final = len(NAMES)
"""The name test `*`."""

ABSENT: Final = len(NAMES) + 1
"""A name that no message has, another one for every query."""

Axis = Literal[
    "child", "parent", "ancestor", "following", "preceding", "following-sibling",
    "preceding-sibling", "descendant-or-self",
]  # fmt: skip

PredicateKind = Literal[
    "position", "last", "odd", "attribute", "attribute is", "attribute is its number",
    "attribute above", "attribute above its number", "starts with", "is", "is its number",
    "contains", "contains its number", "length", "normalized", "path", "path is",
    "path is its number", "no path", "count of path", "sum of path", "path is attribute",
    "or", "position below last",
]  # fmt: skip

Form = Literal[
    "path", "union", "count", "not", "sum", "equal", "concat",
    "flwr", "where", "nested", "ordered", "counted", "quantified",
]  # fmt: skip

FLWR_FORMS: Final = ("flwr", "where", "nested", "ordered", "counted", "quantified")
"""Forms that only a broker takes."""

_WITH_PATH: Final = (
    "path", "path is", "path is its number", "no path", "count of path", "sum of path",
    "path is attribute", "or",
)  # fmt: skip


class Predicate(Gene):
    """A predicate of a step.

    Attributes:
        kind: What it says.
        value: Its number, where it has one.
        path: Its path, where it has one.
    """

    kind: PredicateKind
    value: Annotated[int, Field(ge=0, le=4096)] = 1
    path: tuple[Step, ...] = ()

    def text(self, number: int) -> str:
        """As XPath, in the query of this number."""
        value = self.value
        path = path_text(self.path, number, is_relative=True) if self.path else "."
        x = f"@{ATTRIBUTES[value % len(ATTRIBUTES)]}"
        said = {
            "position": f"{value or 1}",
            "last": "last()",
            "odd": "position() mod 2 = 1",
            "position below last": f"position() < last() - {value}",
            "attribute": x,
            "attribute is": f'@x="{value}"',
            "attribute is its number": f'{x}="{number}"',
            "attribute above": f"@x > {value}",
            "attribute above its number": f"@x > {number}",
            "starts with": f'starts-with(@x, "{value}")',
            "is": f'. = "w{value}"',
            "is its number": f'. = "w{number}"',
            "contains": f'contains(., "w{value}")',
            "contains its number": f'contains(., "w{number}t")',
            "length": f"string-length(.) > {value}",
            "normalized": f'normalize-space(.) = "w{number}"',
            "path": path,
            "path is": f'{path} = "w{value}"',
            "path is its number": f'{path} = "{number}"',
            "no path": f"not({path})",
            "count of path": f"count({path}) > {value}",
            "sum of path": f"sum({path}) = {value}",
            "path is attribute": f"{path} = @x",
            "or": f'@x="{number}" or {path}',
        }[self.kind]
        return f"[{said}]"


class Step(Gene):
    """A location step.

    Attributes:
        name: Place in `NAMES`, or `ANY`, or `ABSENT`.
        is_deep: Whether `//` stands before it.
        axis: Its axis.
        predicates: Its predicates.
    """

    name: Annotated[int, Field(ge=0, le=ABSENT)] = 0
    is_deep: bool = False
    axis: Axis = "child"
    predicates: tuple[Predicate, ...] = ()

    def text(self, number: int) -> str:
        """As XPath, without what stands before it."""
        name = (*NAMES, "*", f"q{number}")[self.name]
        axis = "" if self.axis == "child" else f"{self.axis}::"
        return f"{axis}{name}" + "".join(one.text(number) for one in self.predicates)


def path_text(steps: tuple[Step, ...], number: int, *, is_relative: bool) -> str:
    """A path as XPath; `.` for no steps."""
    if not steps:
        return "." if is_relative else "/*"
    text = ""
    for place, step in enumerate(steps):
        if place or not is_relative:
            text += "//" if step.is_deep else "/"
        elif step.is_deep:
            text += ".//"
        text += step.text(number)
    return text


class Family(Gene):
    """Queries that differ in a number.

    Attributes:
        steps: The path; a FLWR's binding path.
        other: A second path: of a union, a where clause, an inner FLWR. Relative in a FLWR.
        form: What is made of the paths.
        count: How many queries there are.
    """

    steps: tuple[Step, ...]
    other: tuple[Step, ...] = ()
    form: Form = "path"
    count: Annotated[int, Field(ge=1, le=QUERIES_MAX)] = 1

    @property
    def is_flwr(self) -> bool:
        """Whether it is for brokers only."""
        return self.form in FLWR_FORMS

    def query(self, number: int) -> str:
        """The query of a number."""
        path = path_text(self.steps, number, is_relative=False)
        other = path_text(self.other, number, is_relative=False)
        inner = "$v" if not self.other else f"$v/{path_text(self.other, number, is_relative=True)}"
        inner = inner.replace("$v/./", "$v/").replace("$v/.//", "$v//")
        return {
            "path": path,
            "union": f"{path} | {other}",
            "count": f"count({path}) > {number}",
            "not": f"not({path})",
            "sum": f"sum({path}) = {number}",
            "equal": f"{path} = {other}",
            "concat": f'contains(concat({path}, {other}), "w{number}")',
            "flwr": f"<o>{{for $v in {path} return <p>{{{inner}}}</p>}}</o>",
            "where": (
                f'<o>{{for $v in {path} where {inner} = "{number}" return <p>{{$v/@x}}</p>}}</o>'
            ),
            "nested": (
                f"<o>{{for $v in {path} return <p>{{for $u in {inner} return <i>{{$u/@x}}</i>}}"
                "</p>}</o>"
            ),
            "ordered": (
                f"<o>{{for $v in {path} order by {inner}[1] return <p>{{$v/@x}}</p>}}</o>"
                if self.other
                else f"<o>{{for $v in {path} order by string($v) return <p>{{$v/@x}}</p>}}</o>"
            ),
            "counted": f"<o>{{for $v in {path} return <p n='{{count({inner})}}'/>}}</o>",
            "quantified": (
                f"<o>{{for $v in {path} where some $u in {inner} satisfies $u/@x = $v/@y "
                "return <p/>}</o>"
            ),
        }[self.form]


def random_family(random: Random) -> Family:
    """A family, most often of plain paths."""
    form: Form = random.choice(
        ("path",) * 6 + ("union", "count", "not", "sum", "equal", "concat") + FLWR_FORMS
    )
    return Family(
        steps=_random_steps(random, 0),
        other=_random_steps(random, 1) if form != "path" else (),
        form=form,
        count=random.choice((1, 10, 100, 1000)),
    )


def _random_steps(random: Random, nesting: int) -> tuple[Step, ...]:
    return tuple(_random_step(random, nesting) for _ in range(random.choice((1, 2, 2, 3, 4))))


def _random_step(random: Random, nesting: int) -> Step:
    axes: tuple[Axis, ...] = Axis.__args__  # type: ignore[attr-defined]
    return Step(
        name=random.choice((0, 0, 1, 1, 2, ANY, ANY, ABSENT)),
        is_deep=random.random() < 0.6,
        axis="child" if random.random() < 0.9 else random.choice(axes),
        predicates=tuple(
            _random_predicate(random, nesting) for _ in range(random.choice((0, 0, 1, 1, 2)))
        ),
    )


def _random_predicate(random: Random, nesting: int) -> Predicate:
    kinds: tuple[PredicateKind, ...] = PredicateKind.__args__  # type: ignore[attr-defined]
    if nesting >= NESTING_MAX:
        kinds = tuple(kind for kind in kinds if kind not in _WITH_PATH)
    kind = random.choice(kinds)
    path = _random_steps(random, nesting + 1) if kind in _WITH_PATH else ()
    return Predicate(kind=kind, value=random.choice((0, 1, 2, 5, 50)), path=path)


def mutated_family(family: Family, random: Random) -> Family:
    """A family beside this one."""
    change = random.random()
    if change < 0.15:
        count = random.choice((1, 10, 100, QUERIES_MAX, family.count * 3, family.count // 3))
        return family.model_copy(update={"count": max(1, min(QUERIES_MAX, count))})
    if change < 0.25:
        return family.model_copy(update={"form": random_family(random).form})
    if family.other and change < 0.45:
        return family.model_copy(update={"other": _mutated_steps(family.other, random, 1)})
    if change < 0.5:
        return family.model_copy(update={"other": _random_steps(random, 1)})
    return family.model_copy(update={"steps": _mutated_steps(family.steps, random, 0)})


def _mutated_steps(steps: tuple[Step, ...], random: Random, nesting: int) -> tuple[Step, ...]:
    many = list(steps)
    change = random.random()
    if change < 0.2 and len(many) < STEPS_MAX:
        many.insert(random.randrange(len(many) + 1), _random_step(random, nesting))
    elif change < 0.3 and many:
        many.insert(random.randrange(len(many) + 1), random.choice(many))
        del many[STEPS_MAX:]
    elif change < 0.4 and len(many) > 1:
        del many[random.randrange(len(many))]
    elif many:
        at = random.randrange(len(many))
        many[at] = _mutated_step(many[at], random, nesting)
    return tuple(many)


def _mutated_step(step: Step, random: Random, nesting: int) -> Step:
    predicates = list(step.predicates)
    change = random.random()
    if change < 0.2:
        return step.model_copy(update={"name": _random_step(random, nesting).name})
    if change < 0.35:
        return step.model_copy(update={"is_deep": not step.is_deep})
    if change < 0.4:
        return step.model_copy(update={"axis": _random_step(random, nesting).axis})
    if predicates and change < 0.5:
        del predicates[random.randrange(len(predicates))]
    elif predicates and change < 0.75:
        at = random.randrange(len(predicates))
        predicates[at] = _mutated_predicate(predicates[at], random, nesting)
    elif len(predicates) < 4:
        predicates.append(_random_predicate(random, nesting))
    return step.model_copy(update={"predicates": tuple(predicates)})


def _mutated_predicate(predicate: Predicate, random: Random, nesting: int) -> Predicate:
    if predicate.path and random.random() < 0.7:
        path = _mutated_steps(predicate.path, random, nesting + 1)
        return predicate.model_copy(update={"path": path})
    if random.random() < 0.5:
        return predicate.model_copy(update={"value": random.choice((0, 1, 2, 3, 10, 100, 1000))})
    return _random_predicate(random, nesting)
