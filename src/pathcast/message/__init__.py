"""Messages: the tree that a message becomes, and the reference door that makes it.

Example:
    >>> from pathcast.message import parse_message
    >>> tree = parse_message(b"<order id='7'><item>tea</item></order>")
    >>> [local for _, local in tree.name], tree.attribute_value, tree.text_value
    (['order', 'item'], ['7'], ['tea'])

The kernel has a door of its own, with the same limits, the same tree and the same errors.
"""

from pathcast.message.door import parse_message
from pathcast.message.tree import NO_ELEMENT, ExpandedName, MessageTree, TreeDetails

__all__ = ["NO_ELEMENT", "ExpandedName", "MessageTree", "TreeDetails", "parse_message"]
