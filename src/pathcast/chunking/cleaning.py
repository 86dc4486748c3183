"""Cleaning and transforming a query: its alternatives, each a location path with a long prefix.

Parent steps become filters. By the schema, wildcards and `//` become the label paths that they can
mean, down to where recursion begins; what cannot match is removed. What is left of an alternative
begins with a *label path*, names without a wildcard between single slashes, which a chunk may be
cut at, and says what it needs of the message beside it.

Example:
    >>> from pathcast.schema import ElementPaths, parse_dtd
    >>> paths = ElementPaths(parse_dtd(
    ...     "<!ELEMENT a (b+)><!ELEMENT b (l*, m*, k*)><!ELEMENT l (c*)><!ELEMENT m (c*, a*)>"
    ...     "<!ELEMENT k (d*)><!ELEMENT d EMPTY><!ELEMENT c EMPTY>"), root="a")
    >>> [each.text for each in clean("//c", paths).alternatives]
    ['/a/b/l/c', '/a/b/m//c']
    >>> [each.text for each in clean("/a/b/*/d", paths).alternatives]
    ['/a/b/k/d']
    >>> clean("/a/d", paths).alternatives
    ()
    >>> clean("/a/b/m/../l", paths).alternatives[0].text
    '/a/b[m]/l'

A query holds of a message that is built as the schema says if one of its alternatives does; of
others, nothing is said.

Source: Lehner and Irmert, BTW 2003, section 3. Differs: names are expanded names; predicates of
steps that are resolved stay with their names; a wildcard whose predicates count positions is kept,
and its name is asked for after them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pathcast.chunking.names import (
    child_step,
    exact_name,
    is_node_test,
    is_prefix,
    matcher,
    name_test,
    path_text,
)
from pathcast.chunking.needs import DOCUMENT, Need, Needs, Spot, SpotKind
from pathcast.errors import QuerySyntaxError
from pathcast.query import NODES_MAX, PREDICATES_MAX, check_length, parse, read_query
from pathcast.query.atoms import COMPARISONS
from pathcast.query.names import Namespaces
from pathcast.query.notation import is_bare_self, is_double_slash, notation
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    LocationPath,
    NameTest,
    Step,
    UnaryExpr,
)
from pathcast.schema import ElementPaths, ExpandedName, Expansion, LabelPath, PathStep, Way, expand

CUT_DEPTH_MIN: Final = 2
"""Names of the shortest prefix that a chunk may have: the root's would be the whole message."""


@dataclass(frozen=True)
class Alternative:
    """A location path that a query has become.

    Attributes:
        text: XPath 1.0 with `Q{uri}name`.
        path: The label path it begins with.
        needs: What it looks at, all of it; those below the prefix of a chunk are met there.
        depth: Length of the longest prefix of `path` whose chunk can answer it; shorter ones can as
            well. Below `CUT_DEPTH_MIN` it goes to the potpourri.
        reason: Why no longer prefix can; empty if it is the whole path.
    """

    text: str
    path: LabelPath
    needs: frozenset[Need]
    depth: int
    reason: str

    @cached_property
    def cut_path(self) -> LabelPath:
        """The longest prefix whose chunk can answer it."""
        return self.path[: self.depth]

    def filters(self, prefix: LabelPath) -> frozenset[Need]:
        """The filter paths needed beside the subtrees at a prefix of at most `depth` steps."""
        return frozenset(need for need in self.needs if not is_prefix(prefix, need.path))


@dataclass(frozen=True, slots=True)
class CleanQuery:
    """A query after clean-up.

    Attributes:
        text: All of it, with `Q{uri}name` for names of a namespace: it needs no bindings.
        alternatives: One of them holds if the query does; none if it can never hold.
    """

    text: str
    alternatives: tuple[Alternative, ...]


def clean(
    text: str, paths: ElementPaths | None = None, namespaces: Namespaces | None = None
) -> CleanQuery:
    """Cleans a query.

    Args:
        text: An XPath 1.0 expression.
        paths: What the schema says, with its root; None if there is no schema: then a label path
            ends before the first wildcard or `//`.
        namespaces: Prefix -> namespace URI.

    Raises:
        QuerySyntaxError: It is not XPath 1.0, or too long with its namespaces written out.

    Cost: of the order of its steps times its expansions, which are bounded.
    """
    expr = read_query(text, namespaces or {})
    usable = None if paths is None or paths.root is None else paths
    whole = _whole(expr, "no location path")
    check_length(whole.text, text)
    found: dict[str, Alternative] = {}
    for branch in _branches(expr):
        for each in _Cleaner(usable).alternatives(branch):
            if not _is_query(each.text):
                # Names that were resolved make it longer than a query may be.
                return CleanQuery(whole.text, (replace(whole, reason="too long when resolved"),))
            found.setdefault(each.text, each)
    return CleanQuery(whole.text, tuple(found.values()))


def _is_query(text: str) -> bool:
    """Whether a text is within the limits of a query."""
    if len(text) <= NODES_MAX // 2 and text.count("[") + text.count("(") <= PREDICATES_MAX:
        return True  # it has no room for more, and needs not be read
    try:
        parse(text)
    except QuerySyntaxError:
        return False
    return True


def _branches(expr: Expr) -> tuple[Expr, ...]:
    """The members of a union; of anything else, itself."""
    if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.UNION:
        return tuple(inner for each in expr.operands for inner in _branches(each))
    return (expr,)


@dataclass(frozen=True, slots=True)
class _MainStep:
    """A step of the main path that leads down to elements; `//` is part of it.

    Attributes:
        way: How it leads down.
        test: What the element must be called.
        predicates: In order.
        written: The steps it comes from.
    """

    way: Way
    test: NameTest
    predicates: tuple[Expr, ...]
    written: tuple[Step, ...]

    @property
    def is_positional(self) -> bool:
        return any(is_positional(each) for each in self.predicates)

    @property
    def takes_document(self) -> bool:
        """Whether the document node can be its own: `//b/..`."""
        return self.way is Way.DESCENDANT_OR_SELF and is_node_test(self.written[0])


class _Cleaner:
    def __init__(self, paths: ElementPaths | None) -> None:
        self.paths = paths

    def alternatives(self, expr: Expr) -> list[Alternative]:
        if not isinstance(expr, LocationPath):
            return [_whole(expr, "no location path")]
        steps = without_parents(expr.steps)
        main, rest = _main_path(steps)
        if self.paths is None:
            return _present(self.alternative(_leading_names(main), main, rest))
        if main and main[0].takes_document and self.can_be_document(main[0]):
            return _present(self.open_path((), (), steps))
        path_steps = [PathStep(each.way, matcher(each.test)) for each in main]
        found: list[Alternative] = []
        for each in expand(self.paths, path_steps):
            found += _present(self.alternative(each, main, rest))
        return found

    def can_be_document(self, step: _MainStep) -> bool:
        here = frozenset([DOCUMENT])
        return not any(self.is_never(each, here) for each in step.predicates)

    def alternative(
        self, expansion: Expansion, main: list[_MainStep], rest: tuple[Step, ...]
    ) -> Alternative | None:
        """The path that one expansion is; None if it cannot select anything."""
        predicates: list[list[Expr]] = [[] for _ in expansion.names]
        written: list[NameTest | None] = [None] * len(expansion.names)
        resolved = main[: len(expansion.ends)]
        for step, end in zip(resolved, expansion.ends, strict=True):
            predicates[end - 1] += step.predicates
            if step.is_positional and exact_name(step.test) is None:
                written[end - 1] = step.test
        steps = tuple(
            _concrete(name, test, tuple(each))
            for name, test, each in zip(expansion.names, written, predicates, strict=True)
        )
        left = (*(step for each in main[len(expansion.ends) :] for step in each.written), *rest)
        return self.open_path(expansion.names, steps, left)

    def open_path(
        self, names: LabelPath, steps: tuple[Step, ...], rest: tuple[Step, ...]
    ) -> Alternative | None:
        """An alternative of concrete steps and what is left, with its needs."""
        needs = Needs(self.paths)
        for length in range(1, len(names) + 1):
            here = frozenset([Spot(names[:length])])
            step = steps[length - 1]
            for predicate in step.predicates:
                if self.is_never(predicate, here):
                    return None
                needs.truth(predicate, here)
            if any(is_positional(each) for each in step.predicates):
                # A position is one among all that the step chooses from.
                above = names[: length - 1]
                needs.step(replace(step, predicates=()), frozenset([Spot(above)]), None)
        ends = needs.steps(rest, frozenset([Spot(names)])) if rest else frozenset([Spot(names)])
        for end in ends:
            has_content = end.kind is SpotKind.ELEMENT
            needs.add(end.path, has_content=has_content, why="result")
        text = notation(LocationPath(True, steps + rest, 0))
        return _cut(text, names, needs.found)

    def is_never(self, expr: Expr, here: frozenset[Spot]) -> bool:
        """Whether a condition asks for elements that the schema does not have there."""
        if self.paths is None:
            return False
        if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.AND:
            return any(self.is_never(each, here) for each in expr.operands)
        if isinstance(expr, BinaryExpr) and expr.operators[0] is BinaryOperator.OR:
            return all(self.is_never(each, here) for each in expr.operands)
        if isinstance(expr, BinaryExpr) and expr.operators[0] in COMPARISONS:
            are_values = all(kind_of(each) is not Kind.BOOLEAN for each in expr.operands)
            return are_values and any(self.is_never(each, here) for each in expr.operands)
        if isinstance(expr, LocationPath):
            return not Needs(self.paths).nodes(expr, here)
        return False


def _present(alternative: Alternative | None) -> list[Alternative]:
    return [] if alternative is None else [alternative]


def _cut(text: str, path: LabelPath, needs: dict[Need, str]) -> Alternative:
    """How deep it can be cut: not below an element whose whole content is needed."""
    depth, reason = len(path), ""
    for need, why in needs.items():
        if need.has_content and len(need.path) < depth and is_prefix(need.path, path):
            depth, reason = len(need.path), f"{why}, of {path_text(need.path)}"
    return Alternative(text, path, frozenset(needs), depth, reason)


def _whole(expr: Expr, reason: str) -> Alternative:
    """The form of a query that is evaluated on the whole message."""
    return Alternative(notation(expr), (), frozenset([Need((), True)]), 0, reason)


def is_positional(predicate: Expr) -> bool:
    """Whether a predicate asks for the position or number of nodes: `[2]`, `[last() > 1]`."""
    return kind_of(predicate) is Kind.NUMBER or _has_position(predicate)


def _has_position(expr: Expr) -> bool:
    match expr:
        case FunctionCall(name="position" | "last"):
            return True
        case FunctionCall(arguments=parts) | BinaryExpr(operands=parts):
            return any(_has_position(part) for part in parts)
        case UnaryExpr(operand=operand):
            return _has_position(operand)
        case _:
            # Predicates of a path inside have positions of their own; what it begins at may not.
            start = getattr(expr, "start", None) or getattr(expr, "primary", None)
            return start is not None and _has_position(start)


def without_parents(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps with `..` and `.` turned into filters, where they follow a child or attribute.

    Example:
        >>> path = read_query("/a/b[2]/../c", {})
        >>> notation(LocationPath(True, without_parents(path.steps), 0))
        '/a[b[2]]/c'
    """
    found: list[Step] = []
    for step in steps:
        before = found[-1] if found else None
        is_counted = any(is_positional(each) for each in step.predicates)
        if is_bare_self(step):
            continue
        if step.axis is Axis.SELF and before is not None and not is_counted:
            found[-1] = _filtered(before, step)
            continue
        if step.axis is Axis.PARENT and len(found) > 1 and not is_counted:
            child = found[-1]
            if child.axis in (Axis.CHILD, Axis.ATTRIBUTE):
                found.pop()
                inner = LocationPath(False, (child,), 0)
                above = found[-1]
                above = replace(above, predicates=(*above.predicates, inner))
                found[-1] = _filtered(above, step)
                continue
        found.append(step)
    return tuple(found)


def _filtered(step: Step, test: Step) -> Step:
    """A step whose nodes must pass the node test and the predicates of another one as well."""
    added: tuple[Expr, ...] = ()
    if not is_node_test(test):
        own = LocationPath(False, (Step(Axis.SELF, test.test, (), 0),), 0)
        added = (own,)
    return replace(step, predicates=(*step.predicates, *added, *test.predicates))


def _main_path(steps: tuple[Step, ...]) -> tuple[list[_MainStep], tuple[Step, ...]]:
    """The steps that lead down to elements, and the rest from the first that does not."""
    main: list[_MainStep] = []
    number = 0
    while number < len(steps):
        step = steps[number]
        following = steps[number + 1] if number + 1 < len(steps) else None
        if is_double_slash(step) and following is not None and following.axis is Axis.CHILD:
            if not isinstance(following.test, NameTest):
                break
            written = (step, following)
            main.append(_MainStep(Way.DESCENDANT, following.test, following.predicates, written))
            number += 2
            continue
        made = _main_step(step)
        if made is None:
            break
        main.append(made)
        number += 1
    return main, steps[number:]


def _main_step(step: Step) -> _MainStep | None:
    if step.axis is Axis.CHILD and isinstance(step.test, NameTest):
        return _MainStep(Way.CHILD, step.test, step.predicates, (step,))
    is_counted = any(is_positional(each) for each in step.predicates)
    if step.axis is Axis.DESCENDANT and isinstance(step.test, NameTest) and not is_counted:
        return _MainStep(Way.DESCENDANT, step.test, step.predicates, (step,))
    if step.axis is Axis.DESCENDANT_OR_SELF and not is_counted:
        if isinstance(step.test, NameTest):
            return _MainStep(Way.DESCENDANT_OR_SELF, step.test, step.predicates, (step,))
        if is_node_test(step) and _asks_for_a_child(step):
            # `//b/..`: only elements, or the document node, have children.
            anything = NameTest(None, None)
            return _MainStep(Way.DESCENDANT_OR_SELF, anything, step.predicates, (step,))
    return None


def _asks_for_a_child(step: Step) -> bool:
    for predicate in step.predicates:
        match predicate:
            case LocationPath(is_absolute=False, steps=(first, *_)):
                if first.axis in (Axis.CHILD, Axis.ATTRIBUTE):
                    return True
    return False


def _concrete(name: tuple[str, str], test: NameTest | None, predicates: tuple[Expr, ...]) -> Step:
    if test is None:
        return replace(child_step(name), predicates=predicates)
    own = LocationPath(False, (Step(Axis.SELF, name_test(name), (), 0),), 0)
    return Step(Axis.CHILD, test, (*predicates, own), 0)


def _leading_names(main: list[_MainStep]) -> Expansion:
    """Without a schema: the names before the first wildcard or `//`."""
    names: list[ExpandedName] = []
    for step in main:
        name = exact_name(step.test)
        if step.way is not Way.CHILD or name is None:
            break
        names.append(name)
    return Expansion(tuple(names), tuple(range(1, len(names) + 1)))
