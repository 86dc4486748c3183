"""The local plan of a host in XML: its profiles, each answered exactly.

Profiles that begin with the same steps are answered together, on the messages that these steps make
of those that came; a message whose first steps were done on the way is given the others. Steps are
done only to messages that may satisfy a profile after them, as its entries say, and those that
several profiles begin with are done once.

Example:
    >>> profiles = XmlProfiles()
    >>> profiles.add("s", Profile("//list", "fragment", steps=("drop //image", "rename //ol list")))
    >>> profiles.answers([b"<n><ol><image/></ol></n>", b"<n><ol/></n>"], done=[0, 1])
    [{'s': (b'<list></list>',)}, {'s': (b'<list/>',)}]

Source: 001, section 5 (local plan) and 4.2.2 (what is left to do after early restructuring).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count

from pathcast.customize import Broker as LocalBroker
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.overlay.content import Profile, Results, Verdict
from pathcast.overlay.cutting import WHOLE, cut_entry
from pathcast.overlay.disjuncts import disjuncts_of, is_linear
from pathcast.overlay.restructuring import Restructurings, Steps, before_steps, parse_steps
from pathcast.overlay.table import Table

__all__ = ["XmlProfiles"]

Answers = dict[str, Results | Verdict]


@dataclass(slots=True)
class _Series:
    """Profiles that begin with the same steps.

    Attributes:
        origin: Under which their entries are in the table.
        broker: Answers them on messages after the steps.
        names: Subscriptions.
        entries: What a message is asked before the steps.
    """

    origin: str
    broker: LocalBroker
    names: dict[str, None] = field(default_factory=dict)
    entries: Counter[str] = field(default_factory=Counter)


class XmlProfiles:
    """`pathcast.overlay.content.Profiles`: the local plan, exact.

    Args:
        engine: As for `QueryIndex`.
        limits: What one message may cost.
        projection: As for `xml_content`.
    """

    def __init__(
        self, engine: str | None = None, limits: Limits | None = None, projection: bool = True
    ) -> None:
        self._limits = limits
        self._projection = projection
        plain = LocalBroker(engine=engine, limits=limits)
        self._engine = plain.engine
        self._series: dict[Steps, _Series] = {(): _Series("", plain)}
        self._profiles: dict[str, Profile] = {}
        self._table = Table(engine=engine, limits=limits)
        self._restructurings: Restructurings | None = None

    def entries(self, profile: Profile) -> tuple[str, ...]:
        """As of the protocol."""
        return _entries(profile, self._engine, self._projection)

    def add(self, subscription: str, profile: Profile) -> None:
        """As `Profiles.add`."""
        steps, entries = _steps(profile, self._engine), self._before(profile)
        series = self._series.get(steps)
        if series is None:
            used = {one.origin for one in self._series.values()}
            origin = next(name for name in map(str, count()) if name not in used)
            series = _Series(origin, LocalBroker(engine=self._engine, limits=self._limits))
        for error in series.broker.subscribe(_asked(profile, subscription)).errors.values():
            raise error
        series.names[subscription] = None
        self._profiles[subscription] = profile
        if steps:
            self._set_entries(series, entries, 1)
        if steps not in self._series:
            self._set_series({**self._series, steps: series})

    def remove(self, subscription: str) -> None:
        """As `Profiles.remove`."""
        profile = self._profiles.pop(subscription)
        steps = _steps(profile, self._engine)
        series = self._series[steps]
        series.broker.unsubscribe(subscription)
        del series.names[subscription]
        if steps:
            self._set_entries(series, self._before(profile), -1)
            if not series.names:
                self._set_series({key: one for key, one in self._series.items() if key != steps})

    def answers(self, bodies: Sequence[bytes], done: Sequence[int] = ()) -> list[Answers]:
        """As `Profiles.answers`.

        A message that is refused here, whatever its root has let in, is undecided for all.
        """
        found: list[Answers] = [{} for _ in bodies]
        refused = _answer(self._series[()], bodies, range(len(bodies)), found)
        if self._restructurings is not None:
            self._answer_after_steps(bodies, done or [0] * len(bodies), found)
        for row, verdict in refused.items():
            found[row] = dict.fromkeys(self._profiles, verdict)
        return [dict(sorted(one.items())) for one in found]

    def _answer_after_steps(
        self, bodies: Sequence[bytes], done: Sequence[int], found: Sequence[Answers]
    ) -> None:
        assert self._restructurings is not None
        wanted = self._table.route(bodies)
        batch = self._restructurings.batch(bodies, done)
        for steps, series in self._series.items():
            # A message that more was done to is for profiles with other steps.
            rows = [
                row
                for row, origins in enumerate(wanted)
                if series.origin in origins and done[row] <= len(steps)
            ]
            made: list[bytes] = []
            places: list[int] = []
            for row, text in zip(rows, batch.after(steps, rows), strict=True):
                if isinstance(text, PathcastError):
                    verdict = Verdict(text.code, text.message)
                    found[row].update(dict.fromkeys(series.names, verdict))
                else:
                    made.append(text)
                    places.append(row)
            for row, verdict in _answer(series, made, places, found).items():
                found[row].update(dict.fromkeys(series.names, verdict))

    def _before(self, profile: Profile) -> tuple[str, ...]:
        """What a message is asked before the steps of a profile."""
        return self.entries(profile)[:-1]

    def _set_entries(self, series: _Series, entries: Sequence[str], by: int) -> None:
        before = set(series.entries)
        series.entries.update(dict.fromkeys(entries, by))
        series.entries = +series.entries
        now = set(series.entries)
        self._table.set(series.origin, sorted(now - before), sorted(before - now))

    def _set_series(self, series: dict[Steps, _Series]) -> None:
        self._series = series
        if len(series) == 1:
            self._restructurings = None
            return
        self._restructurings = self._restructurings or Restructurings(self._engine, self._limits)
        self._restructurings.set(series)


def _answer(
    series: _Series, bodies: Sequence[bytes], places: Sequence[int], found: Sequence[Answers]
) -> dict[int, Verdict]:
    """Adds what messages give profiles. Returns why those were refused that were, by their place.

    Args:
        series: Answers them.
        bodies: Messages after its steps.
        places: Where each goes.
        found: What is known of all messages.
    """
    if not bodies:
        return {}
    answer = series.broker.process_few(bodies)
    results: dict[tuple[int, str], list[bytes]] = {}
    for row, name, result in answer.deliveries:
        given = results.setdefault((row, name), [])
        if result is not None:
            given.append(result)
    for (row, name), given in results.items():
        found[places[row]][name] = tuple(given)
    for row, name, error in answer.verdicts:
        found[places[row]][name] = Verdict(error.code, error.message)
    return {places[row]: Verdict(error.code, error.message) for row, error in answer.refusals}


@lru_cache(maxsize=100_000)
def _entries(profile: Profile, engine: str, projection: bool) -> tuple[str, ...]:
    """Popular profiles are asked for at many hosts, and again when a broker starts.

    Cost: as `_paths` and `before_steps`, and that of `cut_entry`.
    """
    steps = _steps(profile, engine)
    paths = (before_steps(path, steps) for path in _paths(profile, engine != "reference"))
    cut = cut_entry(_asked(profile), steps) if projection else WHOLE
    return (*dict.fromkeys(paths), cut)


@lru_cache(maxsize=100_000)
def _steps(profile: Profile, engine: str) -> Steps:
    if not profile.steps:
        return ()
    return parse_steps(profile.steps, dict(profile.namespaces), engine)


def _paths(profile: Profile, is_native: bool) -> tuple[str, ...]:
    """The routing entries, of messages after the steps.

    Cost: some microseconds for a path whose conditions are about values, of which the kernel says
    what `disjuncts_of` would; else as `disjuncts_of`.
    """
    if is_native:
        from pathcast.kernel import canonical_form

        text = canonical_form(profile.query, dict(profile.namespaces))
        if text is not None and is_linear(text):
            return (text,)
    return disjuncts_of(profile.query, dict(profile.namespaces), profile.deliver)


def _asked(profile: Profile, id: str = "") -> Subscription:
    return Subscription(id, id, profile.query, profile.deliver, dict(profile.namespaces))
