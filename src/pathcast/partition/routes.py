"""Routes: paths, and the targets that may want a message that has them; made to fit a budget.

A target is a partition of the queries, or whatever else stands for many of them. Exact routes, one
for every distinct path of a query, would be as large as the queries are. They are generalised step
by step, what loses least first, until they fit:

1.  exact paths,
2.  one linear path of each, which others of its targets share and those of others do not
    ("common paths"),
3.  ranges of numbers within a target,
4.  beginnings of strings, shorter and shorter,
5.  existence in place of comparisons,
6.  the structure alone, then shorter paths, the last name anywhere, any message.

Within a step the groups that save most go first, or, where it is known how often paths occur in
messages, those that cost least wrongly routed messages for what they save; what is not needed to
fit is left alone.

Example:
    >>> from pathcast.query import normalise
    >>> routes = Routes()
    >>> for target in range(2):
    ...     for value in range(100):
    ...         routes.add([normalise(f"/m/q[@n = {100 * target + value}][@x = {value}]")], target)
    >>> len(routes), sorted(map(str, fitted(routes, 600, words=1)))
    (200, ['/m/q[@n<=199][@n>=100] -> 1', '/m/q[@n<=99][@n>=0] -> 0'])

It matches nothing: `routing` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 4.2.1 (content generalisation; the choice of
what to generalise is left open there) and 4.4.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pathcast.boundary import native
from pathcast.query import OPERATORS, Operator

ROUTE_BYTES: Final = 96
"""Bytes of a route besides its text and its targets: what a snapshot file holds for a query."""

TEXT_BYTES: Final = 2
"""Bytes for each character of a path: its text, its id, its states and its plan."""

COVERING_MAX: Final = 4_000
"""Routes up to which those that others cover are looked for, a second or two at most."""

Frequency: TypeAlias = "Callable[[Sequence[native.NormalPath]], Sequence[float]]"
"""Which share of the messages satisfies each of some paths."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path and its targets.

    Attributes:
        path: The path.
        targets: A bit for each target.
    """

    path: native.NormalPath
    targets: int

    def __str__(self) -> str:
        return f"{self.path.text} -> {' '.join(map(str, bits_of(self.targets)))}"


class Routes:
    """Routes on their way into an index; each path once."""

    def __init__(self, found: Mapping[native.NormalPath, int] | None = None) -> None:
        self._targets: dict[native.NormalPath, int] = dict(found or {})

    def add(self, paths: Iterable[native.NormalPath], target: int) -> None:
        """Takes paths of which one must hold if a target is to be reached."""
        for path in paths:
            self.add_targets(path, 1 << target)

    def add_targets(self, path: native.NormalPath, targets: int) -> None:
        """Has a path lead to some targets, a bit each."""
        self._targets[path] = self._targets.get(path, 0) | targets

    def replace(self, members: Sequence[native.NormalPath], general: native.NormalPath) -> None:
        """Puts one path in the place of several that it covers."""
        targets = 0
        for path in members:
            targets |= self._targets.pop(path)
        self.add_targets(general, targets)

    def drop(self, path: native.NormalPath, targets: int) -> None:
        """Takes targets from a path, and the path if none is left."""
        left = self._targets[path] & ~targets
        if left:
            self._targets[path] = left
        else:
            del self._targets[path]

    def lead_everything_to(self, targets: int) -> None:
        """Has any message reach some targets."""
        self.add_targets(_anything(), targets)

    def drop_what_anything_leads_to(self) -> None:
        """Takes targets that any message reaches from all other paths."""
        for path in self.paths() if self.targets(_anything()) else ():
            if path != _anything():
                self.drop(path, self.targets(_anything()))

    def targets(self, path: native.NormalPath) -> int:
        """The targets of a path; none of a path that is not there."""
        return self._targets.get(path, 0)

    def all_targets(self) -> int:
        """All targets that some path leads to."""
        return functools.reduce(operator.or_, self._targets.values(), 0)

    def copy(self) -> Routes:
        """Copy the routes, for changing."""
        return Routes(self._targets)

    def size(self, words: int) -> int:
        """About how many bytes an index of them takes.

        Args:
            words: 64-bit words for the targets of one.
        """
        return sum(route_bytes(path, words) for path in self._targets)

    def paths(self) -> list[native.NormalPath]:
        """The paths."""
        return list(self._targets)

    def __len__(self) -> int:
        return len(self._targets)

    def __iter__(self) -> Iterator[Route]:
        return (Route(path, targets) for path, targets in self._targets.items())


@functools.cache
def _anything() -> native.NormalPath:
    """The path of any message."""
    return native.NormalPath("/*")


def bits_of(targets: int) -> list[int]:
    """The targets of a set, ascending."""
    return [at for at in range(targets.bit_length()) if targets >> at & 1]


def route_bytes(path: native.NormalPath, words: int) -> int:
    """About how many bytes one route takes."""
    return ROUTE_BYTES + TEXT_BYTES * len(path.text) + 8 * words


def fitted(
    routes: Routes,
    budget_bytes: int,
    *,
    words: int,
    given_up: int = 0,
    frequency: Frequency | None = None,
) -> Routes:
    """Routes that are reached whenever the given ones are, and fit a budget.

    Args:
        routes: The routes; left as they are.
        budget_bytes: Bytes that an index of them may take, by `Routes.size`.
        words: 64-bit words for the targets of one.
        given_up: Targets that every message may go to before others lose anything: the don't-care
            partition, whose queries have nothing in common.
        frequency: How often paths occur in messages; what saves most goes first where it is not
            known.

    Returns:
        Routes that fit or, where the budget is below that, the one route of any message.

    Cost:
        Some microseconds a route and step. Coverings are looked for where few are left.
    """
    found = routes.copy()
    given_up &= found.all_targets()
    if found.size(words) > budget_bytes and given_up:
        found.lead_everything_to(given_up)
    found.drop_what_anything_leads_to()
    size = found.size(words)
    for step in _STEPS:
        if size <= budget_bytes:
            break
        size = _generalise(found, step, size, budget_bytes, words, frequency)
    _drop_covered(found)
    return found


def _generalise(
    routes: Routes,
    step: _Step,
    size: int,
    budget_bytes: int,
    words: int,
    frequency: Frequency | None,
) -> int:
    """Does one step as far as is needed; the size that is left."""
    groups = [group for group in step(routes) if group.is_worth_it(words)]
    if frequency is not None:
        losses = _losses(routes, groups, frequency)
        worth = [loss / group.saved(words) for loss, group in zip(losses, groups, strict=True)]
        order = sorted(range(len(groups)), key=lambda at: (worth[at], at))
    else:
        order = sorted(range(len(groups)), key=lambda at: (-groups[at].saved(words), at))
    for at in order:
        if size <= budget_bytes:
            break
        group = groups[at]
        has_general = routes.targets(group.general) != 0 and group.general not in group.members
        routes.replace(group.members, group.general)
        size -= sum(route_bytes(path, words) for path in group.members)
        size += 0 if has_general else route_bytes(group.general, words)
    return size


@dataclass(frozen=True, slots=True)
class _Group:
    """Paths that one path is put in the place of."""

    general: native.NormalPath
    members: tuple[native.NormalPath, ...]

    def saved(self, words: int) -> int:
        """Bytes that it saves."""
        before = sum(route_bytes(path, words) for path in self.members)
        return before - route_bytes(self.general, words)

    def is_worth_it(self, words: int) -> bool:
        """Whether something is saved."""
        return self.members != (self.general,) and self.saved(words) > 0


_Step: TypeAlias = Callable[[Routes], Iterable[_Group]]


def _losses(routes: Routes, groups: Sequence[_Group], frequency: Frequency) -> list[float]:
    """For each group, targets a message that are reached in vain if it is taken, at most."""
    paths = [path for group in groups for path in (group.general, *group.members)]
    shares = iter(frequency(paths))
    losses = []
    for group in groups:
        union, general = 0, next(shares)
        members = 0.0
        for path in group.members:
            union |= routes.targets(path)
            members += next(shares) * routes.targets(path).bit_count()
        losses.append(max(0.0, general * union.bit_count() - members))
    return losses


def _grouped(
    routes: Routes, general_of: Callable[[native.NormalPath], native.NormalPath | None]
) -> list[_Group]:
    """Paths by what is made of each; those that nothing is made of are left out."""
    groups: dict[native.NormalPath, list[native.NormalPath]] = defaultdict(list)
    for path in routes.paths():
        general = general_of(path)
        if general is not None:
            groups[general].append(path)
    return [_Group(general, tuple(members)) for general, members in groups.items()]


def _to_conjuncts(routes: Routes) -> list[_Group]:
    """Of every path the linear path that others of its targets share, and those of others do not.

    What one query alone asks tells targets apart as well, and saves nothing: so what is weighed is
    the share of a linear path that is of the same targets, times the logarithm of how many are.
    """
    parts = {route.path: (route.path.conjuncts(), route.targets) for route in routes}
    everywhere = Counter(part for found, _ in parts.values() for part in found)
    here = Counter((part, targets) for found, targets in parts.values() for part in found)
    groups: dict[native.NormalPath, list[native.NormalPath]] = defaultdict(list)
    for path, (found, targets) in parts.items():

        def worth(part: native.NormalPath, targets: int = targets) -> tuple[int, float]:
            count = here[part, targets]
            return _selects(part), math.log1p(count) * count / everywhere[part]

        groups[max(found, key=worth)].append(path)
    return [_Group(general, tuple(members)) for general, members in groups.items()]


def _selects(path: native.NormalPath) -> int:
    """How much a linear path asks: a value, a comparison, existence."""
    found = path.leaf()
    if found is None:
        return 0
    return 2 if OPERATORS[found[1]] in (Operator.EQ, Operator.STARTS_WITH) else 1


def _to_ranges(routes: Routes) -> list[_Group]:
    """The numbers that one value is compared with for the same targets, as a range."""
    alike: dict[tuple[native.NormalPath, int], list[native.NormalPath]] = defaultdict(list)
    for route in routes:
        found = route.path.leaf()
        if found is not None:
            alike[found[0], route.targets].append(route.path)
    groups = []
    for members in alike.values():
        if len(members) > 1 and (general := native.NormalPath.hull(members)) is not None:
            groups.append(_Group(general, tuple(members)))
    return groups


def _to_beginnings(length: int) -> _Step:
    return lambda routes: _grouped(routes, lambda path: path.begun(length))


def _to_existence(routes: Routes) -> list[_Group]:
    return _grouped(routes, lambda path: path.existing())


def _to_structure(routes: Routes) -> list[_Group]:
    return _grouped(routes, lambda path: path.structure())


def _to_length(length: int) -> _Step:
    return lambda routes: _grouped(routes, lambda path: path.cut(length))


def _to_last_name(routes: Routes) -> list[_Group]:
    return _grouped(routes, lambda path: path.last_name())


def _to_anything(routes: Routes) -> list[_Group]:
    """All paths as one, the path of any message."""
    return [_Group(_anything(), tuple(routes.paths()))]


_STEPS: Final[tuple[_Step, ...]] = (
    _to_conjuncts,
    _to_ranges,
    _to_beginnings(8),
    _to_beginnings(4),
    _to_beginnings(2),
    _to_beginnings(1),
    _to_existence,
    _to_structure,
    _to_length(4),
    _to_length(3),
    _to_last_name,
    _to_anything,
)


def _drop_covered(routes: Routes) -> None:
    """Takes targets from paths that are covered by another path of the same targets."""
    paths = routes.paths()
    if len(paths) > COVERING_MAX:
        return
    found, _, _ = native.coverings([([path], True) for path in paths])
    for special, general in found:
        # The target stays with what covers, or with what covers that.
        if shared := routes.targets(paths[special]) & routes.targets(paths[general]):
            routes.drop(paths[special], shared)
