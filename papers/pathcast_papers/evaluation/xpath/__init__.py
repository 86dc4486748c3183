"""The reference evaluator: all of XPath 1.0 in plain Python.

What the kernel's evaluator answers, slowly and readably; the kernel is tested against it. In
reading order: `document` (nodes), `axes` (axes and node tests), `dependence` (what a value depends
on), `evaluator` (expressions).
"""

from __future__ import annotations

from pathcast_papers.evaluation.xpath.document import DOCUMENT_NODE, Document, Node, NodeKind
from pathcast_papers.evaluation.xpath.evaluator import (
    Context,
    Evaluator,
    NodeSet,
    OverBudgetError,
    Result,
)

__all__ = [
    "DOCUMENT_NODE",
    "Context",
    "Document",
    "Evaluator",
    "Node",
    "NodeKind",
    "NodeSet",
    "OverBudgetError",
    "Result",
]
