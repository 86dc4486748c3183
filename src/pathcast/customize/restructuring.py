"""Restructuring: the steps of subscriptions, done to messages.

Each step is made where its elements lie in the bytes of a message; all else stays as it is, byte
for byte. What many series of steps begin with is done once (`Restructurings`): a host does that for
its subscribers, a broker of a network for all behind a link.

Example:
    >>> from pathcast.customize.steps import parse_steps
    >>> steps = parse_steps(["drop //image", "rename //table list", "unwrap //p"])
    >>> message = b"<news><p>On <b>top</b></p><image/><table w='1'><tr/></table></news>"
    >>> Restructuring(steps, "reference").apply([message])
    [b"<news>On <b>top</b><list w='1'><tr/></list></news>"]

It does not say which messages a query is satisfied by after the steps: `before_steps` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pathcast.customize.selector import Select, Selector
from pathcast.customize.steps import Edit, EditStep, Steps
from pathcast.engine.selection import engine_name
from pathcast.errors import PathcastError, UnreadableMessageError
from pathcast.limits import Limits
from pathcast.reference.places import ElementPlaces, Span

_START_TAG: Final = re.compile(rb"<([^\s/>]+)(?:[^>'\"]|'[^']*'|\"[^\"]*\")*>")
_DOCUMENT: Final = Select("/*")
_DECLARES: Final = re.compile(rb"\sxmlns(?::[^\s=]+)?\s*=")


class Restructuring:
    """Steps, made ready.

    Args:
        steps: In order; none leave messages as they are.
        engine: "kernel" (default), "nfa" or "reference"; None asks `PATHCAST_ENGINE` first.
        limits: What one message may cost.
        threads: Threads of one batch.

    Raises:
        QuerySyntaxError: A path cannot be used.
        UnsupportedQueryError: Likewise.
        KernelMissingError: The kernel is meant and not installed.
    """

    def __init__(
        self,
        steps: Steps,
        engine: str | None = None,
        limits: Limits | None = None,
        threads: int | None = 1,
    ) -> None:
        self.steps = steps
        self._edits = [_Edit(step, engine, limits, threads) for step in steps]

    def apply(self, messages: Sequence[bytes], done: int = 0) -> list[bytes | PathcastError]:
        """The messages after the steps.

        Args:
            messages: A batch.
            done: How many of the steps were done before.

        Returns:
            For each message what it has become, or why that cannot be said: it is refused, a path
            takes more than it may, or an element to edit does not lie in the bytes of the message
            (another encoding than UTF-8, an element out of an entity).

        Cost: for each step, the matching of its path and a copy of the messages that it changes.
        """
        found: list[bytes | PathcastError] = list(messages)
        for edit in self._edits[done:]:
            found = edit.apply(found)
        return found


class _Edit:
    """A step, made ready; see `Restructuring`."""

    def __init__(
        self, step: EditStep, engine: str | None, limits: Limits | None, threads: int | None
    ) -> None:
        self._step = step
        self._find = _finder(step, engine, limits, threads)

    def apply(
        self, messages: Sequence[bytes | PathcastError], encoding: str | None = None
    ) -> list[bytes | PathcastError]:
        """The messages after the step; those that there are none of stay so."""
        made = list(messages)
        rows = [row for row, each in enumerate(made) if isinstance(each, bytes)]
        texts = [each for each in made if isinstance(each, bytes)]
        for row, text, found in zip(rows, texts, self._find(texts, encoding), strict=True):
            made[row] = _edited(text, self._step, found) if isinstance(found, list) else found
        return made


_Found = Sequence[list[Span] | PathcastError]
"""Where the elements of a step lie in each of some messages, or why that cannot be said."""


def _finder(
    step: EditStep, engine: str | None, limits: Limits | None, threads: int | None
) -> Callable[[Sequence[bytes], str | None], _Found]:
    """What finds the elements of a step, the document element left out."""
    nowhere = UnreadableMessageError(
        "message.unreadable",
        path="the message",
        reason=f"{step} is to edit what does not lie in its bytes: it is not in UTF-8, or an "
        "entity holds the element, or a node is no element",
    )
    if engine_name(engine) == "reference":
        places = ElementPlaces(step.path, dict(step.namespaces), limits)

        def find_each(messages: Sequence[bytes], encoding: str | None) -> _Found:
            found: list[list[Span] | PathcastError] = []
            for message in messages:
                try:
                    there = places.find(message, encoding)
                    found.append(nowhere if there is None else there)
                except PathcastError as error:
                    found.append(error)
            return found

        return find_each
    selects = [Select(step.path, step.namespaces), _DOCUMENT]
    selector = Selector(selects, engine, limits, threads)

    def find_all(messages: Sequence[bytes], encoding: str | None) -> _Found:
        spans = selector.spans(messages, encoding)
        found: list[list[Span] | PathcastError] = []
        for row in range(len(messages)):
            if row in spans.unknown:
                found.append(spans.unknown[row] or nowhere)
            else:
                [document] = spans.of(row, 1)
                found.append([Span(*each) for each in spans.of(row, 0) if each != document])
        return found

    return find_all


class Restructurings:
    """Many series of steps; of those that begin alike the beginning is done once to a message.

    Args:
        engine: As for `Restructuring`.
        limits: Likewise.
        threads: Likewise.

    Example:
        >>> from pathcast.customize.steps import parse_steps
        >>> many = Restructurings("reference")
        >>> one = parse_steps(["drop //a", "rename //b c"])
        >>> many.set([one, one[:1]])
        >>> batch = many.batch([b"<r><a/><b/></r>"])
        >>> batch.after(one[:1], [0]), batch.after(one, [0])
        ([b'<r><b/></r>'], [b'<r><c/></r>'])
    """

    def __init__(
        self,
        engine: str | None = None,
        limits: Limits | None = None,
        threads: int | None = 1,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._threads = threads
        self._edits: dict[EditStep, _Edit] = {}

    def set(self, series: Iterable[Steps]) -> None:
        """These are the series that are asked for from now on.

        Raises:
            QuerySyntaxError: A path cannot be used. Nothing is changed then.
            UnsupportedQueryError: Likewise.

        Cost: a compilation for each step that is new.
        """
        wanted = {step for steps in series for step in steps}
        self._edits = {
            step: self._edits.get(step) or _Edit(step, self._engine, self._limits, self._threads)
            for step in wanted
        }

    def batch(
        self, messages: Sequence[bytes], done: Sequence[int] = (), encoding: str | None = None
    ) -> RestructuredBatch:
        """A batch that steps are to be done to.

        Args:
            messages: The batch.
            done: How many steps were done to each, of any series that will be asked for of it.
            encoding: Encoding of all messages where it is known better than they say.
        """
        return RestructuredBatch(self._edits, messages, done or [0] * len(messages), encoding)


class RestructuredBatch:
    """See `Restructurings`; it is used before these change."""

    def __init__(
        self,
        edits: Mapping[EditStep, _Edit],
        messages: Sequence[bytes],
        done: Sequence[int],
        encoding: str | None,
    ) -> None:
        self._edits = edits
        self._messages = messages
        self._done = done
        self._encoding = encoding
        self._found: dict[Steps, dict[int, bytes | PathcastError]] = {}

    def after(self, steps: Steps, rows: Sequence[int]) -> list[bytes | PathcastError]:
        """Some of the messages after a series, of which some steps may have been done before.

        Args:
            steps: The series.
            rows: Places of messages, to each of which no more steps were done than there are.

        Cost: as `Restructuring.apply`, for what was not asked for before.
        """
        found = self._found.setdefault(steps, {})
        new = [row for row in rows if row not in found]
        found.update((row, self._messages[row]) for row in new if self._done[row] == len(steps))
        new = [row for row in new if row not in found]
        if new:
            before = self.after(steps[:-1], new)
            made = self._edits[steps[-1]].apply(before, self._encoding)
            found.update(zip(new, made, strict=True))
        return [found[row] for row in rows]


def _edited(message: bytes, step: EditStep, spans: Sequence[Span]) -> bytes:
    """A message with one edit made of elements, none of which is the document element."""
    edits: list[tuple[int, int, bytes]] = []
    for start, end in spans:
        if step.edit is Edit.DROP:
            # What is in an element that is dropped goes with it.
            if not edits or start >= edits[-1][1]:
                edits.append((start, end, b""))
            continue
        tag = _START_TAG.match(message, start, end)
        assert tag is not None, "the door has let this start tag in"
        # An empty-element tag is the whole element.
        closing = message.rfind(b"</", start, end) if tag.end() < end else None
        if step.edit is Edit.UNWRAP:
            if not _DECLARES.search(tag[0]):
                edits.append((start, tag.end(), b""))
                if closing is not None:
                    edits.append((closing, end, b""))
            continue
        prefix, colon, _ = tag[1].rpartition(b":")
        name = prefix + colon + step.name.encode()
        edits.append((*tag.span(1), name))
        if closing is not None:
            edits.append((closing + 2, closing + 2 + len(tag[1]), name))
    made, at = [], 0
    for start, end, text in sorted(edits):
        made += [message[at:start], text]
        at = end
    return b"".join([*made, message[at:]])
