"""FLWR subscriptions: syntax trees, refusals in words, the paper's class.

docs/subscriptions.md says what is accepted and what it means. The kernel reads, checks and runs
programs.
"""

from __future__ import annotations

from pathcast.query.xquery.known_truths import ProgramIssue, program_truths
from pathcast.query.xquery.language import is_xquery, without_comments
from pathcast.query.xquery.notation import text_of
from pathcast.query.xquery.paper import BindingStep, binding_of, conjuncts, framed, returned
from pathcast.query.xquery.parts import Part, parts_of
from pathcast.query.xquery.reader import parse
from pathcast.query.xquery.subscription import binding_of_path, refusal_of

__all__ = [
    "BindingStep",
    "Part",
    "ProgramIssue",
    "binding_of",
    "binding_of_path",
    "conjuncts",
    "framed",
    "is_xquery",
    "parse",
    "parts_of",
    "program_truths",
    "refusal_of",
    "returned",
    "text_of",
    "without_comments",
]
