"""Figures of the automaton on a ring as data.

A definition lies in `lab/benchmarks/dht-figures.toml` of a clone.

Example:
    >>> DhtFigure(name="7", title="t", kind="loads", sets={}).block
    'dht_7'

It runs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pathcast_lab.bench.definitions import SetName

DhtKind: TypeAlias = Literal[
    "methods", "states", "queries", "peers", "loads", "lengths", "savings", "simulated"
]
"""Iterative and recursive; states by DTD; number of queries; number of peers; loads of peers; l;
what is not the paper's."""

QueryKind: TypeAlias = Literal["random", "distinct"]
"""With repetitions, or without."""


class _Strict(BaseModel):
    """Unknown keys are mistakes, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DhtSchema(_Strict):
    """A DTD.

    Attributes:
        name: As the paper calls it, or its own.
        file: In the shared data.
        instead_of: What the paper has and this stands in for; "another" where it does not say.
        stand_in: Domain of Pathcast to take where the file is not at hand; without, it is left out.
    """

    name: str
    file: str
    instead_of: str = ""
    stand_in: str = ""


class DhtWorkload(_Strict):
    """Documents and queries.

    Attributes:
        name: Of it.
        schemas: Names of its DTDs; each has as many documents and queries as the others.
        depth_max: D of the documents.
        repeats_max: RP of the documents.
    """

    name: str
    schemas: tuple[str, ...]
    depth_max: int
    repeats_max: int


class DhtSet(_Strict):
    """What one set runs of a figure.

    Attributes:
        documents: How many.
        queries: Places on the axis, ascending.
        peers: Sizes of the ring.
        pieces: Into how many the automaton is cut.
        caches: States that every peer has a copy of.
        batches: Documents that travel together.
        lengths: l.
        sample: Documents that pieces and copies are chosen by; they are not counted.
        queries_max: Queries at which simulated peers cut a piece.
    """

    documents: int = Field(default=1, ge=1)
    queries: tuple[int, ...]
    peers: tuple[int, ...] = (1_000,)
    pieces: tuple[int, ...] = ()
    caches: tuple[int, ...] = ()
    batches: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    sample: int = 0
    queries_max: int = 1_000


class DhtFigure(_Strict):
    """One figure.

    Attributes:
        name: "3", or a word for what the paper has no figure of.
        title: Caption.
        kind: What is measured.
        workloads: Names of workloads; of `states`, of DTDs.
        query_kinds: Of queries.
        sets: Sizes.
    """

    name: str
    title: str
    kind: DhtKind
    workloads: tuple[str, ...] = ()
    query_kinds: tuple[QueryKind, ...] = ("random",)
    sets: dict[SetName, DhtSet]

    @property
    def caption(self) -> str:
        """`Figure 3`, or the word."""
        return f"Figure {self.name}" if self.name.isdecimal() else self.name.capitalize()

    @property
    def file_stem(self) -> str:
        """Of its files: `dht-figure-3`."""
        return "dht-" + self.caption.lower().replace(" ", "-")

    @property
    def block(self) -> str:
        """Of its place in the page: `dht_3`."""
        return f"dht_{self.name}"


class DhtFigures(_Strict):
    """`lab/benchmarks/dht-figures.toml`.

    Attributes:
        title: One line.
        bound: What the figures should come near, and why.
        seed: Of queries, documents and replicas.
        query_depth: D of the queries.
        wildcard: W.
        descendant: DS.
        schemas: The DTDs.
        workloads: The workloads.
        figures: The figures.
    """

    title: str
    bound: str
    seed: int
    query_depth: int
    wildcard: float
    descendant: float
    schemas: tuple[DhtSchema, ...]
    workloads: tuple[DhtWorkload, ...]
    figures: tuple[DhtFigure, ...]

    @model_validator(mode="after")
    def _names_what_is_there(self) -> DhtFigures:
        schemas = {schema.name for schema in self.schemas}
        workloads = {workload.name for workload in self.workloads}
        for workload in self.workloads:
            if missing := set(workload.schemas) - schemas:
                raise ValueError(f"{workload.name}: there is no DTD {missing}")
        for figure in self.figures:
            known = schemas if figure.kind == "states" else workloads
            if missing := set(figure.workloads) - known:
                raise ValueError(f"{figure.caption}: there is no {missing}")
        return self
