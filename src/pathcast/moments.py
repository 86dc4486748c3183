"""Moments as users write them: ISO 8601, in UTC where no time zone is said.

Example:
    >>> moment_of("2026-12-01T08:00+02:00").isoformat()
    '2026-12-01T06:00:00+00:00'
    >>> moment_us("1970-01-01T00:00:01")
    1000000

It reads no durations and no words such as "tomorrow".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

MOMENT_US_MIN: Final = -62_135_596_800_000_000
"""The beginning of year 1, in microseconds since 1970."""

MOMENT_US_MAX: Final = 253_402_300_799_999_999
"""The end of year 9999."""

LONG_AGO_US: Final = -(2**63)
"""Before every moment, in microseconds since 1970."""

NEVER_US: Final = 2**63 - 1
"""After every moment."""


def moment_of(text: str) -> datetime:
    """The moment that a text says, in UTC.

    Raises:
        ValueError: The text is no date and no date with a time, or is not of the years 1 to 9999.
    """
    found = datetime.fromisoformat(text)
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is before year 1 or after year 9999 in UTC") from error


def moment_us(text: str) -> int:
    """The moment that a text says, in microseconds since 1970.

    Raises:
        ValueError: As for `moment_of`.
    """
    return us_of(moment_of(text))


def us_of(moment: datetime) -> int:
    """A moment in microseconds since 1970; one without a time zone is in UTC.

    Example:
        >>> us_of(datetime(1970, 1, 1, 0, 0, 2))
        2000000
    """
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (zoned - EPOCH) // timedelta(microseconds=1)
