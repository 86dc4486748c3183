"""Subscriptions as files: one `.xq` file a subscription, folders of them.

A file holds the query, as any XQuery processor would read it. What else a subscription needs
follows from where it lies, and can be said in a comment at its beginning:

    (: Everything below thirty.
       @subscriber ann
       @deliver message
       @id cheap
       @language xquery
       @step drop //cover
       @step rename //books bib :)
    for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>

Without it, the id is the path inside the folder without `.xq`, and the subscriber is the first
folder of that path (or, for a file that lies in none, the id): `ann/cheap.xq` is `ann/cheap` of
`ann`. Steps are done in the order in which they stand. Names that begin with a dot or an underscore
are left alone.

Example:
    >>> found = subscription_of("(: @subscriber ann :) //book[price < 30]", Path("cheap.xq"))
    >>> found.id, found.subscriber, found.deliver
    ('cheap', 'ann', 'fragment')

It does not read the query.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pathcast.errors import ConfigError, PathcastError
from pathcast.model import DELIVER_MODES, QUERY_LANGUAGES, Subscription
from pathcast.registry.delimited import TextPlace, decode

SUFFIX: Final = ".xq"
_KEYS: Final = ("id", "subscriber", "deliver", "language", "step")
_STEP: Final = "step"
"""The key that may be there several times."""
_KEY: Final = re.compile(r"(?:^|\s)@([A-Za-z_-]+)[ \t]*([^\r\n]*)")
_BOUNDARY: Final = re.compile(r"\(:|:\)")


class SubscriptionFile(NamedTuple):
    """A file, and what became of it.

    Attributes:
        path: The file.
        subscription: What it says; None where it cannot be read.
        error: Why it cannot; None where it can.
        place: Where its query begins; the beginning of the file where it cannot be read.
        id: The id of the query, or the one that the path gives where the file cannot be read.
        subscriber: Its subscriber, likewise.
    """

    path: Path
    subscription: Subscription | None
    error: PathcastError | None
    place: TextPlace
    id: str
    subscriber: str


def read_subscriptions(path: Path) -> list[SubscriptionFile]:
    """The subscriptions of a file or of a folder, at any depth, in the order of their paths.

    Args:
        path: A `.xq` file, or a folder.

    Returns:
        One entry a file. One that cannot be read disturbs no other; of two with the same id the
        second is refused where it is subscribed.

    Raises:
        OSError: The folder cannot be listed.
    """
    if not path.is_dir():
        return [_read(path, Path(path.name))]
    return [_found(file, file.relative_to(path)) for file in files_of(path)]


def files_of(folder: Path) -> Iterator[Path]:
    """The `.xq` files of a folder, at any depth, in the order of their paths.

    Raises:
        OSError: The folder or one in it cannot be listed. Going on would lose subscriptions
            without a word.
    """

    def fail(error: OSError) -> None:
        raise error

    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [
            Path(parent, name)
            for name in names
            if name.endswith(SUFFIX) and not name.startswith((".", "_"))
        ]
    return iter(sorted(found))


def subscription_of(text: str, place: Path) -> Subscription:
    """The subscription that a text says.

    Args:
        text: The content of the file.
        place: Its path inside the folder.

    Raises:
        ConfigError: The comment at its beginning has a key that does not exist, or a value that
            cannot be used.
    """
    comments, query = _split(text)
    header = _header(comments, place)
    told = {key: values[0] for key, values in header.items()}
    path, owner = _named_by(place)
    deliver = told.get("deliver", "fragment")
    if deliver not in DELIVER_MODES:
        raise _unusable(place, f"@deliver {deliver} is not one of {', '.join(DELIVER_MODES)}")
    language = told.get("language")
    if language not in (None, *QUERY_LANGUAGES):
        raise _unusable(place, f"@language {language} is not one of {', '.join(QUERY_LANGUAGES)}")
    return Subscription(
        told.get("id", path),
        told.get("subscriber", owner),
        query,
        deliver,
        None,
        tuple(header.get(_STEP, ())),
        language,
    )


def _found(file: Path, place: Path) -> SubscriptionFile:
    """A file of a folder, which nobody has named: a pipe there would be waited for for ever."""
    with suppress(OSError):
        if not stat.S_ISREG(file.stat().st_mode):
            fault = _unusable(place, "a pipe or device in a folder is not read; name it to read it")
            return SubscriptionFile(file, None, fault, TextPlace(str(file), 1), *_named_by(place))
    return _read(file, place)


def _named_by(place: Path) -> tuple[str, str]:
    """Id and subscriber of a file that does not say them."""
    path = place.with_suffix("").as_posix()
    return path, place.parts[0] if len(place.parts) > 1 else path


def _read(file: Path, place: Path) -> SubscriptionFile:
    fault: PathcastError
    try:
        text = decode(file.read_bytes(), place.as_posix())
        found = subscription_of(text, place)
        # The query is the end of the text, blanks aside.
        start = len(text.rstrip()) - len(found.query)
        column = start - text.rfind("\n", 0, start)
        begin = TextPlace(str(file), text.count("\n", 0, start) + 1, column)
        return SubscriptionFile(file, found, None, begin, found.id, found.subscriber)
    except OSError as error:
        fault = _unusable(place, error.strerror or str(error))
    except ConfigError as error:
        fault = error
    return SubscriptionFile(file, None, fault, TextPlace(str(file), 1), *_named_by(place))


def _header(comments: list[str], place: Path) -> dict[str, list[str]]:
    """Read the comments before the query."""
    found: dict[str, list[str]] = {}
    for comment in comments:
        for key, value in _KEY.findall(comment):
            if key not in _KEYS:
                raise _unusable(place, f"@{key} is not one of @{', @'.join(_KEYS)}")
            if not value.strip():
                raise _unusable(place, f"@{key} has no value")
            if key in found and key != _STEP:
                raise _unusable(place, f"@{key} is there twice")
            found.setdefault(key, []).append(value.strip())
    return found


def _split(text: str) -> tuple[list[str], str]:
    """The comments at the beginning, and the query after them.

    They are taken off since XPath 1.0, which the query may be, has no comments. One that does not
    end stays, and is an error of the query.
    """
    comments: list[str] = []
    rest = text.removeprefix("\ufeff").strip()
    while rest.startswith("(:"):
        depth = 0
        for mark in _BOUNDARY.finditer(rest):
            depth += 1 if mark[0] == "(:" else -1
            if not depth:
                comments.append(rest[2 : mark.start()])
                rest = rest[mark.end() :].lstrip()
                break
        else:
            break
    return comments, rest


def _unusable(place: Path, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=place.as_posix(), reason=reason)
