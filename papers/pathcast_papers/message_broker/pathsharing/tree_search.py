"""The tree search routine: a relative path from a node of the message, depth first.

Where-Filter stops at the first node that passes; Return-Select takes them all.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.message_broker.pathsharing.paths import navigation_path
    >>> tree = parse_message(b"<a><b><c/><b><c/></b></b></a>", Limits())
    >>> select(tree, 0, navigation_path("//b//c"))
    [2, 4]

Source: Diao and Franklin, VLDB 2003, section 3.1 (which leaves the routine's text out).
Differs: the search carries the set of steps that a node can be reached by, so a node that several
path matches lead to is found once, and no subtree is searched twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathcast.message import MessageTree
from pathcast_papers.filtering.predicate import is_named
from pathcast_papers.language import Axis
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath


def search(tree: MessageTree, node: int, path: NavigationPath) -> Iterator[int]:
    """The nodes that a relative path selects from a node, in document order, each once.

    Args:
        tree: The message.
        node: Element to begin at.
        path: One step or more.

    Cost: visits of elements below the node times steps; subtrees that no step waits for are
    passed over.
    """
    last = len(path)
    # Of every open element: which steps its children are asked for.
    waiting: list[tuple[int, frozenset[int]]] = [(tree.element_end[node], frozenset((0,)))]
    here = node + 1
    while here < tree.element_end[node]:
        while waiting[-1][0] <= here:
            waiting.pop()
        asked = waiting[-1][1]
        reached = {step + 1 for step in asked if is_named(tree.name[here], path[step].test)}
        if last in reached:
            yield here
        below = frozenset(
            [step for step in reached if step < last]
            + [step for step in asked if path[step].axis is Axis.DESCENDANT]
        )
        if below:
            waiting.append((tree.element_end[here], below))
            here += 1
        else:
            here = tree.element_end[here]


def select(tree: MessageTree, node: int, path: NavigationPath) -> list[int]:
    """All nodes that a relative path selects; of a path without steps, the node itself."""
    return list(search(tree, node, path)) if path else [node]
