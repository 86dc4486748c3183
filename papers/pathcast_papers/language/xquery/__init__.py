"""FLWR subscriptions: XQuery text -> syntax tree, static rules, gate, the paper's class.

docs/subscriptions.md says what is accepted and what it means. This package parses and judges; it
evaluates nothing (`pathcast_papers.message_broker.xquery` and the kernel do).
"""

from __future__ import annotations

from pathcast_papers.language.xquery.comments import without_comments
from pathcast_papers.language.xquery.frame import content_expressions
from pathcast_papers.language.xquery.notation import text_of
from pathcast_papers.language.xquery.paper import (
    PaperCondition,
    PaperQuery,
    PaperReturn,
    PaperStep,
    Target,
    framed,
    paper_form,
)
from pathcast_papers.language.xquery.parser import parse
from pathcast_papers.language.xquery.scanner import DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX
from pathcast_papers.language.xquery.subscription import (
    CompiledSubscription,
    compile_subscription,
    form_of_path,
    is_xquery,
    selection_of,
)
from pathcast_papers.language.xquery.syntax import Program

__all__ = [
    "DEPTH_MAX",
    "NODES_MAX",
    "TEXT_BYTES_MAX",
    "CompiledSubscription",
    "PaperCondition",
    "PaperQuery",
    "PaperReturn",
    "PaperStep",
    "Program",
    "Target",
    "compile_subscription",
    "content_expressions",
    "form_of_path",
    "framed",
    "is_xquery",
    "paper_form",
    "parse",
    "selection_of",
    "text_of",
    "without_comments",
]
