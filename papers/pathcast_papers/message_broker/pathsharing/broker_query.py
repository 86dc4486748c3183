"""The parts of a query that the algorithms plan with: its paths and its simple predicates.

A `BrokerQuery` is what a `PaperQuery` of the language says of the message, without the template:
the binding path, the simple predicates on its steps, the predicate paths, the return paths.

Example:
    >>> from pathcast_papers.language.xquery import PaperReturn
    >>> from pathcast_papers.language.xquery.syntax import Variable
    >>> from pathcast_papers.message_broker.pathsharing.paths import path_text
    >>> title, figure = (PaperStep(False, NameTest("", name)) for name in ("title", "figure"))
    >>> query = BrokerQuery.of(PaperQuery(
    ...     binding=(PaperStep(True, NameTest("", "section")),),
    ...     predicates=(PaperCondition((title,), Target.ELEMENT, None, Comparator.EQ, "XML"),),
    ...     returns=(PaperReturn((figure,), Target.ELEMENT, None),),
    ...     template=Variable("s"), outer=None, variable="s"))
    >>> path_text(query.binding), path_text(query.extended(query.predicates[0].path))
    ('//section', '//section/title')

Source: Diao and Franklin, VLDB 2003, sections 2.1, 3.2 (extended paths), 5.2 (signatures).
Differs: predicates compare child text nodes or string values, exist beside comparisons, and may
stand, with relative paths of their own, on any step of the binding path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pathcast_papers.language import AnyIn, AnyName, AnyNamespace, Axis, Name
from pathcast_papers.language import NameTest as StepTest
from pathcast_papers.language.xquery import PaperCondition, PaperQuery, PaperStep, Target
from pathcast_papers.language.xquery.syntax import Comparator, NameTest
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, PathStep

Constant: TypeAlias = str | float | None
"""What is compared with: as string, as number; None where existence is asked."""


class Compared(NamedTuple):
    """What of an element is compared.

    Attributes:
        steps: From the element to what is compared; mostly none.
        target: What is compared there.
        attribute: Its name, where it is one.
    """

    steps: NavigationPath
    target: Target
    attribute: NameTest | None


class Signature(NamedTuple):
    """What simple predicates share that differ in their constants (section 5.2).

    The paper's quadruplet has the path id and the level besides; those are kept by who uses it.

    Attributes:
        steps: From the element to what is compared; mostly none.
        target: What is compared there.
        attribute: Its name, where it is one.
        operator: The operator; None for existence.
        is_number: Whether values are compared as numbers.
    """

    steps: NavigationPath
    target: Target
    attribute: NameTest | None
    operator: Comparator | None
    is_number: bool

    @property
    def compared(self) -> Compared:
        """What is compared, however it is."""
        return Compared(self.steps, self.target, self.attribute)


class SimplePredicate(NamedTuple):
    """A comparison of an element's attributes or text with a constant."""

    signature: Signature
    constant: Constant


class PredicatePath(NamedTuple):
    """A path of the where clause, relative to the bound node, and what is asked of its end."""

    path: NavigationPath
    predicate: SimplePredicate


@dataclass(frozen=True, slots=True)
class BrokerQuery:
    """A query without its template.

    Attributes:
        binding: The binding path, from the document node; one step or more.
        selections: Simple predicates of the binding path, each with the step (from 1) it is on.
        predicates: The where clause.
        returns: The return paths, in the order of the template; an empty one is the bound node.
    """

    binding: NavigationPath
    selections: tuple[tuple[int, SimplePredicate], ...]
    predicates: tuple[PredicatePath, ...]
    returns: tuple[NavigationPath, ...]

    @classmethod
    def of(cls, query: PaperQuery) -> BrokerQuery:
        """The parts of a query, predicates sorted, so that equal queries have equal parts."""
        selections = {
            (level, _predicate(condition, _path(condition.steps)))
            for level, step in enumerate(query.binding, start=1)
            for condition in step.conditions
        }
        predicates = {
            PredicatePath(_path(condition.steps), _predicate(condition, ()))
            for condition in query.predicates
        }
        return cls(
            _path(query.binding),
            tuple(sorted(selections, key=repr)),
            tuple(sorted(predicates, key=repr)),
            tuple(_path(path.steps) for path in query.returns),
        )

    def extended(self, path: NavigationPath) -> NavigationPath:
        """A relative path with the binding path before it (section 3.2)."""
        return self.binding + path


def _path(steps: Sequence[PaperStep]) -> NavigationPath:
    return tuple(
        PathStep(Axis.DESCENDANT if step.is_descendant else Axis.CHILD, _test(step.name))
        for step in steps
    )


def _test(name: NameTest) -> StepTest:
    if name.uri is None:
        return AnyName() if name.local is None else AnyNamespace(name.local)
    return AnyIn(name.uri) if name.local is None else Name(name.uri, name.local)


def _predicate(condition: PaperCondition, steps: NavigationPath) -> SimplePredicate:
    constant = condition.constant
    is_number = constant is not None and not isinstance(constant, str)
    return SimplePredicate(
        Signature(steps, condition.target, condition.attribute, condition.operator, is_number),
        float(constant) if constant is not None and not isinstance(constant, str) else constant,
    )
