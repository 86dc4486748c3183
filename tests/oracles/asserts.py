"""Asserts that show what differs.

Example:
    >>> assert_same_matches(["q1"], ["q1"], "kernel", "oracle")
    >>> assert_same_matches(["q1", "q2"], ["q2", "q3"], "kernel", "oracle", {"q1": "/a"})
    Traceback (most recent call last):
    ...
    AssertionError: kernel and oracle differ in 2 queries
      q1: kernel only; /a
      q3: oracle only
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

SHOWN_MAX: Final = 10
"""Queries shown of a difference."""


def assert_same_matches(
    actual: Iterable[str],
    expected: Iterable[str],
    actual_name: str = "actual",
    expected_name: str = "expected",
    texts: Mapping[str, str] | None = None,
    message: bytes | None = None,
) -> None:
    """Fails with the queries that one side has and the other has not.

    Args:
        actual: Ids that were found.
        expected: Ids that should have been found.
        actual_name: Who found the first.
        expected_name: Who found the second.
        texts: Id -> query, to be shown.
        message: The message, to be shown.

    Raises:
        AssertionError: The two sets of ids differ, or an id occurs twice.
    """
    found, wanted = list(actual), list(expected)
    twice = (
        sorted({query_id for query_id in found if found.count(query_id) > 1})
        if len(found) != len(set(found))
        else []
    )
    if twice:
        raise AssertionError(f"{actual_name} reports {', '.join(twice[:SHOWN_MAX])} twice")
    different = sorted(set(found) ^ set(wanted))
    if not different:
        return
    lines = [f"{actual_name} and {expected_name} differ in {len(different)} queries"]
    for query_id in different[:SHOWN_MAX]:
        side = actual_name if query_id in set(found) else expected_name
        text = f"; {texts[query_id]}" if texts and query_id in texts else ""
        lines.append(f"  {query_id}: {side} only{text}")
    if len(different) > SHOWN_MAX:
        lines.append(f"  and {len(different) - SHOWN_MAX} more")
    if message is not None:
        lines.append(f"  message: {message!r}")
    raise AssertionError("\n".join(lines))
