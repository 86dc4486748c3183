"""Subscriptions with steps: each is answered on what its steps make of a message.

Subscriptions that have the same steps are a *series*, with an engine of its own that is given the
messages after the steps; those without steps are answered on messages as they come. Steps are done
only to messages that may satisfy a subscription of the series (`step_gates`), and those that
several series begin with are done once.

Example:
    >>> from pathcast.engine.matcher import matcher_options
    >>> from pathcast.limits import Limits
    >>> engine = SteppedDissemination(matcher_options(Limits(), 1, 1024))
    >>> steps = ("drop //image", "rename //ol list")
    >>> rows = [Subscription("a", "", "//ol"), Subscription("b", "", "//list", steps=steps)]
    >>> engine.subscribe(rows, {}).accepted
    2
    >>> engine.process_few([b"<n><ol><image/></ol></n>"]).deliveries
    [(0, 'a', b'<ol><image/></ol>'), (0, 'b', b'<list></list>')]
    >>> engine.process_few([b"<n><ol/></n>"], done=[1]).deliveries[1]
    (0, 'b', b'<list/>')

A message has one budget for all that is done to it (`message_budgets`): subscriptions without steps
are served first, then series by series, in the order of their text. A message after steps is
dropped when its series has been answered.

Source: 001, section 5 (local plan) and 4.2.2 (what is left to do after early restructuring).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final, NamedTuple, cast

import pyarrow as pa

from pathcast.customize.merging_answers import PartAnswer, merged
from pathcast.customize.message_budgets import MessageBudgets
from pathcast.customize.restructuring import Restructurings
from pathcast.customize.step_gates import StepGates, gate_texts
from pathcast.customize.steps import Steps, parse_steps
from pathcast.engine.messages import message_column
from pathcast.errors import (
    DuplicateQueryError,
    PathcastError,
    UnknownQueryError,
    UnsupportedQueryError,
    error_for,
)
from pathcast.kernel.dissemination import KernelDissemination
from pathcast.limits import MIB, STEP_SERIES_MAX
from pathcast.model import (
    DeliveryAnswer,
    FewDeliveries,
    MatcherOptions,
    RegisterReport,
    Subscription,
)
from pathcast.query import CostClass

HELD_BYTES: Final = 8 * MIB
"""Bytes of messages to which steps are done together; so they are held, and what they become."""

_Verdicts = list[tuple[int, str, PathcastError]]
"""Place of a message, id of a subscription, and why it is undecided."""


class _Asked(NamedTuple):
    """The messages of a batch that a series of steps processes, and for which subscriptions.

    Attributes:
        engine: That of the series.
        places: Where each message stands in the batch.
        messages: Those messages after the steps.
        undecided: Pairs of message and subscription for which the steps could not be done.
        may_satisfy: Place of a message -> subscriptions that it may satisfy after the steps.
    """

    engine: KernelDissemination
    places: list[int]
    messages: list[bytes]
    undecided: _Verdicts
    may_satisfy: Callable[[int], list[str]]

    def refuse(self, row: int, error: PathcastError) -> None:
        """A message after the steps cannot be had, or is none."""
        self.undecided.extend(
            (row, name, error_for(error.code, {**error.params, "id": name}))
            for name in self.may_satisfy(row)
        )


def _new_engine(options: MatcherOptions) -> KernelDissemination:
    return KernelDissemination(options.limits, options.threads, options.cache_bytes_max)


class SteppedDissemination:
    """Subscriptions with and without steps, which come and go while messages flow.

    Args:
        options: How engines run.

    Raises:
        KernelMissingError: The kernel is meant and cannot be imported.
    """

    def __init__(self, options: MatcherOptions) -> None:
        self._options = options
        self._plain = _new_engine(options)
        self._series: dict[Steps, KernelDissemination] = {}
        self._steps: dict[str, Steps] = {}
        self._step_texts: dict[str, tuple[str, ...]] = {}
        # Subscriptions with steps, numbered as they came.
        self._numbers: dict[str, int] = {}
        self._next = count()
        self._gates: StepGates | None = None
        self._restructurings = Restructurings(options.limits, options.threads)

    def subscribe(
        self, subscriptions: Sequence[Subscription], namespaces: Mapping[str, str]
    ) -> RegisterReport:
        """Adds subscriptions, each whole or not at all.

        Cost: as of the engine; of one with steps, that of its gate besides.
        """
        if not self._steps and not any(row.steps for row in subscriptions):
            return self._plain.subscribe(subscriptions, namespaces)
        errors: dict[int, PathcastError] = {}
        for at, row in enumerate(subscriptions):
            try:
                parse_steps(row.steps, {**namespaces, **(row.namespaces or {})})
            except PathcastError as error:
                errors[at] = error
        usable = [at for at in range(len(subscriptions)) if at not in errors]
        with_steps = {subscriptions[at].id for at in usable if subscriptions[at].steps}
        with_steps |= self._steps.keys()
        # Together, whatever comes between them: that decides how their engine numbers them.
        plain = [at for at in usable if subscriptions[at].id not in with_steps]
        report = self._plain.subscribe([subscriptions[at] for at in plain], namespaces)
        errors |= {plain[at]: error for at, error in report.errors.items()}
        for at in usable:
            if subscriptions[at].id in with_steps:
                try:
                    self._take_one(subscriptions[at], namespaces)
                except PathcastError as error:
                    errors[at] = error
        return RegisterReport.of(subscriptions, errors)

    def _take_one(self, row: Subscription, namespaces: Mapping[str, str]) -> None:
        """Takes a subscription with steps, or of an id that one with steps has or may have.

        Raises:
            PathcastError: It is not taken.
        """
        if row.id in self:
            raise DuplicateQueryError("query.duplicate", id=row.id)
        if row.steps:
            bound = {**namespaces, **(row.namespaces or {})} or None
            self._take(row._replace(namespaces=bound))
            return
        for error in self._plain.subscribe([row], namespaces).errors.values():
            raise error

    def _take(self, row: Subscription) -> None:
        steps = parse_steps(row.steps, row.namespaces)
        texts = gate_texts(row, steps)
        self._steps[row.id], self._numbers[row.id] = steps, next(self._next)
        self._step_texts[row.id] = row.steps
        try:
            if steps not in self._series:
                if len(self._series) >= STEP_SERIES_MAX:
                    raise UnsupportedQueryError("subscription.step_series", maximum=STEP_SERIES_MAX)
                self._set_series({**self._series, steps: _new_engine(self._options)})
            report = self._series[steps].subscribe([row], {})
            for error in report.errors.values():
                raise error
            if self._gates is None:
                self._gates = StepGates(self._options)
            self._gates.add(row.id, steps, texts)
        except BaseException:
            # Half of a subscription, after Ctrl-C too, would be delivered to nobody.
            self._drop(row.id, texts)
            raise

    def _drop(self, subscription_id: str, texts: Sequence[str]) -> None:
        """Takes out what there is of a subscription with steps."""
        steps = self._steps[subscription_id]
        engine = self._series.get(steps)
        if self._gates is not None:
            self._gates.remove(subscription_id, steps, texts)
        if engine is not None:
            if subscription_id in engine:
                engine.unsubscribe([subscription_id])
            if not len(engine):
                self._set_series({key: one for key, one in self._series.items() if key != steps})
        del self._steps[subscription_id], self._step_texts[subscription_id]
        del self._numbers[subscription_id]

    def _set_series(self, series: dict[Steps, KernelDissemination]) -> None:
        self._restructurings.set(series)
        # Series that begin alike are neighbours, and no order of arrival decides who is served.
        self._series = dict(sorted(series.items(), key=_text_of))

    def unsubscribe(self, ids: Sequence[str]) -> None:
        """Takes subscriptions out, all or none."""
        for name in ids:
            if name not in self:
                raise UnknownQueryError("query.unknown", id=name)
        stepped = [name for name in ids if name in self._steps]
        self._plain.unsubscribe([name for name in ids if name not in self._steps])
        for name in stepped:
            self._drop(name, gate_texts(self.subscription(name), self._steps[name]))

    def subscription(self, subscription_id: str) -> Subscription:
        """The subscription as it was made, with all namespaces it may use."""
        found = self._engine_of(subscription_id).subscription(subscription_id)
        return found._replace(steps=self._step_texts.get(subscription_id, ()))

    def process(self, messages: pa.Array, *, encoding: str | None = None) -> DeliveryAnswer:
        """The results of every message of a batch."""
        if not self._series:
            return self._plain.process(messages, encoding=encoding)
        budgets = MessageBudgets(self._options.limits, len(messages))
        answer = self._plain.process(
            messages, encoding=encoding, budgets=budgets.left(range(len(messages)))
        )
        budgets.spend(answer.spent)
        parts = []
        refused = {row for row, _ in answer.refusals}
        for asked in self._asked(messages, refused, (), encoding, budgets):
            column = message_column(asked.messages).arrays[0]
            left = budgets.left(asked.places)
            part = asked.engine.process(column, encoding=encoding, budgets=left)
            budgets.spend(part.spent, asked.places, asked.messages)
            for row, error in part.refusals:
                asked.refuse(asked.places[row], error)
            parts.append(PartAnswer(part, asked.places, asked.undecided))
        steps = answer.stats.steps + budgets.restructuring_steps
        answer = replace(answer, stats=replace(answer.stats, steps=steps))
        return merged(answer, parts, self._numbers) if parts else answer

    def process_few(self, messages: list[bytes], done: Sequence[int] = ()) -> FewDeliveries:
        """As `process`, of so few messages that arrays would take longer than they do.

        Args:
            messages: The messages.
            done: How many steps were done to each before; none to any when empty. What is said then
                of a subscription that begins with other steps means nothing.
        """
        if not self._series:
            return self._plain.process_few(messages)
        budgets = MessageBudgets(self._options.limits, len(messages))
        answer = self._plain.process_few(messages, budgets.left(range(len(messages))))
        budgets.spend(answer.spent)
        deliveries, verdicts = list(answer.deliveries), list(answer.verdicts)
        refused = {row for row, _ in answer.refusals}
        for asked in self._asked(pa.array(messages, pa.binary()), refused, done, None, budgets):
            part = asked.engine.process_few(asked.messages, budgets.left(asked.places))
            budgets.spend(part.spent, asked.places, asked.messages)
            places = asked.places
            deliveries += [(places[row], name, made) for row, name, made in part.deliveries]
            verdicts += [(places[row], name, error) for row, name, error in part.verdicts]
            for row, error in part.refusals:
                asked.refuse(places[row], error)
            verdicts += asked.undecided
        deliveries.sort(key=lambda each: each[0])
        verdicts.sort(key=lambda each: each[0])
        return FewDeliveries(deliveries, answer.refusals, verdicts)

    def _asked(
        self,
        messages: pa.Array,
        refused: set[int],
        done: Sequence[int],
        encoding: str | None,
        budgets: MessageBudgets,
    ) -> Iterator[_Asked]:
        """Select the messages of each series; a series that no message may satisfy has none."""
        if self._gates is None:
            return
        passed = self._gates.match(messages, encoding)
        wanted = {
            steps: [
                row
                for row in passed.rows(steps)
                # A message that more was done to is for subscriptions with other steps.
                if row not in refused and (not done or done[row] <= len(steps))
            ]
            for steps in self._series
        }
        for texts in self._texts(
            messages, sorted({row for rows in wanted.values() for row in rows})
        ):
            batch = self._restructurings.batch(texts, done, encoding, budgets)
            for steps, all_rows in wanted.items():
                rows = [row for row in all_rows if row in texts]
                if not rows:
                    continue
                may_satisfy = partial(passed.subscriptions, steps)
                found = _Asked(self._series[steps], [], [], [], may_satisfy)
                for row, made in zip(rows, batch.after(steps, rows), strict=True):
                    error = made if isinstance(made, PathcastError) else budgets.used_up(row)
                    if error is not None:
                        found.refuse(row, error)
                    elif isinstance(made, bytes):
                        budgets.spend_text(row, made)
                        found.places.append(row)
                        found.messages.append(made)
                yield found

    def _texts(self, messages: pa.Array, rows: Sequence[int]) -> Iterator[dict[int, bytes]]:
        """The messages of some rows, so many at a time as are held after steps."""
        texts: dict[int, bytes] = {}
        held = 0
        for row in rows:
            message: bytes = messages[row].as_py()
            texts[row] = message
            held += len(texts[row])
            if held >= HELD_BYTES:
                yield texts
                texts, held = {}, 0
        if texts:
            yield texts

    def explain(self, subscription_id: str) -> Mapping[str, object]:
        """The plan of a subscription and what it shares: its steps, and then its query."""
        engine = self._engine_of(subscription_id)
        told = engine.explain(subscription_id)
        steps = self._steps.get(subscription_id)
        if steps is None:
            return told
        others = [each for name, each in self._steps.items() if name != subscription_id]
        lines = [f"step {number}: {step}" for number, step in enumerate(steps, 1)]
        begun = [steps[:number] for number in range(1, len(steps) + 1)]
        counts = [sum(each[: len(start)] == start for each in others) for start in begun]
        return {
            **told,
            "plan": [*lines, *cast(Sequence[str], told["plan"])],
            "gate": list(gate_texts(engine.subscription(subscription_id), steps)),
            "shared": {
                **dict(zip(lines, counts, strict=True)),
                **cast(Mapping[str, int], told["shared"]),
            },
        }

    def cost(self, subscription_id: str) -> CostClass:
        """The cost of a subscription's query for one message, without its steps."""
        return self._engine_of(subscription_id).cost(subscription_id)

    def _engine_of(self, subscription_id: str) -> KernelDissemination:
        steps = self._steps.get(subscription_id)
        return self._plain if steps is None else self._series[steps]

    def __len__(self) -> int:
        return len(self._plain) + len(self._steps)

    def __contains__(self, subscription_id: object) -> bool:
        return subscription_id in self._steps or subscription_id in self._plain


def _text_of(
    series: tuple[Steps, object],
) -> list[tuple[str, str, str, tuple[tuple[str, str], ...]]]:
    steps, _ = series
    return [(each.edit.value, each.path, each.name, each.namespaces) for each in steps]
