"""Messages made to cost more than they are worth, through both doors.

If these fail, one message can take a process down, or hold it up.
"""

from __future__ import annotations

import pytest

from door_messages import DOORS, door
from pathcast.errors import LimitExceededError, MessageError
from pathcast.limits import Limits

LAUGHS = "<!ENTITY e0 'lol'>" + "".join(
    f"<!ENTITY e{level} '{f'&e{level - 1};' * 10}'>" for level in range(1, 30)
)


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize(
    "message",
    [
        f"<!DOCTYPE a [{LAUGHS}]><a>&e29;</a>",
        f"<!DOCTYPE a [{LAUGHS}]><a><b/>&e29;</a>",
        f"<!DOCTYPE a [{LAUGHS}]><a b='&e29;'/>",
        f"<!DOCTYPE a [{LAUGHS}<!ATTLIST a b CDATA '&e29;'>]><a/>",
        f"<!DOCTYPE a [<!ENTITY e '{'x' * 50_000}'>]><a>{'&e;' * 50_000}</a>",
        f"<!DOCTYPE a [<!ATTLIST b c CDATA '{'x' * 9_000}'>]><a>{'<b/>' * 9_000}</a>",
    ],
    ids=["content", "after an element", "value", "default", "quadratic", "defaults"],
)
def test_entity_bombs(name: str, message: str) -> None:
    with pytest.raises(LimitExceededError) as caught:
        door(name)(message.encode(), Limits(), None)
    assert caught.value.code == "limit.entity_expansion"
    assert "raise it with Limits(entity_expansion_" in str(caught.value)


@pytest.mark.parametrize("name", DOORS)
def test_a_million_levels(name: str) -> None:
    parse = door(name)
    message = b"<a>" * 1_000_000 + b"</a>" * 1_000_000
    with pytest.raises(LimitExceededError) as caught:
        parse(message, Limits(), None)
    assert caught.value.params["limit"] == "depth_max"
    assert caught.value.params["given"] == 257
    tree = parse(message, Limits(depth_max=1_000_000), None)
    assert (len(tree), tree.depth[-1]) == (1_000_000, 999_999)
    with pytest.raises(MessageError, match="ends inside"):
        parse(b"<a>" * 1_000_000, Limits(depth_max=1_000_000), None)


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (b"<a>" + b"x" * (8 << 20) + b"</a>", "message_bytes_max"),
        (b"<a>" + b"<b/>" * 1_000_001 + b"</a>", "elements_max"),
        (b"<a " + b" ".join(b"a%d=''" % at for at in range(257)) + b"/>", "attributes_max"),
        (b"<a b='" + b"x" * 65_537 + b"'/>", "attribute_value_bytes_max"),
        (b"<a>" + b"".join(b"<b%d/>" % at for at in range(10_001)) + b"</a>", "names_max"),
    ],
    ids=["message_bytes", "elements", "attributes", "attribute_value_bytes", "names"],
)
def test_a_limit_says_what_it_is_and_how_to_raise_it(name: str, message: bytes, limit: str) -> None:
    with pytest.raises(LimitExceededError) as caught:
        door(name)(message, Limits(), None)
    params = caught.value.params
    given, maximum = params["given"], params["maximum"]
    assert params["limit"] == limit
    assert isinstance(given, int)
    assert isinstance(maximum, int)
    assert given > maximum == getattr(Limits(), limit)
    assert f"raise it with Limits({limit}=...)" in str(caught.value)
