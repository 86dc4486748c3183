"""Every error Pathcast raises or reports, in one catalogue.

An error is a code and parameters; the catalogue turns them into a sentence with a cause and,
where there is one, a fix. Codes of query errors are those of the W3C (XPath 2.0, appendix G, where
1.0 names none); codes of message errors name the constraint of XML 1.0 that was broken.

Example:
    >>> error = LimitExceededError("limit.depth", limit="depth_max", given=300, maximum=256)
    >>> print(error)
    depth_max: 300 given, at most 256 allowed; raise it with Limits(depth_max=...)
    >>> error.code, error.params["maximum"]
    ('limit.depth', 256)

This room imports nothing of Pathcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from pathcast.errors.sentences import SENTENCES

Param: TypeAlias = str | int | float | None
"""A parameter of an error."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One kind of error.

    Attributes:
        family: The exception class that carries it.
        template: Sentence with the parameters in braces.
    """

    family: type[PathcastError]
    template: str


class PathcastError(Exception):
    """Root of the tree of errors.

    Args:
        code: Key into `CATALOGUE`.
        **params: What the sentence of the catalogue needs, and what a program may ask for.
    """

    def __init__(self, code: str, **params: Param) -> None:
        super().__init__(code, params)
        self.code = code
        self.params: dict[str, Param] = params

    @property
    def message(self) -> str:
        """The sentence of the catalogue, filled in; it can be written in UTF-8."""
        return shown(CATALOGUE[self.code].template.format_map(_Blank(self.params)))

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.params))

    def to_dict(self) -> dict[str, Param]:
        """Code, message and, for errors with a place, line, column and offset."""
        place = {key: self.params.get(key) for key in ("line", "column", "offset")}
        return {"code": self.code, "message": self.message, **place}


def _rebuild(cls: type[PathcastError], code: str, params: dict[str, Param]) -> PathcastError:
    return cls(code, **params)


class _Blank(dict[str, Param]):
    """A parameter that was not given reads as a question mark rather than hiding the error."""

    def __missing__(self, key: str) -> str:
        return "?"


class QuerySyntaxError(PathcastError, ValueError):
    """The text is not XPath. `params`: query, offset (characters), reason, suggestion.

    `str(error)` shows the query with a caret under the fault.
    """

    def __str__(self) -> str:
        query, offset = self.params.get("query"), self.params.get("offset")
        if not isinstance(query, str) or not isinstance(offset, int):
            return self.message
        suggestion = self.params.get("suggestion")
        tail = f"\n  {suggestion}" if suggestion else ""
        return shown(f"{self.message}\n{caret(query, offset)}{tail}")


class UnsupportedQueryError(QuerySyntaxError):
    """The query is XPath, but holds a construct that is not evaluated. `params["construct"]`."""


class MessageError(PathcastError, ValueError):
    """A message was refused. `params`: line and column (from 1), offset (bytes, from 0)."""


class IllFormedMessageError(MessageError):
    """The message breaks a production or constraint of XML 1.0 or of namespaces in XML."""


class EncodingError(MessageError):
    """The bytes are not text in the encoding that the message declares, or it is not supported."""


class LimitExceededError(MessageError):
    """A named limit was exceeded. `params`: limit, given, maximum."""


class EvaluationBudgetError(LimitExceededError):
    """A query takes too many steps on a message. `params`: limit, maximum, id.

    It is the verdict on that pair of query and message alone: the message was let in, and its other
    queries were answered.
    """


class MessageBudgetError(EvaluationBudgetError):
    """A message has used up its steps over all queries. `params`: limit, maximum, id.

    It is the verdict on every query that was undecided then; what was decided before stays decided.
    """


class ResultLimitError(LimitExceededError):
    """A subscription's results for a message are too long. `params`: limit, maximum, id.

    It is the verdict on that pair of subscription and message alone: none of its results is
    delivered, and the other subscriptions get theirs.
    """


class ConstructionError(PathcastError, ValueError):
    """A subscription would build an element that XML does not allow. `params`: id, name.

    It is the verdict on that pair of subscription and message alone. The code is the W3C's
    (XQuery 1.0, appendix F).
    """


class DtdRefusedError(MessageError):
    """The message has a document type declaration and the policy is `dtd="refuse"`."""


class UnreadableMessageError(MessageError):
    """The bytes of a message could not be had: no such file, no permission, a failing disk."""


class UnknownQueryError(PathcastError, KeyError):
    """No query has this id."""

    __str__ = PathcastError.__str__


class UnusableRowError(PathcastError, ValueError):
    """A row of a call is not what it has to be, or a field of it is not. `params["field"]`.

    A row is a query, a subscription or the id of a message, among others that are given with it.
    """


class NotPicklableError(PathcastError, TypeError):
    """The object belongs to one process and is neither pickled nor copied. `params["kind"]`.

    `params["instead"]` says which object travels to another process and what to call there.
    """


class DuplicateQueryError(PathcastError, ValueError):
    """The id is taken."""


class SnapshotFormatError(PathcastError, ValueError):
    """The file is not a snapshot, is of another version, or is damaged."""


class SchemaError(PathcastError, ValueError):
    """A DTD cannot be read or does not serve the purpose."""


class ConfigError(PathcastError, ValueError):
    """A setting is missing, unknown or has a value that cannot be used."""


def invalid_setting(key: str, reason: str) -> ConfigError:
    """The error of a setting that cannot be used."""
    return ConfigError("config.invalid", key=key, reason=reason)


class SourceError(PathcastError, RuntimeError):
    """A source of messages cannot be read on, and trying again does not help. `params["path"]`.

    Somebody has to decide what is to become of messages that are gone or have changed.
    """


class PeerError(PathcastError, ValueError):
    """A message of another node was refused; `params["peer"]` names the node where it is known.

    The session with that node ends; others do not notice.
    """


class PublicationError(PathcastError, RuntimeError):
    """A root broker does not take a message now. `params["retry"]` says whether to try again."""


class StoreError(PathcastError, RuntimeError):
    """The profile database did not do what was asked. `retry` says whether trying again helps.

    What was asked in one call was done wholly or not at all; after "store.away" a write may have
    been done, and is asked for again under the same request.
    """

    @property
    def retry(self) -> bool:
        """Whether the same call can succeed later, without anybody doing anything."""
        return self.code in ("store.away", "store.locked")


class RegistrationError(PathcastError, ValueError):
    """The registration service or a broker refuses a request of a source or a user."""


class MissingDependencyError(PathcastError, ImportError):
    """A library of an optional part is not installed."""


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Turns a missing library into an error that names the extra to install.

    Args:
        name: The extra of the distribution that has the library.
        purpose: What needs it, as the beginning of a sentence.

    Raises:
        MissingDependencyError: An import inside failed because a library is not installed.

    Example:
        >>> with extra("spark", "pathcast run"):
        ...     import no_such_module
        Traceback (most recent call last):
        ...
        pathcast.errors.MissingDependencyError: pathcast run needs no_such_module, which is not \
installed: pip install 'pathcast[spark]'
    """
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        # A library that is there, but not what it needs itself, may name no module.
        missing = error.name or f"a library ({error})"
        # A module of our own that is missing is a broken installation, not an extra.
        if missing.split(".")[0] == "pathcast":
            raise
        raise MissingDependencyError(
            "dependency.missing", purpose=purpose, module=missing, extra=name
        ) from error


class JavaMissingError(PathcastError, RuntimeError):
    """Spark needs a Java, and none that is new enough was found."""


class KernelMissingError(PathcastError, ImportError):
    """The native kernel is not installed, and no other engine was asked for."""


class KernelBugError(PathcastError, RuntimeError):
    """The kernel found one of its own invariants broken. Please report it."""


class ExplanationBugError(PathcastError, RuntimeError):
    """Following a query through a message gives another verdict than the engine. Please report it.

    It is reported in the explanation (`Explanation.bug`), whose verdict is the engine's.
    """


class FrameError(PathcastError, ValueError):
    """A peer sent bytes that are no frame, or broke the rules of a connection; it is cut off.

    `params["peer"]` names it. Nothing of the frame has reached a node, and no other connection
    notices. Trying again does not help until the peer is mended.
    """


class PeerRefusedError(PathcastError, ConnectionError):
    """A call was refused: token, certificate, name or address.

    Trying again does not help until somebody changes settings.
    """


class UnavailableError(PathcastError, ConnectionError):
    """A broker cannot be reached, or has no room for now. Trying again helps."""


class DiskError(PathcastError, RuntimeError):
    """Durable state cannot be read or written; the process stops rather than lose it."""


class SparkLostError(PathcastError, RuntimeError):
    """Spark has ended while a run needed it. What was committed is kept; the next run goes on."""


def shown(text: str) -> str:
    r"""The text with its lone surrogates written out, so that it can be printed and stored.

    Python makes them of bytes that are not UTF-8, in names of files and in arguments of a command.

    Example:
        >>> shown("caf\udce9.xml")
        'caf\\udce9.xml'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def caret(text: str, offset: int) -> str:
    r"""The text indented by two, and a caret under the character at `offset`.

    Of a text of several lines the line that holds the character is shown, with its number.

    Example:
        >>> print(caret("/a/b[", 5))
          /a/b[
               ^
        >>> print(caret("for $a in //a\nreturn $b", 21))
          2 | return $b
                     ^
    """
    label = ""
    if "\n" in text.strip():
        start = text.rfind("\n", 0, offset) + 1
        label = f"{text.count(chr(10), 0, start) + 1} | "
        text, offset = text[start:].partition("\n")[0], offset - start
    shown = "".join(" " if c in "\t\r\n" else c for c in text)
    return f"  {label}{shown}\n  {' ' * (len(label) + offset)}^"


CATALOGUE: Final[Mapping[str, CatalogueEntry]] = {
    code: CatalogueEntry(globals()[family], sentence)
    for family, sentences in SENTENCES.items()
    for code, sentence in sentences.items()
}
"""Code of every error -> its class and sentence."""


def error_for(code: str, params: Mapping[str, Param]) -> PathcastError:
    """The error of a code, in the class that the catalogue gives it.

    Example:
        >>> error_for("query.unknown", {"id": "q9"})
        UnknownQueryError('query.unknown', {'id': 'q9'})
    """
    return CATALOGUE[code].family(code, **params)
