"""More queries than are held at once: partitions built, visited and dropped one after another.

Queries are written to a file a partition as they come, so that neither they nor an index over all
of them is ever in memory. Then each partition is made a snapshot, the messages that can match
there are matched, and what was found is added up.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from pathcast.limits import MIB
from pathcast.model import Query
from pathcast.partition import PepPlacement
from pathcast.registry import Registry
from pathcast.workload import SubscriptionParameters, generate_subscriptions
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.placement.definition import PlacementFigure, PlacementSet
from pathcast_lab.bench.placement.placing import rows_of
from pathcast_lab.bench.placement.realistic import SAMPLE, domain_messages, domain_queries
from pathcast_lab.bench.wrong_count import WrongCountError

CHUNK = 200_000
"""Queries that are placed together, and that the placement is made from."""

DISTINCT = 0.1
"""Distinct texts by queries: ten million subscribers ask for a million different things."""


def run_visits(
    figure: PlacementFigure, chosen: PlacementSet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """One list of values a domain.

    Raises:
        WrongCountError: A message has other matches than one index over the first queries gives.
    """
    for domain in figure.domains:
        with tempfile.TemporaryDirectory(prefix="pathcast-visits-") as directory:
            yield _Visits(figure, chosen, domain, seed, say).run(Path(directory))


class _Visits:
    def __init__(
        self,
        figure: PlacementFigure,
        chosen: PlacementSet,
        domain: str,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self._figure, self._chosen, self._domain = figure, chosen, domain
        self._seed, self._say = seed, say
        self._messages = pa.array(domain_messages(domain, chosen.messages, seed), pa.binary())

    def run(self, directory: Path) -> list[Value]:
        """Places all queries, then visits the partitions."""
        started = time.perf_counter()
        first = domain_queries(self._domain, min(CHUNK, self._chosen.queries), self._seed + 1)
        index = Registry(threads=1)
        index.add(first)
        placement = PepPlacement.of(
            index.population(),
            self._chosen.partitions,
            sample=domain_messages(self._domain, SAMPLE, self._seed + 1),
            seed=self._seed,
        )
        touched = placement.touched(self._messages)
        written = self._write(placement, directory)
        placed = time.perf_counter()
        self._say(
            f"{self._domain}: {int(written.sum()):,} queries placed in {placed - started:.0f} s"
        )
        matches = np.zeros(len(self._messages), dtype=np.int64)
        building = matching = 0.0
        largest = 0
        for partition in range(placement.partitions):
            rows = rows_of(touched, partition)
            if not written[partition]:
                continue
            at = time.perf_counter()
            snapshot_index = Registry(threads=1)
            snapshot_index.add(_read(directory / str(partition)))
            file = directory / "snapshot"
            snapshot = snapshot_index.freeze()
            del snapshot_index
            snapshot.save(file)
            largest = max(largest, file.stat().st_size)
            built = time.perf_counter()
            building += built - at
            if len(rows):
                answer = snapshot.match(self._messages.take(pa.array(rows)))
                matches[rows] += np.diff(answer.matches.offsets.to_numpy())
            matching += time.perf_counter() - built
        self._check(placement)
        sizes = written / max(int(written.sum()), 1)
        sent = np.array([len(rows_of(touched, at)) for at in range(placement.partitions)])
        place = Place(
            self._figure.name,
            self._domain,
            "PEP by rates",
            float(self._chosen.queries),
            self._chosen.queries,
        )
        count = len(self._messages)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB
        return [
            place.value("partitions", "1", float(placement.partitions)),
            place.value("placing", "s", placed - started),
            place.value("building", "s", building),
            place.value("matching", "s", matching),
            place.value("partitions sent to", "%", 100 * sent.sum() / (count * len(sent))),
            place.value("queries in them", "%", 100 * float((sent * sizes).sum()) / count),
            place.value("don't care", "%", 100 * float(sizes[placement.dont_care])),
            place.value("matches", "1", float(matches.mean())),
            place.value("largest partition", "MiB", largest / MIB),
            place.value("memory", "MiB", peak),
        ]

    def _write(self, placement: PepPlacement, directory: Path) -> np.ndarray:
        """Writes every query into the file of its partition; the number of queries of each."""
        written = np.zeros(placement.partitions, dtype=np.int64)
        parameters = SubscriptionParameters(
            queries=self._chosen.queries,
            subscribers=max(1, self._chosen.queries // 10),
            seed=self._seed,
            domains=(self._domain,),
            distinct_share=DISTINCT,
        )
        rows = generate_subscriptions(parameters)
        known: dict[str, int] = {}
        with ExitStack() as stack:
            files = [
                stack.enter_context((directory / str(at)).open("w", encoding="utf-8"))
                for at in range(placement.partitions)
            ]
            while chunk := [(row.query_id, row.query) for row in islice(rows, CHUNK)]:
                # Equal queries are placed alike, so that they share what they become.
                fresh = list(dict.fromkeys(text for _, text in chunk if text not in known))
                known.update(zip(fresh, _placed(fresh, placement), strict=True))
                for name, text in chunk:
                    partition = known[text]
                    files[partition].write(f"{name}\t{text}\n")
                    written[partition] += 1
        return written

    def _check(self, placement: PepPlacement) -> None:
        """On as many queries as one index takes, partitions give what that gives."""
        queries = domain_queries(self._domain, min(20_000, self._chosen.queries), self._seed)
        index = Registry(threads=1)
        index.add(queries)
        sample = self._messages.slice(0, 50)
        whole = index.match(sample).matches
        expected = int(whole.offsets[-1].as_py())
        placed = _placed([query.text for query in queries], placement)
        touched = placement.touched(sample)
        found = 0
        for partition in set(placed):
            inside = Registry(threads=1)
            inside.add(query for query, at in zip(queries, placed, strict=True) if at == partition)
            rows = rows_of(touched, partition)
            if len(rows):
                part = inside.match(sample.take(pa.array(rows))).matches
                found += int(part.offsets[-1].as_py())
        if found != expected:
            raise WrongCountError(
                case=f"{self._figure.caption}, {self._domain}: matches",
                found=found,
                expected=expected,
                oracle="one index",
            )


def _placed(texts: Sequence[str], placement: PepPlacement) -> list[int]:
    """The partition of each text; the text is the id, so that equal ones are placed alike."""
    index = Registry(threads=1)
    index.add(Query(text, text) for text in texts)
    population = index.population()
    placed = placement.place(population).tolist()
    by_text = dict(zip(population.query_ids, placed, strict=True))
    return [by_text[text] for text in texts]


def _read(path: Path) -> list[Query]:
    rows = (line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return [Query(name, text) for name, text in rows]
