"""FLWR subscriptions: syntax trees, refusals in words, the paper's class.

docs/subscriptions.md says what is accepted and what it means. The kernel reads, checks and runs
programs.
"""

from __future__ import annotations

from pathcast.query.xquery.known_truths import program_truths
from pathcast.query.xquery.language import is_xquery, without_comments
from pathcast.query.xquery.notation import text_of
from pathcast.query.xquery.paper import (
    PaperStep,
    Target,
    framed,
    paper_form,
)
from pathcast.query.xquery.parts import Part, parts_of
from pathcast.query.xquery.reader import parse
from pathcast.query.xquery.subscription import form_of_path, refusal_of

__all__ = [
    "PaperStep",
    "Part",
    "Target",
    "form_of_path",
    "framed",
    "is_xquery",
    "paper_form",
    "parse",
    "parts_of",
    "program_truths",
    "refusal_of",
    "text_of",
    "without_comments",
]
