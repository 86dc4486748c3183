"""Why a message satisfies a query, or where the query comes to an end in it.

A query is followed as its author wrote it: how many nodes each step selects and where the first
ones are; at the step that selects nothing, the names or values that are there instead, and what
comes nearest; for every other expression its value and that of its operands.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex(engine="reference")
    >>> report = index.register([Query("q1", "/nitf/head//tobject[@type='news']")])
    >>> message = b"<nitf><head><tobject type='sport'/></head></nitf>"
    >>> print(index.freeze().explain("q1", message))
    q1: no match
      /nitf/head//tobject[@type='news']
      /nitf                     1 node, first /nitf[1]
      /head                     1 node, first /nitf[1]/head[1]
      //tobject[@type='news']   1 node, which does not pass [@type='news']
                                `@type` is 'sport', the query wants 'news'

The verdict is that of the reference evaluator, which the engines are tested against; the message
is let in, or refused, by the engine's own door.
"""

from __future__ import annotations

from pathcast.engine.backend import EngineModule
from pathcast.engine.explain_walk import Walk, truth
from pathcast.engine.explanation import Explanation, ExpressionExplanation, Plan
from pathcast.engine.messages import message_bytes
from pathcast.errors import EvaluationBudgetError, MessageError
from pathcast.limits import Limits
from pathcast.message import MessageTree, TreeDetails, parse_message
from pathcast.model import MessageBytes, Query
from pathcast.query import CompiledQuery, compile_query, parse
from pathcast.query.static import resolve
from pathcast.query.syntax import Expr
from pathcast.reference.oracle import Oracle
from pathcast.reference.xpath import Evaluator, OverBudgetError

__all__ = ["Explanation", "explain_query"]


def explain_query(
    query: Query,
    message: MessageBytes | str,
    engine: EngineModule,
    limits: Limits,
) -> Explanation:
    """Follows a query through a message.

    Args:
        query: The query, with all namespaces it may use.
        message: The message.
        engine: The engine whose door shall read it.
        limits: What the message may cost.

    Returns:
        The explanation. A message that the door refuses, and an evaluation over its budget, are
        explained, too.

    Raises:
        QuerySyntaxError: The query cannot be read.

    Cost: that of the reference evaluator, several times; milliseconds for small messages.
    """
    namespaces = query.namespaces or {}
    compiled = compile_query(query.text, namespaces)
    resolved = resolve(parse(query.text), query.text, namespaces)
    plan = Plan(
        tuple(compiled.texts),
        compiled.expression,
        compiled.cost.value,
        tuple(str(reason) for reason in compiled.reasons),
    )
    try:
        data, encoding = message_bytes(message)
        tree = _with_details(engine.parse(data, limits, encoding), data, limits, encoding)
        is_match = _is_match(compiled, resolved, tree, query.id, limits)
    except (MessageError, EvaluationBudgetError) as error:
        return Explanation(query.id, query.text, False, plan, None, None, error.to_dict())
    root = _told(resolved, tree, query, limits)
    failure = None if root is None or is_match else root.failure
    return Explanation(query.id, query.text, is_match, plan, root, failure)


def _is_match(
    compiled: CompiledQuery, resolved: Expr, tree: MessageTree, query_id: str, limits: Limits
) -> bool:
    """The verdict, in the order and with the budget of the engines.

    Raises:
        EvaluationBudgetError: The evaluation takes too many steps.
    """
    oracle = Oracle(tree)
    if not any(oracle.select(alternative.steps) for alternative in compiled.alternatives):
        return False
    if compiled.expression is None:
        return True
    try:
        return truth(Evaluator(tree, limits.evaluation_steps_max).evaluate(resolved))
    except OverBudgetError:
        raise EvaluationBudgetError(
            "limit.evaluation_steps",
            limit="evaluation_steps_max",
            maximum=limits.evaluation_steps_max,
            id=query_id,
        ) from None


def _told(
    resolved: Expr, tree: MessageTree, query: Query, limits: Limits
) -> ExpressionExplanation | None:
    """What every part of the query finds; None if that is too much to tell."""
    try:
        return Walk(tree, query.namespaces or {}, limits.evaluation_steps_max).query(resolved)
    except OverBudgetError:
        return None


def _with_details(
    tree: MessageTree, message: bytes, limits: Limits, encoding: str | None
) -> MessageTree:
    """The message with comments, instructions and prefixes, which the kernel's door leaves out."""
    if tree.details is not None:
        return tree
    try:
        return parse_message(message, limits, encoding)
    except MessageError:
        # The two doors differ in a few characters of names (pathcast.message.door): the kernel's
        # tree is told without comments, instructions and prefixes then.
        tree.details = TreeDetails(
            markup_start=[0] * len(tree),
            markup_end=[0] * len(tree),
            prefix=[""] * len(tree),
            attribute_prefix=[""] * len(tree.attribute_name),
            declaration_start=[0] * (len(tree) + 1),
        )
        return tree
