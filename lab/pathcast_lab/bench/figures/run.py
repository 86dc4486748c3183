"""A run of a paper's figures: which ones, in the order of the definition, and what becomes of each.

A wrong answer voids the figure that gave it and no other; any other error ends its figure, and what
was measured of it before stays. It prints nothing.

Example:
    >>> chosen_names("11, t3", ("11", "12", "T3"))
    ('11', 'T3')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pathcast.errors import ConfigError
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.output import Outcome
from pathcast_lab.bench.figures.page import FigurePage
from pathcast_lab.bench.figures.point import Value

Points: TypeAlias = Callable[[Outcome[Any]], Iterator[list[Value]]]
"""Measures the figure of an outcome, which it tells of its workload, its checks and its notes."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Figures that are to be run.

    Attributes:
        definition: The definitions.
        names: Of the figures.
        set_name: Which sizes.
        work: Where generated queries are kept; None for nowhere.
        outcomes: Takes an outcome when its figure begins, so that nothing is lost with the run.
        keep: Takes the values of each point as soon as they are there.
        say: Takes one line on what is being done.
    """

    definition: Any
    names: Sequence[str]
    set_name: SetName
    work: Path | None
    outcomes: list[Outcome[Any]]
    keep: Callable[[Sequence[Value]], None]
    say: Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class PaperFigures:
    """What the figures of a paper are, and what runs, draws and words them.

    Attributes:
        definition: Model of the file `lab/benchmarks/NAME.toml`.
        run: Runs what a request asks for.
        draw: As `Output` wants it.
        page: How they stand in a page.
    """

    definition: type[Any]
    run: Callable[[Request], None]
    draw: Callable[[Any, Sequence[Value], str, Path], bool]
    page: FigurePage[Any]


def run_each(begin: Callable[[Request], Points]) -> Callable[[Request], None]:
    """Returns what runs the figures that a request names, one after the other.

    Args:
        begin: Opens what the figures of a request have in common.
    """

    def run(request: Request) -> None:
        points = begin(request)
        for figure in request.definition.figures:
            if figure.name in request.names and request.set_name in figure.sets:
                outcome = Outcome(figure, "")
                request.outcomes.append(outcome)
                outcome.collect(points(outcome), request.keep)

    return run


def chosen_names(text: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Names of figures and tables (`T3`), in the order of the definition; None for all.

    Raises:
        ConfigError: There is no such figure.
    """
    if text is None:
        return tuple(known)
    by_letters = {name.upper(): name for name in known}
    asked = [part.strip().upper() for part in text.split(",")]
    for name in asked:
        if name not in by_letters:
            raise ConfigError(
                "config.invalid", key="--figure", reason=f"{name!r} is none of {', '.join(known)}"
            )
    return tuple(name for letters, name in by_letters.items() if letters in asked)
