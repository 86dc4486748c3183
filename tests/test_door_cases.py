"""The table of well-formedness cases, through both doors.

If these fail, a production or constraint of XML 1.0 or of its namespaces is not kept, or the two
doors do not agree on it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from door_messages import DOORS, cases, door, dump, message_of
from pathcast.errors import CATALOGUE, MessageError
from pathcast.limits import Limits
from pathcast_papers.message import parse_message


def outcome(name: str, case: dict[str, Any]) -> str:
    try:
        limits = Limits(**case.get("limits", {}))
        return dump(door(name)(message_of(case), limits, case.get("encoding")))
    except MessageError as error:
        return error.code


@pytest.mark.parametrize("name", DOORS)
def test_every_case_gives_its_tree_or_its_error(name: str) -> None:
    door(name)
    wrong = []
    for case in cases():
        if name == "reference" and "reference_differs" in case:
            continue
        expected = case.get("tree") or case["error"]
        if name == "reference":
            expected = case.get("reference_error", expected)
        found = outcome(name, case)
        if found != expected:
            wrong.append(f"{case['name']}: expected {expected}, found {found}")
    assert not wrong, "\n".join(wrong)


def test_the_table_is_as_it_says() -> None:
    names = Counter(case["name"] for case in cases())
    assert [name for name, count in names.items() if count > 1] == []
    for case in cases():
        assert ("tree" in case) != ("error" in case), case["name"]
        assert ("message" in case) != ("hex" in case), case["name"]
        for key in ("error", "reference_error"):
            assert key not in case or case[key] in CATALOGUE, case["name"]


def test_every_code_of_the_door_is_in_the_catalogue_and_has_a_case() -> None:
    door("kernel")
    import pathcast_kernel

    codes = set(pathcast_kernel.door_error_codes())
    assert len(codes) > 40
    assert codes <= CATALOGUE.keys()
    # What is held of a message matters only while it arrives: test_streams.py.
    assert codes - {case.get("error") for case in cases()} == {"limit.held_bytes"}


@pytest.mark.parametrize("name", DOORS)
def test_a_refusal_is_a_whole_sentence_with_a_place(name: str) -> None:
    refused = [case for case in cases() if "error" in case and "reference_differs" not in case]
    assert len(refused) > 200
    for case in refused:
        message, about = message_of(case), case["name"]
        with pytest.raises(MessageError) as caught:
            door(name)(message, Limits(**case.get("limits", {})), case.get("encoding"))
        place = [caught.value.params[key] for key in ("line", "column", "offset")]
        line, column, offset = (value if isinstance(value, int) else -1 for value in place)
        assert line >= 1, about
        assert column >= 1, about
        assert 0 <= offset <= len(message), about
        # A question mark stands for a parameter that was forgotten.
        if name == "kernel" and b"?" not in message:
            assert "?" not in str(caught.value), about


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize(
    ("message", "encoding", "place"),
    [
        (b"<a>\n  <b></c>", None, (2, 9)),
        ("<é>ü&x;</é>".encode(), None, (1, 6)),
        ("<é>\nü&x;</é>".encode("latin-1"), "latin1", (2, 5)),
        ("<é>\nü&x;</é>".encode("utf-16"), None, (2, 12)),
        (b"\xef\xbb\xbf<a>&x;</a>", None, (1, 6)),
        (b"<a>\nx\xff</a>", None, (2, 5)),
    ],
)
def test_both_doors_tell_line_and_offset(
    name: str, message: bytes, encoding: str | None, place: tuple[int, int]
) -> None:
    with pytest.raises(MessageError) as caught:
        door(name)(message, Limits(), encoding)
    offset = caught.value.params["offset"]
    # Expat tells the place of a wrong end tag at its name, the kernel at its beginning.
    assert isinstance(offset, int)
    assert (caught.value.params["line"], offset) in (place, (place[0], place[1] + 2))


def test_the_caller_may_leave_the_limits_out() -> None:
    assert parse_message(b"<a/>").name == [("", "a")]
