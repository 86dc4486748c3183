"""Workloads: documents and queries by a DTD, and the sample domains of demo and tests.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT a (b*)><!ELEMENT b (#PCDATA)>")
    >>> sorted(generate_queries(graph, QueryParameters(count=2, wildcard=0, descendant=0)))
    ['/a', '/a/b']

Reading a DTD needs lxml (extra `workload`). Nothing is matched here.

Source: 003, 4.2.1; 002, 6.1.
"""

from pathcast.workload.demo import DemoInput, DemoParameters, demo_messages, write_demo
from pathcast.workload.documents import (
    DocumentGenerator,
    GeneratedMessage,
    generate_documents,
    generate_messages,
)
from pathcast.workload.domains import DOMAINS, Domain, domain_graph, domain_named, plausible_values
from pathcast.workload.faults import break_message
from pathcast.workload.packing import (
    write_message_files,
    write_message_parquet,
    write_subscriptions,
)
from pathcast.workload.parameters import (
    DocumentParameters,
    Fault,
    PredicateMix,
    QueryParameters,
    ValueKind,
)
from pathcast.workload.queries import QueryGenerator, generate_queries
from pathcast.workload.shaped import ShapedParameters, generate_shaped
from pathcast.workload.subscriptions import (
    GeneratedSubscription,
    SubscriptionParameters,
    generate_subscriptions,
)
from pathcast.workload.values import IntegerValues, PlausibleValues, ValueSource

__all__ = [
    "DOMAINS",
    "DemoInput",
    "DemoParameters",
    "DocumentGenerator",
    "DocumentParameters",
    "Domain",
    "Fault",
    "GeneratedMessage",
    "GeneratedSubscription",
    "IntegerValues",
    "PlausibleValues",
    "PredicateMix",
    "QueryGenerator",
    "QueryParameters",
    "ShapedParameters",
    "SubscriptionParameters",
    "ValueKind",
    "ValueSource",
    "break_message",
    "demo_messages",
    "domain_graph",
    "domain_named",
    "generate_documents",
    "generate_messages",
    "generate_queries",
    "generate_shaped",
    "generate_subscriptions",
    "plausible_values",
    "write_demo",
    "write_message_files",
    "write_message_parquet",
    "write_subscriptions",
]
