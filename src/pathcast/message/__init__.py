"""Messages: the tree that a message becomes.

Example:
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> tree = parse(b"<order id='7'><item>tea</item></order>", Limits())
    >>> [local for _, local in tree.name], tree.attribute_value, tree.text_value
    (['order', 'item'], ['7'], ['tea'])

It parses nothing: the kernel does.
"""

from pathcast.message.tree import NO_ELEMENT, ExpandedName, MessageTree, TreeDetails

__all__ = ["NO_ELEMENT", "ExpandedName", "MessageTree", "TreeDetails"]
