"""One subscription on one message, for the reference engine.

Example:
    >>> from pathcast.message import parse_message
    >>> message = b"<a><b>1</b><b>2</b></a>"
    >>> view = MessageView(message, parse_message(message), Limits())
    >>> for deliver in DELIVER_MODES:
    ...     subscription = Subscription("s1", "desk", "//b", deliver)
    ...     print(StandingSubscription(subscription, compile_subscription("//b")).fragments(view))
    [b'<b>1</b>', b'<b>2</b>']
    [b'<a><b>1</b><b>2</b></a>']
    [None]
"""

from __future__ import annotations

from collections.abc import Sequence

from pathcast.errors import EvaluationBudgetError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.model import DELIVER_MODES, Subscription
from pathcast.query import (
    CompiledQuery,
    CompiledSubscription,
    Expr,
    compile_query,
    compile_subscription,
    read_expression,
)
from pathcast.query.xquery import selection_of, without_comments
from pathcast.reference.oracle import Oracle
from pathcast.reference.xpath import Evaluator, OverBudgetError
from pathcast.reference.xpath.document import Node
from pathcast.reference.xquery.evaluation import evaluate, gives_item, holds, serialised

__all__ = ["DELIVER_MODES", "MessageView", "StandingSubscription", "compile_subscription"]


class MessageView:
    """A message, and what evaluates a bare XPath on it.

    Args:
        message: The bytes as they arrived.
        tree: Its tree, with details.
        limits: What an evaluation and its results may cost.
    """

    def __init__(self, message: bytes, tree: MessageTree, limits: Limits) -> None:
        self.message = message
        self.tree = tree
        self.limits = limits
        self.evaluator = Evaluator(tree, limits.evaluation_steps_max)
        self.oracle = Oracle(tree)


class StandingSubscription:
    """A subscription that was compiled.

    Args:
        subscription: As it was made, with all its namespaces.
        compiled: What its text was compiled to.
    """

    def __init__(self, subscription: Subscription, compiled: CompiledSubscription) -> None:
        self.subscription = subscription
        self.compiled = compiled
        self._path: Expr | None = None
        self._query: CompiledQuery | None = None
        if compiled.program is None:
            text, namespaces = subscription.query, subscription.namespaces
            if subscription.deliver == "fragment":
                self._path = selection_of(text, namespaces)
            else:
                self._query = compile_query(without_comments(text), namespaces)

    def fragments(self, view: MessageView) -> Sequence[bytes | None]:
        """What the subscriber gets of a message: a payload for every delivery.

        Raises:
            LimitExceededError: It takes too many steps, or the results are too long.
            ConstructionError: A constructor would make what is no element.
        """
        if self.subscription.deliver == "fragment":
            return self.results(view)
        if not self._is_delivered(view):
            return []
        return [None if self.subscription.deliver == "ids" else view.message]

    def has_result(self, view: MessageView) -> bool:
        """Whether there is a result, for deliver="fragment"; none is made.

        Raises:
            LimitExceededError: It takes too many steps.
            ConstructionError: A constructor would make what is no element.
        """
        if self.compiled.program is not None:
            return gives_item(
                self.compiled.program,
                view.evaluator.document,
                view.limits,
                subscription_id=self.subscription.id,
            )
        return bool(self._nodes(view))

    def results(self, view: MessageView) -> Sequence[bytes]:
        """The results, for deliver="fragment".

        Raises:
            LimitExceededError: It takes too many steps, or the results are too long.
            ConstructionError: A constructor would make what is no element.
        """
        limits, size = view.limits, len(view.message)
        subscription_id = self.subscription.id
        if self.compiled.program is not None:
            return evaluate(
                self.compiled.program,
                view.evaluator.document,
                limits,
                message_bytes=size,
                subscription_id=subscription_id,
            ).results
        nodes = self._nodes(view)
        return list(serialised(view.evaluator.document, nodes, limits, size, subscription_id))

    def _nodes(self, view: MessageView) -> tuple[Node, ...]:
        assert self._path is not None
        try:
            return tuple(view.evaluator.select(self._path))
        except OverBudgetError:
            raise self._over_budget(view.limits) from None

    def _is_delivered(self, view: MessageView) -> bool:
        if self.compiled.program is not None:
            return holds(
                self.compiled.program,
                view.evaluator.document,
                view.limits,
                subscription_id=self.subscription.id,
            )
        assert self._query is not None
        if not any(view.oracle.select(each.steps) for each in self._query.alternatives):
            return False
        if self._query.expression is None:
            return True
        try:
            return view.evaluator.holds(read_expression(self._query.expression))
        except OverBudgetError:
            raise self._over_budget(view.limits) from None

    def _over_budget(self, limits: Limits) -> EvaluationBudgetError:
        return EvaluationBudgetError(
            "limit.evaluation_steps",
            limit="evaluation_steps_max",
            maximum=limits.evaluation_steps_max,
            id=self.subscription.id,
        )
