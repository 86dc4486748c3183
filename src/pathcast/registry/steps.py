"""Steps: what a subscription does to a message before its query sees it.

A step takes the elements that a path selects and drops them, takes their tags out, or gives them
another name. A table to a list is such a series: `TABLE_TO_LIST`.

Example:
    >>> steps = parse_steps(["drop //image", "rename //table list", "unwrap //p"])
    >>> steps[1].edit, steps[1].path, steps[1].name
    (<Edit.RENAME: 'rename'>, '//table', 'list')
    >>> [str(step) for step in common_steps([steps, steps[:2]])]
    ['drop //image', 'rename //table list']

It does nothing to messages; `restructuring` does.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 3.2 and 4.2.2. Differs: the paper leaves open
what a step is; here it is one of three edits of elements that a path selects, of which each is
made where the element lies in the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.model import STEP_LENGTH_MAX, STEPS_MAX, StepData
from pathcast.query import compile_subscription
from pathcast.query.names import is_ncname

_SPACE: Final = " \t\r\n"
_STEP: Final = re.compile(
    r"(drop|unwrap)[ \t\r\n]+(.+)|(rename)[ \t\r\n]+(.+?)[ \t\r\n]+([^ \t\r\n]+)", re.DOTALL
)
_SERIES: Final = re.compile(r"(?:[^;'\"]|'[^']*'|\"[^\"]*\"|['\"])+")


class Edit(Enum):
    """The effect of a step on the elements that its path selects; the document element stays."""

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
"""The steps that a subscription does to a message, in order."""


def parse_steps(texts: Iterable[str], namespaces: Mapping[str, str] | None = None) -> Steps:
    """Reads steps: `drop PATH`, `unwrap PATH`, `rename PATH NAME`, with white space as in XPath.

    Args:
        texts: One or more, in order.
        namespaces: Prefix -> namespace URI, for the paths; a step keeps those that it names.

    Raises:
        QuerySyntaxError: One of them is no step, or its path is no XPath.
        UnsupportedQueryError: Its path does not select nodes; they are too many, or one too long.

    Cost: a compilation for each that was not seen lately.
    """
    told = tuple(texts)
    for given, maximum, unit in [
        (len(told), STEPS_MAX, "steps"),
        (max(map(len, told), default=0), STEP_LENGTH_MAX, "characters of a step"),
    ]:
        if given > maximum:
            raise UnsupportedQueryError(
                "subscription.steps", given=given, maximum=maximum, unit=unit
            )
    steps = tuple(_parsed(text, namespaces or {}) for text in told)
    check_steps(steps)
    return steps


def check_steps(steps: Steps) -> None:
    """Refuses steps that came from elsewhere and are none.

    Raises:
        QuerySyntaxError: A name is no name, or a path no XPath.
        UnsupportedQueryError: A path does not select nodes.
    """
    for step in steps:
        _check(step)


def split_steps(text: str) -> tuple[str, ...]:
    """The steps of a text in which semicolons stand between them, as in a cell of a table.

    Example:
        >>> split_steps("drop //a[b = ';']; rename //ol list;")
        ("drop //a[b = ';']", 'rename //ol list')
    """
    return tuple(part.strip() for part in _SERIES.findall(text) if part.strip())


TABLE_TO_LIST: Final[Steps] = (
    EditStep(Edit.RENAME, "//table", "list"),
    EditStep(Edit.RENAME, "//tr", "item"),
    EditStep(Edit.UNWRAP, "//td | //th"),
)
"""Rows of tables become items of lists, cells the content of items."""


def step_data(steps: Steps) -> list[StepData]:
    """Steps as the kernel takes them."""
    return [(each.edit.value, each.path, each.name, each.namespaces) for each in steps]


def common_steps(profiles: Iterable[Steps]) -> Steps:
    """The longest beginning that the steps of all profiles have in common; none if there are none.

    Cost: linear in the steps.
    """
    every = list(profiles)
    shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*every, strict=False))
    return tuple(steps[0] for steps in shared)


def _parsed(text: str, bound: Mapping[str, str]) -> EditStep:
    match = _STEP.fullmatch(text.strip(_SPACE))
    if match is None or (match[3] and not is_ncname(match[5])):
        reason = f"{text!r} is none of `drop PATH`, `unwrap PATH`, `rename PATH NAME`"
        raise QuerySyntaxError("XPST0003", query=text, offset=0, reason=reason)
    path = match[4] if match[3] else match[2]
    # Profiles that bind other prefixes beside have a step in common all the same.
    named = {prefix: uri for prefix, uri in bound.items() if not prefix or f"{prefix}:" in path}
    namespaces = tuple(sorted(named.items()))
    if match[3]:
        return EditStep(Edit.RENAME, path, match[5], namespaces)
    return EditStep(Edit(match[1]), path, "", namespaces)


@lru_cache(maxsize=4_096)
def _check(step: EditStep) -> None:
    is_named = step.edit is Edit.RENAME
    if bool(step.name) != is_named or (is_named and not is_ncname(step.name)):
        reason = f"{step} is no step"
        raise QuerySyntaxError("XPST0003", query=str(step), offset=0, reason=reason)
    if compile_subscription(step.path, dict(step.namespaces), "fragment").kind == "xquery":
        reason = "the path of a step is an XPath"
        raise QuerySyntaxError("XPST0003", query=step.path, offset=0, reason=reason)
