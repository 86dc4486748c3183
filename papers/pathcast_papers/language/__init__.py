"""What the papers read: XPath 1.0 and, in `xquery`, FLWR subscriptions.

Text becomes a syntax tree (`syntax`), names in it are resolved (`static`), and `compile_query` says
whether it is a path of the paper's class (`paper_class`); what is not is evaluated as it is
(`pathcast_papers.evaluation`). The product reads the same language by code of its own.

Example:
    >>> canonical_text(normalise("/nitf/head//tobject[ 'news' = attribute::type ]"))
    "/nitf/head//tobject[@type='news']"
"""

from __future__ import annotations

from pathcast_papers.language.canonical import canonical_text
from pathcast_papers.language.compiled import CompiledQuery, compile_query, normalise
from pathcast_papers.language.expression import expression_text, read_expression
from pathcast_papers.language.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Constant,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Position,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)
from pathcast_papers.language.parser import parse
from pathcast_papers.language.syntax import Expr
from pathcast_papers.language.xquery.subscription import CompiledSubscription, compile_subscription

__all__ = [
    "AnyIn",
    "AnyName",
    "AnyNamespace",
    "AttributeCondition",
    "Axis",
    "Comparison",
    "CompiledQuery",
    "CompiledSubscription",
    "Condition",
    "Constant",
    "Expr",
    "Name",
    "NameTest",
    "NestedCondition",
    "NormalQuery",
    "Operator",
    "Position",
    "Stage",
    "Step",
    "TextCondition",
    "ValueCondition",
    "canonical_text",
    "compile_query",
    "compile_subscription",
    "expression_text",
    "normalise",
    "parse",
    "read_expression",
]
