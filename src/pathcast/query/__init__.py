"""Queries as values: syntax trees, normal forms, canonical texts, refusals in words.

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

from pathcast.query.canonical import canonical_text
from pathcast.query.compiled import (
    CompiledQuery,
    CostClass,
    compile_query,
)
from pathcast.query.names import Namespaces
from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Step,
    TextCondition,
    ValueCondition,
)
from pathcast.query.normaliser import canonical_form, normalise
from pathcast.query.places import End, Place
from pathcast.query.population import OPERATORS, Population, population_of
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
    "AnyIn",
    "AnyName",
    "AnyNamespace",
    "AttributeCondition",
    "Axis",
    "Comparison",
    "CompiledQuery",
    "CompiledSubscription",
    "Condition",
    "CostClass",
    "End",
    "Name",
    "NameTest",
    "Namespaces",
    "NestedCondition",
    "NormalQuery",
    "Operator",
    "Place",
    "Population",
    "Step",
    "TextCondition",
    "ValueCondition",
    "canonical_form",
    "canonical_text",
    "check_length",
    "compile_query",
    "compile_subscription",
    "normalise",
    "parse",
    "population_of",
    "read_query",
]
