"""Early restructuring: what all profiles behind a link do first is done before the link, once.

A profile may begin with steps that change the message before the query sees it: drop elements,
unwrap them, rename them. Where all profiles behind a link begin with the same steps, a broker does
these before it sends; what is left to do goes with the message, as the number of steps that were
done. A table to a list is such a series: `TABLE_TO_LIST`.

Example:
    >>> steps = parse_steps(["drop //image", "rename //table list", "unwrap //p"])
    >>> message = b"<news><p>On <b>top</b></p><image/><table w='1'><tr/></table></news>"
    >>> Restructuring(steps).apply([message])
    [b"<news>On <b>top</b><list w='1'><tr/></list></news>"]
    >>> [str(step) for step in common_steps([steps, steps[:2]])]
    ['drop //image', 'rename //table list']

A message that is routed has not been restructured yet, or not wholly, so the entries of a profile
with steps ask for what must be in the message before them (`before_steps`).

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2. Differs: the paper leaves open
what a step is; here it is one of three edits of elements that a path selects, of which each is
made where the element lies in the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from pathcast.customize.selector import Select, Selector
from pathcast.errors import PathcastError, QuerySyntaxError, UnreadableMessageError
from pathcast.limits import Limits
from pathcast.overlay.disjuncts import Disjunct
from pathcast.overlay.projection import form_of_path
from pathcast.query import NormalQuery
from pathcast.query.names import NCNAME_PATTERN
from pathcast.query.normal import AnyNamespace, AttributeCondition, Axis, Name, Step, TextCondition
from pathcast.query.widening import Leaf, any_name, anywhere, conditions_kept

_STEP: Final = re.compile(r"(drop|unwrap)\s+(\S.*?)|(rename)\s+(\S.*?)\s+(\S+)")
_START_TAG: Final = re.compile(rb"<([^\s/>]+)(?:[^>'\"]|'[^']*'|\"[^\"]*\")*>")
_DOCUMENT: Final = Select("/*")
_DECLARES: Final = re.compile(rb"\sxmlns(?::[^\s=]+)?\s*=")


class Edit(Enum):
    """What a step does to the elements that its path selects; the document element stays."""

    DROP = "drop"
    """Takes them out, with all that is in them."""
    UNWRAP = "unwrap"
    """Takes their tags out; what is in them stays. One that declares a namespace stays as it is."""
    RENAME = "rename"
    """Gives them another local name; prefix, attributes and content stay."""


@dataclass(frozen=True, slots=True)
class EditStep:
    """A step.

    Attributes:
        edit: What is done.
        path: XPath of the elements, in the message as the steps before have left it.
        name: The new local name of a renaming; "" for the others.
        namespaces: Bindings for the path, as (prefix, URI).
    """

    edit: Edit
    path: str
    name: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.edit.value} {self.path} {self.name}".rstrip()


Steps = tuple[EditStep, ...]
"""What a profile does to a message, in order."""


def parse_steps(
    texts: Iterable[str], namespaces: Mapping[str, str] | None = None, engine: str | None = None
) -> Steps:
    """Reads steps: `drop PATH`, `unwrap PATH`, `rename PATH NAME`.

    Args:
        texts: One or more, in order.
        namespaces: Prefix -> namespace URI, for the paths; a step keeps those that it names.
        engine: As for `Restructuring`.

    Raises:
        QuerySyntaxError: One of them is no step, or its path is no XPath.
        UnsupportedQueryError: Its path does not select nodes.
        ConfigError: The engine keeps no places.

    Cost: a compilation each.
    """
    steps = tuple(_parsed(text, namespaces or {}) for text in texts)
    Restructuring(steps, engine)
    return steps


@lru_cache(maxsize=4_096)
def check_steps(steps: Steps, engine: str | None = None) -> None:
    """Refuses steps that came from elsewhere and are none.

    Raises:
        QuerySyntaxError: A name is no name, or a path no XPath.
        UnsupportedQueryError: A path does not select nodes.
    """
    for step in steps:
        is_named = step.edit is Edit.RENAME
        if bool(step.name) != is_named or (is_named and not NCNAME_PATTERN.fullmatch(step.name)):
            reason = f"{step} is no step"
            raise QuerySyntaxError("XPST0003", query=str(step), offset=0, reason=reason)
    Restructuring(steps, engine)


TABLE_TO_LIST: Final[Steps] = (
    EditStep(Edit.RENAME, "//table", "list"),
    EditStep(Edit.RENAME, "//tr", "item"),
    EditStep(Edit.UNWRAP, "//td | //th"),
)
"""Rows of tables become items of lists, cells the content of items."""


def common_steps(profiles: Iterable[Steps]) -> Steps:
    """The longest beginning that the steps of all profiles have in common; none if there are none.

    Cost: linear in the steps.
    """
    every = list(profiles)
    shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*every, strict=False))
    return tuple(steps[0] for steps in shared)


def before_steps(entry: str, steps: Steps) -> str:
    """An entry that a message satisfies if, some or all steps later, it satisfies another one.

    Text may have been dropped or joined, so what is asked of it stays only where no step can have
    done that; an unwrapped element may have stood between two steps, so `/` becomes `//`; a name
    that a renaming gives may have been any.

    Args:
        entry: Of a routing table (`pathcast.overlay.disjuncts`).
        steps: Of the profile that it was made of.

    Example:
        >>> before_steps("/a/list[item='x']/@n", parse_steps(["rename //table list"]))
        "/a/*[@n]/item[.='x']"
        >>> before_steps("/a/b[. = 'x']/c", parse_steps(["drop //image"]))
        '/a/b/c'
        >>> before_steps("/a/b[. = 'x']/c", parse_steps(["drop /a/image"]))
        "/a/b[.='x']/c"
        >>> before_steps("/a/b[@n = 1]/c", parse_steps(["unwrap //p"]))
        '/a//b[@n=1]//c'
        >>> before_steps("/a[b = 1]", ())
        '/a[b = 1]'

    Raises:
        QuerySyntaxError: It is no entry.

    Cost: 100 µs a path.
    """
    if not steps:
        return entry
    effect = _Effect(steps)
    paths = [
        path for each in Disjunct.of(entry).paths for path in conditions_kept(each, effect.keeps)
    ]
    return Disjunct.all_of(effect.before(path) for path in paths).text


class _Effect:
    """What steps can do to what is asked of a message."""

    def __init__(self, steps: Steps) -> None:
        self._given = {step.name for step in steps if step.edit is Edit.RENAME}
        self._unwraps = any(step.edit is Edit.UNWRAP for step in steps)
        self._dropped = [_labels_of(step) for step in steps if step.edit is Edit.DROP]

    def keeps(self, path: Sequence[Step], condition: Leaf) -> bool:
        """Whether a condition on the element that a path leads to holds before if it does after."""
        if isinstance(condition, AttributeCondition):
            return True
        if isinstance(condition, TextCondition) and self._unwraps:
            return False
        return not self._dropped or self._is_apart(path)

    def _is_apart(self, path: Sequence[Step]) -> bool:
        """Whether nothing is dropped within the element that a path leads to.

        Where nothing is unwrapped, and no element on the path renamed, all of these have always had
        the names that they have; and so has what was dropped in them.
        """
        names = [step.test for step in path if step.axis is Axis.CHILD]
        if self._unwraps or len(names) < len(path):
            return False
        if not all(isinstance(name, Name) and name.local not in self._given for name in names):
            return False
        return all(
            dropped is not None and (len(dropped) <= len(names) or dropped[: len(names)] != names)
            for dropped in self._dropped
        )

    def before(self, path: NormalQuery) -> NormalQuery:
        """A path that holds before if another one does after."""
        for at, step in enumerate(path.steps):
            test = step.test
            if isinstance(test, Name | AnyNamespace) and test.local in self._given:
                path = any_name(path, at)
            if self._unwraps and at and step.axis is Axis.CHILD:
                path = anywhere(path, at)
        return path


def _labels_of(step: EditStep) -> list[Name] | None:
    """The names of a path of child steps, with or without conditions; None if it is another one."""
    form = form_of_path(step.path, dict(step.namespaces))
    steps = [] if form is None else form.binding
    names = [
        Name(each.name.uri, each.name.local)
        for each in steps
        if not each.is_descendant and each.name.uri is not None and each.name.local is not None
    ]
    return names if names and len(names) == len(steps) else None


class Restructuring:
    """Steps, made ready.

    Args:
        steps: In order; none leave messages as they are.
        engine: "kernel" (default) or "nfa".
        limits: What one message may cost.
        threads: Threads of one batch.

    Raises:
        QuerySyntaxError: A path cannot be used.
        UnsupportedQueryError: Likewise.
        ConfigError: The engine keeps no places.
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
        selects = [Select(step.path, step.namespaces), _DOCUMENT]
        self._selector = Selector(selects, engine, limits, threads)

    def apply(self, messages: Sequence[bytes | PathcastError]) -> list[bytes | PathcastError]:
        """The messages after the step; those that there are none of stay so."""
        found = list(messages)
        texts = [each if isinstance(each, bytes) else None for each in found]
        spans = self._selector.spans(texts)
        for row, why in spans.unknown.items():
            found[row] = why or UnreadableMessageError(
                "message.unreadable",
                path="the message",
                reason=f"{self._step} is to edit what does not lie in its bytes: it is not in "
                "UTF-8, or an entity holds the element, or a node is no element",
            )
        for row, text in enumerate(texts):
            if text is not None and row not in spans.unknown:
                [document] = spans.of(row, 1)
                chosen = [each for each in spans.of(row, 0) if each != document]
                found[row] = _edited(text, self._step, chosen)
        return found


class Restructurings:
    """Many series of steps; of those that begin alike the beginning is done once to a message.

    Args:
        engine: As for `Restructuring`.
        limits: Likewise.

    Example:
        >>> many = Restructurings()
        >>> one = parse_steps(["drop //a", "rename //b c"])
        >>> many.set([one, one[:1]])
        >>> batch = many.batch([b"<r><a/><b/></r>"])
        >>> batch.after(one[:1], [0]), batch.after(one, [0])
        ([b'<r><b/></r>'], [b'<r><c/></r>'])
    """

    def __init__(self, engine: str | None = None, limits: Limits | None = None) -> None:
        self._engine = engine
        self._limits = limits
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
            step: self._edits.get(step) or _Edit(step, self._engine, self._limits, 1)
            for step in wanted
        }

    def batch(self, messages: Sequence[bytes], done: Sequence[int] = ()) -> RestructuredBatch:
        """A batch that steps are to be done to.

        Args:
            messages: The batch.
            done: How many steps were done to each, of any series that will be asked for of it.
        """
        return RestructuredBatch(self._edits, messages, done or [0] * len(messages))


class RestructuredBatch:
    """See `Restructurings`; it is used before these change."""

    def __init__(
        self, edits: Mapping[EditStep, _Edit], messages: Sequence[bytes], done: Sequence[int]
    ) -> None:
        self._edits = edits
        self._messages = messages
        self._done = done
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
            found.update(zip(new, self._edits[steps[-1]].apply(before), strict=True))
        return [found[row] for row in rows]


def _parsed(text: str, bound: Mapping[str, str]) -> EditStep:
    match = _STEP.fullmatch(text.strip())
    if match is None or (match[3] and not NCNAME_PATTERN.fullmatch(match[5])):
        reason = f"{text!r} is none of `drop PATH`, `unwrap PATH`, `rename PATH NAME`"
        raise QuerySyntaxError("XPST0003", query=text, offset=0, reason=reason)
    path = match[4] if match[3] else match[2]
    # Profiles that bind other prefixes beside have a step in common all the same.
    named = {prefix: uri for prefix, uri in bound.items() if not prefix or f"{prefix}:" in path}
    namespaces = tuple(sorted(named.items()))
    if match[3]:
        return EditStep(Edit.RENAME, path, match[5], namespaces)
    return EditStep(Edit(match[1]), path, "", namespaces)


def _edited(message: bytes, step: EditStep, spans: Sequence[tuple[int, int]]) -> bytes:
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
