"""A broker's table within a budget of entries: wider entries, chosen on the broker's own stream.

A table is exact as long as its entries fit the budget. With more, a *choice* is made: which entries
are held in the place of those that were told, so that they fit and fewest bytes of a sample of the
broker's stream are forwarded in vain. First those that the sources' schemas make one
(`schema_forms`), which forwards nothing in vain; then, if these are too many, wider ones
(`generalisation`). What is told to others stays exact: the
table of a broker has all the messages that the broker sees to be judged on, while those that it
would keep a neighbour from sending are never seen here.

A choice is made beside the broker's work: `review` says what to choose from, `TableReview.choose`
takes its time in another thread, and `adopt` puts its table in the place of the one before.
Entries that come between two choices are held as they are told.

Example:
    >>> table = BudgetedTable(3)
    >>> table.set("east", [f"/order/no[.={n}]" for n in range(9)], [])
    >>> messages = [f"<order><no>{n}</no></order>".encode() for n in range(64)]
    >>> _ = table.route(messages)
    >>> len(table)
    9
    >>> if (review := table.review()) is not None:
    ...     table.adopt(review.choose())
    >>> len(table), [sorted(each) for each in table.route(messages[:1])]
    (1, [['east']])

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1 (content generalisation in Collect()).
Differs: the paper names no budget, no sample and no time at which tables are made anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random
from typing import Final

from pathcast.limits import Limits
from pathcast.overlay.arriving_routes import MessageDecisions
from pathcast.overlay.content import LOCAL
from pathcast.overlay.generalisation import EXACTLY, Optimiser, Sample, at_level, shape_of
from pathcast.overlay.message_sample import MessageSample
from pathcast.overlay.schema_forms import SchemaForms
from pathcast.overlay.table import Table

MESSAGES_MIN: Final = 32
"""Messages of the sample before a choice is made."""

REVIEW_MESSAGES: Final = 64
"""New messages of the sample after which a choice that fits is looked at again."""

DRIFT_MAX: Final = 0.05
"""A choice that fits is made anew if another one forwards so much less of its bytes in vain."""

STREAM_MESSAGES: Final = 256
"""Messages of the sample of a stream."""

STREAM_MESSAGE_BYTES_MAX: Final = 64 << 10
"""Longer messages are left out of it: a sample has 16 MiB at most."""

STREAM_SHARE: Final = 16
"""One of so many messages takes a place in a full sample: its messages are 4,096 old on average."""

ENTRY_BYTES: Final = 1 << 20
"""An entry besides its text, where levels are chosen: entries count, and texts hardly do."""

ENTRIES_TRIED: Final = 1024
"""Entries that levels are chosen by; of each shape as many as its share, one at least."""


class HeldEntries:
    """The table of a choice: the entries that are held, and how many told ones each stands for.

    Args:
        instead: Told entry -> held entry, of those that differ.
        in_vain: Share of the bytes forwarded that nobody behind the link wants, on the sample.
        limits: What one message may cost.
    """

    def __init__(
        self, instead: Mapping[str, str], in_vain: float, limits: Limits | None = None
    ) -> None:
        self.instead = instead
        self.in_vain = in_vain
        self.table = Table(limits=limits)
        self._uses: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def set(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what an origin tells; none is added that it had told before."""
        change: Counter[str] = Counter(self.instead.get(entry, entry) for entry in added)
        change.subtract(self.instead.get(entry, entry) for entry in removed)
        uses = self._uses[origin]
        entering = [entry for entry, by in change.items() if by > 0 and not uses[entry]]
        leaving = [entry for entry, by in change.items() if by < 0 and uses[entry] + by == 0]
        self.table.set(origin, entering, leaving)
        uses.update(change)
        for entry in change:
            if not uses[entry]:
                del uses[entry]


@dataclass(frozen=True)
class TableReview:
    """The state of a table that a choice is made from, in any thread.

    Attributes:
        told: Neighbour -> the entries that it told.
        messages: A sample of the stream.
        entries_max: The budget.
        present: Told entry -> the one that is held in its place now.
        fits: Whether the table fits with these.
        limits: What one message may cost.
        schemas: Of the sources.
    """

    told: Mapping[str, Set[str]]
    messages: Sequence[bytes]
    entries_max: int
    present: Mapping[str, str]
    fits: bool
    limits: Limits | None
    schemas: Sequence[str] = ()

    def choose(self) -> HeldEntries | None:
        """The table to adopt; None if the present one is as good.

        Cost: about 0.2 ms for each entry told, 0.5 ms with schemas.
        """
        entries = sorted(set().union(*self.told.values()))
        exact = self._held({})
        if len(entries) <= self.entries_max:
            return exact
        wanted = exact.table.route(self.messages)
        made = self._held(self._instead(entries, wanted))
        made.in_vain = self._in_vain(wanted, made)
        if self.fits:
            present = self._in_vain(wanted, self._held(self.present))
            if present - made.in_vain <= DRIFT_MAX:
                return None
        return made

    def _instead(self, entries: Sequence[str], wanted: Sequence[Set[str]]) -> dict[str, str]:
        """Told entry -> held entry: what is one by the schemas, and no wider than it has to be.

        Messages that do not keep to the schemas, or have none, show that by being sent in vain.
        """
        instead = SchemaForms(self.schemas).merged(entries) if self.schemas else {}
        if instead and self._in_vain(wanted, self._held(instead)):
            instead = {}
        forms = {instead.get(entry, entry) for entry in entries}
        if len(forms) > self.entries_max:
            links = [{instead.get(each, each) for each in told} for told in self.told.values()]
            wide = self._chosen(sorted(forms), links)
            instead = {each: wide.get(form := instead.get(each, each), form) for each in entries}
        return {entry: held for entry, held in instead.items() if held != entry}

    def _chosen(self, entries: Sequence[str], told: Sequence[Set[str]]) -> dict[str, str]:
        """Steps along the optimiser's curve, until all entries fit."""
        shapes: defaultdict[str, list[str]] = defaultdict(list)
        for entry in entries:
            shapes[shape_of(entry)].append(entry)
        tried = _tried(shapes, len(entries))
        links = [tried & each for each in told]
        levels: dict[str, str] = {}
        made: dict[str, set[str]] = {shape: set(own) for shape, own in shapes.items()}
        uses = Counter(entry for own in made.values() for entry in own)
        sample = Sample(self.messages)
        for point in Optimiser(links, sample, entry_bytes=ENTRY_BYTES).curve():
            if point.shape:
                levels[point.shape] = point.level
                uses.subtract(made[point.shape])
                made[point.shape] = {at_level(each, point.level) for each in shapes[point.shape]}
                uses.update(made[point.shape])
                uses = +uses
            if len(uses) <= self.entries_max:
                break
        return {
            entry: general
            for shape, own in shapes.items()
            for entry in own
            if (general := at_level(entry, levels.get(shape, EXACTLY))) != entry
        }

    def _held(self, instead: Mapping[str, str]) -> HeldEntries:
        held = HeldEntries(instead, 0.0, self.limits)
        for origin, told in sorted(self.told.items()):
            held.set(origin, sorted(told), [])
        return held

    def _in_vain(self, wanted: Sequence[Set[str]], held: HeldEntries) -> float:
        rows = zip(self.messages, wanted, held.table.route(self.messages), strict=True)
        of_use = forwarded = 0
        for message, useful, sent in rows:
            of_use += len(message) * len(useful)
            forwarded += len(message) * len(sent)
        return (forwarded - of_use) / forwarded if forwarded else 0.0


def _tried(shapes: Mapping[str, Sequence[str]], count: int) -> set[str]:
    """Some entries of each shape, the same ones whenever there are the same."""
    draw = Random(count)
    tried: set[str] = set()
    for shape in sorted(shapes):
        most = max(1, ENTRIES_TRIED * len(shapes[shape]) // count)
        tried.update(draw.sample(shapes[shape], min(most, len(shapes[shape]))))
    return tried


class BudgetedTable:
    """A table, with the interface of `Table`, that holds no more entries than it may.

    Args:
        entries_max: The budget: distinct entries of the table.
        limits: What one message may cost.

    Attributes:
        failures: Reviews that went wrong.
    """

    def __init__(self, entries_max: int, *, limits: Limits | None = None) -> None:
        self._entries_max = entries_max
        self._limits = limits
        self._told: defaultdict[str, set[str]] = defaultdict(set)
        self._held = HeldEntries({}, 0.0, limits)
        self._sample = MessageSample(STREAM_MESSAGES, STREAM_MESSAGE_BYTES_MAX, STREAM_SHARE)
        self._is_changed = False
        self.failures = 0
        self._reviewed_at = 0
        self._has_failed = False
        self._since: list[tuple[str, list[str], list[str]]] | None = None

    def set(self, origin: str, added: Iterable[str], removed: Iterable[str]) -> None:
        """Takes what changes of what a neighbour tells; see `Table.set`.

        Raises:
            QuerySyntaxError: It is no entry. Nothing is changed then.
        """
        told = self._told[origin]
        removed = set(removed)
        new = sorted(set(added) - told - removed)
        gone = sorted(removed & told)
        self._held.set(origin, new, gone)
        told.update(new)
        told.difference_update(gone)
        self._is_changed = True
        if self._since is not None:
            self._since.append((origin, new, gone))

    def check(self, entries: Iterable[str]) -> None:
        """Implement `Table.check`."""
        self._held.table.check(entries)

    def entries(self, origin: str) -> frozenset[str]:
        """The entries that are held for a neighbour. Cost: linear in all entries."""
        return self._held.table.entries(origin)

    def route(self, messages: Sequence[bytes]) -> list[frozenset[str]]:
        """Implement `Table.route`; the messages are the stream that choices are made on."""
        for message in messages:
            self._sample.add(message)
        return self._held.table.route(messages)

    def decisions(self, size: int) -> MessageDecisions:
        """Implement `Table.decisions`."""
        return self._held.table.decisions(size)

    def __len__(self) -> int:
        """Distinct entries that are held."""
        return len(self._held.table)

    @property
    def in_vain(self) -> float:
        """Share of the bytes forwarded that nobody wants, on the sample of the last choice."""
        return self._held.in_vain

    @property
    def told(self) -> int:
        """Distinct entries that neighbours told. Cost: linear in all entries."""
        return len(set().union(*self._told.values()))

    def review(self, schemas: Iterable[str] = ()) -> TableReview | None:
        """The state that a choice is due for; None if none is, or one is being made.

        One is due if the table does not fit and has changed, or need not be wider any more; or if
        the sample has so many new messages that the choice may have drifted.

        Args:
            schemas: Of the sources whose messages come here.

        Cost: linear in all entries, some nanoseconds each.
        """
        if self._since is not None:
            return None
        is_wide, fits = bool(self._held.instead), len(self) <= self._entries_max
        new = self._sample.taken - self._reviewed_at
        is_due = (not fits and (self._is_changed or self._has_failed)) or (
            is_wide
            and (self._has_failed or self.told <= self._entries_max or new >= REVIEW_MESSAGES)
        )
        if not is_due or len(self._sample.messages) < MESSAGES_MIN:
            return None
        self._since, self._is_changed, self._reviewed_at = [], False, self._sample.taken
        self._has_failed = False
        told = {origin: frozenset(entries) for origin, entries in self._told.items()}
        messages = self._sample.messages
        present, most, limits = self._held.instead, self._entries_max, self._limits
        return TableReview(told, messages, most, present, fits, limits, tuple(schemas))

    def fail(self) -> None:
        """Ends a review that gave no table, whatever went wrong: the next one is due at once.

        The table goes on as it is, with all that came since.
        """
        self._since = None
        self._has_failed = True
        self.failures += 1

    def adopt(self, made: HeldEntries | None) -> None:
        """Ends a review: the table that it gave takes the place of this one, with what came since.

        If it raises anything, `fail` ends the review.

        Cost: that of the changes since the review began.
        """
        since = self._since or []
        if made is not None:
            for origin, new, gone in since:
                made.set(origin, new, gone)
            former, self._held = self._held, made
            # Messages that are arriving are not decided by the former table any more.
            former.table.set(LOCAL, [], [])
        self._since = None
