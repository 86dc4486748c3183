"""The reference door: a message becomes a tree, or is refused, by the standard library's expat.

The kernel has a door of its own, with the same limits, the same tree and the same errors.

Example:
    >>> tree = parse_message(b"<order id='7'><item>tea</item></order>")
    >>> [local for _, local in tree.name], tree.attribute_value, tree.text_value
    (['order', 'item'], ['7'], ['tea'])
"""

from pathcast_papers.message.door import parse_message

__all__ = ["parse_message"]
