"""Early projection: a message leaves behind what nobody down a link asks for.

Many messages are one element with many of a kind in it: `batch` with `order`s. Where all profiles
behind a link bind their variable at or below one path of such *units*, a unit that satisfies no
profile's `where` changes no result, and is cut out of the message before it is sent; what is around
it stays as it is, byte for byte.

Example:
    >>> from pathcast import Subscription
    >>> told = Offers()
    >>> for city in ("Bern", "Graz"):
    ...     text = f"for $o in /batch/order where $o/to = '{city}' return <hit>{{$o/no}}</hit>"
    ...     _ = told.add(offer_of(Subscription(city, "ann", text)))
    >>> links = Projections()
    >>> links.set("east", told.offer)
    >>> message = b"<batch day='1'><order><to>Rome</to></order><order><to>Graz</to></order></batch>"
    >>> links.project([message, b"<batch><order/></batch>"], "east")
    [b"<batch day='1'><order><to>Graz</to></order></batch>", None]

A profile makes an offer only if its result is the same on every message that has been cut so
(`offer_of` says when). Offers are joined on the way up: the units are those of the longest
beginning that the paths of all have in common, a unit stays if it is of use to one. What a parent
has cut away no child needs, so what is left for the link to the child to do, the paper's remainder,
is to cut by the child's own offer.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.2. Differs: the paper makes a new message
of the bindings, with a constructor around them; here the message is kept and units are cut out, so
that attributes, namespaces and all else around them need not be thought of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.query import compile_subscription
from pathcast.query.syntax import (
    Axis,
    Flwor,
    For,
    LocationPath,
    NameTest,
    Program,
    Step,
    VariableReference,
)
from pathcast.query.xquery import (
    BindingStep,
    binding_of,
    binding_of_path,
    framed,
    is_xquery,
    parse,
    text_of,
    without_comments,
)
from pathcast.registry.before_steps import paths_before
from pathcast.registry.selector import Select, Selector, Spans
from pathcast.registry.steps import EditStep, Steps

SELECTS_MAX: Final = 4096
"""Selecting queries of an offer; with more of them so much is asked for that nothing is offered."""

Counted = TypeVar("Counted", bound=Hashable)

Unit = tuple[NameTest, ...]
"""Names of a path of child steps, from the document element on."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The parts of a message that a profile needs.

    Attributes:
        unit: The path of the elements that may be cut out: two names or more.
        selects: Queries that select elements in units; a unit of which none selects anything, or
            anything in it, is of no use.
    """

    unit: Unit
    selects: frozenset[Select]


def offer_of(subscription: Subscription) -> Offer | None:
    """Return the offer of a profile; None if it needs whole messages.

    It offers the longest path of child steps without `*` that its binding path begins with, if

    - it is of the shared class, one `for` whose variable is bound by a path down from the document
      and all else relative to the variable and down (a bare XPath: the path itself), so that it
      asks for no position, no count, no sibling and nothing above a binding;
    - what steps above the units ask for are attributes: a text or an element may be cut;
    - not the message is delivered, but fragments of it or the fact.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: linear in the query.
    """
    if subscription.deliver == "message":
        return None
    namespaces = dict(subscription.namespaces or {})
    query = without_comments(subscription.query)
    if is_xquery(query, subscription.language):
        program = parse(query, namespaces, subscription.deliver)
        binding = binding_of(program)
        select = Select(_selecting(program)) if binding is not None else None
    else:
        binding = binding_of_path(query, namespaces)
        select = Select(query, tuple(sorted(namespaces.items())))
    if binding is None or select is None:
        return None
    unit = _unit(binding)
    return Offer(unit, frozenset([select])) if len(unit) > 1 else None


@lru_cache(maxsize=65_536)
def offer_before(offer: Offer, steps: Steps) -> Offer | None:
    """Return what an offer comes to before steps; None if a message is needed whole there.

    What is cut out before must change nothing after. It does not if the steps select elements by
    names and attributes alone: whatever else is in the message, they do the same to what is left.
    Of an element that is of use after the steps, what it was before is in a unit that is kept if
    something is selected in it that the use presupposes there; in no unit, it is not cut out.

    Args:
        offer: Of the message after the steps.
        steps: What is still to be done.

    Example:
        >>> from pathcast.registry.steps import parse_steps
        >>> offer = offer_of(Subscription("a", "", "/b/n[@k = 'x']/list"))
        >>> def before(*steps):
        ...     found = offer_before(offer, parse_steps(steps))
        ...     return found and [select.query for select in found.selects]
        >>> before("drop /b/image"), before("rename //table list"), before("drop //i[1]")
        (["/b/n[@k = 'x']/list"], ['/b/n/*'], None)

    Cost: two compilations of each query and one of each step.
    """
    if not all(map(_selects_by_names, steps)):
        return None
    selects: set[Select] = set()
    for select in offer.selects:
        compiled = compile_subscription(select.query, dict(select.namespaces), "nodes")
        for paths in compiled.conjunctions:
            before = paths_before(paths, steps)
            if before == paths.linear() and compiled.expression is None:
                selects.add(select)
                continue
            structures = (path.structure() for path in before.paths)
            longest = max(structures, key=lambda path: (len(path.steps()), path.text))
            if len(longest.steps()) < len(offer.unit):
                return None
            selects.add(Select(longest.text))
    return Offer(offer.unit, frozenset(selects))


def common(offers: Iterable[Offer | None]) -> Offer | None:
    """Intersect offers; None if nothing is common, or if there are none.

    Example:
        >>> one = offer_of(Subscription("a", "", "/b/n[x]/t"))
        >>> two = offer_of(Subscription("b", "", "/b/n//u"))
        >>> both = common([one, two])
        >>> [name.local for name in both.unit], len(both.selects), common([one, None])
        (['b', 'n'], 2, None)
    """
    told = Offers()
    for offer in offers:
        told.add(offer)
    return told.offer


class Offers:
    """Offers that come and go, and what they come to.

    Cost: of a change, linear in the distinct units; of `offer` after a change, in the queries.
    """

    def __init__(self) -> None:
        self._units: Counter[Unit] = Counter()
        self._selects: Counter[Select] = Counter()
        self._whole = 0

    def add(self, offer: Offer | None) -> None:
        """One more; None stands for who has to see messages whole."""
        self._count(offer, 1)

    def remove(self, offer: Offer | None) -> None:
        """One that was added is gone."""
        self._count(offer, -1)

    @property
    def offer(self) -> Offer | None:
        """Return the offer that all profiles have in common."""
        if self._whole or not self._units or len(self._selects) > SELECTS_MAX:
            return None
        shared = takewhile(lambda names: len(set(names)) == 1, zip(*self._units, strict=False))
        unit = tuple(names[0] for names in shared)
        return Offer(unit, frozenset(self._selects)) if len(unit) > 1 else None

    def _count(self, offer: Offer | None, by: int) -> None:
        if offer is None:
            self._whole += by
            return
        _count(self._units, offer.unit, by)
        for select in offer.selects:
            _count(self._selects, select, by)


class Projections:
    """The offers of all links of a broker, run together; they change while messages flow.

    Args:
        offers: Link -> what the profiles behind it offer; links that offer nothing may be left out.
        limits: What one message may cost.
        threads: Threads of one batch.

    Raises:
        QuerySyntaxError: As `set`.
        UnsupportedQueryError: As `set`.
    """

    def __init__(
        self,
        offers: Mapping[str, Offer | None] | None = None,
        limits: Limits | None = None,
        threads: int | None = 1,
    ) -> None:
        self._free = count()
        self._numbers: dict[Select, int] = {}
        self._used: Counter[Select] = Counter()
        self._offers: dict[str, Offer] = {}
        self._links: dict[str, tuple[int, npt.NDArray[np.uint32]]] = {}
        self._selector = Selector([], limits, threads)
        for link, offer in (offers or {}).items():
            self.set(link, offer)

    def set(self, link: str, offer: Offer | None) -> None:
        """Replace the offer of the profiles behind a link; None for no offer.

        Raises:
            QuerySyntaxError: An offer that came from elsewhere has a query that cannot be used.
                Nothing is changed then.
            UnsupportedQueryError: It has one that selects no elements. Likewise.

        Cost: linear in the queries of the offer, that of a compilation for each that no link had.
        """
        before, now = _selects(self._offers.get(link)), _selects(offer)
        entering = {select: next(self._free) for select in now - self._numbers.keys()}
        self._selector.add({number: select for select, number in entering.items()})
        self._numbers |= entering
        self._used.update(now)
        self._used.subtract(before)
        leaving = [select for select in before if not self._used[select]]
        self._selector.remove([self._numbers.pop(select) for select in leaving])
        for select in leaving:
            del self._used[select]
        self._links.pop(link, None)
        self._offers.pop(link, None)
        if offer is not None:
            numbers = sorted(self._numbers[select] for select in offer.selects)
            unit = self._numbers[Select(_unit_text(offer.unit))]
            self._links[link] = unit, np.array(numbers, np.uint32)
            self._offers[link] = offer

    def __contains__(self, link: str) -> bool:
        """Whether anything can be cut for a link."""
        return link in self._links

    def project(self, messages: Sequence[bytes], link: str) -> list[bytes | None]:
        """Project each message for one link; None where nobody behind it needs any of it."""
        return self.project_all(messages, {link: range(len(messages))})[link]

    def project_all(
        self, messages: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> dict[str, list[bytes | None]]:
        """Project messages for several links, reading each message once.

        Args:
            messages: A batch.
            wanted: Link -> which of the messages are routed to it.

        Returns:
            Link -> a message for each that is wanted: cut, or whole where nothing can be cut or it
            is not known what; None where all units are of no use.
        """
        spans = self._spans(messages, wanted)
        sent: dict[str, list[bytes | None]] = {}
        for link, rows in wanted.items():
            if link not in self._links or spans is None:
                sent[link] = [messages[row] for row in rows]
                continue
            unit, selects = self._links[link]
            units = _Column(spans, spans.queries == unit)
            used = _Column(spans, np.isin(spans.queries, selects))
            sent[link] = [
                messages[row]
                if row in spans.unknown
                else _cut(messages[row], units.of(row), used.of(row)[:, 0])
                for row in rows
            ]
        return sent

    def _spans(
        self, messages: Sequence[bytes], wanted: Mapping[str, Sequence[int]]
    ) -> Spans | None:
        """Places in the messages that some link with an offer wants."""
        looked_at = {row for link, rows in wanted.items() if link in self._links for row in rows}
        if not looked_at:
            return None
        return self._selector.spans(
            [message if row in looked_at else None for row, message in enumerate(messages)]
        )


class _Column:
    """Some of the spans of a batch, by message."""

    def __init__(self, spans: Spans, chosen: npt.NDArray[np.bool_]) -> None:
        self._rows = spans.rows[chosen]
        self._places = np.stack([spans.starts[chosen], spans.ends[chosen]], axis=1)

    def of(self, row: int) -> npt.NDArray[np.uint32]:
        """Starts and ends in one message, a row each."""
        first, last = np.searchsorted(self._rows, [row, row + 1])
        return self._places[first:last]


def _cut(
    message: bytes, units: npt.NDArray[np.uint32], used: npt.NDArray[np.uint32]
) -> bytes | None:
    """A message without the units in which nothing of use begins; None if nothing is of use."""
    is_used = np.zeros(len(units), bool)
    # Units are no parts of each other: the last one that begins before a place may be around it.
    around = np.searchsorted(units[:, 0], used, "right") - 1
    is_inside = around >= 0
    is_inside[is_inside] = used[is_inside] < units[around[is_inside], 1]
    is_used[around[is_inside]] = True
    if not len(used):
        return None
    if is_used.all():
        return message
    kept, at = [], 0
    for start, end in units[~is_used].tolist():
        kept.append(message[at:start])
        at = end
    return b"".join([*kept, message[at:]])


def _count(counter: Counter[Counted], key: Counted, by: int) -> None:
    counter[key] += by
    if not counter[key]:
        del counter[key]


def _selects_by_names(step: EditStep) -> bool:
    """Whether a step selects elements by the names and attributes of them and those around."""
    binding = binding_of_path(step.path, dict(step.namespaces))
    return binding is not None and all(each.asks_attributes for each in binding)


def _unit(binding: tuple[BindingStep, ...]) -> Unit:
    """The longest path of units that a binding path allows."""
    names: list[NameTest] = []
    for step in binding:
        if step.is_descendant or step.name.uri is None or step.name.local is None:
            break
        names.append(step.name)
        # Below this step there are no units if what it asks for may be cut out of it.
        if not step.asks_attributes:
            break
    return tuple(names)


def _selecting(program: Program) -> str:
    """Rewrite a query to return the nodes that it binds."""
    flwor = framed(program.body)
    assert flwor is not None
    bound = VariableReference(flwor.clauses[0].variable)
    return text_of(Program(Flwor(flwor.clauses, flwor.where, (), bound)))


def _selects(offer: Offer | None) -> set[Select]:
    """Everything that is to be found for an offer: its units, and what is used in them."""
    return set() if offer is None else {*offer.selects, Select(_unit_text(offer.unit))}


def _unit_text(unit: Unit) -> str:
    """A query that selects the units."""
    steps = tuple(Step(Axis.CHILD, name) for name in unit)
    clause = For("unit", None, LocationPath(True, steps))
    return text_of(Program(Flwor((clause,), None, (), VariableReference("unit"))))
