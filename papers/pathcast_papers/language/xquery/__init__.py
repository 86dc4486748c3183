"""FLWR subscriptions: XQuery text -> syntax tree, static rules, the paper's class.

docs/subscriptions.md says what is accepted and what it means. This package parses and judges; it
evaluates nothing (`pathcast_papers.message_broker.xquery` does).
"""

from __future__ import annotations

from pathcast_papers.language.xquery.paper import (
    PaperCondition,
    PaperQuery,
    PaperReturn,
    PaperStep,
    Target,
    paper_form,
)
from pathcast_papers.language.xquery.parser import parse
from pathcast_papers.language.xquery.scanner import DEPTH_MAX
from pathcast_papers.language.xquery.subscription import (
    CompiledSubscription,
    compile_subscription,
    is_xquery,
)
from pathcast_papers.language.xquery.syntax import Program

__all__ = [
    "DEPTH_MAX",
    "CompiledSubscription",
    "PaperCondition",
    "PaperQuery",
    "PaperReturn",
    "PaperStep",
    "Program",
    "Target",
    "compile_subscription",
    "is_xquery",
    "paper_form",
    "parse",
]
