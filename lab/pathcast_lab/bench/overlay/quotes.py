"""The stock quote service of the paper's arithmetic: messages of 1 KB, profiles of 0.001 %.

A profile asks for one symbol of ten thousand and for one quote of it in ten, in one of three ways.
A symbol begins with the letter of its exchange.

Example:
    >>> quote_profiles(3, seed=1)[0]
    "/quote[@symbol='H003'][trade/@size >= 82]"
    >>> [message] = quote_messages(1, seed=1)
    >>> len(message)
    1000

Source: Diao, Rizvi and Franklin, VLDB 2004, section 2.2.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Final

from pathcast.overlay.disjuncts import disjuncts_of

EXCHANGES: Final = "ABCDEFGHIJKLMNOP"
LISTED: Final = 625
"""Symbols of an exchange."""

STEPS: Final = (82, 86, 90, 94, 98)
"""Thresholds of 100, so that one quote in ten passes on average."""

FIRMS: Final = 10
LEVELS: Final = 16
MESSAGE_BYTES: Final = 1_000
_ANY: Final = "A000"

SKEW: Final = 0.6
"""Zipf exponent of the popularity of symbols; that of `SubscriptionParameters`."""


def quote_profiles(count: int, seed: int) -> list[str]:
    """Texts of profiles, equal ones among them."""
    draw = Random(f"quotes/profiles/{seed}")
    names = [f"{exchange}{number:03d}" for exchange in EXCHANGES for number in range(LISTED)]
    draw.shuffle(names)
    weights = list(accumulate(1 / rank**SKEW for rank in range(1, len(names) + 1)))
    found = []
    for symbol in draw.choices(names, cum_weights=weights, k=count):
        conditions = (
            f"[@move >= {draw.choice(STEPS)}]",
            f"[trade/@size >= {draw.choice(STEPS)}]",
            f"[book/@firm='F{draw.randrange(FIRMS)}']",
        )
        found.append(f"/quote[@symbol='{symbol}']{draw.choice(conditions)}")
    return found


def symbol_of(profile: str) -> str:
    """The symbol that a profile asks for."""
    at = profile.index("'") + 1
    return profile[at : at + len(_ANY)]


def quote_entries(profile: str) -> tuple[str, ...]:
    """The entries of a profile, as `disjuncts_of` gives them; read once for all symbols."""
    symbol = symbol_of(profile)
    return tuple(
        entry.replace(_ANY, symbol) for entry in _entries(profile.replace(symbol, _ANY, 1))
    )


@lru_cache(maxsize=1024)
def _entries(profile: str) -> tuple[str, ...]:
    return disjuncts_of(profile, deliver="ids")


def quote_messages(count: int, seed: int) -> list[bytes]:
    """Quotes, every symbol as likely."""
    draw = Random(f"quotes/messages/{seed}")
    return [_message(draw) for _ in range(count)]


def _message(draw: Random) -> bytes:
    symbol = f"{draw.choice(EXCHANGES)}{draw.randrange(LISTED):03d}"
    head = f'<quote symbol="{symbol}" move="{draw.randrange(100)}">'
    trade = f'<trade size="{draw.randrange(100)}" price="{draw.uniform(1, 900):.2f}"/>'
    levels = "".join(
        f'<level bid="{draw.uniform(1, 900):.2f}" ask="{draw.uniform(1, 900):.2f}"/>'
        for _ in range(LEVELS)
    )
    text = (
        f'{head}{trade}<book firm="F{draw.randrange(FIRMS)}">{levels}</book><note></note></quote>'
    )
    return text.replace("<note>", "<note>" + "." * (MESSAGE_BYTES - len(text))).encode()
