"""One subscription on one message, for the reference engine.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> message = b"<a><b>1</b><b>2</b></a>"
    >>> view = MessageView(message, parse_message(message), Limits())
    >>> for deliver in DELIVER_MODES:
    ...     subscription = Subscription("s1", "desk", "//b", deliver)
    ...     print(StandingSubscription(subscription, compile_subscription("//b")).payloads(view))
    [b'<b>1</b>', b'<b>2</b>']
    [b'<a><b>1</b><b>2</b></a>']
    [None]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pathcast.errors import EvaluationBudgetError, MessageBudgetError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.model import DELIVER_MODES, DeliveredNode, Subscription
from pathcast_papers.evaluation.xpath import Evaluator, OverBudgetError
from pathcast_papers.evaluation.xpath.document import Node
from pathcast_papers.language import CompiledSubscription, compile_subscription
from pathcast_papers.message_broker.xquery.budget import Budget
from pathcast_papers.message_broker.xquery.evaluation import (
    evaluate,
    given,
    gives_item,
    holds,
    places,
    serialised,
)
from pathcast_papers.message_broker.xquery.items import Items

__all__ = ["DELIVER_MODES", "MessageView", "StandingSubscription", "compile_subscription"]


class MessageView:
    """A message, and what evaluates a bare XPath on it.

    Args:
        message: The bytes as they arrived.
        tree: Its tree, with details.
        limits: What an evaluation and its results may cost, and all evaluations.
        time: When it was (`Document`).

    Attributes:
        steps: Steps that the evaluations have taken.
    """

    def __init__(self, message: bytes, tree: MessageTree, limits: Limits, time: int = 0) -> None:
        self.message = message
        self.tree = tree
        self.limits = limits
        self.evaluator = Evaluator(tree)
        self.evaluator.document.time = time
        self.steps = 0

    @contextmanager
    def budget(self, subscription_id: str) -> Iterator[Budget]:
        """The steps of one evaluation, which are taken off those of the message.

        Raises:
            MessageBudgetError: They do not suffice for it, or did not for one before.
        """
        own, left = self.limits.evaluation_steps_max, self.limits.message_steps_max - self.steps
        used_up = MessageBudgetError(
            "limit.message_steps",
            limit="message_steps_max",
            maximum=self.limits.message_steps_max,
            id=subscription_id,
        )
        if left < 0:
            raise used_up
        budget = Budget(min(own, left))
        try:
            yield budget
        finally:
            taken = min(budget.steps, own)
            self.steps += taken
            if taken > left:
                raise used_up from None


class StandingSubscription:
    """A subscription that was compiled.

    Args:
        subscription: As it was made, with all its namespaces.
        compiled: What its text was compiled to.
    """

    def __init__(self, subscription: Subscription, compiled: CompiledSubscription) -> None:
        self.subscription = subscription
        self.compiled = compiled

    def payloads(self, view: MessageView) -> Sequence[bytes | DeliveredNode | None]:
        """What the subscriber gets of a message: a payload for every delivery.

        Raises:
            LimitExceededError: It takes too many steps, or the results are too long.
            ConstructionError: A constructor would make what is no element.
        """
        if self.is_results:
            return self.results(view)
        if not self._is_delivered(view):
            return []
        return [None if self.subscription.deliver == "ids" else view.message]

    @property
    def is_results(self) -> bool:
        """Whether results are delivered, or their places; not the message, or the fact."""
        return self.subscription.deliver in ("fragment", "nodes")

    def has_result(self, view: MessageView) -> bool:
        """Whether there is a result, where results are delivered; none is made.

        Raises:
            LimitExceededError: It takes too many steps.
            ConstructionError: A constructor would make what is no element.
        """
        if self.compiled.program is not None:
            with view.budget(self.subscription.id) as budget:
                return gives_item(
                    self.compiled.program,
                    view.evaluator.document,
                    view.limits,
                    subscription_id=self.subscription.id,
                    budget=budget,
                )
        return bool(self._nodes(view))

    def results(self, view: MessageView) -> Sequence[bytes | DeliveredNode]:
        """The results, where they are delivered, or their places.

        Raises:
            LimitExceededError: It takes too many steps, or the results are too long.
            ConstructionError: A constructor would make what is no element.
        """
        limits, size = view.limits, len(view.message)
        subscription_id = self.subscription.id
        if self.subscription.deliver == "nodes":
            return places(view.evaluator.document, self._given(view), limits, size, subscription_id)
        if self.compiled.program is not None:
            with view.budget(subscription_id) as budget:
                return evaluate(
                    self.compiled.program,
                    view.evaluator.document,
                    limits,
                    message_bytes=size,
                    subscription_id=subscription_id,
                    budget=budget,
                ).results
        nodes = self._nodes(view)
        return list(serialised(view.evaluator.document, nodes, limits, size, subscription_id))

    def _given(self, view: MessageView) -> Items:
        if self.compiled.program is None:
            return self._nodes(view)
        with view.budget(self.subscription.id) as budget:
            items = given(
                self.compiled.program,
                view.evaluator.document,
                view.limits,
                subscription_id=self.subscription.id,
                budget=budget,
            )
        return () if items is None else items

    def _nodes(self, view: MessageView) -> tuple[Node, ...]:
        assert self.compiled.expression is not None
        with self._evaluator(view) as evaluator:
            return tuple(evaluator.select(self.compiled.expression))

    def _is_delivered(self, view: MessageView) -> bool:
        if self.compiled.program is not None:
            with view.budget(self.subscription.id) as budget:
                return holds(
                    self.compiled.program,
                    view.evaluator.document,
                    view.limits,
                    subscription_id=self.subscription.id,
                    budget=budget,
                )
        assert self.compiled.expression is not None
        with self._evaluator(view) as evaluator:
            return evaluator.holds(self.compiled.expression)

    @contextmanager
    def _evaluator(self, view: MessageView) -> Iterator[Evaluator]:
        """What evaluates XPath, for one evaluation.

        Raises:
            EvaluationBudgetError: It takes too many steps.
            MessageBudgetError: So do all of the message.
        """
        evaluator = view.evaluator
        with view.budget(self.subscription.id) as budget:
            evaluator.steps_max = budget.steps_max
            try:
                yield evaluator
            except OverBudgetError:
                raise EvaluationBudgetError(
                    "limit.evaluation_steps",
                    limit="evaluation_steps_max",
                    maximum=view.limits.evaluation_steps_max,
                    id=self.subscription.id,
                ) from None
            finally:
                budget.steps = evaluator.steps
