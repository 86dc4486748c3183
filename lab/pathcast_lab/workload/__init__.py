"""Workloads of the papers' experiments: FLWR queries, repeated values, scenarios, costly queries.

The generators that `pathcast generate` has are in `pathcast.workload`.

Source: 003, 4.2.1; 002, 6.1.
"""

from pathcast_lab.workload.adversarial import ADVERSARIES, Adversary
from pathcast_lab.workload.brokers import BIB, BOOK, BROKER_WORKLOADS, BrokerWorkload
from pathcast_lab.workload.flwr import (
    FlwrGenerator,
    FlwrParameters,
    FlwrPredicate,
    FlwrQuery,
    generate_flwrs,
)
from pathcast_lab.workload.repeats import RepeatParameters, Repeats, generate_repeating

__all__ = [
    "ADVERSARIES",
    "BIB",
    "BOOK",
    "BROKER_WORKLOADS",
    "Adversary",
    "BrokerWorkload",
    "FlwrGenerator",
    "FlwrParameters",
    "FlwrPredicate",
    "FlwrQuery",
    "RepeatParameters",
    "Repeats",
    "generate_flwrs",
    "generate_repeating",
]
