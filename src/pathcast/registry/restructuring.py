"""Restructuring: steps done to messages.

Each step is made where its elements lie in the bytes of a message; all else stays as it is, byte
for byte. What many series of steps begin with is done once (`Restructurings`), as a broker of a
network does for all behind its links.

Example:
    >>> from pathcast.registry.steps import parse_steps
    >>> steps = parse_steps(["drop //image", "rename //table list", "unwrap //p"])
    >>> message = b"<news><p>On <b>top</b></p><image/><table w='1'><tr/></table></news>"
    >>> Restructuring(steps).apply([message])
    [b"<news>On <b>top</b><list w='1'><tr/></list></news>"]

The kernel does the steps; those of the subscriptions of a host are done there with all else.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pathcast.boundary import cache_bytes, native, native_errors
from pathcast.errors import PathcastError, error_for
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX
from pathcast.registry.steps import Steps, check_steps, step_data

Restructured = bytes | PathcastError
"""A message after steps, or why that cannot be said."""


class AskedSteps(NamedTuple):
    """A message, and the series of steps that are to be done to it.

    Attributes:
        body: The message.
        done: How many steps were done to it before, with which all the series begin.
        series: The series, each of which has no fewer steps.
    """

    body: bytes
    done: int
    series: Sequence[Steps]


class Restructurings:
    """Many series of steps; of those that begin alike the beginning is done once to a message.

    Args:
        limits: What one message may cost over all series.

    Raises:
        KernelMissingError: The kernel is not installed.

    Example:
        >>> from pathcast.registry.steps import parse_steps
        >>> many = Restructurings()
        >>> one = parse_steps(["drop //a", "rename //b c"])
        >>> many.set([one, one[:1]])
        >>> many.apply([AskedSteps(b"<r><a/><b/></r>", 0, [one[:1], one])])
        [[b'<r><b/></r>', b'<r><c/></r>']]
    """

    def __init__(self, limits: Limits | None = None) -> None:
        with native_errors():
            self._native = native.Restructurings(limits or Limits(), cache_bytes(CACHE_BYTES_MAX))
        self._places: dict[Steps, int] = {}

    def set(self, series: Sequence[Steps]) -> None:
        """These are the series that are asked for from now on.

        Raises:
            QuerySyntaxError: A path cannot be used. Nothing is changed then.
            UnsupportedQueryError: Likewise.

        Cost: a compilation for each step that is new.
        """
        distinct = list(dict.fromkeys(series))
        for steps in distinct:
            check_steps(steps)
        with native_errors():
            self._native.set([step_data(steps) for steps in distinct])
        self._places = {steps: place for place, steps in enumerate(distinct)}

    def apply(self, messages: Sequence[AskedSteps]) -> list[list[Restructured]]:
        """Each message after each of its series.

        Returns:
            For each message, for each of its series what the message has become, or why that cannot
            be said: it is refused, a path takes more than it may, the series before it (in the
            order of their texts) have used up what it may take, it grows beyond its limits, or an
            element to edit does not lie in its bytes (another encoding than UTF-8, an element out
            of an entity).

        Cost: for each text that is made, the matching of the paths that follow and a copy.
        """
        asked = [
            (body, done, [self._places[steps] for steps in series])
            for body, done, series in messages
        ]
        with native_errors():
            answer = self._native.apply(asked)
        found: list[list[Restructured]] = []
        for message, made in zip(messages, answer, strict=True):
            texts: list[Restructured] = []
            for one in made:
                if one is None:
                    texts.append(message.body)
                else:
                    texts.append(one if isinstance(one, bytes) else error_for(*one))
            found.append(texts)
        return found


class Restructuring:
    """One series of steps.

    Args:
        steps: In order; none leave messages as they are.
        limits: What one message may cost.

    Raises:
        QuerySyntaxError: A path cannot be used.
        UnsupportedQueryError: Likewise.
        KernelMissingError: The kernel is not installed.
    """

    def __init__(self, steps: Steps, limits: Limits | None = None) -> None:
        self.steps = steps
        self._series = Restructurings(limits)
        self._series.set([steps])

    def apply(self, messages: Sequence[bytes], done: int = 0) -> list[Restructured]:
        """The messages after the steps, or why that cannot be said (`Restructurings.apply`).

        Args:
            messages: A batch.
            done: How many of the steps were done before.
        """
        asked = [AskedSteps(message, done, [self.steps]) for message in messages]
        return [made for [made] in self._series.apply(asked)]
