"""Which language the text of a subscription is in.

A subscriber may choose it. Where none did, the kernel decides: XPath 1.0 if its grammar takes the
text, comments left out, XQuery otherwise.
XPath 1.0 has no comments; a subscription may have them whichever language it is in, and they say
nothing about which that is.
"""

from __future__ import annotations

from pathcast.boundary import native, native_errors
from pathcast.model import QueryLanguage
from pathcast.query.names import is_text


def is_xquery(text: str, language: QueryLanguage | None = None) -> bool:
    """Whether a text is read as XQuery, which `language` says if it is not None.

    Of a text that neither language takes, whether it is nearer to XQuery.

    Example:
        >>> [is_xquery(text) for text in ("//a", "(//a, //b)", "<a>{//b}</a>", "//a[", "min(//a)")]
        [False, True, True, False, True]
        >>> is_xquery("//a[b < '9'] (: c :)"), is_xquery("//a", "xquery")
        (False, True)

    Cost: linear in the text.
    """
    if language is not None:
        return language == "xquery"
    with native_errors():
        return is_text(text) and native.is_xquery(text)


def without_comments(text: str) -> str:
    """A text with blanks for its comments, so that every offset stays.

    What looks like a comment inside a string or `Q{...}` is none. A comment that does not end is
    left as it is.

    Example:
        >>> without_comments("//a[b = '(: c :)'] (: d (: e :) :)")
        "//a[b = '(: c :)']                "

    Cost: linear in the text.
    """
    if "(:" not in text or not is_text(text):
        return text
    with native_errors():
        return native.without_comments(text)
