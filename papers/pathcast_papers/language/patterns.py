"""Regular expressions that are compiled when they are first used.

A class of name characters takes 5 ms to compile, and a pattern of tokens holds a dozen of them:
half of what `import pathcast` would take, for whoever asks no query of the kind.

Example:
    >>> name = LazyPattern("[a-z]+")
    >>> name.match("ab1").group()
    'ab'
"""

from __future__ import annotations

import re
from functools import cached_property


class LazyPattern:
    """A pattern with the methods of a compiled one.

    Args:
        pattern: The regular expression.
        flags: Of module `re`.
    """

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As `re.Pattern.match`."""
        return self._compiled.match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.fullmatch`."""
        return self._compiled.fullmatch(text)

    def search(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        return self._compiled.search(text)
