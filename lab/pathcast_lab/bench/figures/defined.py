"""What the definitions of all papers' figures have in common: a name, sizes, the paper's numbers.

Example:
    >>> figure = PaperFigure(name="T3", title="t", sets={})
    >>> figure.caption, figure.file_stem, figure.block
    ('Table 3', 'table-3', 'T3')
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, model_validator

from pathcast_lab.bench.definitions import SetName, Strict


class PaperPoint(Strict):
    """A number that the paper's text gives.

    Attributes:
        series: Of which curve or row.
        x: At which place of the axis.
        value: The number.
        unit: Its unit.
        where: Section or table.
        variant: Of which curve family.
    """

    series: str
    x: float
    value: float
    unit: str
    where: str
    variant: str = ""


class PaperFigure(Strict):
    """One figure or table.

    Attributes:
        room: Which paper's; first word of its files and of its blocks in pages.
        name: "11" for a figure, "T3" or "A3" for a table, a word for what the paper has not.
        title: Caption.
        sets: Sizes.
        paper: Numbers from the paper's text.
    """

    room: ClassVar[str] = ""

    name: str
    title: str
    sets: dict[SetName, Any]
    paper: tuple[PaperPoint, ...] = ()

    @property
    def caption(self) -> str:
        """`Figure 11`, `Table 3`, `Table A3`, or the word as a heading."""
        if self.name.isdecimal():
            return f"Figure {self.name}"
        if self.name[1:].isdecimal():
            return f"Table {self.name.removeprefix('T')}"
        return self.name.replace("_", " ").capitalize()

    @property
    def file_stem(self) -> str:
        """Of its files: `figure-11`, `broker-table-2`."""
        return "-".join(filter(None, (self.room, self.caption.lower().replace(" ", "-"))))

    @property
    def block(self) -> str:
        """Of its place in the page: `11`, `broker_T2`."""
        return "_".join(filter(None, (self.room, self.name)))


class FigureSet(Strict):
    """What one set runs of a figure.

    Attributes:
        reference: Places on the axis where the reference algorithms are measured.
        kernel: Places where the kernel is.
        reference_queries: Q of the reference algorithms, where the axis is not Q.
        kernel_queries: Q of the kernel, one series each, where the axis is not Q.
        messages: Messages of the reference algorithms.
        kernel_messages: Messages of the kernel.
        rounds: Alternations with the yardstick.
        kernel_rounds: The same for the kernel.
    """

    reference: tuple[float, ...] = ()
    kernel: tuple[float, ...] = ()
    reference_queries: int | None = None
    kernel_queries: tuple[int, ...] = ()
    messages: int = Field(default=20, ge=1)
    kernel_messages: int = Field(default=200, ge=1)
    rounds: int = Field(default=3, ge=1)
    kernel_rounds: int = Field(default=7, ge=1)


class SweptFigure(PaperFigure):
    """A figure that varies a parameter, of reference algorithms and of the kernel.

    Attributes:
        x: Parameter that varies. The sets are `FigureSet`.
    """

    x: str = "queries"

    @model_validator(mode="after")
    def _says_how_many_queries(self) -> SweptFigure:
        if self.x != "queries":
            for name, chosen in self.sets.items():
                if chosen.reference and chosen.reference_queries is None:
                    raise ValueError(f"{self.caption}, {name}: reference_queries is missing")
                if chosen.kernel and not chosen.kernel_queries:
                    raise ValueError(f"{self.caption}, {name}: kernel_queries is missing")
        return self


FigureType = TypeVar("FigureType", bound=PaperFigure)


class PaperDefinition(Strict, Generic[FigureType]):
    """A file of `lab/benchmarks`.

    Attributes:
        title: One line.
        bound: What the figures should come near, and why.
        seed: Of all that is drawn.
        figures: The figures.
    """

    title: str
    bound: str
    seed: int
    figures: tuple[FigureType, ...]

    @model_validator(mode="after")
    def _has_no_name_twice(self) -> PaperDefinition[FigureType]:
        names = [figure.name for figure in self.figures]
        if len(set(names)) != len(names):
            raise ValueError("a figure is defined twice")
        return self
