"""FLWR subscriptions in plain Python: exactly what they mean, with nothing shared.

The kernel is tested against it. In reading order: `items`, `calculation`,
`comparison` (values); `context`, `budget` (evaluation); `paths`, `functions`,
`evaluator` (expressions); `construction`, `serialiser` (results); `evaluation` (all of it).

Example:
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.language.xquery import parse
    >>> message = parse_message(b"<bib><book year='1994'><title>TCP/IP</title></book></bib>")
    >>> evaluate(parse("<b>{for $b in //book return $b/title}</b>"), message).results
    (b'<b><title>TCP/IP</title></b>',)

It is XQuery 1.0, for a message without a schema, wherever XQuery gives a value. Where it raises an
error in evaluating a value, that value is the one that XPath 1.0 would have. By name:

* text that is no number is NaN in arithmetic, in comparisons with numbers and in the functions on
  numbers (FORG0001, FORG0006, XPTY0004); strings and booleans are numbers there, too;
* of several items the first is used where one is wanted (XPTY0004): value comparisons, arithmetic,
  functions of one text or number, keys of `order by`;
* several atomic values are true as a condition (FORG0006);
* beside a boolean, an untyped value that is no boolean is true, a string is true if it is not
  empty, a number if it is neither 0 nor NaN (FORG0001, XPTY0004); in an order (`<`) strings and
  numbers meet a boolean as numbers;
* division of integers and decimals by zero is an infinity or NaN, `mod` and `idiv` by zero are NaN
  (FOAR0001); an integer that has no room in 64 bits is a double (FOAR0002);
* keys of `order by` of several types are numbers, all of them (XPTY0004);
* a number or boolean where text is wanted is its text; a missing position in `substring` is NaN
  (XPTY0004);
* an atomic value has no nodes around it: a step from one leads nowhere, it adds nothing to a union
  and has no name (XPTY0018, XPTY0019, XPTY0020).

Besides, decimals have the precision of a double; `xml:id` is normalised where a constructor writes
it (XQDY0091 is never raised), and an attribute like any other in the message; an element that takes
the default namespace back (`xmlns=""`), in the message or in a constructor, inherits none from the
element that it is put into; and an attribute whose prefix means something else in the element that
it is copied to gets one there that has its namespace, or its own with `_1` after it (XQuery leaves
the choice open).

Attributes after content (XQTY0024), attributes that are there twice (XQDY0025) and computed names
that are none (XQDY0074, XQDY0044, XQDY0096) have no value to fall back on and are
verdicts. A computed name does not decide on delivery: those of the frame are looked at only for a
result.
"""

from __future__ import annotations

from pathcast_papers.message_broker.xquery.evaluation import Evaluation, evaluate, holds

__all__ = ["Evaluation", "evaluate", "holds"]
"""What this package is asked for."""
