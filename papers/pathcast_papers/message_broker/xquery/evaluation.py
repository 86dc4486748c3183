"""One subscription on one message: is it delivered, and what are the results?

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language.xquery import parse
    >>> program = parse("for $b in //b where $b > 1 return <item>{$b/text()}</item>")
    >>> evaluate(program, parse_message(b"<a><b>1</b><b>2</b><b>3</b></a>"))
    Evaluation(is_delivered=True, results=(b'<item>2</item>', b'<item>3</item>'))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pathcast.errors import ConstructionError, EvaluationBudgetError, ResultLimitError
from pathcast.limits import RESULT_BYTES_FREE, Limits
from pathcast.message import MessageTree
from pathcast.model import DeliveredNode
from pathcast_papers.evaluation.xpath import Document, OverBudgetError
from pathcast_papers.evaluation.xpath.document import Node
from pathcast_papers.language.xquery import Program
from pathcast_papers.language.xquery.frame import has_computed_names
from pathcast_papers.message_broker.xquery.budget import Budget
from pathcast_papers.message_broker.xquery.construction import ConstructionFault
from pathcast_papers.message_broker.xquery.context import DynamicContext
from pathcast_papers.message_broker.xquery.evaluator import Evaluator
from pathcast_papers.message_broker.xquery.items import Items
from pathcast_papers.message_broker.xquery.serialiser import Serialiser, TooLongError

PLACE_BYTES: Final = 16
"""What the place of a node counts for, where the length of results is limited."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a subscription gives for a message.

    Attributes:
        is_delivered: Whether the message is delivered.
        results: The results in UTF-8, without an XML declaration; none if it is not.
    """

    is_delivered: bool
    results: tuple[bytes, ...]


def evaluate(
    program: Program,
    message: MessageTree | Document,
    limits: Limits | None = None,
    *,
    message_bytes: int | None = None,
    subscription_id: str = "",
    budget: Budget | None = None,
) -> Evaluation:
    """Evaluates a subscription on a message.

    Args:
        program: The subscription.
        message: The message, with details; as a `Document` where several are asked about it.
        limits: What it may cost; the defaults if not given.
        message_bytes: Bytes of the message as it arrived, for `Limits.result_ratio_max`; no such
            bound if not given.
        subscription_id: What errors say for an id.
        budget: Steps that it may take, and where they are counted; `limits` says how many if it is
            not given.

    Raises:
        EvaluationBudgetError: It takes too many steps.
        ResultLimitError: The results are too long.
        ConstructionError: A constructor would make what is no element.
    """
    limits = limits or Limits()
    document = message if isinstance(message, Document) else Document(message)
    items = given(program, document, limits, subscription_id=subscription_id, budget=budget)
    if items is None:
        return Evaluation(False, ())
    results = serialised(document, items, limits, message_bytes, subscription_id)
    return Evaluation(True, results)


def given(
    program: Program,
    document: Document,
    limits: Limits,
    *,
    subscription_id: str = "",
    budget: Budget | None = None,
) -> Items | None:
    """The items that a subscription gives; None if the message is not delivered.

    Raises:
        EvaluationBudgetError: It takes too many steps.
        ConstructionError: A constructor would make what is no element.
    """
    evaluator = Evaluator(document, budget or Budget(limits.evaluation_steps_max))
    try:
        # A name is of no use, and no mistake, where no result is asked for.
        if has_computed_names(program.body) and not evaluator.gives_item(program):
            return None
        items = evaluator.frame(program.body, DynamicContext())
    except (ConstructionFault, OverBudgetError, RecursionError) as error:
        raise verdict(error, limits, subscription_id) from None
    return items if evaluator.is_delivered else None


def holds(
    program: Program,
    message: MessageTree | Document,
    limits: Limits | None = None,
    *,
    subscription_id: str = "",
    budget: Budget | None = None,
) -> bool:
    """The effective boolean value of a subscription, which decides where no result is wanted.

    Constants of the frame say nothing, and a constructor of it is an element if one of its content
    expressions gives an item. Several values are true, as in every condition.

    Example:
        >>> from pathcast_papers.message import parse_message
        >>> from pathcast_papers.language.xquery import parse
        >>> message = parse_message(b"<a>1</a>")
        >>> [holds(parse(text), message) for text in ("/a eq '2'", "max(/a)", "<r>{//b}</r>")]
        [False, True, False]

    Raises:
        EvaluationBudgetError: It takes too many steps.
        ConstructionError: A constructor would make what is no element.
    """
    return _asked(Evaluator.holds, program, message, limits, subscription_id, budget)


def gives_item(
    program: Program,
    message: MessageTree | Document,
    limits: Limits | None = None,
    *,
    subscription_id: str = "",
    budget: Budget | None = None,
) -> bool:
    """Whether a message is delivered to a subscription that wants results; none is made.

    Example:
        >>> from pathcast_papers.message import parse_message
        >>> from pathcast_papers.language.xquery import parse
        >>> message = parse_message(b"<a>1</a>")
        >>> [gives_item(parse(text), message) for text in ("<r>{/a}</r>", "<r>{//b}</r>")]
        [True, False]

    Raises:
        EvaluationBudgetError: It takes too many steps.
        ConstructionError: A constructor would make what is no element.
    """
    return _asked(Evaluator.gives_item, program, message, limits, subscription_id, budget)


def _asked(
    question: Callable[[Evaluator, Program], bool],
    program: Program,
    message: MessageTree | Document,
    limits: Limits | None,
    subscription_id: str,
    budget: Budget | None,
) -> bool:
    """A yes or no of a program on a message, within its steps."""
    limits = limits or Limits()
    document = message if isinstance(message, Document) else Document(message)
    evaluator = Evaluator(document, budget or Budget(limits.evaluation_steps_max))
    try:
        return question(evaluator, program)
    except (ConstructionFault, OverBudgetError, RecursionError) as error:
        raise verdict(error, limits, subscription_id) from None


def serialised(
    document: Document,
    items: Items,
    limits: Limits,
    message_bytes: int | None,
    subscription_id: str = "",
) -> tuple[bytes, ...]:
    """Items as results.

    Raises:
        ResultLimitError: They are too long.
    """
    bytes_max, error = _longest(limits, message_bytes, subscription_id)
    serialiser = Serialiser(document, bytes_max)
    try:
        return tuple(serialiser.result(item) for item in items)
    except TooLongError:
        raise error from None


def places(
    document: Document,
    nodes: Items,
    limits: Limits,
    message_bytes: int,
    subscription_id: str = "",
) -> tuple[DeliveredNode, ...]:
    """The places of nodes as results; they lie nowhere, since trees do not say where.

    Raises:
        ResultLimitError: They are too many: each counts as 16 bytes.
    """
    bytes_max, error = _longest(limits, message_bytes, subscription_id)
    if len(nodes) * PLACE_BYTES > bytes_max:
        raise error
    found = [node for node in nodes if isinstance(node, Node)]
    kinds = [document.kind(node).value.replace(" ", "-") for node in found]
    ranks = map(document.rank, found)
    return tuple(DeliveredNode(*each, None, None) for each in zip(kinds, ranks, strict=True))


def _longest(
    limits: Limits, message_bytes: int | None, subscription_id: str
) -> tuple[int, ResultLimitError]:
    """How many bytes results may have, and what is said where they have more."""
    limit, maximum, bytes_max = "result_bytes_max", limits.result_bytes_max, limits.result_bytes_max
    if message_bytes is not None:
        allowed = max(limits.result_ratio_max * message_bytes, RESULT_BYTES_FREE)
        if allowed < bytes_max:
            limit, maximum, bytes_max = "result_ratio_max", limits.result_ratio_max, allowed
    code = f"limit.{limit.removesuffix('_max')}"
    return bytes_max, ResultLimitError(code, limit=limit, maximum=maximum, id=subscription_id)


def verdict(
    error: ConstructionFault | OverBudgetError | RecursionError,
    limits: Limits,
    subscription_id: str = "",
) -> ConstructionError | EvaluationBudgetError:
    """The error that is the verdict on an evaluation that was stopped.

    An expression that nests deeper than the stack is one that takes too long.
    """
    if isinstance(error, ConstructionFault):
        return ConstructionError(error.code, name=error.name, id=subscription_id)
    return EvaluationBudgetError(
        "limit.evaluation_steps",
        limit="evaluation_steps_max",
        maximum=limits.evaluation_steps_max,
        id=subscription_id,
    )
