"""Findings of lint: a stable code, a severity, a place, and a fix where there is one.

Example:
    >>> CODES["PL101"].severity, CODES["PL101"].title
    ('warning', 'no element has this name')

Codes are never given a new meaning; docs/lint.md shows an example of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "info"]
"""error: the query can satisfy nobody. warning: likely not what was meant. info: worth knowing."""

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
"""From the least to the most severe."""


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding.

    Attributes:
        code: `PL` and three digits: 0 the text, 1 names and paths, 2 conditions, 3 other queries,
            4 cost.
        severity: How bad it is.
        title: What is wrong, in general.
    """

    code: str
    severity: Severity
    title: str


CODES: Final[Mapping[str, Code]] = MappingProxyType(
    {
        code.code: code
        for code in (
            Code("PL001", "error", "the query cannot be registered"),
            Code("PL101", "warning", "no element has this name"),
            Code("PL102", "warning", "no attribute has this name"),
            Code("PL103", "warning", "the name has no prefix, but is in a namespace"),
            Code("PL104", "warning", "the name occurs in another namespace"),
            Code("PL105", "warning", "the path leads nowhere"),
            Code("PL106", "error", "the attribute cannot have this value"),
            Code("PL107", "info", "the attribute never has this value in the sample"),
            Code("PL108", "info", "the element never has this value in the sample"),
            Code("PL109", "warning", "the value is written in another way in the sample"),
            Code("PL201", "error", "the condition cannot hold"),
            Code("PL202", "warning", "the condition always holds"),
            Code("PL203", "info", "every message satisfies the query"),
            Code("PL204", "warning", "the meaning depends on the language"),
            Code("PL301", "info", "the query is equal to another one"),
            Code("PL302", "info", "the query is covered by another one"),
            Code("PL303", "info", "not all pairs of queries were compared"),
            Code("PL401", "info", "the query is evaluated for every message"),
        )
    }
)
"""Every code, in order."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A change of the query's text that mends it.

    Attributes:
        offset: Where the replaced text begins, in characters.
        length: How long it is.
        text: What to put there.
    """

    offset: int
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that lint found.

    Attributes:
        code: Key of `CODES`.
        severity: How bad it is.
        query: Position of the query among those given, from 0; None if all are meant.
        query_id: Its id; "" if all are meant.
        offset: Where in the query's text, in characters from 0.
        message: What is wrong, as a sentence.
        fix: What to do, as a sentence; None if there is nothing sure to say.
        replacement: The fix as a change of the text, where it is one.
        related: Positions of other queries that have to do with it.
    """

    code: str
    severity: Severity
    query: int | None
    query_id: str
    offset: int
    message: str
    fix: str | None = None
    replacement: Replacement | None = None
    related: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of some queries.

    Attributes:
        queries: Number of queries that were looked at.
        findings: By query and place; those about all queries last.
        notes: What limits the findings: parts of a sample or DTD that were not read.
    """

    queries: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def counts(self) -> Mapping[Severity, int]:
        """Severity -> number of findings."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in reversed(SEVERITIES)}

    def has(self, severity: Severity) -> bool:
        """Whether there is a finding of this severity or a worse one."""
        worse = SEVERITIES[SEVERITIES.index(severity) :]
        return any(finding.severity in worse for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """The same as plain dictionaries and lists, for JSON."""
        return {
            "queries": self.queries,
            "counts": dict(self.counts()),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
        }
