"""Why a message satisfies a query, or where the query comes to an end in it.

A query is followed as its author wrote it: how many nodes each step selects and where the first
ones are; at the step that selects nothing, the names or values that are there instead, and what
comes nearest; for every other expression its value and that of its operands.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add(Query("q1", "/nitf/head//tobject[@type='news']"))
    >>> message = b"<nitf><head><tobject type='sport'/></head></nitf>"
    >>> print(registry.explain("q1", message))
    q1: no match
      /nitf/head//tobject[@type='news']
      /nitf                     1 node, first /nitf[1]
      /head                     1 node, first /nitf[1]/head[1]
      //tobject[@type='news']   1 node, which does not pass [@type='news']
                                `@type` is 'sport', the query wants 'news'

The verdict is always the engine's: the message is matched as any other message is. What is told of
the parts is found by following the query: the kernel gives the nodes of each step and the value of
each condition. Where the two do not agree, that is a bug of Pathcast, and the
explanation says so (`Explanation.bug`).
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.engine.explain_walk import STEPS_FACTOR, Walk
from pathcast.engine.explanation import Explanation, ExpressionExplanation, Plan
from pathcast.engine.messages import message_bytes
from pathcast.engine.results import MatchResult
from pathcast.errors import ExplanationBugError, MessageError, Param
from pathcast.kernel.message_nodes import MessageNodes, OverBudgetError
from pathcast.limits import Limits
from pathcast.model import MessageBytes, Query
from pathcast.query import compile_query, read_query


def explain_query(
    query: Query,
    message: MessageBytes | str,
    limits: Limits,
    match: Callable[[MessageBytes | str], MatchResult],
) -> Explanation:
    """Follows a query through a message.

    Args:
        query: The query, with all namespaces it may use.
        message: The message.
        limits: What the message may cost.
        match: Matches the query, alone or among others.

    Returns:
        The explanation. A message that the door refuses, and an evaluation over its budget, are
        explained, too.

    Raises:
        QuerySyntaxError: The query cannot be read.

    Cost: one match of the message, and an evaluation of each part of the query for each node that
        comes to it; milliseconds for small messages.
    """
    namespaces = query.namespaces or {}
    compiled = compile_query(query.text, namespaces)
    plan = Plan(
        tuple(compiled.texts),
        compiled.expression,
        compiled.cost.value,
        tuple(str(reason) for reason in compiled.reasons),
    )
    try:
        data, encoding = message_bytes(message)
    except MessageError as refusal:
        return Explanation(query.id, query.text, False, plan, None, None, refusal.to_dict())
    answer = match(message)
    error = answer.error or answer.verdicts.get(query.id)
    if error is not None:
        return Explanation(query.id, query.text, False, plan, None, None, error.to_dict())
    is_match = query.id in answer.query_ids
    try:
        steps_max = limits.evaluation_steps_max * STEPS_FACTOR
        nodes = MessageNodes(data, limits, encoding, steps_max)
    except MessageError as refusal:
        told = _bug("lets the message in to match it", f"it is refused to be explained ({refusal})")
        return Explanation(query.id, query.text, is_match, plan, None, bug=told)
    root = _told(query, nodes)
    if root is None:
        return Explanation(query.id, query.text, is_match, plan, None)
    bug: dict[str, Param] | None = None
    if root.is_true != is_match:
        bug = _bug(f"says {_verdict(is_match)}", f"the steps below say {_verdict(root.is_true)}")
    failure = None if is_match else root.failure
    return Explanation(query.id, query.text, is_match, plan, root, failure, bug=bug)


def _told(query: Query, nodes: MessageNodes) -> ExpressionExplanation | None:
    """Find the nodes of every part of the query; None over the limit."""
    namespaces = query.namespaces or {}
    resolved = read_query(query.text, namespaces)
    try:
        return Walk(nodes, namespaces).query(resolved)
    except OverBudgetError:
        return None


def _verdict(is_match: bool) -> str:
    return "match" if is_match else "no match"


def _bug(answer: str, found: str) -> dict[str, Param]:
    return ExplanationBugError("explain.differs", answer=answer, found=found).to_dict()
