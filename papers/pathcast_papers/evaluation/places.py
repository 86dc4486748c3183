"""Where the elements that a path selects lie in the bytes of a message.

Example:
    >>> ElementPlaces("//e[@n = 2]").find(b"<log><e n='1'/><e n='2'><f/></e></log>")
    [Span(start=15, end=32)]

It does one message at a time, and reads it twice: for its nodes, and for its places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from xml.parsers import expat

from pathcast.errors import EvaluationBudgetError, MessageBudgetError
from pathcast.limits import Limits
from pathcast_papers.evaluation.tags import START_TAG
from pathcast_papers.evaluation.xpath import Evaluator, OverBudgetError
from pathcast_papers.language import compile_query
from pathcast_papers.language.xquery.comments import without_comments
from pathcast_papers.message import parse_message
from pathcast_papers.message.decoding import decode_message

_BYTE_CODECS: Final = ("utf-8", "us-ascii")


class Span(NamedTuple):
    """An element in the bytes of a message.

    Attributes:
        start: Byte at which it begins.
        end: One past its last byte.
    """

    start: int
    end: int


class ElementPlaces:
    """A path, whose elements are found in messages.

    Args:
        path: An XPath that selects nodes.
        namespaces: Prefix -> namespace URI.
        limits: What one message may cost.

    Raises:
        QuerySyntaxError: It is no XPath.
        UnsupportedQueryError: It does not select nodes.
    """

    def __init__(
        self, path: str, namespaces: Mapping[str, str] | None = None, limits: Limits | None = None
    ) -> None:
        self._expression = compile_query(without_comments(path), namespaces).expression
        self._limits = limits or Limits()
        self.steps = 0
        """Steps that the last message took."""

    def find(
        self, message: bytes, encoding: str | None = None, steps_max: int | None = None
    ) -> list[Span] | None:
        """The elements below the document element, in document order.

        Args:
            message: The bytes as they arrived.
            encoding: What the caller knows of their encoding.
            steps_max: Steps that are left of `Limits.message_steps_max`; all of them if not given.

        Returns:
            None if these are not in UTF-8, or one does not lie in them: an entity holds it, or it
            is no element but another node.

        Raises:
            MessageError: The message is refused.
            EvaluationBudgetError: The path takes too many steps.
        """
        self.steps = 0
        evaluator = Evaluator(parse_message(message, self._limits, encoding))
        own, left = self._limits.evaluation_steps_max, self._limits.message_steps_max
        left = left if steps_max is None else min(left, steps_max)
        evaluator.steps_max = min(own, left)
        try:
            nodes = evaluator.select(self._expression)
        except OverBudgetError:
            if left < own:
                maximum = self._limits.message_steps_max
                raise MessageBudgetError(
                    "limit.message_steps", limit="message_steps_max", maximum=maximum
                ) from None
            raise EvaluationBudgetError(
                "limit.evaluation_steps", limit="evaluation_steps_max", maximum=own
            ) from None
        finally:
            self.steps = evaluator.steps
        places = _places(message, encoding)
        if places is None:
            return None
        found = []
        for node in nodes:
            number = evaluator.document.element_number(node)
            if number is None or (place := places[number]) is None:
                return None
            if number:
                found.append(place)
        return found


def _places(message: bytes, encoding: str | None) -> list[Span | None] | None:
    """Where each element lies; None for one out of an entity, or of a text that is not UTF-8."""
    decoded = decode_message(message, encoding)
    if decoded.codec not in _BYTE_CODECS:
        return None
    data = message[decoded.mark :]
    found: list[Span | None] = []
    open_elements: list[int] = []

    def start(*_: object) -> None:
        at = parser.CurrentByteIndex
        open_elements.append(len(found))
        # Of what an entity holds, expat says where the entity is named.
        found.append(Span(at, at) if data[at : at + 1] == b"<" else None)

    def end(_: object) -> None:
        number, at = open_elements.pop(), parser.CurrentByteIndex
        place = found[number]
        if place is None:
            return
        tag = START_TAG.match(data, place.start)
        assert tag is not None, "the door has let this tag in"
        last = tag.end() if data[tag.end() - 2] == ord("/") else data.index(b">", at) + 1
        found[number] = Span(place.start + decoded.mark, last + decoded.mark)

    parser = expat.ParserCreate("UTF-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.ExternalEntityRefHandler = lambda *_: 1
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(data, True)
    return found
