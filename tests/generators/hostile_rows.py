r"""Rows that cannot be used, to be mixed among rows that can.

A caller's list may hold anything: fields of other types, lone surrogates (what Python makes of
bytes that are not UTF-8), objects that are no query at all. Each of these has to be reported in its
own place, and must make no difference to the others.

Example:
    >>> import random
    >>> seed = random.Random(4)
    >>> rows, bad = mixed(seed, [Query("q1", "//a"), Query("q2", "//b")], hostile_query, count=2)
    >>> len(rows), len(bad)
    (4, 2)
    >>> [row.id for place, row in enumerate(rows) if place not in bad]
    ['q1', 'q2']
"""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import Any, TypeVar

from pathcast.model import Query, Subscription

_Row = TypeVar("_Row")


class _Colour(Enum):
    RED = "red"


_SURROGATES = ("\ud800", "\udbff", "\udc00", "\udcff", "\udce9", "\udfff")


def surrogate_text(random: Random, text: str) -> str:
    r"""The text with a lone surrogate, or a pair that Python keeps as two, somewhere in it."""
    at = random.randint(0, len(text))
    half = random.choice(_SURROGATES)
    return text[:at] + random.choice([half, half, "\ud83d\ude00"]) + text[at:]


def not_text(random: Random) -> object:
    """Something that is no string, among it what looks like one and what cannot be hashed."""
    things: list[object] = [
        None,
        7,
        -1,
        2**80,
        float("nan"),
        True,
        b"text",
        bytearray(b"text"),
        b"\xff",
        ("a",),
        ["a"],
        {"a": "b"},
        {"a"},
        object(),
        str,
        UserString("a"),
        _Colour.RED,
    ]
    return random.choice(things)


def hostile_text(random: Random, text: str) -> object:
    """What stands where a text should: a text that cannot be written, or no text."""
    return surrogate_text(random, text) if random.random() < 0.5 else not_text(random)


def hostile_namespaces(random: Random) -> object:
    """What are no bindings of prefixes."""
    things: list[object] = [
        5,
        "p",
        [("p", "urn:p")],
        ("p",),
        {"p": None},
        {None: "urn:p"},
        {5: 6},
        {b"p": "urn:p"},
        {"p": b"urn:p"},
        {"p": surrogate_text(random, "urn:p")},
        {surrogate_text(random, "p"): "urn:p"},
        {"q": "urn:q", "p": ["urn:p"]},
        object(),
    ]
    return random.choice(things)


def hostile_language(random: Random) -> object:
    """What is no language, and not None, which chooses none."""
    things: list[object] = ["", "XQuery", "xpath", surrogate_text(random, "xquery"), 1, ["xquery"]]
    return random.choice(things)


def hostile_query(random: Random, query: Query) -> object:
    """A query with a field that cannot be used, or what is no query; its id may be in use.

    Args:
        random: Where the choices come from.
        query: A query that can be registered.
    """
    changes: list[Callable[[], object]] = [
        lambda: query._replace(id=_any(hostile_text(random, query.id))),
        lambda: query._replace(text=_any(hostile_text(random, query.text))),
        lambda: query._replace(namespaces=_any(hostile_namespaces(random))),
        lambda: query._replace(language=_any(hostile_language(random))),
        lambda: Query(_any(not_text(random)), _any(not_text(random)), _any(5)),
        lambda: tuple(query),
        lambda: not_text(random),
        lambda: query.text,
    ]
    return random.choice(changes)()


def hostile_subscription(random: Random, subscription: Subscription) -> object:
    """A subscription with a field that cannot be used, or what is no subscription.

    Args:
        random: Where the choices come from.
        subscription: A subscription that can be taken.
    """
    row, text = subscription, surrogate_text(random, "fragment")
    changes: list[Callable[[], object]] = [
        lambda: row._replace(id=_any(hostile_text(random, row.id))),
        lambda: row._replace(subscriber=_any(hostile_text(random, row.subscriber))),
        lambda: row._replace(query=_any(hostile_text(random, row.query))),
        lambda: row._replace(deliver=_any(random.choice(["", "Ids", "all", text]))),
        lambda: row._replace(deliver=_any(not_text(random))),
        lambda: row._replace(language=_any(hostile_language(random))),
        lambda: row._replace(namespaces=_any(hostile_namespaces(random))),
        lambda: row._replace(steps=_any(random.choice([None, 5, "drop //a"]))),
        lambda: row._replace(steps=_any((random.choice([None, 5, text, "move //a"]),))),
        lambda: tuple(row),
        lambda: not_text(random),
    ]
    return random.choice(changes)()


def hostile_message(random: Random, message: bytes) -> object:
    """What is no message: of no type that holds bytes or text, or bytes that are gone.

    Args:
        random: Where the choices come from.
        message: A message that is let in.
    """
    gone = memoryview(message)
    gone.release()
    things: list[object] = [
        5,
        float("nan"),
        ["<a/>"],
        {"message": message},
        object(),
        bytes,
        UserString("<a/>"),
        (message,),
        gone,
        memoryview(message)[:-1],
    ]
    return random.choice(things)


def mixed(
    random: Random,
    good: Sequence[_Row],
    hostile: Callable[[Random, _Row], object],
    *,
    count: int,
) -> tuple[list[Any], set[int]]:
    """Good rows in their order, with hostile ones at random places between them.

    Args:
        random: Where the choices come from.
        good: Rows that can be used, at least one.
        hostile: Makes a row that cannot be used of one that can.
        count: Number of hostile rows.

    Returns:
        All rows, and the places of the hostile ones.
    """
    rows = [(row, False) for row in good]
    for _ in range(count):
        bad = hostile(random, random.choice(good))
        rows.insert(random.randint(0, len(rows)), (_any(bad), True))
    places = {place for place, (_, is_hostile) in enumerate(rows) if is_hostile}
    return [row for row, _ in rows], places


def _any(value: object) -> Any:
    """The value as no type in particular: what is wrong on purpose."""
    return value
