"""Lint: what is likely wrong with standing queries, before any message is missed.

Example:
    >>> from pathcast.model import Query
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT nitf (tobject*)><!ELEMENT tobject EMPTY>")
    >>> for finding in lint([Query("q1", "//tobjct[@x='1' and @x='2']")], dtd=graph).findings:
    ...     print(finding.code, finding.offset, finding.message)
    PL101 2 no element of the DTD is called `tobjct`
    PL102 10 no attribute of the DTD is called `x`
    PL201 20 `@x='2'` and `@x='1'` exclude each other

It changes no query and registers none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pathcast.boundary import native
from pathcast.engine.rows import one_or_many, subscription_of, usable_namespaces, usable_row
from pathcast.errors import PathcastError, QuerySyntaxError
from pathcast.lint.findings import CODES, Finding, LintReport, Replacement, Severity
from pathcast.lint.paths import PathChecker, PathIssue
from pathcast.lint.programs import program_issues
from pathcast.lint.structure import Structure, structure_of_dtd, structure_of_sample
from pathcast.message import MessageTree
from pathcast.model import Query, Subscription
from pathcast.query import CompiledQuery, CostClass, compile_query, read_query
from pathcast.query.condition_issues import EXCLUDING, ConditionIssue, query_issues
from pathcast.query.language_issues import language_issues
from pathcast.query.names import NCNAME, is_text
from pathcast.query.notation import Notation
from pathcast.query.xquery import program_truths, without_comments
from pathcast.query.xquery.subscription import CompiledSubscription, compile_subscription
from pathcast.registry.steps import parse_steps
from pathcast.schema import ElementGraph

COMPARISONS_MAX: Final = 300_000
"""Comparisons of two queries in one call; some microseconds each, so a second or two."""

CANDIDATES_MAX: Final = 3_000
"""Queries that one query is compared with; leaves something of the bound to the others."""

_ANY_MESSAGE: Final = ("/*",)
"""The paths of a program of which nothing is known."""

_BEFORE_NAME: Final = re.compile(rf"(?:Q\{{[^{{}}]*\}}|(?:{NCNAME}|\*):(?!:))?")
"""A prefix or a namespace before a local name."""


def lint(
    queries: Query | Subscription | Iterable[Query | Subscription],
    *,
    refused: Mapping[int, PathcastError] | None = None,
    sample: Iterable[MessageTree] | Structure | None = None,
    dtd: ElementGraph | None = None,
    roots: Collection[str] = (),
    namespaces: Mapping[str, str] | None = None,
    comparisons_max: int = COMPARISONS_MAX,
) -> LintReport:
    """Looks for mistakes in standing queries.

    Args:
        queries: One query or many, or subscriptions, which may be XQuery. Ids need not be unique:
            findings name positions, too. A row that is neither, or has a field that is not what it
            has to be, is a finding (PL001).
        refused: Position -> why it was not taken up, of rows that are known not to be; each is a
            finding (PL001).
        sample: Messages like those that will come, or what `structure_of_sample` made of them;
            names, paths and values are looked up in them.
        dtd: The DTD of the messages, as an alternative or in addition.
        roots: Root elements that the DTD is used with; those that stand in no other if not given.
        namespaces: Prefixes for queries that do not bind them themselves.
        comparisons_max: Queries compared with each other at most, in pairs.

    Returns:
        The findings, by query and place.

    Raises:
        SchemaError: The sample is empty, or the DTD does not declare a root.
        ConfigError: `namespaces` are no bindings of prefixes.
        TypeError: `queries` are neither one nor many.

    Cost: some 0.2 ms a query, plus `comparisons_max` comparisons at most (some µs each).
    """
    structures = []
    if isinstance(sample, Structure):
        structures.append(sample)
    elif sample is not None:
        structures.append(structure_of_sample(sample))
    if dtd is not None:
        structures.append(structure_of_dtd(dtd, roots))
    linter = _Linter(structures, usable_namespaces(namespaces))
    rows, _ = one_or_many(queries)
    known = refused or {}
    subjects = [linter.look_at(number, row, known.get(number)) for number, row in enumerate(rows)]
    linter.compare(subjects, comparisons_max)
    notes = tuple(note for structure in structures for note in structure.notes)
    ordered = sorted(
        linter.findings,
        key=lambda each: (each.query is None, each.query or 0, each.offset, each.code),
    )
    return LintReport(len(subjects), tuple(ordered), notes)


@dataclass(slots=True)
class _Subject:
    """A query that was looked at.

    Attributes:
        number: Its position.
        query: The query.
        alternatives: The paths it becomes, and whether they say all of it; None if it cannot be
            registered, and for XQuery and what has steps, which are not compared with others.
        key: Equal for queries whose equality is seen without comparing; "" if not compiled.
        is_hopeless: Whether it can match nothing, so that comparing it says nothing.
        is_trivial: Whether it matches everything, which says as little.
        is_broken: Whether a condition of it always or never holds, so that it does not say what
            was meant.
        has_steps: Whether it is about messages after steps.
    """

    number: int
    query: Query
    alternatives: tuple[list[native.NormalPath], bool] | None = None
    key: str = ""
    is_hopeless: bool = False
    is_trivial: bool = False
    is_broken: bool = False
    has_steps: bool = False


@dataclass(slots=True)
class _Linter:
    structures: Sequence[Structure]
    namespaces: dict[str, str]
    findings: list[Finding] = field(default_factory=list)
    checkers: dict[tuple[tuple[str, str], ...], list[PathChecker]] = field(default_factory=dict)

    def say(
        self,
        code: str,
        subject: _Subject | None,
        offset: int,
        message: str,
        *,
        fix: str | None = None,
        severity: Severity | None = None,
        replacement: Replacement | None = None,
        related: tuple[int, ...] = (),
    ) -> None:
        number = None if subject is None else subject.number
        query_id = "" if subject is None else subject.query.id
        self.findings.append(
            Finding(
                code,
                severity or CODES[code].severity,
                number,
                query_id,
                offset,
                message,
                fix,
                replacement,
                related,
            )
        )

    # One query.

    def look_at(self, number: int, row: object, error: PathcastError | None) -> _Subject:
        """Looks at one row by itself.

        Args:
            number: Its position.
            row: A `Query` or a `Subscription`, or what is neither.
            error: Why it was refused, where that is known.
        """
        if error is None:
            try:
                found = usable_row(row)
                if isinstance(found, Subscription) or found.language == "xquery":
                    return self.subscription(number, subscription_of(found))
                return self.subject(_Subject(number, found), found.text)
            except PathcastError as fault:
                error = fault
        name = getattr(row, "id", None)
        text = getattr(row, "query", None) or getattr(row, "text", None)
        named = name if is_text(name) else f"row {number}"
        subject = _Subject(number, Query(named, text if is_text(text) else ""))
        self.say_refused(subject, error)
        return subject

    def subscription(self, number: int, row: Subscription) -> _Subject:
        """Looks at one subscription by itself, in whichever language it is."""
        subject = _Subject(number, Query(row.id, row.query, row.namespaces, row.language))
        namespaces = {**self.namespaces, **(row.namespaces or {})}
        steps = parse_steps(row.steps, namespaces)
        subject.has_steps = bool(steps)
        compiled = compile_subscription(row.query, namespaces, row.deliver, row.language)
        if compiled.kind == "xpath":
            self.subject(subject, without_comments(row.query))
        else:
            self.program(subject, row, namespaces, compiled)
        if steps:
            # What it asks for is of other messages than those that others ask.
            subject.alternatives = None
            subject.key = f"{steps!r} {subject.key}"
        return subject

    def program(
        self,
        subject: _Subject,
        row: Subscription,
        namespaces: Mapping[str, str],
        compiled: CompiledSubscription,
    ) -> None:
        """Looks at one program by itself."""
        program = compiled.program
        assert program is not None
        # Whether it is a condition or gives results makes a difference to what satisfies it.
        subject.key = f"{row.deliver in ('fragment', 'nodes')} {program!r}"
        for checker in self.checkers_of(subject, namespaces):
            self.say_paths(subject, program_issues(program, row.query, checker))
        for issue in program_truths(program):
            self.say_condition(subject, issue)
        self.check_gate(subject, compiled)

    def check_gate(self, subject: _Subject, compiled: CompiledSubscription) -> None:
        """Check the conditions under which a program delivers anything."""
        if not any(path.can_match for path in compiled.paths):
            self.say("PL201", subject, 0, EXCLUDING)
        if compiled.alternatives == _ANY_MESSAGE:
            message = "the query is evaluated for every message: nothing must be there for it"
            self.say("PL401", subject, 0, message)

    def subject(self, subject: _Subject, text: str) -> _Subject:
        """Looks at one XPath by itself.

        Args:
            subject: The query.
            text: Its text, with blanks for what XPath does not have.

        Raises:
            QuerySyntaxError: It cannot be registered.
        """
        query = subject.query
        namespaces = {**self.namespaces, **(query.namespaces or {})}
        resolved = read_query(text, namespaces)
        compiled = compile_query(text, namespaces)
        subject.alternatives = (list(compiled.alternatives), compiled.expression is None)
        notation = Notation(namespaces)
        for issue in query_issues(resolved, compiled.alternatives, notation):
            self.say_condition(subject, issue)
        for meaning in language_issues(resolved, notation) if query.language is None else ():
            self.say(meaning.code, subject, meaning.offset, meaning.reason, fix=meaning.fix)
        # A broken query is like those only that are broken in the same way: what it would be equal
        # to or cover as it stands is no finding about the others.
        plan = compiled.expression or "\n".join(compiled.texts)
        subject.key = f"{text}\n{plan}" if subject.is_broken else plan
        for checker in self.checkers_of(subject, namespaces):
            self.say_paths(subject, checker.issues(resolved))
        self.check_whole(subject, compiled)
        return subject

    def say_refused(self, subject: _Subject, error: PathcastError) -> None:
        """Says why a query cannot be registered, at its place if the fault has one in the text."""
        is_syntax = isinstance(error, QuerySyntaxError)
        offset, hint = error.params.get("offset"), error.params.get("suggestion")
        self.say(
            "PL001",
            subject,
            offset if is_syntax and isinstance(offset, int) else 0,
            error.message,
            fix=hint if isinstance(hint, str) else None,
        )

    def checkers_of(
        self, subject: _Subject, namespaces: Mapping[str, str]
    ) -> Sequence[PathChecker]:
        """The checkers that know the messages; none after steps."""
        if subject.has_steps:
            return ()
        key = tuple(sorted(namespaces.items()))
        if key not in self.checkers:
            self.checkers[key] = [PathChecker(each, namespaces) for each in self.structures]
        return self.checkers[key]

    def say_condition(self, subject: _Subject, issue: ConditionIssue) -> None:
        is_never = issue.truth == "never"
        severity: Severity = "error" if is_never and issue.is_decisive else "warning"
        fix = issue.fix
        if issue.truth == "implied":
            severity, fix = "info", "leave it out"
        self.say(issue.code, subject, issue.offset, issue.reason, fix=fix, severity=severity)
        subject.is_hopeless = subject.is_hopeless or (is_never and issue.is_decisive)
        subject.is_broken = subject.is_broken or issue.truth != "implied"

    def say_paths(self, subject: _Subject, issues: Sequence[PathIssue]) -> None:
        """Says what does not occur; names without prefix are mended together."""
        text = subject.query.text
        unprefixed = [issue for issue in issues if issue.code == "PL103"]
        for issue in issues:
            if issue.code != "PL103":
                is_lesser = issue.code == "PL106" and not issue.is_decisive
                self.say(
                    issue.code,
                    subject,
                    issue.offset,
                    issue.message,
                    fix=issue.fix,
                    severity="warning" if is_lesser else None,
                    replacement=_replacement(text, [issue]),
                )
        if unprefixed:
            self.say_unprefixed(subject, unprefixed)

    def say_unprefixed(self, subject: _Subject, issues: Sequence[PathIssue]) -> None:
        """Says once for a query that its names need prefixes, and which."""
        first, replacement = issues[0], _replacement(subject.query.text, issues)
        message = first.message
        if len(issues) > 1:
            message += f" ({len(issues)} such names)"
        fix = first.fix
        bindings = dict.fromkeys(binding for issue in issues for binding in issue.bindings)
        if replacement is not None and bindings:
            fix = "bind " + " and ".join(f"{prefix} to {uri}" for prefix, uri in bindings)
            if len(bindings) == 1:
                fix += ", or make that the default element namespace"
        self.say("PL103", subject, first.offset, message, fix=fix, replacement=replacement)

    def check_whole(self, subject: _Subject, compiled: CompiledQuery) -> None:
        """Check a query as a whole."""
        every = native.NormalPath("/*")
        if compiled.expression is None and any(p.covers(every) for p in compiled.alternatives):
            subject.is_trivial = True
            self.say("PL203", subject, 0, "every message satisfies this query")
        if compiled.cost is CostClass.SCAN:
            reasons = "; ".join(str(reason) for reason in compiled.reasons)
            offset = compiled.reasons[0].offset if compiled.reasons else 0
            message = f"the query is evaluated for every message: {reasons}"
            fix = "ask for an element that must be there: `//name[...]`"
            self.say("PL401", subject, offset, message, fix=fix)

    # Many queries.

    def compare(self, subjects: Sequence[_Subject], comparisons_max: int) -> None:
        """Says which queries are equal to, or covered by, others."""
        groups: dict[str, list[_Subject]] = {}
        for subject in subjects:
            if subject.key:
                groups.setdefault(subject.key, []).append(subject)
        for first, *others in groups.values():
            for other in others:
                self.say_equal(other, first)
        firsts = [group[0] for group in groups.values()]
        distinct = [
            each
            for each in firsts
            if each.alternatives is not None
            and not (each.is_hopeless or each.is_trivial or each.is_broken)
        ]
        covered, comparisons, left_out = native.coverings(
            [each.alternatives for each in distinct if each.alternatives is not None],
            comparisons_max,
            max(CANDIDATES_MAX, comparisons_max // 100),
        )
        covered_by = dict(covered)
        for special, general in sorted(covered):
            if covered_by.get(general) == special:
                if general < special:
                    self.say_equal(distinct[special], distinct[general])
            else:
                self.say_covered(distinct[special], distinct[general])
        if left_out:
            message = (
                f"up to {left_out} pairs of queries were not compared, "
                f"{comparisons} were: some that are covered may be missing here"
            )
            self.say("PL303", None, 0, message, fix="compare more: comparisons_max, --comparisons")

    def say_equal(self, subject: _Subject, other: _Subject) -> None:
        message = f"equal to {_named(other)}: the same messages satisfy both"
        self.say("PL301", subject, 0, message, related=(other.number,))

    def say_covered(self, subject: _Subject, other: _Subject) -> None:
        message = f"covered by {_named(other)}: every message that satisfies this one satisfies it"
        self.say("PL302", subject, 0, message, related=(other.number,))


def _named(subject: _Subject) -> str:
    text = subject.query.text.strip()
    shown = text if len(text) <= 60 else text[:59] + "…"
    return f"query {subject.query.id} `{shown}`"


def _replacement(text: str, issues: Sequence[PathIssue]) -> Replacement | None:
    """The change that mends all of some issues, if it is known for all."""
    changes = []
    for issue in issues:
        if issue.instead is None or not issue.name:
            return None
        # The place is that of the name with its prefix; both are replaced.
        before = _BEFORE_NAME.match(text, issue.offset)
        end = (before.end() if before else issue.offset) + len(issue.name)
        changes.append((issue.offset, end, issue.instead))
    if not changes:
        return None
    begin, end = changes[0][0], changes[-1][1]
    out, at = [], begin
    for start, stop, instead in changes:
        out += [text[at:start], instead]
        at = stop
    return Replacement(begin, end - begin, "".join(out))
