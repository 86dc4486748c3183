"""The kernel under the clock with FLWR subscriptions: groups alone, and serialised results.

The paper's MQPT ends with the last result in groupSequence-listSequence form; the kernel's figure
of that name is the wall time of a call that does the same, less parsing. Beside it stands what a
subscriber waits for: messages parsed, results serialised.

It checks a sample against the reference engine first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.customising import (
    CustomisingRound,
    Process,
    check_groups,
    check_results,
    counting_groups,
    customising_round,
    mixed_sample,
    new_engine,
    rounds_spread,
    serialising,
    subscribe_all,
    subscriptions_of,
)
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.filtering import spread_messages
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.timing import elapsed_ns, undisturbed, yardstick
from pathcast_lab.workload import FlwrQuery

KERNEL = "kernel"
"""The series of results in groupSequence-listSequence form."""

SERIALISED = "kernel, serialised"
"""The series of serialised results."""


def measure_kernel(
    place: Place,
    case: str,
    queries: Sequence[FlwrQuery],
    messages: Sequence[bytes],
    *,
    check_queries: int,
    check_messages: int,
    rounds: int,
    seconds_max: float,
) -> tuple[list[Value], str]:
    """Subscribes, checks, then measures.

    Args:
        place: Where the values belong.
        case: What errors call it.
        queries: The queries.
        messages: The messages.
        check_queries: How many queries are compared with the reference.
        check_messages: On how many messages.
        rounds: Passes over the messages, if time allows; one at least.
        seconds_max: Roughly, for the passes.

    Returns:
        The values, and what was compared.

    Raises:
        WrongCountError: The kernel disagrees with the reference engine or with itself.
    """
    subscriptions = subscriptions_of(query.text() for query in queries)
    engine = new_engine()
    with undisturbed():
        subscribing_ns = elapsed_ns(lambda: subscribe_all(engine, subscriptions))
    few = spread_messages(messages, check_messages)
    some = binary_array(few)
    places = mixed_sample(engine, len(queries), some, check_queries)
    sample = [subscriptions[at] for at in places]
    checked = check_results(case, engine, sample, some)
    groups, nodes = check_groups(case, [queries[at] for at in places], few)
    array = binary_array(messages)
    parse = yardstick(messages)
    deliveries = serialising(engine)(array).deliveries
    counting = counting_groups(engine)
    timed = [(SERIALISED, serialising(engine))]
    if counting is not None:
        timed.insert(0, (KERNEL, counting))
    values = [place.value("subscribe", "1/s", len(queries) / subscribing_ns * 1e9)]
    for series, process in timed:
        passes = _passes(process, array, parse, rounds, seconds_max)
        for one in passes:
            if one.deliveries != deliveries:
                raise wrong_count(case, one.deliveries, deliveries, "the checked pass")
        values += _values(replace(place, series=series), passes)
    return values, (
        f"reference engine: the same {checked:,} results, PathSharing-FWR: the same {groups:,} "
        f"groups and {nodes:,} nodes in their lists, of {len(sample):,} queries in {len(few)} "
        "messages"
    )


def _passes(
    process: Process,
    array: pa.Array,
    parse: Callable[[], None],
    rounds: int,
    seconds_max: float,
) -> list[CustomisingRound]:
    parse()
    process(array)
    passes: list[CustomisingRound] = []
    with undisturbed():
        for number in range(rounds):
            one = customising_round(process, array, parse, parse_first=bool(number % 2))
            passes.append(one)
            if sum(each.total_ns for each in passes) > seconds_max * 1e9:
                break
    return passes


def _values(place: Place, passes: Sequence[CustomisingRound]) -> list[Value]:
    first = passes[0]
    values = [
        place.value("mqpt", "us", rounds_spread(passes, lambda one: one.microseconds("mqpt"))),
        place.value("by lxml", "x lxml", rounds_spread(passes, lambda one: one.ratio_of("mqpt"))),
        place.value("total", "us", rounds_spread(passes, lambda one: one.microseconds("total"))),
        place.value("total by lxml", "x lxml", rounds_spread(passes, lambda one: one.ratio)),
        place.value("lxml", "us", rounds_spread(passes, lambda one: one.microseconds("yardstick"))),
        place.value("parsing", "us", rounds_spread(passes, lambda o: o.microseconds("parsing"))),
        place.value("matching", "us", rounds_spread(passes, lambda o: o.microseconds("matching"))),
        place.value(
            "customising", "us", rounds_spread(passes, lambda o: o.microseconds("customising"))
        ),
        place.value("queries satisfied", "1/message", first.deliveries / first.messages),
    ]
    if first.result_bytes:
        values.append(place.value("output", "B/message", first.result_bytes / first.messages))
        values.append(
            place.value(
                "output rate",
                "MB/s",
                rounds_spread(passes, lambda one: one.output_megabytes_per_second),
            )
        )
    return values
