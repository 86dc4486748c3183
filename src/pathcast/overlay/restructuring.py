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
from itertools import takewhile
from typing import Final

from pathcast.customize.selector import Select, Selector
from pathcast.errors import PathcastError, QuerySyntaxError, UnreadableMessageError
from pathcast.limits import Limits
from pathcast.overlay.disjuncts import Disjunct
from pathcast.query import NormalQuery
from pathcast.query.names import NCNAME_PATTERN
from pathcast.query.normal import AnyNamespace, Axis, Name
from pathcast.query.widening import any_name, anywhere, attributes_only

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


def parse_steps(texts: Iterable[str], namespaces: Mapping[str, str] | None = None) -> Steps:
    """Reads steps: `drop PATH`, `unwrap PATH`, `rename PATH NAME`.

    Args:
        texts: One or more, in order.
        namespaces: Prefix -> namespace URI, for the paths.

    Raises:
        QuerySyntaxError: One of them is no step, or its path is no XPath.
        UnsupportedQueryError: Its path does not select nodes.

    Cost: a compilation each.
    """
    bound = tuple(sorted((namespaces or {}).items()))
    steps = tuple(_parsed(text, bound) for text in texts)
    Restructuring(steps)
    return steps


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

    Text may have been dropped or joined, so only what is asked of attributes stays; an unwrapped
    element may have stood between two steps, so `/` becomes `//`; a name that a renaming gives may
    have been any.

    Args:
        entry: Of a routing table (`pathcast.overlay.disjuncts`).
        steps: Of the profile that it was made of.

    Example:
        >>> before_steps("/a/list[item='x']/@n", parse_steps(["rename //table list"]))
        '/a/*[@n]/item'
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
    given = {step.name for step in steps if step.edit is Edit.RENAME}
    unwraps = any(step.edit is Edit.UNWRAP for step in steps)
    paths = [path for each in Disjunct.of(entry).paths for path in attributes_only(each)]
    return Disjunct.all_of(_before(path, given, unwraps=unwraps) for path in paths).text


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
    """

    def __init__(
        self,
        steps: Steps,
        engine: str | None = None,
        limits: Limits | None = None,
        threads: int | None = 1,
    ) -> None:
        self.steps = steps
        self._selectors = [
            Selector([Select(step.path, step.namespaces), _DOCUMENT], engine, limits, threads)
            for step in steps
        ]

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
        for step, selector in zip(self.steps[done:], self._selectors[done:], strict=True):
            texts = [each if isinstance(each, bytes) else None for each in found]
            spans = selector.spans(texts)
            for row, why in spans.unknown.items():
                found[row] = why or UnreadableMessageError(
                    "message.unreadable",
                    path="the message",
                    reason=f"{step} is to edit what does not lie in its bytes: it is not in UTF-8, "
                    "or an entity holds the element, or a node is no element",
                )
            for row, text in enumerate(texts):
                if text is not None and row not in spans.unknown:
                    [document] = spans.of(row, 1)
                    chosen = [each for each in spans.of(row, 0) if each != document]
                    found[row] = _edited(text, step, chosen)
        return found


def _parsed(text: str, namespaces: tuple[tuple[str, str], ...]) -> EditStep:
    match = _STEP.fullmatch(text.strip())
    if match is None or (match[3] and not NCNAME_PATTERN.fullmatch(match[5])):
        reason = f"{text!r} is none of `drop PATH`, `unwrap PATH`, `rename PATH NAME`"
        raise QuerySyntaxError("XPST0003", query=text, offset=0, reason=reason)
    if match[3]:
        return EditStep(Edit.RENAME, match[4], match[5], namespaces)
    return EditStep(Edit(match[1]), match[2], "", namespaces)


def _before(path: NormalQuery, given: set[str], *, unwraps: bool) -> NormalQuery:
    for at, step in enumerate(path.steps):
        is_given = isinstance(step.test, Name | AnyNamespace) and step.test.local in given
        if is_given:
            path = any_name(path, at)
        if unwraps and at and step.axis is Axis.CHILD:
            path = anywhere(path, at)
    return path


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
