"""Numbers, dates and times as pictures show them, and in other time zones.

Source: Functions and Operators 3.1, sections 4.7, 9.6 and 9.8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pathcast_papers.language.pictures import moment_picture, number_picture
from pathcast_papers.language.typed_text import Duration, Moment, added
from pathcast_papers.message_broker.xquery.casts import cast
from pathcast_papers.message_broker.xquery.items import Atomic, Items, number_of, string

if TYPE_CHECKING:
    from pathcast_papers.message_broker.xquery.evaluator import Evaluator

_MINUTE: Final = 60 * 10**9
_ZONE_MINUTES_MAX: Final = 14 * 60


def _moment(evaluator: Evaluator, items: Items, of: str) -> Atomic | None:
    values = evaluator.atomised(items[:1])
    return cast(values[0], of) if values else None


def pictured(evaluator: Evaluator, name: str, items: Items, picture: str) -> Items:
    """`fn:format-number`, `fn:format-date` and their like."""
    if name == "format-number":
        values = evaluator.atomised(items[:1])
        number = number_of(values[0]) if values else None
        shown = number_picture(picture)(
            float("nan") if number is None else number.value  # type: ignore[arg-type]
        )
    else:
        of = name.removeprefix("format-")
        found = _moment(evaluator, items, of)
        if found is None:
            return ()
        assert isinstance(found.value, Moment)
        shown = moment_picture(picture, of)(found.value)
    evaluator.budget.charge_text(len(shown))
    return (string(shown),)


def adjusted(evaluator: Evaluator, name: str, items: Items, *zones: Items) -> Items:
    """`fn:adjust-dateTime-to-timezone` and its like."""
    of = name.removeprefix("adjust-").removesuffix("-to-timezone")
    found = _moment(evaluator, items, of)
    if found is None:
        return ()
    zone = _zone(evaluator, zones[0]) if zones else 0
    moment = found.value
    assert isinstance(moment, Moment)
    if zone is not None and moment.zone is not None:
        shift = Duration("dayTimeDuration", (zone - moment.zone) * _MINUTE)
        shifted = added(moment, shift)
        if not isinstance(shifted, Moment):
            return ()
        moment = shifted
    return (replace(found, value=replace(moment, zone=zone)),)


def _zone(evaluator: Evaluator, items: Items) -> int | None:
    """The minutes of a time zone; None of no item and of what is none."""
    found = _moment(evaluator, items, "dayTimeDuration")
    if found is None:
        return None
    assert isinstance(found.value, Duration)
    minutes, rest = divmod(found.value.instant, _MINUTE)
    return None if rest or abs(minutes) > _ZONE_MINUTES_MAX else minutes
