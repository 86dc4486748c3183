"""FLWR subscriptions: XQuery text -> syntax tree, static rules, the paper's class.

docs/subscriptions.md says what is accepted and what it means. The kernel reads; this package judges
and evaluates nothing (`pathcast_papers.message_broker.xquery` and the kernel do).
"""

from __future__ import annotations

from pathcast.query.xquery.language import is_xquery, without_comments
from pathcast.query.xquery.notation import text_of
from pathcast.query.xquery.paper import (
    PaperCondition,
    PaperQuery,
    PaperReturn,
    PaperStep,
    Target,
    framed,
    paper_form,
)
from pathcast.query.xquery.reader import parse
from pathcast.query.xquery.subscription import (
    CompiledSubscription,
    compile_subscription,
    form_of_path,
    refusal_of,
)
from pathcast.query.xquery.syntax import Program

__all__ = [
    "CompiledSubscription",
    "PaperCondition",
    "PaperQuery",
    "PaperReturn",
    "PaperStep",
    "Program",
    "Target",
    "compile_subscription",
    "form_of_path",
    "framed",
    "is_xquery",
    "paper_form",
    "parse",
    "refusal_of",
    "text_of",
    "without_comments",
]
