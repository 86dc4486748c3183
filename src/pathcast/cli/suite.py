"""Suites of cases: subscriptions as tested code. `pathcast test` runs them.

A suite is a TOML file. Each case has a query and a message, and says what has to come of it: the
results, nothing at all, or an error.

    namespaces = { n = "urn:news" }             # for all cases; optional

    [[case]]
    name = "books below thirty, by title"
    query = "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"
    message = "<bib><book><title>Sand</title><price>20</price></book></bib>"
    expect = ["<hit><title>Sand</title></hit>"]

Instead of `query` and `message`: `query_file`, `message_file`, relative to the suite. Instead of
`expect`: `expect_file`, `delivered = false`, or `error = "CODE"` (of the query, the message, or the
pair). Besides: `deliver`, `indented = true` (white space around tags does not count). Results are
compared as canonical XML: the order of attributes, CDATA and such make no difference.

It prints nothing.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pathcast.errors import ConfigError, PathcastError
from pathcast.limits import Limits
from pathcast.message.canonical import FragmentError, canonical
from pathcast.model import QueryLanguage, Subscription
from pathcast.registry import Deliveries, Registry
from pathcast.registry.subscription_files import subscription_of

CASE_ID = "case"


class Case(BaseModel):
    """One case, as the file says it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    query: str | None = None
    query_file: str | None = None
    message: str | None = None
    message_file: str | None = None
    deliver: Literal["fragment", "message", "ids"] | None = None
    language: QueryLanguage | None = None
    namespaces: dict[str, str] = Field(default_factory=dict)
    steps: list[str] | None = None
    expect: str | list[str] | None = None
    expect_file: str | list[str] | None = None
    delivered: bool | None = None
    error: str | None = None
    indented: bool = False

    @model_validator(mode="after")
    def _check(self) -> Case:
        for one, other in (("query", "query_file"), ("message", "message_file")):
            if (getattr(self, one) is None) == (getattr(self, other) is None):
                raise ValueError(f"it needs {one} or {other}, and one of them only")
        said = [
            name
            for name in ("expect", "expect_file", "delivered", "error")
            if getattr(self, name) is not None
        ]
        if len(said) != 1:
            raise ValueError(
                "it needs one of expect, expect_file, delivered and error, to say what has to come"
            )
        return self


class Suite(BaseModel):
    """A file of cases."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    namespaces: dict[str, str] = Field(default_factory=dict)
    limits: dict[str, int | str] = Field(default_factory=dict)
    case: Annotated[list[Case], Field(min_length=1)]


class CaseOutcome(Enum):
    """The outcome of a case."""

    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case and what became of it.

    Attributes:
        suite: The file.
        name: Name of the case.
        outcome: Whether what had to come came.
        reason: One sentence; empty if it passed.
        difference: Lines of a diff from what had to come to what came; empty where there is none.
        explanation: Where the query fails or how it holds, where the number of results is wrong;
            empty where nothing can be said.
    """

    suite: Path
    name: str
    outcome: CaseOutcome
    reason: str = ""
    difference: tuple[str, ...] = ()
    explanation: str = ""


def read_suite(path: Path) -> Suite:
    """Reads a suite.

    Raises:
        ConfigError: It cannot be read, is not TOML, or a case lacks or has too much of something.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return Suite.model_validate(content)
    except ValidationError as error:
        raise _unusable(path, _first_problem(error)) from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _unusable(path, str(error)) from error


def run_suite(path: Path, suite: Suite) -> list[CaseResult]:
    """Runs the cases of a suite, each by itself.

    Args:
        path: The file, which other files are relative to.
        suite: What it says.

    Raises:
        ConfigError: A file that a case names cannot be read, or a limit cannot be used.
    """
    try:
        limits = Limits(**suite.limits)  # type: ignore[arg-type]
    except TypeError as error:
        raise _unusable(path, f"limits: {error}") from error
    return [_run(path, case, suite.namespaces, limits) for case in suite.case]


def _run(
    path: Path,
    case: Case,
    namespaces: Mapping[str, str],
    limits: Limits,
) -> CaseResult:
    asked = _asked(path, case)._replace(namespaces={**namespaces, **case.namespaces})
    registry = Registry(limits, threads=1)
    report = registry.add([asked])
    message = case.message if case.message is not None else _file(path, case.message_file)
    found: Deliveries | None = None
    error: PathcastError | None = report.rejected.get(CASE_ID)
    if error is None:
        found = registry.deliver(message)
        error = found.error or found.verdicts.get(CASE_ID)
    reason, difference = _judged(path, case, [] if found is None else found, error)
    if not reason:
        return CaseResult(path, case.name, CaseOutcome.PASSED)
    told = ""
    if found is not None and error is None and _is_miscounted(case, len(found)):
        explanation = registry.explain(CASE_ID, message)
        told = str(explanation) if explanation.is_told else ""
    return CaseResult(path, case.name, CaseOutcome.FAILED, reason, tuple(difference), told)


def _is_miscounted(case: Case, came: int) -> bool:
    """Whether there are more results than had to come, or fewer: whether the query is to blame."""
    if case.error is not None or case.delivered is not None:
        return case.error is None
    wanted = case.expect if case.expect is not None else case.expect_file
    assert wanted is not None
    return came != (1 if isinstance(wanted, str) else len(wanted))


def _asked(path: Path, case: Case) -> Subscription:
    """The query of a case and what is with it: as the case says, else as the file."""
    steps = tuple(case.steps or ())
    if case.query is not None:
        mode = case.deliver or "fragment"
        return Subscription(CASE_ID, CASE_ID, case.query, mode, None, steps, case.language)
    assert case.query_file is not None
    try:
        text = _file(path, case.query_file).decode()
    except UnicodeDecodeError as error:
        raise _unusable(path, f"{case.query_file}: not UTF-8: {error.reason}") from error
    said = subscription_of(text, Path(case.query_file))
    return said._replace(
        id=CASE_ID,
        subscriber=CASE_ID,
        deliver=case.deliver or said.deliver,
        steps=said.steps if case.steps is None else steps,
        language=case.language or said.language,
    )


def _judged(
    path: Path, case: Case, found: Deliveries | Sequence[Any], error: PathcastError | None
) -> tuple[str, list[str]]:
    """Why a case fails, and the diff; nothing if it does not."""
    if case.error is not None:
        if error is None:
            return f"{case.error} had to come, and there was no error", []
        if error.code != case.error:
            return f"{case.error} had to come, and it was {error.code}: {error}", []
        return "", []
    if error is not None:
        return str(error), []
    came = [delivery.fragment or b"" for delivery in found]
    if case.delivered is not None:
        if case.delivered == bool(came):
            return "", []
        told = "nothing was delivered" if case.delivered else "nothing had to be delivered"
        return told, _diff([], came, is_indented=case.indented)
    wanted = _wanted(path, case)
    try:
        same = [_comparable(text, case) for text in wanted] == [
            _comparable(text, case) for text in came
        ]
    except FragmentError as broken:
        raise _unusable(path, f"case {case.name!r}: what it expects is not XML: {broken}") from None
    if same:
        return "", []
    counts = f"{len(wanted)} had to come, {len(came)} came"
    told = counts if len(wanted) != len(came) else "the results differ"
    return told, _diff(wanted, came, is_indented=case.indented)


def _wanted(path: Path, case: Case) -> list[bytes]:
    """The expected results of a case, one text each."""
    if case.expect is not None:
        texts = [case.expect] if isinstance(case.expect, str) else case.expect
        return [_trimmed(text.encode()) for text in texts]
    assert case.expect_file is not None
    names = [case.expect_file] if isinstance(case.expect_file, str) else case.expect_file
    return [_trimmed(_file(path, name)) for name in names]


def _trimmed(text: bytes) -> bytes:
    """An element as it is written into a file, without the line break before and after it."""
    return text.strip() if text.strip().startswith(b"<") else text


def _comparable(text: bytes, case: Case) -> bytes:
    """A result such that equal results are equal texts."""
    return b"\n".join(_lines(canonical(text))) if case.indented else canonical(text)


def _diff(wanted: Sequence[bytes], came: Sequence[bytes], *, is_indented: bool) -> list[str]:
    """The differing lines of two results, one tag a line."""
    sides = []
    for results in (wanted, came):
        lines: list[str] = []
        for result in results:
            try:
                shown = _lines(canonical(result), keep_space=not is_indented)
            except FragmentError:
                shown = [result]
            lines += [line.decode(errors="replace") for line in shown]
        sides.append(lines)
    expected, delivered = sides
    return list(
        difflib.unified_diff(expected, delivered, "expected", "delivered", lineterm="", n=3)
    )


def _lines(text: bytes, *, keep_space: bool = False) -> list[bytes]:
    """Canonical text in lines of a tag and the text after it."""
    lines = text.replace(b"<", b"\n<").split(b"\n<")
    first, rest = lines[0], [b"<" + line for line in lines[1:]]
    if not keep_space:
        first, rest = first.strip(), [line.strip() for line in rest]
    return [first, *rest] if first else rest


def _file(path: Path, name: str | None) -> bytes:
    assert name is not None
    file = path.parent / name
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unusable(path, f"{file}: {error.strerror or error}") from error
    except ValueError as error:
        # A name that no file has: with a null character.
        raise _unusable(path, f"{str(file)!r}: {error}") from error


def _first_problem(error: ValidationError) -> str:
    # A key that is misspelt is missing as well: the first of the two is what has to be told.
    detail = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    place = ".".join(str(part + 1 if isinstance(part, int) else part) for part in detail["loc"])
    problem = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        known = Case if len(detail["loc"]) > 1 else Suite
        near = difflib.get_close_matches(str(detail["loc"][-1]), list(known.model_fields), n=1)
        advice = (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(known.model_fields)}"
        )
        problem = f"is not a key; {advice}"
    return f"{place}: {problem}" if place else problem


def _unusable(path: Path, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=str(path), reason=reason)
