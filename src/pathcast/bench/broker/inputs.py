"""FLWR queries and messages of the broker figures, made once for each setting.

Example:
    >>> inputs = BrokerInputs(seed=0)
    >>> from pathcast.bench.broker.definition import BrokerParameters
    >>> len(inputs.queries("bib", BrokerParameters(queries=5), 5))
    5
"""

from __future__ import annotations

from collections.abc import Sequence

from pathcast.bench.broker.definition import BrokerParameters
from pathcast.bench.timing import missing_library
from pathcast.errors import ConfigError, MissingDependencyError
from pathcast.schema import ElementGraph
from pathcast.workload import BROKER_WORKLOADS, FlwrQuery, generate_flwrs, generate_repeating


class BrokerInputs:
    """Where the queries and messages of a run come from.

    Args:
        seed: Of both.

    Raises:
        MissingDependencyError: lxml is not installed.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        try:
            self._graphs = {name: one.graph() for name, one in BROKER_WORKLOADS.items()}
        except MissingDependencyError as error:
            raise missing_library("lxml") from error
        self._kept: tuple[object, list[FlwrQuery]] = (None, [])

    def graph(self, workload: str) -> ElementGraph:
        """The element graph of a workload's DTD."""
        return self._graphs[workload]

    def messages(self, workload: str, count: int, values_max: int) -> list[bytes]:
        """The first messages of a workload."""
        parameters = BROKER_WORKLOADS[workload].documents(count, self._seed, values_max)
        return list(generate_repeating(self._graphs[workload], parameters))

    def queries(self, workload: str, parameters: BrokerParameters, most: int) -> list[FlwrQuery]:
        """The first queries of a workload.

        Args:
            workload: The DTD.
            parameters: What they are like; `queries` says how many are wanted.
            most: How many will be wanted with these parameters: so many are made at once, and kept
                until others are asked for.

        Raises:
            ConfigError: There are not so many.
        """
        most = max(most, parameters.queries)
        key = (workload, parameters.model_copy(update={"queries": most}))
        if self._kept[0] != key:
            self._kept = (key, list(self._found(workload, key[1])))
        found = self._kept[1]
        if len(found) < parameters.queries:
            raise ConfigError(
                "config.invalid",
                key="queries",
                reason=f"{len(found):,} of {parameters.queries:,} distinct queries were found",
            )
        return found[: parameters.queries]

    def _found(self, workload: str, parameters: BrokerParameters) -> Sequence[FlwrQuery]:
        """As many as there are, up to those that are wanted."""
        found: list[FlwrQuery] = []
        try:
            for query in generate_flwrs(
                self._graphs[workload], parameters.flwr(workload, self._seed)
            ):
                found.append(query)
        except ConfigError as error:
            if error.code != "workload.exhausted":
                raise
        return found
