"""`pathcast explain` for an XQuery subscription: its plan, what it shares, what it delivers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from pathcast.cli.console import answers, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import Format
from pathcast.errors import shown
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry import Deliveries, Registry
from pathcast.registry.subscription_files import read_subscriptions


def explain_subscription(
    query: Subscription,
    message: bytes | None,
    others: Path | None,
    *,
    limits: Limits,
    namespaces: Mapping[str, str],
    format_: Format,
) -> ExitCode:
    """Prints the plan of a subscription and, with a message, what it delivers of it.

    Args:
        query: The query and its steps.
        message: A message, or None.
        others: File or folder of subscriptions that it may share with, or None.
        limits: What the message may cost.
        namespaces: Prefixes of the query.
        format_: For people or for programs.

    Raises:
        QuerySyntaxError: The query cannot be used.
        OSError: The folder cannot be listed.
    """
    registry = _alone(limits, namespaces, query)
    # Of the message, only what this subscription gets is told.
    found = None if message is None else registry.deliver(message)
    faults = 0 if others is None else _add(registry, others)
    plan = registry.explain(query.id)
    told = None
    if message is not None and found is not None and _is_nothing(found):
        explanation = registry.explain(query.id, message)
        told = str(explanation) if explanation.is_told else None
    if format_ is Format.JSON:
        write_json_line({**plan.to_dict(), **_result_data(found), "explanation": told})
    else:
        out = answers()
        out.print(plan.to_text())
        if found is not None:
            out.print(_result_text(found))
        if told is not None:
            out.print(textwrap.indent(told, "  "))
    is_refused = found is not None and (found.error is not None or bool(found.verdicts))
    return ExitCode.REFUSED if faults or is_refused else ExitCode.OK


def _is_nothing(found: Deliveries) -> bool:
    """Whether it is known that nothing is delivered."""
    return found.error is None and not found.verdicts and not len(found)


def _alone(limits: Limits, namespaces: Mapping[str, str], query: Subscription) -> Registry:
    """A registry with one subscription."""
    registry = Registry(limits, namespaces, threads=1)
    registry.add(query)
    return registry


def _add(registry: Registry, others: Path) -> int:
    """Subscribes what is in a file or a folder; the number of those that are refused."""
    faults = 0
    for file in read_subscriptions(others):
        error = file.error
        if file.subscription is not None:
            # Under a name that no other has, so that the query itself is never in the way.
            name = shown(str(file.path))
            named = file.subscription._replace(id=name, subscriber=name)
            error = registry.add([named]).rejected.get(named.id)
        if error is not None:
            faults += 1
            say_error(f"{file.path}: {error}")
    return faults


def _told(found: Deliveries) -> list[str]:
    return [(delivery.fragment or b"").decode() for delivery in found]


def _result_data(found: Deliveries | None) -> dict[str, object]:
    """The deliveries, or the refusal or verdict in their place."""
    if found is None:
        return {"deliveries": None, "error": None}
    error = found.error or next(iter(found.verdicts.values()), None)
    if error is not None:
        return {"deliveries": None, "error": error.to_dict()}
    return {"deliveries": _told(found), "error": None}


def _result_text(found: Deliveries) -> str:
    if found.error is not None:
        return f"the message is refused: {found.error}"
    for verdict in found.verdicts.values():
        return f"nothing is delivered: {verdict}"
    if not len(found):
        return "delivers nothing of this message"
    return "\n".join(["delivers of this message", *(f"  {text}" for text in _told(found))])
