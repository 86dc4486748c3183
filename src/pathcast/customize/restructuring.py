"""Restructuring: the steps of subscriptions, done to messages.

Each step is made where its elements lie in the bytes of a message; all else stays as it is, byte
for byte. What many series of steps begin with is done once (`Restructurings`): a host does that for
its subscribers, a broker of a network for all behind a link.

Example:
    >>> from pathcast.customize.steps import parse_steps
    >>> steps = parse_steps(["drop //image", "rename //table list", "unwrap //p"])
    >>> message = b"<news><p>On <b>top</b></p><image/><table w='1'><tr/></table></news>"
    >>> Restructuring(steps).apply([message])
    [b"<news>On <b>top</b><list w='1'><tr/></list></news>"]

It does not say which messages a query is satisfied by after the steps: `before_steps` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pathcast.customize.message_budgets import MessageBudgets
from pathcast.customize.selector import Select, Selector
from pathcast.customize.steps import Edit, EditStep, Steps
from pathcast.errors import (
    LimitExceededError,
    PathcastError,
    ResultLimitError,
    UnreadableMessageError,
)
from pathcast.limits import RESULT_BYTES_FREE, Limits
from pathcast.message.tags import START_TAG, attribute_defaults, attribute_names

_DOCUMENT: Final = Select("/*")
_Made = bytes | PathcastError
"""A message after steps, or why that cannot be said."""


class Span(NamedTuple):
    """An element in the bytes of a message.

    Attributes:
        start: Byte at which it begins.
        end: One past its last byte.
    """

    start: int
    end: int


class Restructuring:
    """Steps, made ready.

    Args:
        steps: In order; none leave messages as they are.
        limits: What one message may cost.

    Raises:
        QuerySyntaxError: A path cannot be used.
        UnsupportedQueryError: Likewise.
        KernelMissingError: The kernel is meant and not installed.
    """

    def __init__(
        self,
        steps: Steps,
        limits: Limits | None = None,
    ) -> None:
        self.steps = steps
        self._series = Restructurings(limits)
        self._series.set([steps])

    def apply(self, messages: Sequence[bytes], done: int = 0) -> list[_Made]:
        """The messages after the steps.

        Args:
            messages: A batch.
            done: How many of the steps were done before.

        Returns:
            For each message what it has become, or why that cannot be said: it is refused, a path
            takes more than it may, the message grows beyond its limits, or an element to edit does
            not lie in the bytes of the message (another encoding than UTF-8, an element out of an
            entity).

        Cost: for each step, the matching of its path and a copy of the messages that it changes.
        """
        rows = range(len(messages))
        batch = self._series.batch(dict(enumerate(messages)), [done] * len(messages))
        return batch.after(self.steps, rows)


class _Edit:
    """A step, made ready; see `Restructuring`."""

    def __init__(self, step: EditStep, limits: Limits | None, threads: int | None) -> None:
        self._step = step
        self._limits = limits or Limits()
        self._find = _finder(step, self._limits, threads)

    def apply(
        self,
        given: Mapping[int, _Made],
        came: Mapping[int, bytes],
        budgets: MessageBudgets,
        encoding: str | None,
    ) -> dict[int, _Made]:
        """The messages after the step; those that there are none of stay so.

        Args:
            given: By place in the batch.
            came: The same before any step.
            budgets: Of the batch.
            encoding: Of all messages where it is known.
        """
        made: dict[int, _Made] = {}
        texts: dict[int, bytes] = {}
        for row, each in given.items():
            error = budgets.used_up(row) if isinstance(each, bytes) else each
            if error is not None:
                made[row] = error
            elif isinstance(each, bytes):
                texts[row] = each
        steps_max = [steps for steps, _ in budgets.left(texts)]
        found, steps = self._find(list(texts.values()), encoding, steps_max)
        for at, (row, text) in enumerate(texts.items()):
            budgets.spend_steps(row, steps.get(at, 0))
            budgets.spend_text(row, text)
            spans = found[at]
            if isinstance(spans, PathcastError):
                made[row] = spans
                continue
            try:
                edited = self._edited(text, spans, len(came[row]))
            except PathcastError as error:
                made[row] = error
                continue
            budgets.spend_text(row, edited)
            made[row] = edited
        return {row: made[row] for row in given}

    def _edited(self, message: bytes, spans: Sequence[Span], length: int) -> bytes:
        """A message with the edit made of elements, none of which is the document element.

        Raises:
            LimitExceededError: It would be longer than it may; nothing is made then.
            UnreadableMessageError: Its declarations would give a renamed element an attribute.
        """
        maximum, ratio = self._limits.message_bytes_max, self._limits.result_ratio_max
        grown_max = max(RESULT_BYTES_FREE, ratio * length)
        edits, size = [], len(message)
        for edit in _edits(message, self._step, spans):
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


_Found = tuple[Sequence[list[Span] | PathcastError], Mapping[int, int]]
"""Where the elements of a step lie in each of some messages, or why that cannot be said, and the
evaluation steps that it took."""


def _finder(
    step: EditStep, limits: Limits, threads: int | None
) -> Callable[[Sequence[bytes], str | None, Sequence[int]], _Found]:
    """Make a finder of the elements of a step, without the document element."""
    nowhere = UnreadableMessageError(
        "message.unreadable",
        path="the message",
        reason=f"{step} is to edit what does not lie in its bytes: it is not in UTF-8, or an "
        "entity holds the element, or a node is no element",
    )
    selects = [Select(step.path, step.namespaces), _DOCUMENT]
    selector = Selector(selects, limits, threads)

    def find_all(
        messages: Sequence[bytes], encoding: str | None, steps_max: Sequence[int]
    ) -> _Found:
        spans = selector.spans(messages, encoding, steps_max)
        found: list[list[Span] | PathcastError] = []
        for row in range(len(messages)):
            if row in spans.unknown:
                found.append(spans.unknown[row] or nowhere)
            else:
                [document] = spans.of(row, 1)
                found.append([Span(*each) for each in spans.of(row, 0) if each != document])
        return found, spans.steps

    return find_all


class Restructurings:
    """Many series of steps; of those that begin alike the beginning is done once to a message.

    Args:
        limits: Likewise.
        threads: Likewise.

    Example:
        >>> from pathcast.customize.steps import parse_steps
        >>> many = Restructurings()
        >>> one = parse_steps(["drop //a", "rename //b c"])
        >>> many.set([one, one[:1]])
        >>> batch = many.batch({0: b"<r><a/><b/></r>"})
        >>> batch.after(one[:1], [0]), batch.after(one, [0])
        ([b'<r><b/></r>'], [b'<r><c/></r>'])
    """

    def __init__(
        self,
        limits: Limits | None = None,
        threads: int | None = 1,
    ) -> None:
        self._limits = limits or Limits()
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
            step: self._edits.get(step) or _Edit(step, self._limits, self._threads)
            for step in wanted
        }

    def batch(
        self,
        messages: Mapping[int, bytes],
        done: Sequence[int] = (),
        encoding: str | None = None,
        budgets: MessageBudgets | None = None,
    ) -> RestructuredBatch:
        """A batch that steps are to be done to.

        Args:
            messages: By place in the batch.
            done: How many steps were done to each place, of any series that will be asked for of
                it; none to any when empty.
            encoding: Encoding of all messages where it is known better than they say.
            budgets: What the steps are taken off, for all series together; the limits if not given.
        """
        budgets = budgets or MessageBudgets(self._limits, max(messages, default=-1) + 1)
        return RestructuredBatch(self._edits, messages, done, encoding, budgets)


class RestructuredBatch:
    """Messages that one series after the other is done to; see `Restructurings`.

    It keeps no more texts than those of the series that was asked for last, and of its beginnings;
    so series that begin alike are asked for one after the other. It is used before the
    `Restructurings` change.
    """

    def __init__(
        self,
        edits: Mapping[EditStep, _Edit],
        messages: Mapping[int, bytes],
        done: Sequence[int],
        encoding: str | None,
        budgets: MessageBudgets,
    ) -> None:
        self._edits = edits
        self._messages = messages
        self._done = done
        self._encoding = encoding
        self._budgets = budgets
        self._found: dict[Steps, dict[int, _Made]] = {}

    def after(self, steps: Steps, rows: Sequence[int]) -> list[_Made]:
        """Some of the messages after a series, of which some steps may have been done before.

        Args:
            steps: The series.
            rows: Places of messages, to each of which no more steps were done than there are.

        Returns:
            For each message what it has become, or why that cannot be said: `Restructuring.apply`.

        Cost: for each step that the series asked for last does not begin with, the matching of its
            path and a copy of the messages that it changes.
        """
        begun = (steps[:number] for number in range(len(steps) + 1))
        self._found = {start: self._found[start] for start in begun if start in self._found}
        found = self._after(steps, rows)
        return [found[row] for row in rows]

    def _after(self, steps: Steps, rows: Sequence[int]) -> dict[int, _Made]:
        found = self._found.setdefault(steps, {})
        new = [row for row in rows if row not in found]
        is_done = len(steps)
        came = [row for row in new if (self._done[row] if self._done else 0) == is_done]
        found.update((row, self._messages[row]) for row in came)
        new = [row for row in new if row not in found]
        if new:
            before = self._after(steps[:-1], new)
            given = {row: before[row] for row in new}
            edit = self._edits[steps[-1]]
            found.update(edit.apply(given, self._messages, self._budgets, self._encoding))
        return found


def _edits(
    message: bytes, step: EditStep, spans: Sequence[Span]
) -> Iterator[tuple[int, int, bytes]]:
    """Which bytes of a message are replaced: where they begin and end, and by what.

    Raises:
        UnreadableMessageError: Its declarations would give a renamed element an attribute.
    """
    if step.edit is Edit.DROP:
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
        if step.edit is Edit.UNWRAP:
            if not _declares(tag[0], defaults.get(tag[1], {})):
                yield start, tag.end(), b""
                if closing is not None:
                    yield closing, end, b""
            continue
        if tag[1] not in renamed:
            prefix, colon, _ = tag[1].rpartition(b":")
            renamed[tag[1]] = prefix + colon + step.name.encode()
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
