"""Stories of 18 KB, and subscriptions that ask for their values: dates, texts, lists, patterns.

Words are made of syllables and drawn as words of a language are, a few often and most of them
seldom; one in thirty has letters beyond ASCII, and some begin with a capital. A paragraph has about
60 words, one in four with an element inside. Half of a story is text, as in the files of agencies,
and it has as many elements as those.

Example:
    >>> text = stories(1, seed=0)[0].decode()
    >>> 15_000 < len(text) < 21_000, text[:7]
    (True, '<story ')
    >>> asked("numbers", 1, seed=0)
    ['//quote[@weight > 663129]']
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from types import MappingProxyType

from pathcast.model import QueryLanguage

VOCABULARY = 200_000
"""Words of the language; a subscription may ask for any of them."""

CODES = 1_000_000
"""Codes of quotes."""

SUBJECTS = 84
PARAGRAPHS = 16
WORDS_A_PARAGRAPH = 60
QUOTES = 24

SATISFIED = 0.02
"""Part of the range that is asked about in which quotes have values: few ask for less."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 365 * 86_400
WEIGHT_MAX = 1_000_000

_CONSONANTS = "bcdfghklmnprstvz"
_VOWELS = ("a", "e", "i", "o", "u", "ei", "ou")
_ACCENTED = ("é", "ü", "ß", "İ", "ø")


def _word(number: int) -> str:
    """The word of a number; words differ."""
    rest, letters = number, []
    for _ in range(3):
        rest, consonant = divmod(rest, len(_CONSONANTS))
        rest, vowel = divmod(rest, len(_VOWELS))
        letters.append(_CONSONANTS[consonant] + _VOWELS[vowel])
    if number % 30 == 7:
        letters.append(_ACCENTED[number % len(_ACCENTED)])
    return "".join(letters) + "nrtsl"[number % 5]


def vocabulary() -> list[str]:
    """The words, often used ones first."""
    order = Random(5)
    numbers = order.sample(range((len(_CONSONANTS) * len(_VOWELS)) ** 3), VOCABULARY)
    return [_word(number) for number in numbers]


def stories(count: int, *, seed: int) -> list[bytes]:
    """Messages, the same ones first whatever the count."""
    words = vocabulary()
    ends = list(accumulate(1 / (rank + 20) for rank in range(VOCABULARY)))
    draw = Random(seed)

    def word() -> str:
        one = words[bisect(ends, draw.random() * ends[-1])]
        return one.capitalize() if draw.random() < 0.1 else one

    def paragraph() -> str:
        text = [
            word() for _ in range(draw.randint(WORDS_A_PARAGRAPH // 2, WORDS_A_PARAGRAPH * 3 // 2))
        ]
        if draw.random() < 0.25:
            at = draw.randrange(len(text))
            text[at] = f"<name>{text[at]}</name>"
        return f"<para>{' '.join(text)}.</para>"

    def subject() -> str:
        code = draw.randrange(CODES)
        return (
            f'<subject type="topic" code="{_code(code)}"><name lang="en">{word()}</name></subject>'
        )

    def quote() -> str:
        place = draw.random() * SATISFIED
        code, number = draw.randrange(CODES), draw.randrange(10_000)
        return (
            f'<quote code="{_code(code)}" weight="{_weight(place)}" time="{_time(place)}" '
            f'key="{word()}">{word()} {_ticket(code, number)}</quote>'
        )

    made = []
    for number in range(count):
        head = "".join(subject() for _ in range(SUBJECTS))
        parts = [quote() for _ in range(QUOTES)] + [paragraph() for _ in range(PARAGRAPHS)]
        body = "".join(parts)
        made.append(f'<story id="{number}"><head>{head}</head><body>{body}</body></story>'.encode())
    return made


def _weight(place: float) -> int:
    return int(place * WEIGHT_MAX)


def _time(place: float) -> str:
    return (BEGIN + timedelta(seconds=int(place * SECONDS))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _code(number: int) -> str:
    return f"Q{number}"


def _ticket(code: int, number: int) -> str:
    return f"{'KLMNP'[code % 5]}{'RSTUV'[number % 5]}-{number:04}/{code % 100:02}"


def asked(kind: str, count: int, *, seed: int) -> list[str]:
    """Subscriptions of a kind, the same ones first whatever the count."""
    draw = Random(f"{kind} {seed}")
    ask = KINDS[kind](draw)
    return [ask() for _ in range(count)]


def language_of(kind: str) -> QueryLanguage | None:
    """The language of the subscriptions of a kind; none for XPath 1.0."""
    return None if kind in ("numbers", "contains") else "xquery"


Ask = Callable[[], str]
"""Makes the next subscription of a kind."""


def _numbers(draw: Random) -> Ask:
    return lambda: f"//quote[@weight > {_weight(draw.random())}]"


def _dates(draw: Random) -> Ask:
    return lambda: f"//quote[xs:dateTime(@time) > xs:dateTime('{_time(draw.random())}')]"


def _of_words(form: str, words_a_subscription: int = 1) -> Callable[[Random], Ask]:
    """Texts with a word, or a list of words, in place of `{}`."""

    def kind(draw: Random) -> Ask:
        words = [word.lower() for word in vocabulary()]

        def ask() -> str:
            chosen = draw.sample(words, words_a_subscription)
            return form.format(", ".join(f"'{word}'" for word in chosen))

        return ask

    return kind


def _of_codes(codes_a_subscription: int) -> Callable[[Random], Ask]:
    def kind(draw: Random) -> Ask:
        def ask() -> str:
            chosen = draw.sample(range(CODES), codes_a_subscription)
            return f"//quote[@code = ({', '.join(repr(_code(code)) for code in chosen)})]"

        return ask

    return kind


def _patterns(distinct: int) -> Callable[[Random], Ask]:
    """One of so many patterns: most have a word in them, one in ten has none."""

    def kind(draw: Random) -> Ask:
        words = [word.lower() for word in vocabulary()]

        def pattern(number: int) -> str:
            one, other = draw.sample(words, 2)
            first, second, last = number % 10, number // 10 % 10, number // 100 % 10
            ticket = f"[K-N][R-V]-[0-9]*{first}{second}[0-9]/[0-9]{last}"
            return (
                f"//para[matches(., '{one}[a-z]*')]",
                f"//para[matches(., '{one[:-2]}({one[-2:]}|{other[-3:]})')]",
                f"//para[matches(., '{one}|{other}')]",
                f"//para[matches(., '{one} [^ ]+ {other}')]",
                f"//para[matches(., '{one}', 'i')]",
                f"//para[matches(., '(^| ){one}[ .,]')]",
                f"//quote[matches(@key, '^{one}$', 'i')]",
                f"//para[matches(., '[A-Z]{one[1:]}')]",
                f"//para[matches(., '({one}|{other})s? ')]",
                f"//quote[matches(., '{ticket}')]",
            )[number % 10]

        patterns = [pattern(number) for number in range(distinct)]
        return lambda: draw.choice(patterns)

    return kind


_CASE_BLIND = "'http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive'"

KINDS: Mapping[str, Callable[[Random], Ask]] = MappingProxyType(
    {
        "numbers": _numbers,
        "dates": _dates,
        "contains": _of_words("//para[contains(., {})]"),
        "contains, lower case": _of_words("//para[contains(lower-case(.), {})]"),
        "equal, lower case": _of_words("//quote[lower-case(@key) = {}]"),
        "contains, collation": _of_words(f"//para[contains(., {{}}, {_CASE_BLIND})]"),
        "ten keywords": _of_words(
            "//para[some $word in ({}) satisfies contains(lower-case(.), $word)]", 10
        ),
        "500 keywords": _of_words(
            "//para[some $word in ({}) satisfies contains(lower-case(.), $word)]", 500
        ),
        "1,000 patterns": _patterns(1_000),
        "10,000 patterns": _patterns(10_000),
        "list of one": _of_codes(1),
        "list of 10,000": _of_codes(10_000),
    }
)
"""What a subscription asks for, by the name of the kind."""
