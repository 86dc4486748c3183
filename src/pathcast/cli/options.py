"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pathcast.errors import ConfigError, invalid_setting
from pathcast.limits import Limits
from pathcast.model import QueryLanguage
from pathcast.moments import moment_of
from pathcast.query import PREFIX_PACKS


class Format(StrEnum):
    """Choices of `--format`."""

    TEXT = "text"
    JSON = "json"


class LanguageChoice(StrEnum):
    """Choices of `--language`."""

    XPATH1 = "xpath1"
    XQUERY = "xquery"


FormatOption = Annotated[
    Format, typer.Option("--format", help="text for people, json for programs.")
]
OverrideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Overrides a key of the file. Repeatable.",
        show_default=False,
    ),
]
NewOption = Annotated[
    bool,
    typer.Option(
        "--new",
        help="Begin with an empty directory; without, it has to hold what was kept there before.",
    ),
]
DescribeOption = Annotated[
    bool, typer.Option("--describe", help="List every key of the file, and end.")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Threads that match. Default: one a core.", show_default=False
    ),
]
NamespaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace",
        metavar="PREFIX=URI",
        help="Binds a prefix of the queries; =URI sets the default element namespace; the name of "
        f"a vocabulary binds its usual prefixes: {', '.join(PREFIX_PACKS)}. Repeatable.",
        show_default=False,
    ),
]
LanguageOption = Annotated[
    LanguageChoice | None,
    typer.Option(
        "--language",
        help="Of queries that do not say theirs. Default: XPath 1.0 where its grammar takes the "
        "text, XQuery otherwise.",
        show_default=False,
    ),
]
ValuesOption = Annotated[
    Path | None,
    typer.Option(
        "--values",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
        help='Where the lists are that queries name: values-of("FILE") stands for the lines of a '
        "file below this folder.",
        show_default=False,
    ),
]
StepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        help="Done to a message before the query sees it: 'drop PATH', 'unwrap PATH', "
        "'rename PATH NAME'. Given again for the next one.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help="Changes a limit on messages: " + ", ".join(f.name for f in fields(Limits)) + ". "
        "Repeatable.",
        show_default=False,
    ),
]

LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="To find it by. Repeatable."),
]


@dataclass(frozen=True)
class QueryOptions:
    """Options of a command that reads queries, whatever they come in, for messages."""

    namespace: NamespaceOption = None
    language: LanguageOption = None
    values: ValuesOption = None
    limit: LimitOption = None


def existing(path: Path | None) -> Path | None:
    """Refuses the name of a file that is not there; `-`, standard input, always is.

    Typer's own check has no place for `-` in all of its releases.

    Raises:
        BadParameter: There is no such file or folder.
    """
    if path is not None and str(path) != "-" and not path.exists():
        raise typer.BadParameter(f"{str(path)!r} does not exist")
    return path


def read_namespaces(pairs: list[str] | None) -> dict[str, str]:
    """Prefix -> URI.

    Raises:
        ConfigError: A pair has no "=" or no URI, and is no vocabulary of `PREFIX_PACKS`, or binds a
            prefix twice.

    Example:
        >>> read_namespaces(["soap=http://www.w3.org/2003/05/soap-envelope"])
        {'soap': 'http://www.w3.org/2003/05/soap-envelope'}
        >>> read_namespaces(["cap"])
        {'cap': 'urn:oasis:names:tc:emergency:cap:1.2'}
    """
    usual: dict[str, str] = {}
    bound: dict[str, str] = {}
    for pair in pairs or []:
        if pair in PREFIX_PACKS:
            usual |= PREFIX_PACKS[pair]
            continue
        prefix, equals, uri = pair.partition("=")
        if not equals or not uri:
            known = ", ".join(PREFIX_PACKS)
            reason = f"{pair!r} is not PREFIX=URI, and none of the vocabularies {known}"
            raise _refused("--namespace", reason)
        if prefix in bound:
            raise _refused("--namespace", f"{prefix!r} is bound twice")
        bound[prefix] = uri
    return {**usual, **bound}


def read_language(choice: LanguageChoice | None) -> QueryLanguage | None:
    """The language of a choice."""
    if choice is None:
        return None
    return "xquery" if choice is LanguageChoice.XQUERY else "xpath1"


def read_labels(pairs: list[str] | None) -> dict[str, str]:
    """Name -> value.

    Raises:
        ConfigError: A pair has no "=".

    Example:
        >>> read_labels(["tier=gold"])
        {'tier': 'gold'}
    """
    labels: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            reason = f"{pair!r} is not NAME=VALUE"
            raise _refused("--label", reason)
        labels[name] = value
    return labels


def read_limits(pairs: list[str] | None, base: Limits | None = None) -> Limits:
    """Limits with these changed.

    Args:
        pairs: `NAME=VALUE`.
        base: The others; the default ones where none are given.

    Raises:
        ConfigError: A limit does not exist or cannot have the value.

    Example:
        >>> read_limits(["depth_max=64", "dtd=refuse"]).depth_max
        64
    """
    names = [field.name for field in fields(Limits)]
    changed: dict[str, Any] = {}
    for pair in pairs or []:
        name, _, value = pair.partition("=")
        if name not in names:
            known = ", ".join(names)
            raise _refused("--limit", f"{name!r} is not a limit; there are {known}")
        # Python refuses to read a number of thousands of digits, which is over every limit.
        is_number = value.isascii() and value.isdigit() and len(value) < 1_000
        changed[name] = int(value) if is_number else value
    return replace(base or Limits(), **changed)


def _refused(option: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=option, reason=reason)


def moment_given(option: str, text: str) -> datetime:
    """The moment that the text of an option says, in UTC.

    Raises:
        ConfigError: It says none.
    """
    try:
        return moment_of(text)
    except ValueError as error:
        reason = f"{text!r} is no time such as 2026-03-01T12:00+01:00"
        raise invalid_setting(option, reason) from error
