"""Random FLWR subscriptions in three widths: the paper's class, a little more, the whole language.

Example:
    >>> import random
    >>> print(random_flwr(random.Random(5), BOOK, FlwrWidth.PAPER).text)
    <section>
      { for $x.10 in document("a.xml")//p  return <item> { $x.10/em } </item> }
    </section>

What comes out is meant to meet messages of the same vocabulary (`random_flwr_message`): paths
follow its structure most of the time, numbers are compared with numbers. Where XQuery would raise a
dynamic error, Saxon has no value to compare with, so such expressions are rare, not absent. Every
random choice comes from the given generator, so a seed replays it.
"""

from __future__ import annotations

from random import Random
from typing import Final

from generators.flwr_expressions import ExpressionWriter, FlwrWidth
from generators.flwr_frame import FrameWriter, GeneratedFlwr
from generators.flwr_vocabulary import BOOK, Vocabulary

__all__ = [
    "BOOK",
    "FlwrWidth",
    "GeneratedFlwr",
    "random_constant",
    "random_flwr",
    "random_notice",
]

_SIZE: Final = {FlwrWidth.PAPER: 2, FlwrWidth.SIMPLE: 2, FlwrWidth.WHOLE: 3}


def random_flwr(
    random: Random,
    vocabulary: Vocabulary = BOOK,
    width: FlwrWidth = FlwrWidth.WHOLE,
    size: int | None = None,
) -> GeneratedFlwr:
    """One subscription.

    Args:
        random: Every choice comes from here.
        vocabulary: Names, values, namespaces.
        width: How much of the language.
        size: Levels of expressions in expressions; None for what suits the width.
    """
    depth = _SIZE[width] if size is None else size
    return FrameWriter(ExpressionWriter(random, vocabulary, width), depth).flwr()


def random_notice(random: Random, vocabulary: Vocabulary = BOOK, size: int = 2) -> GeneratedFlwr:
    """One subscription whose effective boolean value matters, of the whole language.

    Args:
        random: Every choice comes from here.
        vocabulary: Names, values, namespaces.
        size: Levels of expressions in expressions.

    Example:
        >>> import random
        >>> random_notice(random.Random(30), size=0).text
        '($msg//figure="XML")'
    """
    return FrameWriter(ExpressionWriter(random, vocabulary, FlwrWidth.WHOLE), size).notice()


def random_constant(random: Random, vocabulary: Vocabulary = BOOK, size: int = 2) -> str:
    """One expression that depends on nothing of any message, of the whole language.

    It needs the namespaces of the vocabulary, whose names it speaks of: where others begin at the
    message, its paths begin at nothing.

    Args:
        random: Every choice comes from here.
        vocabulary: Names, values, namespaces.
        size: Levels of expressions in expressions.

    Example:
        >>> import random
        >>> random_constant(random.Random(39), size=1)
        '(0 > 3)'
    """
    write = ExpressionWriter(random, vocabulary, FlwrWidth.WHOLE)
    write.starts = ("()",)
    frame = FrameWriter(write, size)
    return random.choice((write.anything, write.boolean, frame.flwor, frame.value))(size)
