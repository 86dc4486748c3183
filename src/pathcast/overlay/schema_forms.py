"""Entries in the widest form that says the same of every message of the sources' schemas.

Subscribers write one thing in many ways: `/orders/order/no`, `//order/no`, `/orders/*/no`. Where
the schemas have orders in one place only, all of them select the same, and one entry stands for
all: the widest, `//no` if nothing else has a number. So `//` and `*` are resolved by the schema,
and no message is missed that does not keep to it. Where the elements that a pattern branches at
occur at most once in a message, its linear paths say as much as the pattern.

Example:
    >>> forms = SchemaForms(["<!ELEMENT orders (order*)><!ELEMENT order (no, to)>"
    ...                      "<!ELEMENT no (#PCDATA)><!ELEMENT to (#PCDATA)>"])
    >>> [forms.of(each) for each in ("/orders/order/no[.=7]", "//order/no[.=7]", "//*/no[.=7]")]
    ['//no[.=7]', '//no[.=7]', '//no[.=7]']
    >>> forms.of("/orders/order[to='Bern']/no"), forms.of("/orders[order/to='Bern']/order/no")
    ("//order[.//no]//to[.='Bern']", "//no and //to[.='Bern']")

A form covers its entry whatever the schemas say; what they say decides whether it is of use. A `*`
that a pattern branches at stays, for no name covers it.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 4.2.1 and 4.4 (at most once in any message).
Differs: the paper names neither; the narrowest form, which a schema resolves `//` to, would lose
messages of sources that do not keep to their schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from pathcast.boundary import native
from pathcast.errors import MissingDependencyError, PathcastError, SchemaError
from pathcast.overlay.schemas import occurrences_of, read_schema
from pathcast.query import conjunction_of, parse
from pathcast.query.notation import is_bare_self, is_double_slash, notation
from pathcast.query.syntax import Axis, BinaryExpr, Expr, LocationPath, NameTest, NodeTest, Step
from pathcast.schema import ElementPaths, ExpandedName, PathOccurrences, SchemaStep

WAYS_MAX: Final = 20_000
"""Elements of the schemas, with the steps taken at them, that one comparison of paths looks at."""


class _Place(NamedTuple):
    """An element of a schema; no name: the document."""

    schema: int
    name: ExpandedName | None


_Places: TypeAlias = frozenset[_Place]


class _Part(NamedTuple):
    """A step with what stands before it.

    Attributes:
        is_below: Whether it is `//`.
        step: The step.
    """

    is_below: bool
    step: Step


_Tests: TypeAlias = tuple[tuple[bool, NodeTest], ...]
"""Steps as the schemas see them: whether `//` stands before each, and its test."""


class SchemaForms:
    """The forms of entries by some schemas.

    Args:
        texts: DTDs and XML Schemas; those that cannot be read say nothing.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        read = [found for text in dict.fromkeys(texts) if (found := _read(text)) is not None]
        self._paths = [paths for paths, _ in read]
        self._occurrences = [each for _, occurrences in read for each in occurrences]
        self._ways: dict[tuple[_Places, _Tests], tuple[int, _Places]] = {}

    def __bool__(self) -> bool:
        """Whether there is a schema that could be read."""
        return bool(self._paths)

    def merged(self, entries: Iterable[str]) -> dict[str, str]:
        """Entry -> form, of the entries that have it in common with another one."""
        forms = {entry: self.of(entry) for entry in entries}
        shared = Counter(forms.values())
        return {entry: form for entry, form in forms.items() if shared[form] > 1}

    def of(self, entry: str) -> str:
        """The form of an entry; the entry itself if its text is no XPath 1.0.

        Cost: a millisecond; some more for steps that no entry had before.
        """
        asked = conjunction_of(entry)
        try:
            exprs = [parse(path.text) for path in asked.paths]
            if any(self._branches_once(expr) for expr in exprs):
                linear = asked.linear()
                exprs = [parse(path.text) for path in linear.paths]
            formed = [self._formed(expr) for expr in exprs]
            made = native.Conjunction([native.NormalPath(notation(expr)) for expr in formed])
        except PathcastError:
            return entry
        return made.text if made.covers(asked) else entry

    # At most once.

    def _branches_once(self, expr: Expr) -> bool:
        """Whether a pattern branches, at elements that occur at most once in a message each."""
        branches = list(_branches(expr, ()))
        return bool(branches) and all(
            each.max_occurrences(steps) <= 1 for each in self._occurrences for steps in branches
        )

    # `//` and `*`.

    def _formed(self, expr: Expr) -> Expr:
        if not isinstance(expr, LocationPath):
            return expr
        documents = frozenset(_Place(number, None) for number in range(len(self._paths)))
        return self._path_formed(expr, documents)

    def _path_formed(self, path: LocationPath, start: _Places) -> LocationPath:
        """A path from some elements on, in its widest form."""
        parts = _parts(path.steps)
        if parts is None:
            return path
        made: list[_Part] = []
        run: list[_Part] = []
        for number, part in enumerate(parts):
            run.append(part)
            is_last = number + 1 == len(parts) or not _is_element(parts[number + 1].step)
            if not (part.step.predicates or is_last) or not _is_element(part.step):
                continue
            wide, start = self._widest(start, run)
            last = replace(run[-1].step, predicates=self._predicates(run[-1].step, start))
            made += [*wide[:-1], wide[-1]._replace(step=last)]
            run = []
        return replace(path, steps=_steps([*made, *run], is_absolute=path.is_absolute))

    def _predicates(self, step: Step, at: _Places) -> tuple[Expr, ...]:
        return tuple(self._predicate_formed(each, at) for each in step.predicates)

    def _predicate_formed(self, expr: Expr, at: _Places) -> Expr:
        match expr:
            case LocationPath(is_absolute=False):
                return self._path_formed(expr, at)
            case BinaryExpr(_, (LocationPath(is_absolute=False) as path, constant)):
                return replace(expr, operands=(self._path_formed(path, at), constant))
        return expr

    def _widest(self, start: _Places, run: Sequence[_Part]) -> tuple[list[_Part], _Places]:
        """The first of the wider runs that reaches the same elements in the same ways, and these.

        Cost: that of the comparisons for a run that is new, whatever is compared at its end.
        """
        wider = [*_wider(run), list(run)]
        tests = tuple((part.is_below, part.step.test) for part in run)
        found = self._ways.get((start, tests))
        if found is None:
            at = next(
                at for at, other in enumerate(wider) if self._says_the_same(start, run, other)
            )
            found = self._ways[start, tests] = at, self._reached(start, run)
        return wider[found[0]], found[1]

    def _says_the_same(self, start: _Places, run: Sequence[_Part], wider: Sequence[_Part]) -> bool:
        """Whether no way down the schemas has the wider steps and not the others."""
        both = [run, wider]
        seen: set[tuple[_Place, tuple[frozenset[int], ...]]] = set()
        waiting = [(place, (frozenset({0}), frozenset({0}))) for place in start]
        while waiting:
            place, taken = waiting.pop()
            for child in self._below(place):
                after = tuple(
                    _taken(steps, positions, child)
                    for steps, positions in zip(both, taken, strict=True)
                )
                if len(wider) in after[1] and len(run) not in after[0]:
                    return False
                if after[1] and (child, after) not in seen:
                    seen.add((child, after))
                    waiting.append((child, (after[0], after[1])))
                    if len(seen) > WAYS_MAX:
                        return False
        return True

    def _reached(self, start: _Places, run: Sequence[_Part]) -> _Places:
        found: set[_Place] = set()
        seen: set[tuple[_Place, frozenset[int]]] = set()
        waiting = [(place, frozenset({0})) for place in start]
        while waiting:
            place, positions = waiting.pop()
            for child in self._below(place):
                after = _taken(run, positions, child)
                if len(run) in after:
                    found.add(child)
                if after and (child, after) not in seen:
                    seen.add((child, after))
                    waiting.append((child, after))
        return frozenset(found)

    def _below(self, place: _Place) -> list[_Place]:
        """The children of an element; of the document its root elements."""
        paths = self._paths[place.schema]
        if place.name is not None:
            names: Iterable[ExpandedName] = paths.children(place.name)
        else:
            names = paths.names if paths.root is None else (paths.root,)
        return [_Place(place.schema, name) for name in names]


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[ElementPaths, tuple[PathOccurrences, ...]] | None:
    """A schema's paths and how often they occur; None if it says nothing, or cannot be read."""
    try:
        if not text:
            return None
        graph, namespaces = read_schema(text)
        root = graph.root_candidates[0] if len(graph.root_candidates) == 1 else None
        paths = ElementPaths(graph, root=root, namespaces=namespaces)
        return paths, tuple(occurrences_of(text))
    except (SchemaError, MissingDependencyError):
        return None


def _parts(steps: Sequence[Step]) -> list[_Part] | None:
    """Steps, each with the `//` before it; None if one leads anywhere but down."""
    parts: list[_Part] = []
    is_below = False
    for number, step in enumerate(steps):
        if is_double_slash(step):
            is_below = True
        elif is_bare_self(step) and not number and len(steps) > 1:
            continue
        elif step.axis in (Axis.CHILD, Axis.ATTRIBUTE) or (is_bare_self(step) and len(steps) == 1):
            parts.append(_Part(is_below, step))
            is_below = False
        else:
            return None
    return parts


def _steps(parts: Sequence[_Part], *, is_absolute: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    for number, part in enumerate(parts):
        if part.is_below:
            if not number and not is_absolute:
                steps.append(_SELF)
            steps.append(_DOUBLE_SLASH)
        steps.append(part.step)
    return tuple(steps)


_PATTERN: Final = parse("a[.//b]")
assert isinstance(_PATTERN, LocationPath)
_BELOW: Final = _PATTERN.steps[0].predicates[0]
assert isinstance(_BELOW, LocationPath)
_SELF, _DOUBLE_SLASH = _BELOW.steps[:2]


def _is_element(step: Step) -> bool:
    return step.axis is Axis.CHILD and isinstance(step.test, NameTest)


def _wider(run: Sequence[_Part]) -> Iterable[list[_Part]]:
    """Runs that cover a run and end as it does, the widest first."""
    last = run[-1]._replace(is_below=True)
    yield [last]
    for at in range(len(run) - 2, -1, -1):
        first = run[at]._replace(is_below=True)
        yield [first, last]
        yield [first, *run[at + 1 :]]


def _takes(test: object, name: ExpandedName | None) -> bool:
    if not isinstance(test, NameTest) or name is None:
        return False
    step = _schema_step(False, test)
    return step.takes(name)


def _schema_step(is_below: bool, test: NameTest) -> SchemaStep:
    is_any = test.prefix == "*" or (test.local is test.prefix is test.uri is None)
    return SchemaStep("//" if is_below else "/", None if is_any else test.uri or "", test.local)


def _taken(steps: Sequence[_Part], positions: frozenset[int], child: _Place) -> frozenset[int]:
    """The steps that have been taken at a child, of those taken above it."""
    taken: set[int] = set()
    for position in positions:
        if position < len(steps):
            part = steps[position]
            if part.is_below:
                taken.add(position)
            if _takes(part.step.test, child.name):
                taken.add(position + 1)
    return frozenset(taken)


def _branches(expr: Expr, above: tuple[SchemaStep, ...]) -> Iterator[tuple[SchemaStep, ...]]:
    """The steps to each element of a pattern that several of its paths lead on from."""
    parts = _elements(_compared(expr))
    for number, part in enumerate(parts):
        assert isinstance(part.step.test, NameTest)
        above = (*above, _schema_step(part.is_below, part.step.test))
        below = [each for each in part.step.predicates if _elements(_compared(each))]
        if len(below) + (number + 1 < len(parts)) > 1:
            yield above
        for each in below:
            yield from _branches(each, above)


def _compared(expr: Expr) -> Expr:
    return expr.operands[0] if isinstance(expr, BinaryExpr) else expr


def _elements(path: Expr) -> list[_Part]:
    """The steps of a path down elements, up to the first that is none."""
    parts = (_parts(path.steps) or []) if isinstance(path, LocationPath) else []
    return list(takewhile(lambda part: _is_element(part.step), parts))
