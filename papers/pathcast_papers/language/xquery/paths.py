"""Paths, steps, primaries and calls of a FLWR subscription."""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast_papers.language import suggestions
from pathcast_papers.language.names import NCNAME_PATTERN
from pathcast_papers.language.pictures import PictureError, moment_picture, number_picture
from pathcast_papers.language.refused_functions import (
    CAST_TYPES,
    REFUSED_FUNCTIONS,
    for_refused,
    for_text_of,
    for_type,
)
from pathcast_papers.language.regular_expressions import (
    PATTERN_BYTES_MAX,
    PatternError,
    read_call,
)
from pathcast_papers.language.typed_text import value_of
from pathcast_papers.language.xquery.functions import (
    ARGUMENT_COUNTS,
    CASE_BLIND,
    CODEPOINT,
    COLLATIONS,
    CONTEXT_FUNCTIONS,
    FUNCTION_NAMESPACE,
    PICTURED,
    REFUSED_ARGUMENTS,
    SCHEMA_NAMESPACE,
    arguments_expected,
)
from pathcast_papers.language.xquery.node_tests import NODE_KINDS, REFUSED_KINDS, NodeTests
from pathcast_papers.language.xquery.scanner import (
    INTEGER_DIGITS_MAX,
    PREDICATES_MAX,
    Kind,
)
from pathcast_papers.language.xquery.shorthands import without_collation, written_out
from pathcast_papers.language.xquery.syntax import (
    Axis,
    Call,
    Cast,
    Context,
    ContextItem,
    Expr,
    Filter,
    KindTest,
    Literal,
    LiteralKind,
    NodeKind,
    Path,
    Root,
    Sequence,
    Step,
    Variable,
)

MESSAGE_VARIABLE: Final = "msg"
"""The message, as papers write it."""

_NUMBERS: Final = MappingProxyType(
    {
        Kind.INTEGER: LiteralKind.INTEGER,
        Kind.DECIMAL: LiteralKind.DECIMAL,
        Kind.DOUBLE: LiteralKind.DOUBLE,
    }
)
_STEP_SYMBOLS: Final = frozenset({"@", "*", ".", ".."})
_DOUBLE_SLASH: Final = KindTest(NodeKind.NODE)


class Paths(NodeTests):
    """The part of the parser that reads what XPath has too."""

    @abstractmethod
    def sequence(self) -> Expr:
        """`a, b, ...`."""

    @abstractmethod
    def single(self) -> Expr:
        """An expression without a comma."""

    @abstractmethod
    def constructor(self) -> Expr:
        """A direct constructor; the token is its `<`."""

    @abstractmethod
    def computed_word(self) -> str | None:
        """The word of the computed constructor that comes next, if one does."""

    @abstractmethod
    def computed(self, word: str) -> Expr:
        """A computed constructor."""

    @abstractmethod
    def declared_call(self, name: str, written: str, first: tuple[Expr, ...], offset: int) -> Expr:
        """A call of a function of the prolog."""

    @abstractmethod
    def declared_variable(self, name: str, offset: int) -> Expr | None:
        """The value of a variable of the prolog; None if it is none."""

    @abstractmethod
    def declared_names(self) -> set[str]:
        """The variables of the prolog."""

    # Paths.

    def path(self) -> Expr:
        """A path, or a primary expression with or without predicates and steps."""
        offset = self.start
        if self.kind is Kind.SYMBOL and self.value in ("/", "//"):
            return self.absolute_path()
        computed = self.computed_word()
        if computed is None and self.is_axis_step() and self.value != ".":
            start = Context(offset) if self.predicates_open else Root(offset)
            return Path(start, self.steps([]), offset)
        primary = self.primary() if computed is None else self.computed(computed)
        if self.is_symbol("["):
            predicates = self.predicates()
            primary = Filter(primary, predicates, offset)
        if not (self.kind is Kind.SYMBOL and self.value in ("/", "//")):
            return primary
        steps = self.steps(self.separator([]))
        match primary:
            case Path(start=begin, steps=before):
                return Path(begin, before + steps, offset)
            case ContextItem():
                return Path(Context(offset), steps, offset)
            case _:
                return Path(primary, steps, offset)

    def absolute_path(self) -> Path:
        """`/`, `/a`, `//a`."""
        offset = self.start
        is_double = self.value == "//"
        steps = self.separator([])
        if is_double or self.is_axis_step() or self._begins_primary():
            return Path(Root(offset), self.steps(steps), offset)
        return Path(Root(offset), (), offset)

    def separator(self, steps: list[Step]) -> list[Step]:
        """`/`, or `//` and the step that it stands for."""
        if self.value == "//":
            self.count(self.start)
            steps.append(Step(Axis.DESCENDANT_OR_SELF, _DOUBLE_SLASH, (), self.start))
        self.advance()
        return steps

    def steps(self, steps: list[Step]) -> tuple[Step, ...]:
        """Steps and the slashes between them."""
        steps.append(self.step())
        while self.kind is Kind.SYMBOL and self.value in ("/", "//"):
            self.separator(steps)
            steps.append(self.step())
        return tuple(steps)

    def is_axis_step(self) -> bool:
        """Whether the token begins a step along an axis."""
        if self.kind is Kind.SYMBOL:
            return self.value in _STEP_SYMBOLS
        if self.kind is not Kind.NAME:
            return False
        if not self.comes("({"):
            return True
        place = self.after_blanks(self.end)
        if self.text[place] == "{":
            # `a {` is a computed constructor if it is anything, but the end of an enclosed
            # expression never looks so.
            return False
        return self.value in NODE_KINDS or self.value in REFUSED_KINDS

    def _begins_primary(self) -> bool:
        """Whether the token may begin a primary expression, which is no step.

        After a slash, `<` does (the constraint leading-lone-slash), so the slash is no whole path.
        """
        if self.kind is Kind.SYMBOL:
            return self.value in ("(", "<")
        return self.kind is not Kind.END

    def _begins_constructor(self) -> bool:
        """Whether a constructor comes with the token `<`."""
        after = self.text[self.end : self.end + 1]
        return after in ("!", "?") or NCNAME_PATTERN.match(after) is not None

    def step(self) -> Step:
        """A step with its predicates."""
        offset = self.start
        if not self.is_axis_step():
            if self.is_symbol("<") and not self._begins_constructor():
                hint = "for the message itself, put the slash in parentheses: (/) < ..."
                raise self.unexpected("a location step", hint)
            if self._begins_primary():
                raise self.unsupported(
                    "an expression as a path step", offset, "use a for clause, or call on the path"
                )
            raise self.unexpected("a location step")
        self.count(offset)
        if self.kind is Kind.SYMBOL and self.value in (".", ".."):
            parent_or_self = Axis.SELF if self.value == "." else Axis.PARENT
            self.advance()
            return Step(parent_or_self, _DOUBLE_SLASH, self.predicates(), offset)
        written: Axis | None = None
        if self.take("@"):
            written = Axis.ATTRIBUTE
        elif self.kind is Kind.NAME and self.text.startswith("::", self.after_blanks(self.end)):
            written = self.axis()
        axis, test = self.node_test(written)
        return Step(axis, test, self.predicates(), offset)

    def predicates(self) -> tuple[Expr, ...]:
        """Expressions in square brackets."""
        if not self.is_symbol("["):
            return ()
        found: list[Expr] = []
        while self.is_symbol("["):
            offset = self.start
            self.count(offset)
            if len(found) == PREDICATES_MAX:
                raise self.error(
                    "query.too_many_predicates",
                    offset,
                    "has too many predicates on a step",
                    maximum=PREDICATES_MAX,
                )
            self.enter(offset)
            self.predicates_open += 1
            self.advance()
            found.append(self.sequence())
            self.predicates_open -= 1
            self.leave()
            self.expect("]", "or an operator")
        return tuple(found)

    # Primaries.

    def context_item(self, offset: int) -> Expr:
        """`.`."""
        return ContextItem(offset) if self.predicates_open else Path(Root(offset), (), offset)

    def primary(self) -> Expr:
        """A primary expression."""
        offset, kind = self.start, self.kind
        if kind is Kind.VARIABLE:
            return self.variable()
        if kind is Kind.STRING:
            self.count(offset)
            literal = Literal(self.value, LiteralKind.STRING, offset)
            self.advance()
            return literal
        if kind in _NUMBERS:
            return self.number()
        if kind is Kind.NAME:
            return self.called()
        if kind is Kind.SYMBOL:
            if self.value == "(":
                return self.parenthesised()
            if self.value == ".":
                self.count(offset)
                self.advance()
                return self.context_item(offset)
            if self.value == "<":
                return self.constructor()
            if self.value == "(#":
                raise self.unsupported("a pragma (# #)", offset)
        raise self.unexpected("an expression")

    def variable(self) -> Expr:
        """`$name`."""
        offset = self.start
        self.count(offset)
        name = self.variable_name(self.value, offset)
        self.advance()
        if name in self.variables:
            return Variable(name, offset)
        if name in self.parameters:
            return Variable(self.parameters[name], offset)
        declared = self.declared_variable(name, offset)
        if declared is not None:
            return declared
        if name == MESSAGE_VARIABLE:
            return Path(Root(offset), (), offset)
        bound = sorted(
            {MESSAGE_VARIABLE, *self.variables, *self.parameters, *self.declared_names()}
        )
        meant = suggestions.nearest(name, bound)
        raise self.error(
            "XPST0008",
            offset,
            f"variable ${name} is not declared",
            f"did you mean ${meant}?" if meant else f"the message is ${MESSAGE_VARIABLE}",
            name=name,
        )

    def number(self) -> Literal:
        """A numeric literal."""
        offset, kind = self.start, _NUMBERS[self.kind]
        self.count(offset)
        value: int | float
        if kind is LiteralKind.INTEGER:
            if len(self.value.lstrip("0")) > INTEGER_DIGITS_MAX:
                raise self.unsupported(
                    f"an integer of more than {INTEGER_DIGITS_MAX} digits", offset
                )
            value = int(self.value)
        else:
            value = float(self.value)
        self.advance()
        return Literal(value, kind, offset)

    def parenthesised(self) -> Expr:
        """`(...)`; leaves no node of its own."""
        offset = self.start
        self.enter(offset)
        self.advance()
        if self.is_symbol(")"):
            self.count(offset)
            inner: Expr = Sequence((), offset)
        else:
            inner = self.sequence()
        self.leave()
        self.expect(")", "or an operator")
        return inner

    # Calls.

    def called(self, first: tuple[Expr, ...] = ()) -> Expr:
        """A function call.

        Args:
            first: An argument that stands before it and `=>`.
        """
        written, offset = self.value, self.start
        place = self.after_blanks(self.end)
        if self.text.startswith("{", place):
            raise self._braced(written, offset)
        if not self.text.startswith("(", place):
            raise self.unexpected("an expression")
        to = self.schema_type(written, offset)
        declared = self.own_name(written, offset) if to is None else None
        if declared is not None:
            return self.declared_call(declared, written, first, offset)
        function = self.function(written, offset) if to is None else ""
        self.count(offset)
        self.advance()
        arguments = first + self.arguments()
        if to is not None:
            if len(arguments) != 1:
                reason = f"xs:{to}() takes 1 argument, {len(arguments)} given"
                raise self.error("XPST0017", offset, reason)
            return self.cast(to, arguments[0], offset)
        self.check_arity(function, len(arguments), offset)
        return self.call(function, arguments, offset)

    def _braced(self, written: str, offset: int) -> QuerySyntaxError:
        if written in ("ordered", "unordered", "validate", "try", "map", "array"):
            return self.unsupported(f"{written} {{}}", offset)
        return self.error("XPST0003", offset, f"found {written} before a brace")

    def own_name(self, written: str, offset: int) -> str | None:
        """The name of a function that is none of the standard library; None of one of it."""
        prefix, colon, local = written.partition(":")
        if written.startswith("Q{"):
            uri, local = self.braced(written, offset)
        elif colon:
            uri = self.prefixed(prefix, offset)
        else:
            return None
        return None if uri == FUNCTION_NAMESPACE else f"Q{{{uri}}}{local}"

    def function(self, written: str, offset: int) -> str:
        """The local name of a function of the standard library that there is."""
        local = written.rpartition("}" if written.startswith("Q{") else ":")[2]
        if local in ARGUMENT_COUNTS:
            return local
        if local in REFUSED_FUNCTIONS:
            raise self.unsupported(f"the function {local}()", offset, for_refused(local))
        if local in ("typeswitch", "switch", "function"):
            raise self.unsupported(f"{local} ()", offset)
        raise self.no_function(written, local, offset)

    def no_function(self, written: str, local: str, offset: int) -> QuerySyntaxError:
        """The error of a function that there is not."""
        meant = suggestions.nearest(local, [*sorted(ARGUMENT_COUNTS), *NODE_KINDS])
        return self.error(
            "XPST0017",
            offset,
            f"there is no function {written}()",
            f"did you mean {meant}()?" if meant else None,
        )

    def schema_type(self, written: str, offset: int, others: tuple[str, ...] = ()) -> str | None:
        """The local name of a type of XML Schema; None for any other name."""
        prefix, colon, local = written.partition(":")
        if written.startswith("Q{"):
            uri, local = self.braced(written, offset)
        elif colon:
            uri = self.prefixed(prefix, offset)
        else:
            return None
        if uri != SCHEMA_NAMESPACE:
            return None
        if local not in CAST_TYPES and local not in others:
            raise self.unsupported(f"the schema type {written}", offset, for_type(local))
        return local

    def cast(self, to: str, operand: Expr, offset: int) -> Cast:
        """A cast, of a literal only if that can be cast."""
        match operand:
            case Literal(value=str() as text) if value_of(text, to) is None:
                reason = f"{ascii(text)[1:-1][:40]} is no value of xs:{to}"
                raise self.error("FORG0001", offset, reason, for_text_of(to))
        return Cast(to, operand, offset)

    def arguments(self) -> tuple[Expr, ...]:
        """What stands in the parentheses of a call."""
        offset = self.start
        self.expect("(", "of the call")
        found: list[Expr] = []
        if self.take(")"):
            return ()
        self.enter(offset)
        found.append(self.single())
        while self.take(","):
            found.append(self.single())
        self.leave()
        self.expect(")", "or a comma")
        return tuple(found)

    def check_arity(self, function: str, given: int, offset: int) -> None:
        """Refuses a wrong number of arguments."""
        construct = REFUSED_ARGUMENTS.get((function, given))
        if construct is not None:
            raise self.unsupported(construct, offset)
        fewest, most = ARGUMENT_COUNTS[function]
        if not fewest <= given <= most:
            reason = f"{function}() takes {arguments_expected(function)}, {given} given"
            raise self.error("XPST0017", offset, reason)

    def check_text_arguments(self, function: str, arguments: tuple[Expr, ...], offset: int) -> None:
        """Refuses patterns and collations that are none, and those that are computed."""
        texts = [each.value if isinstance(each, Literal) else None for each in arguments]
        for written in texts[COLLATIONS.get(function, len(texts)) :]:
            self._check_collation(function, written, offset)
        if function in PICTURED:
            self._check_picture(function, texts[1], offset)
        is_pattern = function in ("matches", "replace") or (
            function == "tokenize" and len(arguments) > 1
        )
        if not is_pattern:
            return
        read = [text for text in texts[1:] if isinstance(text, str)]
        if len(read) < len(texts) - 1:
            construct = f"a computed pattern in {function}()"
            raise self.unsupported(construct, offset, "write it as a literal")
        try:
            read_call(function, *read)
        except PatternError as error:
            raise self._no_pattern(error.kind, read, offset) from None

    def _check_collation(self, function: str, uri: object, offset: int) -> None:
        if not isinstance(uri, str):
            construct = f"a computed collation in {function}()"
            raise self.unsupported(construct, offset, "write its URI as a literal")
        self.check_collation(uri, offset)

    def check_collation(self, uri: str, offset: int) -> None:
        """Refuses a collation that is not known."""
        if uri in (CODEPOINT, CASE_BLIND):
            return
        reason = f"{in_quotes(uri)} is no collation that is known"
        hint = (
            "the collations are codepoint and html-ascii-case-insensitive of "
            "http://www.w3.org/2005/xpath-functions/collation/"
        )
        raise self.error("FOCH0002", offset, reason, hint)

    def _check_picture(self, function: str, text: object, offset: int) -> None:
        if not isinstance(text, str):
            construct = f"a computed picture in {function}()"
            raise self.unsupported(construct, offset, "write it as a literal")
        of = function.removeprefix("format-")
        try:
            _ = number_picture(text) if of == "number" else moment_picture(text, of)
        except PictureError as error:
            match error.kind:
                case "exponent":
                    construct = "an exponent in a picture"
                    raise self.unsupported(construct, offset) from None
                case "part":
                    construct = f"[{ascii(error.part[:40])[1:-1]}] in a picture"
                    raise self.unsupported(construct, offset) from None
                case "absent":
                    reason = f"xs:{of} has no [{error.part}]"
                    raise self.error("FOFD1350", offset, reason) from None
            code = "FODF1310" if of == "number" else "FOFD1340"
            noun = "numbers" if of == "number" else "dates or times"
            raise self.error(code, offset, f"{in_quotes(text)} is no picture of {noun}") from None

    def _no_pattern(self, kind: str, texts: list[str], offset: int) -> QuerySyntaxError:
        unsupported = {
            "back reference": "a back reference in a regular expression",
            "block": "a block of Unicode in a regular expression",
            "too large": f"a regular expression of more than {PATTERN_BYTES_MAX} bytes, "
            "or with many repetitions or classes",
        }
        if kind in unsupported:
            return self.unsupported(unsupported[kind], offset)
        about = {"flags": texts[-1:], "replacement": texts[1:2]}.get(kind, texts)
        shown = in_quotes(about[0])
        code, reason, hint = {
            "syntax": ("FORX0002", f"{shown} is no regular expression of XPath", None),
            "flags": ("FORX0001", f"{shown} are no flags", "the flags are s, m, i, x and q"),
            "empty": ("FORX0003", f"{shown} matches the empty text", None),
            "replacement": (
                "FORX0004",
                f"{shown} is no replacement",
                "write \\$ for a dollar sign, and \\\\ for a backslash",
            ),
        }[kind]
        return self.error(code, offset, reason, hint)

    def call(self, function: str, arguments: tuple[Expr, ...], offset: int) -> Expr:
        """A call in the one form that the tree has for it."""
        if function in ("doc", "document"):
            argument = arguments[0]
            if not (isinstance(argument, Literal) and argument.kind is LiteralKind.STRING):
                raise self.unsupported(
                    f"{function}() of anything but one string literal",
                    offset,
                    "the one document is the message: begin the path with /",
                )
            return Path(Root(offset), (), offset)
        if not arguments and function in CONTEXT_FUNCTIONS:
            arguments = (self.context_item(offset),)
        if function in ("position", "last") and not self.predicates_open:
            return Literal(1, LiteralKind.INTEGER, offset)
        if function == "string-join" and len(arguments) == 1:
            arguments = (*arguments, Literal("", LiteralKind.STRING, offset))
        if function == "tokenize" and len(arguments) == 1:
            words = arguments[0]
            if not (isinstance(words, Call) and words.function == "normalize-space"):
                arguments = (Call("normalize-space", arguments, offset),)
        self.check_text_arguments(function, arguments, offset)
        arguments = without_collation(function, arguments, offset)
        return written_out(function, arguments, offset) or Call(function, arguments, offset)


def in_quotes(text: str) -> str:
    """The beginning of a text, for a sentence."""
    shown = ascii(text[:40])[1:-1].replace("\\\\", "\\")
    return f"'{shown}'"
