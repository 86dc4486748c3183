"""Claims 1 to 5: what a path and a DTD say of duplicates and order in a path-tuple stream.

Fields are numbered from 1, field i is bound by location step i, and the stream comes in order of
its last field. Every claim is a sufficient condition: it says yes only where the stream is known to
be free of duplicates, or in order, for every message that conforms to the element graph.

Example:
    >>> from pathcast_papers.message_broker.pathsharing.paths import navigation_path
    >>> claim_1(navigation_path("/book/section//title"))
    True
    >>> claim_1(navigation_path("//section//title"))
    False

Nothing here looks at a message; `SchemaPaths.conforms` does.

Source: Diao and Franklin, VLDB 2003, section 4.
Differs: the paper knows element names only. A wildcard can be bound to elements of several names,
one inside the other, so a claim that asks for an element that is on no loop never takes one; and
claim 5 fails too where a wildcard stands between the last `//` and step i while element i is on a
loop: on `<a><a><b><c/><b><c/></b></b></a></a>`, where a and b are on loops of their own, the
tuples of `//a/*/b/c` are not in order of b.  "On the same loop" means that each element can stand
in the other one: a loop may pass an element twice.
"""

from __future__ import annotations

from pathcast_papers.message_broker.pathsharing.paths import (
    NavigationPath,
    descendant_steps,
    name_of,
)
from pathcast_papers.message_broker.pathsharing.reliance import Elements


def claim_1(path: NavigationPath) -> bool:
    """With one `//` at most, no two path tuples end in the same node.

    Upwards from the last node the steps behind the `//` can be bound in one way only, and so can,
    downwards from the root, those before it.
    """
    return len(descendant_steps(path)) <= 1


def claim_2(path: NavigationPath, elements: Elements) -> bool:
    """With several `//`: none of their steps but the last can be bound in two ways above a node.

    An element that is on no loop occurs once at most among the ancestors of a node. If that is true
    of all steps with a `//` except the last one, no two path tuples end in the same node.
    """
    several = descendant_steps(path)
    return len(several) > 1 and all(
        _is_on_no_loop(path, number, elements) for number in several[:-1]
    )


def claim_3(path: NavigationPath, i: int, elements: Elements | None) -> bool:
    """Both parts of a path, up to field i and behind it, are free of duplicates for themselves.

    Then no two path tuples agree in field i and in the last field.

    Args:
        path: A path of more than i steps.
        i: Where it is parted.
        elements: Lets claim 2 speak for either part; None for claim 1 alone.
    """
    return all(has_no_duplicates(part, elements) for part in (path[:i], path[i:]))


def claim_4(path: NavigationPath, i: int) -> bool:
    """Without `//` up to step i, the stream is in order of field i.

    Field i is then the ancestor of the last field at a fixed depth, and nodes in document order
    have their ancestors of one depth in document order.
    """
    return not descendant_steps(path[:i])


def claim_5(path: NavigationPath, i: int, elements: Elements) -> bool:
    """With `//` up to step i, where no element of such a step is on one loop with element i.

    For the stream to leave the order of field i, one node bound by step i must stand in another
    one. Then the steps that lead to them from the last `//` are bound twice on one way from the
    root, which closes a loop through both elements.
    """
    several = descendant_steps(path[:i])
    if not several:
        return False
    if _is_on_no_loop(path, i, elements):
        return True
    bound = name_of(path[i - 1].test)
    if bound is None or any(name_of(step.test) is None for step in path[several[-1] - 1 : i]):
        return False
    for number in several:
        name = name_of(path[number - 1].test)
        if name is None or elements.is_on_same_loop(name, bound):
            return False
    return True


def has_no_duplicates(path: NavigationPath, elements: Elements | None) -> bool:
    """Claim 1, or claim 2 if there is a DTD: no two path tuples end in the same node."""
    return claim_1(path) or (elements is not None and claim_2(path, elements))


def is_ordered(path: NavigationPath, i: int, elements: Elements | None) -> bool:
    """Claim 4, or claim 5 if there is a DTD: the stream is in order of field i.

    Of the last field that is what the path matching engine guarantees.
    """
    return (
        i >= len(path) or claim_4(path, i) or (elements is not None and claim_5(path, i, elements))
    )


def _is_on_no_loop(path: NavigationPath, number: int, elements: Elements) -> bool:
    name = name_of(path[number - 1].test)
    return name is not None and not elements.is_on_loop(name)
