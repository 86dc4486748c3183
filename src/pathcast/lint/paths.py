"""Names and paths of a query that messages of a kind cannot have.

A query is followed through a structure (`pathcast.lint.structure`) as through a message, except
that every predicate may hold unless something in it cannot be. What is found at the end of a step
contains everything that any message of the kind has there, so that nothing found means that there
is nothing. Where a step leads nowhere, the walk goes on from what was likely meant, to find the
next mistake.

Example:
    >>> from pathcast.lint.structure import structure_of_dtd
    >>> from pathcast.query import read_query
    >>> from pathcast.schema import parse_dtd
    >>> structure = structure_of_dtd(parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>"))
    >>> expr = read_query("/a/bb", {})
    >>> for issue in PathChecker(structure, {}).issues(expr):
    ...     print(issue.code, issue.offset, issue.message, issue.fix)
    PL101 3 no element of the DTD is called `bb` did you mean `b`?

Order and number of elements are not looked at; values are where `pathcast.lint.values` can tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pathcast.lint.names import NameAdvisor
from pathcast.lint.reach import Node, Nodes, Reach
from pathcast.lint.structure import ANY_NAMESPACE, DOCUMENT, ElementPlace, Structure, ValueFacts
from pathcast.lint.values import Values, listed, value_advice
from pathcast.query.atoms import atom_of
from pathcast.query.condition_issues import asks_for_nodes
from pathcast.query.implication import holds
from pathcast.query.near_names import near
from pathcast.query.normal import Comparison
from pathcast.query.notation import Notation, is_double_slash
from pathcast.query.static import Kind, kind_of
from pathcast.query.syntax import (
    Axis,
    BinaryExpr,
    BinaryOperator,
    Expr,
    FilterExpr,
    FunctionCall,
    LocationPath,
    NameTest,
    NodeKind,
    PathExpr,
    Step,
    UnaryExpr,
)
from pathcast.query.values import normalize_space

CONTEXTS_MAX: Final = 2_000
"""Places for which a predicate is looked at one by one; beyond, all at once."""


@dataclass(frozen=True, slots=True)
class PathIssue:
    """A name, path or value that does not occur.

    Attributes:
        code: Code of the finding.
        offset: Where it stands.
        name: Local name in question; "" if there is none.
        message: What is wrong.
        fix: What may be meant.
        instead: What to write in its place.
        bindings: Prefixes in that which the query does not bind yet, with their namespaces.
        is_decisive: Whether the query as a whole cannot hold because of it.
    """

    code: str
    offset: int
    name: str
    message: str
    fix: str | None = None
    instead: str | None = None
    bindings: tuple[tuple[str, str], ...] = ()
    is_decisive: bool = False


class PathChecker:
    """Checks queries with the same prefixes against one structure; remembers what it looked up."""

    def __init__(self, structure: Structure, namespaces: Mapping[str, str]) -> None:
        self.structure = structure
        self.notation = Notation(namespaces)
        self.advisor = NameAdvisor(structure, namespaces)
        self.reach = Reach(structure)

    def issues(self, expr: Expr) -> list[PathIssue]:
        """The parts of a resolved query that no message can have, in the order of the text."""
        walk = PathWalk(self)
        walk.examine(expr, frozenset({DOCUMENT}))
        return walk.found()


class PathWalk:
    """One query."""

    def __init__(self, checker: PathChecker) -> None:
        self.checker = checker
        self.structure = checker.structure
        self.notation = checker.notation
        self.reach = checker.reach
        self.issues: list[PathIssue] = []
        self.is_silent = False
        self.optional = 0  # parts around this one that may be false

    def say(self, issue: PathIssue) -> None:
        """Takes down an issue."""
        if not self.is_silent:
            self.issues.append(issue)

    def found(self) -> list[PathIssue]:
        """The issues found, in the order of the text."""
        in_order = sorted(self.issues, key=lambda issue: (issue.offset, issue.code))
        # The same name may stand in many places of a query; one finding is enough.
        return list({(issue.code, issue.message): issue for issue in reversed(in_order)}.values())[
            ::-1
        ]

    # Expressions: what nodes they give, and whether they may be true.

    def examine(self, expr: Expr, contexts: Nodes) -> Nodes:
        """The nodes of an expression, from any of some contexts; says what cannot be."""
        match expr:
            case LocationPath(is_absolute, steps):
                return self.path(steps, frozenset({DOCUMENT}) if is_absolute else contexts)
            case PathExpr(start, steps):
                return self.path(steps, self.examine(start, contexts))
            case FilterExpr(primary, predicates):
                nodes = self.examine(primary, contexts)
                for predicate in predicates:
                    nodes = self.kept(predicate, nodes)
                return nodes
            case BinaryExpr(operators, operands):
                is_needed = operators[0] is BinaryOperator.AND or asks_for_nodes(expr)
                found = self.parts(operands, contexts, is_needed=is_needed)
                if operators[0] is BinaryOperator.UNION:
                    return frozenset().union(*found)
                self.check_values(expr, contexts)
            case UnaryExpr(operand=operand):
                self.parts([operand], contexts, is_needed=False)
            case FunctionCall(name, arguments):
                self.parts(arguments, contexts, is_needed=name == "boolean")
                self.check_values(expr, contexts)
                if name == "id":
                    return frozenset(self.structure.all_places)
            case _:
                pass
        return frozenset()

    def parts(self, parts: Sequence[Expr], contexts: Nodes, *, is_needed: bool) -> list[Nodes]:
        """The nodes of the parts of an expression, which all must be there or need not."""
        self.optional += not is_needed
        found = [self.examine(part, contexts) for part in parts]
        self.optional -= not is_needed
        return found

    def may_hold(self, expr: Expr, context: Node) -> bool:
        """Whether a condition may be true of a node; False only if it cannot."""
        match expr:
            case BinaryExpr(operators=(BinaryOperator.AND, *_), operands=operands):
                return all(self.may_hold(operand, context) for operand in operands)
            case BinaryExpr(operators=(BinaryOperator.OR, *_), operands=operands):
                return any(self.may_hold(operand, context) for operand in operands)
            case FunctionCall(name="boolean", arguments=(inner,)):
                return self.may_hold(inner, context)
        if kind_of(expr) is Kind.NODE_SET:
            return bool(self.examine(expr, frozenset({context})))
        atom = atom_of(expr)
        if atom is None or kind_of(atom.operand) is not Kind.NODE_SET:
            return True
        operand, compare = atom.operand, atom.compare
        nodes = self.examine(operand, frozenset({context}))
        if not nodes:
            # Functions read what is not there as an empty string.
            return atom.is_call
        return self.structure.source == "sample" or self.may_compare(nodes, compare)

    def kept(self, expr: Expr, nodes: Nodes) -> Nodes:
        """The nodes for which a predicate may hold; says so if there are none."""
        if not nodes or kind_of(expr) is Kind.NUMBER:
            self.examine(expr, nodes)
            return nodes
        before = len(self.issues)
        self.examine(expr, nodes)
        if len(nodes) > CONTEXTS_MAX:
            return nodes
        was_silent, self.is_silent = self.is_silent, True
        left = frozenset(node for node in nodes if self.may_hold(expr, node))
        self.is_silent = was_silent
        if left:
            return left
        if len(self.issues) == before:
            shown = self.notation.expr(expr)
            reason = f"no {self.described(nodes)} of {self.structure.described} has `[{shown}]`"
            self.say(PathIssue("PL105", expr.offset, "", reason))
        return nodes

    # Paths.

    def quietly(self, steps: Sequence[Step], contexts: Nodes) -> Nodes:
        """The nodes at the end of a path; says nothing, and none where it leads nowhere."""
        was_silent, self.is_silent = self.is_silent, True
        nodes = self.path(steps, contexts)
        self.is_silent = was_silent
        return nodes

    def path(self, steps: Sequence[Step], contexts: Nodes) -> Nodes:
        """The nodes at the end of a path; says where it leads nowhere."""
        is_lost = not contexts
        start = contexts
        for number, step in enumerate(steps):
            if is_lost:
                contexts = frozenset(self.structure.all_places)
            if number == 0 or not is_double_slash(steps[number - 1]):
                start = contexts
            nodes = self.reach.step(step, contexts)
            if not nodes and contexts:
                is_deep = start is not contexts or step.axis is Axis.DESCENDANT
                nodes = self.nowhere(step, contexts, start, is_deep=is_deep, is_lost=is_lost)
                is_lost = not nodes
                if self.is_silent:
                    return frozenset()
            else:
                is_lost = False
            for predicate in step.predicates:
                nodes = self.kept(predicate, nodes)
            contexts = nodes
        return contexts

    def nowhere(
        self, step: Step, contexts: Nodes, start: Nodes, *, is_deep: bool, is_lost: bool
    ) -> Nodes:
        """Says why a step leads nowhere; gives where the step that was likely meant leads."""
        if self.is_silent:
            return frozenset()
        test, is_attribute = step.test, step.axis is Axis.ATTRIBUTE
        if isinstance(test, NameTest) and (test.local is not None or test.uri is not None):
            uri = ANY_NAMESPACE if test.prefix == "*" else test.uri or ""
            advice = self.checker.advisor.advice(uri, test.local, is_attribute=is_attribute)
            if advice is not None:
                name = test.local or ""
                place = advice.code, test.offset, name
                meant = advice.fix, advice.instead, advice.bindings
                self.say(PathIssue(*place, advice.message, *meant))
                for uri, local in advice.names:
                    other = Step(step.axis, NameTest(uri, local, offset=test.offset), (), 0)
                    nodes = self.reach.step(other, contexts)
                    if nodes:
                        return nodes
                return frozenset()
        if not is_lost:
            self.say(self.not_here(step, start, is_deep))
        return frozenset()

    def not_here(self, step: Step, start: Nodes, is_deep: bool) -> PathIssue:
        """The issue of a step that leads nowhere though its name occurs elsewhere."""
        shown = self.notation.step(step, with_predicates=False)
        offset = step.test.offset
        where, source = self.described(start), self.structure.described
        if start == {DOCUMENT}:
            where = "the document"
        if not isinstance(step.test, NameTest):
            if step.test.kind is NodeKind.TEXT:
                return PathIssue("PL105", offset, "", f"{where} has no text in {source}")
            return PathIssue("PL105", offset, "", f"{where} has no `{shown}` in {source}")
        relation = "inside" if is_deep else "in"
        if start == {DOCUMENT} and not is_deep and step.axis is Axis.CHILD:
            roots = listed(self.structure.roots)
            return PathIssue(
                "PL105",
                offset,
                "",
                f"`{shown}` is no root element of {source}; there is {roots}",
                f"for any depth: `//{shown}`",
            )
        message = f"`{shown}` does not occur {relation} {where} in {source}"
        return PathIssue("PL105", offset, "", message, self.hint(step, start))

    def hint(self, step: Step, start: Nodes) -> str | None:
        """Where the name does occur, or what occurs here."""
        if not isinstance(step.test, NameTest) or step.test.local is None:
            return None
        here = self.reach.step(Step(step.axis, NameTest(None, None), (), 0), start)
        names = [self.name_of(node) for node in here]
        meant = near(step.test.local, names)
        if meant:
            return f"did you mean `{meant[0]}`?"
        parts = []
        if names:
            parts.append(f"there is {listed(sorted(set(names)))}")
        if step.axis in (Axis.CHILD, Axis.DESCENDANT):
            inside = self.reach.step(Step(Axis.DESCENDANT, step.test, (), 0), start)
            anywhere = inside or self.reach.step(
                Step(Axis.DESCENDANT, step.test, (), 0), frozenset({DOCUMENT})
            )
            places = sorted(node for node in anywhere if isinstance(node, int))
            if places:
                parts.append(f"it occurs as `{self.structure.path(places[0])}`")
        return "; ".join(parts) or None

    # Values.

    def check_values(self, expr: Expr, contexts: Nodes) -> None:
        """Says so if nothing can have the value, or has it in the sample, that is asked for."""
        atom = atom_of(expr)
        values = None if atom is None else self.values_read(atom.operand, contexts)
        if atom is None or values is None:
            return
        advice = value_advice(atom, values, self.structure, self.notation)
        if advice is not None:
            is_decisive = self.optional == 0
            place = advice.code, expr.offset, ""
            self.say(PathIssue(*place, advice.message, advice.fix, is_decisive=is_decisive))

    def values_read(self, operand: Expr, contexts: Nodes) -> Values | None:
        """All values that what is compared can have; None if they cannot be told."""
        if isinstance(operand, FunctionCall) and operand.name in ("string", "normalize-space"):
            # Of no node at all these give the empty string.
            if operand.arguments:
                read = self.values_read(operand.arguments[0], contexts)
            else:
                read = self.values(contexts)
            if read is None:
                return None
            known = {"", *read.known}
            if operand.name == "normalize-space":
                known = {normalize_space(value) for value in known}
            return Values(frozenset(known), read.is_attribute)
        if kind_of(operand) is not Kind.NODE_SET:
            return None
        was_silent, self.is_silent = self.is_silent, True
        nodes = self.examine(operand, contexts)
        self.is_silent = was_silent
        return self.values(nodes)

    def may_compare(self, nodes: Nodes, compare: Comparison) -> bool:
        """Whether one of some nodes may have a value that compares as asked."""
        values = self.values(nodes)
        return values is None or any(holds(value, compare) for value in values.known)

    def values(self, nodes: Nodes) -> Values | None:
        """All values that some nodes can have; None if they cannot be told."""
        found: set[str] = set()
        for node in nodes:
            facts = self.facts(node)
            if facts is None or facts.values is None:
                return None
            found |= facts.values
        is_attribute = all(not isinstance(node, int) and node.kind == "attribute" for node in nodes)
        return Values(frozenset(found), is_attribute) if nodes else None

    def facts(self, node: Node) -> ValueFacts | None:
        """The known facts of a node's values."""
        if isinstance(node, int):
            return self.structure.places[node].content
        place = self.structure.places[node.place]
        if node.kind == "attribute":
            return place.attributes[node.name]
        return place.texts if node.kind == "text" else None

    # Words.

    def described(self, nodes: Nodes) -> str:
        """Some places in words."""
        places = [node for node in nodes if isinstance(node, int) and node != DOCUMENT]
        if len(places) == 1:
            return f"`{self.structure.path(places[0])}`"
        names = sorted({self.name_of(node) for node in nodes} - {""})
        return listed(names) if names else "the document"

    def name_of(self, node: Node) -> str:
        """Local name of an element or attribute."""
        place: ElementPlace | None = self.structure.places[node] if isinstance(node, int) else None
        return place.local if place is not None else node.name[1]  # type: ignore[union-attr]
