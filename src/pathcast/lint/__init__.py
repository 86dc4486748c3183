"""Lint: what is likely wrong with standing queries, found before a message is missed.

Example:
    >>> from pathcast import Query
    >>> from pathcast.lint import lint, structure_of_sample
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> sample = [parse(b"<nitf xmlns='urn:n'><tobject type='news'/></nitf>", Limits())]
    >>> report = lint([Query("q1", "/nitf/tobject")], sample=sample)
    >>> for finding in report.findings:
    ...     print(finding.code, finding.message)
    ...     print(finding.fix, "|", finding.replacement.text)
    PL103 `nitf` is in namespace urn:n in the sample, not in none as in the query (2 such names)
    bind p to urn:n, or make that the default element namespace | p:nitf/p:tobject

It decides nothing about a query: what it finds can be meant. docs/lint.md has an example of each
code.
"""

from __future__ import annotations

from pathcast.lint.completion import Completion, Proposal, complete
from pathcast.lint.findings import (
    CODES,
    SEVERITIES,
    Code,
    Finding,
    LintReport,
    Replacement,
    Severity,
)
from pathcast.lint.linter import COMPARISONS_MAX, lint
from pathcast.lint.structure import Structure, structure_of_dtd, structure_of_sample

__all__ = [
    "CODES",
    "COMPARISONS_MAX",
    "SEVERITIES",
    "Code",
    "Completion",
    "Finding",
    "LintReport",
    "Proposal",
    "Replacement",
    "Severity",
    "Structure",
    "complete",
    "lint",
    "structure_of_dtd",
    "structure_of_sample",
]
