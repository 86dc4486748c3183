"""The plan of a subscription, for `explain`: its operators from the leaves up, and what it shares.

A FLWR of the paper's class is shown as PathSharing-FWR plans it: a path, a selection and a semijoin
for every condition, Where-Filter, an OuterJoin-Select for every return path, the message factory.
Anything else is its gate and the interpreter. What is shared is what another subscription has, too:
gates, binding paths, predicate paths and return paths, the latter two with the binding path before
them.

Source: Diao and Franklin, VLDB 2003, sections 3.4 and 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pathcast_papers.language.canonical import literal_text
from pathcast_papers.language.xquery import Target, paper_form
from pathcast_papers.language.xquery.syntax import NameTest
from pathcast_papers.message_broker.pathsharing import BrokerQuery
from pathcast_papers.message_broker.pathsharing.broker_query import SimplePredicate
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, path_text
from pathcast_papers.message_broker.standing_subscription import StandingSubscription

_DELIVER = {
    "fragment": "serialise every item",
    "message": "deliver the message",
    "ids": "deliver a notice",
}


def explanation(
    subscription: StandingSubscription, others: Sequence[StandingSubscription]
) -> Mapping[str, object]:
    """The plan of a subscription.

    Args:
        subscription: The subscription.
        others: All others that stand.

    Cost: linear in the text of all subscriptions.
    """
    compiled, made = subscription.compiled, subscription.subscription
    users = Counter(part for other in others for part in set(_shareable(other)))
    query = _paper_query(subscription)
    return {
        "kind": compiled.kind,
        "deliver": made.deliver,
        "query": made.query,
        "is_of_paper_class": query is not None,
        "plan": _general_plan(subscription) if query is None else _paper_plan(query),
        "gate": list(compiled.alternatives),
        "expression": compiled.expression,
        "reasons": [str(reason) for reason in compiled.reasons],
        "shared": {part: users[part] for part in dict.fromkeys(_shareable(subscription))},
    }


def _paper_query(subscription: StandingSubscription) -> BrokerQuery | None:
    """The paths of a subscription that the paper's algorithms take."""
    program = subscription.compiled.program
    if program is None or subscription.subscription.deliver != "fragment":
        return None
    found = paper_form(program)
    return None if found is None else BrokerQuery.of(found)


def _shareable(subscription: StandingSubscription) -> Iterator[str]:
    """What other subscriptions may have as well."""
    for path in subscription.compiled.alternatives:
        yield f"gate {path}"
    query = _paper_query(subscription)
    if query is None:
        return
    yield f"binding path {path_text(query.binding)}"
    for predicate in query.predicates:
        yield f"predicate path {path_text(query.extended(predicate.path))}"
    for returned in query.returns:
        yield f"return path {path_text(query.extended(returned))}"


def _paper_plan(query: BrokerQuery) -> list[str]:
    """The operators of PathSharing-FWR."""
    lines = [f"path {path_text(query.binding)}"]
    lines += [f"  selection at step {level}: {_text(each)}" for level, each in query.selections]
    lines.append("  DupElim")
    for predicate in query.predicates:
        lines.append(f"path {path_text(query.extended(predicate.path))}")
        lines += [f"  selection: {_text(predicate.predicate)}", "  semijoin with the binding path"]
    if query.predicates:
        lines.append("Where-Filter")
    for path in query.returns:
        lines += [f"path {path_text(query.extended(path))}", "  OuterJoin-Select"]
    return [*lines, "message factory"]


def _text(predicate: SimplePredicate) -> str:
    """A condition as it might be written."""
    signature, constant = predicate
    parts = [_relative(signature.steps)] if signature.steps else []
    if signature.target is Target.TEXT:
        parts.append("text()")
    elif signature.target is Target.ATTRIBUTE:
        parts.append("@" + _name(signature.attribute))
    subject = "/".join(parts) or "."
    if signature.operator is None:
        return f"{subject} exists"
    shown = literal_text(constant) if isinstance(constant, str) else f"{constant:g}"
    return f"{subject} {signature.operator.value} {shown}"


def _relative(path: NavigationPath) -> str:
    """A path from a node."""
    text = path_text(path)
    return f".{text}" if text.startswith("//") else text.removeprefix("/")


def _name(test: NameTest | None) -> str:
    if test is None or test.local is None:
        return "*"
    return f"Q{{{test.uri}}}{test.local}" if test.uri else test.local


def _general_plan(subscription: StandingSubscription) -> list[str]:
    """The operators of a subscription that is evaluated by itself."""
    compiled = subscription.compiled
    lines = [f"path {path}" for path in compiled.alternatives]
    if compiled.kind == "xquery":
        lines.append("evaluate the program")
    elif subscription.subscription.deliver == "fragment":
        lines.append("select the nodes")
    elif compiled.expression is not None:
        lines.append(f"evaluate {compiled.expression}")
    return [*lines, _DELIVER[subscription.subscription.deliver]]
