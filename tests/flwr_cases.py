"""The cases of `testdata/xquery.toml`: queries, messages, and the results they have."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).resolve().parent.parent / "testdata" / "xquery.toml"


class FlwrCase(NamedTuple):
    """One query on one message.

    Attributes:
        query: The subscription.
        expected: Its results; the code of the verdict where there is one.
    """

    query: str
    expected: tuple[bytes, ...] | str


class FlwrGroup(NamedTuple):
    """Cases that have the message in common.

    Attributes:
        name: What they are about.
        message: The message.
        namespaces: Prefix -> URI; the key "" is the default element namespace.
        saxon_differs: Why Saxon has no such value; None where it has.
        cases: The cases.
    """

    name: str
    message: bytes
    namespaces: Mapping[str, str]
    saxon_differs: str | None
    cases: tuple[FlwrCase, ...]

    @property
    def is_about_verdicts(self) -> bool:
        """Whether cases expect codes rather than results."""
        return isinstance(self.cases[0].expected, str)


def flwr_groups() -> list[FlwrGroup]:
    """All groups, in the order of the file."""
    found = tomllib.loads(PATH.read_text(encoding="utf-8"))["group"]
    return [
        FlwrGroup(
            group["name"],
            group["message"].encode(),
            group.get("namespaces", {}),
            group.get("saxon_differs"),
            tuple(FlwrCase(query, _expected(value)) for query, value in group["cases"]),
        )
        for group in found
    ]


def _expected(value: str | list[str]) -> tuple[bytes, ...] | str:
    return value if isinstance(value, str) else tuple(result.encode() for result in value)
