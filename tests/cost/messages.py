"""Shapes of messages, as data that can be changed a little at a time.

Example:
    >>> shape = Shape(blocks=(Block(name=1, depth=2, leaves=1, attributes=1),))
    >>> shape.message(50)
    b'<r><b x="0"><b x="0"><b x="0"/></b><b x="0"/></b></r>'
    >>> Shape.model_validate_json(shape.model_dump_json()) == shape
    True

A shape is rendered to a size: what it describes is repeated until the size is reached, so that the
same shape gives messages of 100 bytes and of a megabyte.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

NAMES: Final = tuple("abcdefgh")
"""Names of elements; the root is called r."""

ATTRIBUTES: Final = tuple("xyz")
"""Names of attributes."""

DEPTH_MAX: Final = 250
"""Levels of a message: the default limit is 256."""

BLOCKS_MAX: Final = 3
"""Blocks beside one another."""

NESTING_MAX: Final = 3
"""Blocks inside one another."""


class Gene(BaseModel):
    """A part of a genome: it never changes, and what it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Block(Gene):
    """A nest of elements, and how often it stands there.

    Attributes:
        name: Place of the outermost name in `NAMES`.
        names: Distinct names that the levels take in turn.
        depth: Elements inside one another.
        times: How often the nest is repeated, beside itself.
        leaves: Empty elements of the same name at every level, after what is inside.
        attributes: Attributes of every element.
        values: Distinct values of attributes, and distinct words, taken in turn.
        text: Characters of text in every element, ahead of what is inside.
        inside: What stands in the innermost element.
    """

    name: Annotated[int, Field(ge=0, lt=len(NAMES))] = 0
    names: Annotated[int, Field(ge=1, le=len(NAMES))] = 1
    depth: Annotated[int, Field(ge=1, le=DEPTH_MAX)] = 1
    times: Annotated[int, Field(ge=1, le=4096)] = 1
    leaves: Annotated[int, Field(ge=0, le=256)] = 0
    attributes: Annotated[int, Field(ge=0, le=len(ATTRIBUTES))] = 0
    values: Annotated[int, Field(ge=1, le=4096)] = 1
    text: Annotated[int, Field(ge=0, le=4096)] = 0
    inside: tuple[Block, ...] = ()


class Shape(Gene):
    """A message: some levels around blocks that are repeated until it is large enough.

    Attributes:
        around: Levels of `a` around everything.
        blocks: What is repeated.
    """

    around: Annotated[int, Field(ge=0, le=DEPTH_MAX)] = 0
    blocks: tuple[Block, ...]

    def message(self, size: int) -> bytes:
        """A message of about so many bytes; it ends once that is reached."""
        return _Writer(size).written(self)


class _Writer:
    def __init__(self, size: int) -> None:
        self._parts: list[str] = []
        self._left = size
        self._counter = 0

    def written(self, shape: Shape) -> bytes:
        around = min(shape.around, DEPTH_MAX - 1)
        self._write("<r>" + "<a>" * around)
        self._left -= 4 * around + 4
        before = -1
        while self._left > 0 and before != self._left:
            before = self._left
            for block in shape.blocks:
                self._block(block, 1 + around)
        self._write("</a>" * around + "</r>")
        return "".join(self._parts).encode()

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._left -= len(text)

    def _block(self, block: Block, level: int) -> None:
        depth = min(block.depth, DEPTH_MAX - level)
        names = [NAMES[(block.name + n) % len(NAMES)] for n in range(block.names)]
        for _ in range(block.times):
            opened = 0
            while opened < depth and self._left > 0:
                self._open(block, names[opened % len(names)], is_empty=False)
                opened += 1
            if not opened:
                return
            for one in block.inside:
                self._block(one, level + opened)
            for at in reversed(range(opened)):
                name = names[at % len(names)]
                for _ in range(block.leaves if self._left > 0 else 0):
                    self._open(block, name, is_empty=True)
                self._write(f"</{name}>")

    def _open(self, block: Block, name: str, *, is_empty: bool) -> None:
        value = self._counter % block.values
        self._counter += 1
        attributes = "".join(f' {one}="{value}"' for one in ATTRIBUTES[: block.attributes])
        text = f"w{value} ".ljust(block.text, "t")[: block.text]
        if is_empty:
            self._write(
                f"<{name}{attributes}/>" if not text else f"<{name}{attributes}>{text}</{name}>"
            )
        else:
            # The end tag is spoken for.
            self._left -= len(name) + 3
            self._write(f"<{name}{attributes}>{text}")
            self._left += len(name) + 3


def random_shape(random: Random) -> Shape:
    """A shape, most often of one or two blocks."""
    blocks = tuple(_random_block(random, 0) for _ in range(random.choice((1, 1, 2, 3))))
    return Shape(around=random.choice((0, 0, 0, random.randint(1, 120))), blocks=blocks)


def _random_block(random: Random, nesting: int) -> Block:
    is_nested = nesting + 1 < NESTING_MAX and random.random() < 0.4
    return Block(
        name=random.randrange(3),
        names=random.choice((1, 1, 2, 3)),
        depth=_magnitude(random, DEPTH_MAX, 1),
        times=_magnitude(random, 256, 1),
        leaves=random.choice((0, 0, 1, _magnitude(random, 64))),
        attributes=random.choice((0, 0, 1, 2)),
        values=_magnitude(random, 1024, 1),
        text=random.choice((0, 0, _magnitude(random, 512))),
        inside=(_random_block(random, nesting + 1),) if is_nested else (),
    )


def _magnitude(random: Random, most: int, least: int = 0) -> int:
    """A number of any size: small ones are as likely as large ones."""
    return max(least, min(most, round(2 ** (random.random() * most.bit_length())) - 1))


def mutated_shape(shape: Shape, random: Random) -> Shape:
    """A shape beside this one: one number or one block is another."""
    change = random.random()
    blocks = list(shape.blocks)
    if change < 0.15:
        return shape.model_copy(update={"around": _near(shape.around, random, 0, DEPTH_MAX)})
    if change < 0.25 and len(blocks) < BLOCKS_MAX:
        blocks.insert(random.randrange(len(blocks) + 1), _random_block(random, 0))
    elif change < 0.35 and len(blocks) > 1:
        del blocks[random.randrange(len(blocks))]
    else:
        at = random.randrange(len(blocks))
        blocks[at] = _mutated_block(blocks[at], random, 0)
    return shape.model_copy(update={"blocks": tuple(blocks)})


_BOUNDS: Final = {
    "name": (0, len(NAMES) - 1),
    "names": (1, len(NAMES)),
    "depth": (1, DEPTH_MAX),
    "times": (1, 4096),
    "leaves": (0, 256),
    "attributes": (0, len(ATTRIBUTES)),
    "values": (1, 4096),
    "text": (0, 4096),
}


def _mutated_block(block: Block, random: Random, nesting: int) -> Block:
    inside = list(block.inside)
    if inside and random.random() < 0.5:
        at = random.randrange(len(inside))
        if random.random() < 0.15:
            del inside[at]
        else:
            inside[at] = _mutated_block(inside[at], random, nesting + 1)
        return block.model_copy(update={"inside": tuple(inside)})
    if nesting + 1 < NESTING_MAX and len(inside) < BLOCKS_MAX and random.random() < 0.15:
        inside.append(_random_block(random, nesting + 1))
        return block.model_copy(update={"inside": tuple(inside)})
    field = random.choice(list(_BOUNDS))
    return block.model_copy(update={field: _near(getattr(block, field), random, *_BOUNDS[field])})


def _near(value: int, random: Random, least: int, most: int) -> int:
    """Another number: one more or less, half, twice, an end, or any."""
    choices = (value + 1, value - 1, value * 2, value // 2, least, _magnitude(random, most, least))
    return max(least, min(most, random.choice(choices)))
