"""The papers' opinion of paths that the product made: they travel as canonical text.

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast.query import normalise
    >>> is_found(normalise("/a[b]"), parse_message(b"<a><b/></a>"))
    True
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from pathcast.boundary import native
from pathcast.message import MessageTree
from pathcast.query import CompiledSubscription
from pathcast_papers import language
from pathcast_papers.filtering.oracle import is_satisfied
from pathcast_papers.language.static import resolve
from pathcast_papers.message import parse_message


def is_found(path: native.NormalPath, tree: MessageTree) -> bool:
    """Whether a path selects something in a message, by the papers' oracle."""
    return is_satisfied(of_papers(path), tree)


def lets_pass(gate: CompiledSubscription, source: bytes) -> bool:
    """Whether one of the paths of a gate is in a message, by the papers' oracle."""
    tree = parse_message(source)
    return any(is_found(native.NormalPath(path), tree) for path in gate.alternatives)


@functools.lru_cache(maxsize=1 << 12)
def of_papers(path: native.NormalPath) -> language.NormalQuery:
    """The same path, read by the papers."""
    return language.normalise(path.text, is_canonical=True)


def read_by_papers(text: str, namespaces: Mapping[str, str] | None = None) -> language.Expr:
    """An XPath as the papers' evaluator takes it: names resolved, types checked."""
    return resolve(language.parse(text), text, dict(namespaces or {}))
