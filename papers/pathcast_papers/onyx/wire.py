"""Batches of messages into a wire format and back.

Example:
    >>> messages = [b'<order no="7"><item>tea</item><item>jam</item></order>', None]
    >>> packed = encode(messages, WireFormat.STREAM_ZLIB)
    >>> decode(packed, WireFormat.STREAM_ZLIB).messages.to_pylist() == messages
    True

Source: 001, 4.3.2 and Figure 10 (message pre-processor: decompress, deserialise).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from pathcast.engine.messages import Messages, joined, message_column
from pathcast.errors import ConfigError, MessageError
from pathcast.limits import Limits
from pathcast.schema import Element
from pathcast_papers.onyx.dictionaries import Dictionaries, Dictionary
from pathcast_papers.onyx.element_stream import decode_stream, encode_stream, is_stream
from pathcast_papers.onyx.wire_fault import WireFormatError
from pathcast_papers.onyx.wire_formats import WireFormat, compress, decompress


class Unpacked(NamedTuple):
    """What came of a batch.

    Attributes:
        messages: `large_binary` array; null where there was none, and where one was refused.
        refusals: Place and error of those, ascending.
    """

    messages: pa.Array
    refusals: list[tuple[int, MessageError | WireFormatError]]


def dictionary_of_schema(elements: Iterable[Element]) -> Dictionary:
    """The names of elements and attributes that a schema declares.

    Those come first that can stand in most places, since the first numbers are the shortest.
    """
    places: Counter[str] = Counter()
    for element in elements:
        places[element.name] += 1
        places.update(child.name for child in element.children)
        places.update(attribute.name for attribute in element.attributes)
    return Dictionary(tuple(sorted(places, key=lambda name: (-places[name], name))))


def encode(
    messages: Messages,
    format: WireFormat,
    dictionary: Dictionary | None = None,
) -> pa.Array:
    """Messages as they travel.

    Args:
        messages: As for `Matcher.match`. They are not checked: one that is not well-formed
            travels, and is refused where it arrives.
        format: The format. A message that cannot be a stream, or would not be shorter, travels as
            text, compressed like the others.
        dictionary: Names that their reader knows by number, for the formats with a dictionary.

    Returns:
        `large_binary` array of the same length.

    Raises:
        ConfigError: The format has a dictionary and none is given, or the other way round; or an
            object is no message.
        TypeError: `messages` is nothing of this kind.
    """
    if (format.encoding == "dictionary") != (dictionary is not None):
        reason = f"the format {format.value} {'has' if dictionary is None else 'has no'} dictionary"
        raise ConfigError("config.invalid", key="dictionary", reason=reason)
    column = message_column(messages)
    for place, error in column.refusals.items():
        raise ConfigError("config.invalid", key=f"messages[{place}]", reason=str(error))
    array = joined(column.arrays).cast(pa.large_binary())
    if format.encoding != "text":
        texts = array.to_pylist()
        streams = [one and (encode_stream(one, dictionary) or one) for one in texts]
        array = pa.array(streams, pa.large_binary())
    if format.compression == "none":
        return array
    packed = [
        None if message is None else compress(message, format) for message in array.to_pylist()
    ]
    return pa.array(packed, pa.large_binary())


def decode(
    packed: Messages,
    format: WireFormat,
    dictionaries: Dictionaries | None = None,
    *,
    limits: Limits | None = None,
) -> Unpacked:
    """Messages as they were published.

    Args:
        packed: What travelled.
        format: As its header says.
        dictionaries: Those that it may name.
        limits: What a message may cost.

    Raises:
        TypeError: `packed` is nothing of this kind.
    """
    bytes_max = (limits or Limits()).message_bytes_max
    messages: list[bytes | None] = []
    refusals: list[tuple[int, MessageError | WireFormatError]] = []
    for place, each in enumerate(joined(message_column(packed).arrays).to_pylist()):
        try:
            messages.append(None if each is None else _read(each, format, dictionaries, bytes_max))
        except (MessageError, WireFormatError) as error:
            messages.append(None)
            refusals.append((place, error))
    return Unpacked(pa.array(messages, pa.large_binary()), refusals)


def _read(
    packed: bytes, format: WireFormat, dictionaries: Dictionaries | None, bytes_max: int
) -> bytes:
    message = decompress(packed, format, bytes_max)
    if format.encoding == "text" or not is_stream(message):
        return message
    return decode_stream(message, dictionaries, Limits(message_bytes_max=bytes_max))
