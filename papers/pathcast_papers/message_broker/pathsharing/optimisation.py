"""What may be left out of a plan or made cheaper, and how paths are rewritten.

Example:
    >>> from pathcast_papers.message_broker.pathsharing.paths import navigation_path, path_text
    >>> from pathcast.schema import parse_dtd
    >>> from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths
    >>> elements = SchemaPaths(parse_dtd(
    ...     "<!ELEMENT figure (image, title)><!ELEMENT image EMPTY><!ELEMENT title (#PCDATA)>"))
    >>> path_text(rewritten(navigation_path("/figure//image"), elements))
    '/figure/image'
    >>> Choices(Optimisation.QUERY).needs_dup_elim(navigation_path("//section//figure"))
    True

Source: Diao and Franklin, VLDB 2003, sections 4 (optimisations), 5.1 (canonical form).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pathcast_papers.language import Axis, Name
from pathcast_papers.message_broker.pathsharing.broker_query import BrokerQuery, PredicatePath
from pathcast_papers.message_broker.pathsharing.claims import claim_3, has_no_duplicates, is_ordered
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, PathStep, name_of
from pathcast_papers.message_broker.pathsharing.reliance import Elements, Fact, Recorder


class Optimisation(Enum):
    """How much plans are optimised; the value is the paper's name."""

    NONE = "NoOpt"
    QUERY = "Opt(q)"
    """Claims 1, 3 and 4."""
    QUERY_AND_DTD = "Opt(q+dtd)"
    """All claims, and paths in canonical form."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The questions that the making of a plan asks; without optimisation the answers are the worst.

    Attributes:
        optimisation: Which claims may speak.
        elements: The element graph, for `Optimisation.QUERY_AND_DTD`.
    """

    optimisation: Optimisation
    elements: Elements | None = None

    def needs_dup_elim(self, binding: NavigationPath) -> bool:
        """Whether a binding path's stream may bind a node twice."""
        if self.optimisation is Optimisation.NONE:
            return True
        return not has_no_duplicates(binding, self._dtd)

    def needs_return_dup_elim(self, path: NavigationPath, binding_field: int) -> bool:
        """Whether tuples of an extended return path may agree in binding and return field."""
        if self.optimisation is Optimisation.NONE:
            return True
        return not claim_3(path, binding_field, self._dtd)

    def is_ordered(self, path: NavigationPath, binding_field: int) -> bool:
        """Whether the stream of an extended path is known to be in order of the binding field."""
        if self.optimisation is Optimisation.NONE:
            return False
        return is_ordered(path, binding_field, self._dtd)

    @property
    def _dtd(self) -> Elements | None:
        return self.elements if self.optimisation is Optimisation.QUERY_AND_DTD else None


def rewritten(
    path: NavigationPath, elements: Elements, above: NavigationPath = ()
) -> NavigationPath:
    """A path without superfluous `//`: each becomes the only steps that it can stand for.

    Args:
        path: A path.
        elements: The element graph.
        above: For a relative path, the path to the node that it begins at.
    """
    return tuple(step for steps in _rewritten_steps(path, elements, above) for step in steps)


def _rewritten_steps(
    path: NavigationPath, elements: Elements, above: NavigationPath
) -> list[NavigationPath]:
    """For each step of a path, the steps that take its place."""
    found: list[NavigationPath] = []
    is_known = True  # Whether `before` is the one name of the element before; None is the document.
    before = None
    if above:
        before = name_of(above[-1].test)
        is_known = before is not None
    for step in path:
        name = name_of(step.test)
        way = None
        if step.axis is Axis.DESCENDANT and name is not None and is_known:
            way = elements.single_path(before, name)
        if way is None:
            found.append((step,))
        else:
            found.append(tuple(PathStep(Axis.CHILD, Name(uri, local)) for uri, local in way))
        before, is_known = name, name is not None
    return found


def rewritten_query(query: BrokerQuery, elements: Elements) -> BrokerQuery:
    """A query with all its paths in canonical form; predicates stay on the steps they are on."""
    steps = _rewritten_steps(query.binding, elements, ())
    ends: list[int] = []
    for part in steps:
        ends.append((ends[-1] if ends else 0) + len(part))
    binding = tuple(step for part in steps for step in part)
    return BrokerQuery(
        binding,
        tuple((ends[level - 1], predicate) for level, predicate in query.selections),
        tuple(
            sorted(
                {
                    PredicatePath(rewritten(path, elements, binding), predicate)
                    for path, predicate in query.predicates
                },
                key=repr,
            )
        ),
        tuple(rewritten(path, elements, binding) for path in query.returns),
    )


def facts_of(query: BrokerQuery, elements: Elements) -> frozenset[Fact]:
    """What the plan of a query relies on; nothing if a DTD does not change the plan.

    Such a plan is right for a message of which the facts are true.
    """
    recorder = Recorder(elements)
    canonical = rewritten_query(query, recorder)
    answers = _answers(canonical, Choices(Optimisation.QUERY_AND_DTD, recorder))
    if canonical == query and answers == _answers(query, Choices(Optimisation.QUERY)):
        return frozenset()
    return frozenset(recorder.facts)


def _answers(query: BrokerQuery, choices: Choices) -> tuple[bool, ...]:
    field = len(query.binding)
    returns = [query.extended(path) for path in query.returns if path]
    return (
        choices.needs_dup_elim(query.binding),
        *(choices.is_ordered(query.extended(path), field) for path, _ in query.predicates),
        *(choices.is_ordered(path, field) for path in returns),
        *(choices.needs_return_dup_elim(path, field) for path in returns),
    )
