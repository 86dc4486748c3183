"""Queries as values: syntax trees, paths in normal form, refusals in words.

The kernel reads the whole of XPath 1.0, variables excepted, which are refused by name.
`compile_query` gives the parts that it splits a query into at registration: paths in normal form,
which engines index, and, where these do not say all of it, an expression that is evaluated.
`compile_subscription` gives those of a subscription in XPath or XQuery: its gate is the paths that
every message has that delivers anything.
docs/query-language.md and docs/subscriptions.md have the lists.

Example:
    >>> canonical_form("/nitf/head//tobject[ 'news' = attribute::type ]")
    "/nitf/head//tobject[@type='news']"
"""

from __future__ import annotations

from pathcast.query.compiled import (
    CompiledQuery,
    CostClass,
    canonical_form,
    compile_query,
    conjunction_of,
    normalise,
)
from pathcast.query.names import Namespaces
from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    Comparison,
    Name,
    NameTest,
    Operator,
    PathAxis,
)
from pathcast.query.places import End, NativePlace, Place, path_to, place_of, steps_of
from pathcast.query.population import OPERATORS, Population, population_of, population_of_columns
from pathcast.query.prefixes import PREFIX_PACKS, binding, usual_prefix, usual_uri
from pathcast.query.reader import (
    NODES_MAX,
    PREDICATES_MAX,
    check_length,
    parse,
    read_query,
)
from pathcast.query.xquery.subscription import CompiledSubscription, compile_subscription

__all__ = [
    "NODES_MAX",
    "OPERATORS",
    "PREDICATES_MAX",
    "PREFIX_PACKS",
    "AnyIn",
    "AnyName",
    "AnyNamespace",
    "Comparison",
    "CompiledQuery",
    "CompiledSubscription",
    "CostClass",
    "End",
    "Name",
    "NameTest",
    "Namespaces",
    "NativePlace",
    "Operator",
    "PathAxis",
    "Place",
    "Population",
    "binding",
    "canonical_form",
    "check_length",
    "compile_query",
    "compile_subscription",
    "conjunction_of",
    "normalise",
    "parse",
    "path_to",
    "place_of",
    "population_of",
    "population_of_columns",
    "read_query",
    "steps_of",
    "usual_prefix",
    "usual_uri",
]
