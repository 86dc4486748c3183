"""Restructuring: the steps of subscriptions done to the bytes of one message after the other.

Each step is made where its elements lie in the bytes; all else stays as it is.

Example:
    >>> steps = (("drop", "//image", "", ()), ("rename", "//table", "list", ()))
    >>> steps = (*steps, ("unwrap", "//p", "", ()))
    >>> message = b"<news><p>On <b>top</b></p><image/><table w='1'><tr/></table></news>"
    >>> MessageRestructuring(message, 0, Limits(), None, MessageBudget(Limits())).after(steps)
    b"<news>On <b>top</b><list w='1'><tr/></list></news>"

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from pathcast.errors import (
    LimitExceededError,
    MessageBudgetError,
    PathcastError,
    ResultLimitError,
    UnreadableMessageError,
)
from pathcast.limits import RESULT_BYTES_FREE, Limits
from pathcast.model import StepData
from pathcast_papers.evaluation.places import ElementPlaces, Span
from pathcast_papers.evaluation.tags import START_TAG, attribute_defaults, attribute_names

BYTES_PER_STEP: Final = 64
"""Bytes read or written that count as a step."""

Steps = tuple[StepData, ...]
"""What is done to a message, in order."""

_Made = bytes | PathcastError


class MessageBudget:
    """What is left to one message.

    Args:
        limits: What it may take.

    Attributes:
        steps: Steps that are left.
        result_bytes: Bytes of results that are left.
        restructuring_steps: Steps taken to find elements, to read and to write texts.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.steps = limits.message_steps_max
        self.result_bytes = limits.message_result_bytes_max
        self.restructuring_steps = 0

    def spend_steps(self, steps: int) -> None:
        """The message has taken steps to be restructured."""
        self.steps -= steps
        self.restructuring_steps += steps

    def spend_text(self, text: bytes) -> None:
        """A text was read or written."""
        self.spend_steps(1 + len(text) // BYTES_PER_STEP)

    def used_up(self) -> PathcastError | None:
        """Why no more may be done; None if more may."""
        if self.steps <= 0:
            maximum = self._limits.message_steps_max
            return MessageBudgetError(
                "limit.message_steps", limit="message_steps_max", maximum=maximum
            )
        if self.result_bytes <= 0:
            maximum = self._limits.message_result_bytes_max
            return ResultLimitError(
                "limit.message_result_bytes", limit="message_result_bytes_max", maximum=maximum
            )
        return None


class MessageRestructuring:
    """One message, to which series of steps are done in their order.

    Args:
        message: As it came.
        done: How many steps were done to it before, with which all the series begin.
        limits: What it may cost.
        encoding: Its encoding where that is known.
        budget: What is left to it.
    """

    def __init__(
        self,
        message: bytes,
        done: int,
        limits: Limits,
        encoding: str | None,
        budget: MessageBudget,
    ) -> None:
        self._message = message
        self._done = done
        self._limits = limits
        self._encoding = encoding
        self._budget = budget
        self._found: dict[Steps, _Made] = {}

    def after(self, steps: Steps) -> _Made:
        """The message after a series, or why that cannot be said."""
        begun = (steps[:number] for number in range(len(steps) + 1))
        self._found = {start: self._found[start] for start in begun if start in self._found}
        return self._after(steps)

    def _after(self, steps: Steps) -> _Made:
        if len(steps) <= self._done:
            return self._message
        if steps not in self._found:
            before = self._after(steps[:-1])
            error = before if isinstance(before, PathcastError) else self._budget.used_up()
            if error is None and isinstance(before, bytes):
                try:
                    self._found[steps] = self._edited(before, steps[-1])
                except PathcastError as refused:
                    error = refused
            if error is not None:
                self._found[steps] = error
        return self._found[steps]

    def _edited(self, text: bytes, step: StepData) -> bytes:
        places = _places(step, self._limits)
        try:
            spans = places.find(text, self._encoding, self._budget.steps)
        finally:
            self._budget.spend_steps(places.steps)
            self._budget.spend_text(text)
        if spans is None:
            raise UnreadableMessageError(
                "message.unreadable",
                path="the message",
                reason=f"{step[:3]} edits what is elsewhere",
            )
        made = edited(text, step, spans, self._limits, len(self._message))
        self._budget.spend_text(made)
        return made


class _Edit(Protocol):
    @property
    def value(self) -> str: ...


class _Step(Protocol):
    """A step as the product has it (`pathcast.registry.steps.EditStep`)."""

    @property
    def edit(self) -> _Edit: ...
    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def namespaces(self) -> tuple[tuple[str, str], ...]: ...


class ReferenceRestructurings:
    """Series of steps that are done to messages (`pathcast.registry.restructuring`)."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def set(self, series: Sequence[Sequence[_Step]]) -> None:
        """These are the series from now on."""

    def apply(
        self, messages: Sequence[tuple[bytes, int, Sequence[Sequence[_Step]]]]
    ) -> list[list[_Made]]:
        """Each message after each of its series."""
        found: list[list[_Made]] = []
        for body, done, asked in messages:
            series = [
                tuple((each.edit.value, each.path, each.name, each.namespaces) for each in steps)
                for steps in asked
            ]
            budget = MessageBudget(self._limits)
            one = MessageRestructuring(body, done, self._limits, None, budget)
            made = {steps: one.after(steps) for steps in sorted(series)}
            found.append([made[steps] for steps in series])
        return found


@lru_cache(maxsize=1_024)
def _places(step: StepData, limits: Limits) -> ElementPlaces:
    _, path, _, namespaces = step
    return ElementPlaces(path, dict(namespaces), limits)


def edited(
    message: bytes, step: StepData, spans: Sequence[Span], limits: Limits, length: int
) -> bytes:
    """A message with the edit made of elements, none of which is the document element.

    Raises:
        LimitExceededError: It would be longer than it may; nothing is made then.
        UnreadableMessageError: Its declarations would give a renamed element an attribute.
    """
    maximum, ratio = limits.message_bytes_max, limits.result_ratio_max
    grown_max = max(RESULT_BYTES_FREE, ratio * length)
    edits, size = [], len(message)
    for edit in _edits(message, step, spans):
        start, end, text = edit
        edits.append(edit)
        # Only a renaming makes a message longer, and it does so element by element.
        size += len(text) - (end - start)
        if size > len(message) and size > maximum:
            raise LimitExceededError(
                "limit.message_bytes", limit="message_bytes_max", given=size, maximum=maximum
            )
        if size > len(message) and size > grown_max:
            raise ResultLimitError("limit.steps_ratio", limit="result_ratio_max", maximum=ratio)
    return _joined(message, sorted(edits)) if edits else message


def _edits(
    message: bytes, step: StepData, spans: Sequence[Span]
) -> Iterator[tuple[int, int, bytes]]:
    """Which bytes of a message are replaced: where they begin and end, and by what.

    Raises:
        UnreadableMessageError: Its declarations would give a renamed element an attribute.
    """
    if step[0] == "drop":
        dropped = 0
        for start, end in spans:
            # An element in one that is dropped goes with it.
            if start >= dropped:
                yield start, end, b""
                dropped = end
        return
    defaults = attribute_defaults(message) if spans else {}
    renamed: dict[bytes, bytes] = {}
    for start, end in spans:
        tag = START_TAG.match(message, start, end)
        assert tag is not None, "the door has let this start tag in"
        # An empty-element tag is the whole element.
        closing = message.rfind(b"</", start, end) if tag.end() < end else None
        if step[0] == "unwrap":
            if not _declares(tag[0], defaults.get(tag[1], {})):
                yield start, tag.end(), b""
                if closing is not None:
                    yield closing, end, b""
            continue
        if tag[1] not in renamed:
            prefix, colon, _ = tag[1].rpartition(b":")
            renamed[tag[1]] = prefix + colon + step[2].encode()
        name = renamed[tag[1]]
        added = _given_attributes(tag[0], defaults.get(tag[1], {}), defaults.get(name, {}))
        yield (*tag.span(1), name + added if added else name)
        if closing is not None:
            yield closing + 2, closing + 2 + len(tag[1]), name


def _declares(tag: bytes, defaults: Mapping[bytes, str]) -> bool:
    """Whether an element declares a namespace, in its tag or by a default of its attributes."""
    written = attribute_names(tag) if b"xmlns" in tag else []
    return any(name == b"xmlns" or name.startswith(b"xmlns:") for name in (*written, *defaults))


def _given_attributes(tag: bytes, before: Mapping[bytes, str], after: Mapping[bytes, str]) -> bytes:
    """The attributes of an element that it has by default before a renaming, to be written.

    Args:
        tag: Its start tag.
        before: Defaults of the attributes of elements of its name.
        after: The same of the name that it is given.

    Raises:
        UnreadableMessageError: By these it would have an attribute more.
    """
    if not before and not after:
        return b""
    written = attribute_names(tag)
    if more := sorted(after.keys() - before.keys() - set(written)):
        names = ", ".join(name.decode() for name in more)
        reason = f"its declarations would give a renamed element what it has not: {names}"
        raise UnreadableMessageError("message.unreadable", path="the message", reason=reason)
    given = ((name, before[name]) for name in sorted(before.keys() - set(written)))
    return b"".join(b' %s="%s"' % (name, _escaped(value)) for name, value in given)


_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def _escaped(value: str) -> bytes:
    """The value of an attribute as it is written between quotation marks."""
    return value.translate(_ESCAPES).encode()


def _joined(message: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """A message with edits, ascending, made.

    Texts that come together could mean something else than apart: `]]` and `>`, and the two
    characters of one line end. The second is written as a reference then.
    """
    made: list[bytes] = []
    last, at = b"", 0
    for start, end, text in (*edits, (len(message), len(message), b"")):
        piece = message[at:start]
        for before, begin, reference in _APART:
            if last.endswith(before) and piece.startswith(begin):
                made.append(reference)
                piece = piece[len(begin) :]
                break
        made += [piece, text]
        last = (last + piece[-2:] + text[-2:])[-2:]
        at = end
    return b"".join(made)


_APART: Final = ((b"]]", b">", b"&gt;"), (b"]", b"]>", b"]&gt;"), (b"\r", b"\n", b"&#10;"))
"""Texts that come together: how the first ends, how the second begins, and that written apart."""
