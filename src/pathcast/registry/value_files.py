r"""Lists of values in files: `values-of("symbols.txt")` in a query stands for the lines of a file.

The file is read when the query is about to be registered, by whoever registers it and names the
folder; what is registered is the list, so that it is a part of the subscription's version. A query
that came over a network is never given a folder, and `values-of` is no function of the language.

Example:
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "symbols.txt").write_text('ACME\n\nR&D "x" y\n')
    ...     row = Subscription("s", "ann", "//a[@code = values-of('symbols.txt')]")
    ...     print(with_values(row, folder).query)
    //a[@code = ("ACME", "R&amp;D ""x"" y")]
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from pathcast.errors import ConfigError
from pathcast.model import Subscription
from pathcast.registry.subscription_rows import RejectedSubscription, SubscriptionRows

FILE_BYTES_MAX: Final = 1 << 20
"""Bytes of a file, as many as the values of a query may have."""

_PART: Final = re.compile(
    r"""\(:                                            # a comment, which may nest
      | "[^"]*" | '[^']*'                              # a string
      | (?<![\w.$:/@-]) values-of \s* \( \s* (?P<name> "[^"]*" | '[^']*' ) \s* \)""",
    re.VERBOSE,
)
_EDGE: Final = re.compile(r"\(:|:\)")


def with_values(subscription: Subscription, folder: str | os.PathLike[str]) -> Subscription:
    """Returns a subscription whose query has lists of strings in the place of `values-of(...)`.

    Args:
        subscription: In XQuery, with `values-of("FILE")` where a list may stand, in a condition or
            an enclosed expression. In strings and comments it says nothing.
        folder: Where the files are. FILE is a path below it, of a file in UTF-8 with a value a
            line; white space around a value and empty lines are left out.

    Raises:
        ConfigError: A file cannot be read, is not below the folder, or is longer than 1 MiB.

    Cost: linear in the query and the files. How many values a query may have, the registry checks.
    """
    if "values-of" not in subscription.query:
        return subscription
    query, pieces, at = subscription.query, [], 0
    while (found := _PART.search(query, at)) is not None:
        pieces.append(query[at : found.start()])
        if found["name"] is not None:
            pieces.append(_list_of(found["name"][1:-1], Path(folder)))
            at = found.end()
            continue
        at = _after_comment(query, found.start()) if found[0] == "(:" else found.end()
        pieces.append(query[found.start() : at])
    pieces.append(query[at:])
    return subscription._replace(query="".join(pieces))


def rows_with_values(
    found: SubscriptionRows, folder: str | os.PathLike[str] | None
) -> SubscriptionRows:
    """Returns the subscriptions of a table or folder, each as `with_values` makes it.

    One whose file cannot be read is rejected, and disturbs no other.

    Args:
        found: What was read.
        folder: Where the files of values are; None leaves everything as it is.
    """
    if folder is None:
        return found
    made = SubscriptionRows([], [], list(found.rejected))
    for row, place in zip(found.rows, found.places, strict=True):
        try:
            made.rows.append(with_values(row, folder))
            made.places.append(place)
        except ConfigError as error:
            made.rejected.append(RejectedSubscription(row, error, place))
    return made


def files_below(folder: str | os.PathLike[str]) -> list[Path]:
    """Returns the files of a folder that a query may name, in the order of their paths.

    Raises:
        OSError: The folder or one in it cannot be listed.
    """

    def fail(error: OSError) -> None:
        raise error

    walked = os.walk(folder, onerror=fail)
    return sorted(Path(parent, name) for parent, _, names in walked for name in names)


def _list_of(name: str, folder: Path) -> str:
    """The values of a file as a sequence of XQuery."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise _refused(name, f"it is not below {folder}")
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise _refused(name, f"it is longer than {FILE_BYTES_MAX} bytes")
        lines = content.decode("utf-8-sig").replace("\r", "\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(name, str(error)) from None
    values = [value for line in lines if (value := line.strip(" \t"))]
    # XPath 1.0 knows no references, nor lists; of one value there are two.
    values = values * 2 if len(values) == 1 else values
    written = (value.replace("&", "&amp;").replace('"', '""') for value in values)
    return "(" + ", ".join(f'"{value}"' for value in written) + ")"


def _after_comment(text: str, start: int) -> int:
    level, at = 0, start
    while (edge := _EDGE.search(text, at)) is not None:
        level += 1 if edge[0] == "(:" else -1
        at = edge.end()
        if level == 0:
            return at
    return len(text)


def _refused(name: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=f"values-of({name!r})", reason=reason)
