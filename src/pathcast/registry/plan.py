"""The plan of a subscription, and the parts that it shares with others.

Example:
    >>> from pathcast import Registry, Subscription
    >>> registry = Registry()
    >>> report = registry.add(Subscription("s1", "ann", "//book[price < 30]"))
    >>> registry.explain("s1").gate
    ('//book/price[.<30]',)

An engine says it; this module gives it its shape.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pathcast.model import Subscription
from pathcast.query import CostClass
from pathcast.registry.before_steps import conjunctions_before
from pathcast.registry.steps import parse_steps


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """How a subscription is answered.

    Attributes:
        subscription: The subscription, with all namespaces it may use.
        kind: Language that its text was read as, "xpath" or "xquery".
        plan: The operators, from the leaves up, a line each.
        gate: Paths of which one has to hold for anything to be delivered.
        expression: What has to be true besides; None where the paths say all of it.
        shared: Operator or path -> number of the other subscriptions that share it.
        cost: The cost class of the query; its steps are not counted.
        reasons: Why there is an expression.
    """

    subscription: Subscription
    kind: str
    plan: tuple[str, ...]
    gate: tuple[str, ...]
    expression: str | None
    shared: Mapping[str, int]
    cost: CostClass
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, subscription: Subscription, told: Mapping[str, object]) -> SubscriptionPlan:
        """Convert an engine's description, of what comes after the steps."""
        plan = tuple(cast(Sequence[str], told["plan"]))
        gate = tuple(cast(Sequence[str], told["gate"]))
        shared = dict(cast(Mapping[str, int], told["shared"]))
        if subscription.steps:
            steps = parse_steps(subscription.steps, subscription.namespaces)
            lines = [f"step {number}: {step}" for number, step in enumerate(steps, 1)]
            users = cast(Sequence[int], told["steps"])
            plan = (*lines, *plan)
            gate = tuple(paths.text for paths in conjunctions_before(subscription, steps))
            shared = {line: count - 1 for line, count in zip(lines, users, strict=True)} | shared
        expression = cast("str | None", told["expression"])
        cost = cast(CostClass, told["cost"])
        reasons = tuple(cast(Sequence[str], told["reasons"]))
        return cls(subscription, str(told["kind"]), plan, gate, expression, shared, cost, reasons)

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""
        asked = self.subscription._asdict()
        asked["namespaces"] = dict(asked["namespaces"] or {})
        asked["steps"] = list(asked["steps"])
        return {
            **asked,
            "kind": self.kind,
            "plan": list(self.plan),
            "gate": list(self.gate),
            "expression": self.expression,
            "shared": dict(self.shared),
            "cost": self.cost.value,
            "reasons": list(self.reasons),
        }

    def to_json(self) -> str:
        """All of it on one line."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_text(self) -> str:
        """All of it for people.

        Example:
            >>> asked = Subscription("s1", "ann", "//a")
            >>> cost = CostClass.INDEXED
            >>> plan = SubscriptionPlan(asked, "xpath", ("select //a",), ("//a",), None, {}, cost)
            >>> print(plan.to_text())
            s1 for ann: XPath, delivers fragments
              //a
            plan
              select //a
            gate: a message without any of these is passed by
              //a
            shared: nothing
        """
        language = "XQuery" if self.kind == "xquery" else "XPath"
        if self.subscription.language is not None:
            language += " as chosen"
        payload = {
            "fragment": "fragments",
            "message": "the message",
            "ids": "a bare notice",
            "nodes": "places of nodes",
        }
        asked = self.subscription
        whom = f" for {asked.subscriber}" if asked.subscriber else ""
        lines = [
            f"{asked.id}{whom}: {language}, delivers {payload[asked.deliver]}",
            textwrap.indent(textwrap.dedent(asked.query).strip(), "  "),
        ]
        if self.plan:
            lines += ["plan", *(f"  {line}" for line in self.plan)]
        lines += ["gate: a message without any of these is passed by"]
        lines += [f"  {path}" for path in self.gate]
        if self.expression is not None:
            lines += ["expression: evaluated where one is found", f"  {self.expression}"]
        if not any(self.shared.values()):
            return "\n".join([*lines, "shared: nothing"])
        lines += ["shared: with how many others"]
        width = max(len(f"{count:,}") for count in self.shared.values())
        lines += [f"  {count:>{width},}  {what}" for what, count in self.shared.items()]
        return "\n".join(lines)
