"""Where a node is: the path from the root to it, for people and for XPath.

Example:
    >>> from pathcast.kernel.message_nodes import Context
    >>> from pathcast.limits import Limits
    >>> nodes = MessageNodes(b"<a><b/><b n='1'/></a>", Limits())
    >>> node_path(nodes, nodes.value("//@n", Context(0))[0], Notation())
    '/a[1]/b[2]/@n'
"""

from __future__ import annotations

from pathcast.kernel.message_nodes import MessageNodes, Node, NodeFacts
from pathcast.query.notation import Notation


def node_path(nodes: MessageNodes, node: Node, notation: Notation) -> str:
    """The path to a node, with places among siblings of the same kind and name.

    Args:
        nodes: The message.
        node: The node.
        notation: Writes names with the prefixes of the query; others as `Q{uri}name`.

    Cost: siblings of the node and of those around it.
    """
    parts: list[str] = []
    facts = nodes.facts(node)
    while facts.parent is not None:
        parts.append(_part(facts, notation))
        facts = nodes.facts(facts.parent)
    return "/" + "/".join(reversed(parts))


def _part(facts: NodeFacts, notation: Notation) -> str:
    match facts.kind:
        case "attribute":
            return "@" + notation.name(facts.uri, facts.local, has_default=False)
        case "namespace":
            return f"namespace::{facts.local or '*'}"
        case "element":
            test = notation.name(facts.uri, facts.local, has_default=True)
        case "processing instruction":
            test = f"processing-instruction('{facts.local}')"
        case kind:
            test = f"{kind}()"
    return f"{test}[{facts.place}]"
