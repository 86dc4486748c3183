"""Functions and variables that the prolog declares, put in where they are used.

A text is read once where it is declared, to find its end and what it uses, and again wherever it is
used, with its parameters bound by `let`: no tree has functions. One that uses itself is refused, so
that this ends; every syntax node counts wherever it is put in, so that it stays small.

A parameter is bound under its name and a number, `x#1`: arguments may speak of other variables.

Source: XQuery 3.1, sections 4.16 and 4.18.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast_papers.language.names import XML_NAMESPACE, Namespaces
from pathcast_papers.language.xquery.computed import Computed
from pathcast_papers.language.xquery.functions import (
    BOOLEAN_FUNCTIONS,
    FUNCTION_NAMESPACE,
    SCHEMA_NAMESPACE,
    STRING_FUNCTIONS,
)
from pathcast_papers.language.xquery.scanner import Kind
from pathcast_papers.language.xquery.syntax import (
    And,
    Call,
    Cast,
    Castable,
    Comparison,
    ContextItem,
    Expr,
    Flwor,
    InstanceOf,
    Let,
    Literal,
    LiteralKind,
    Or,
    Quantified,
    Sequence,
    SimpleMap,
    Step,
)

_RESERVED: Final = frozenset(
    {
        "",
        FUNCTION_NAMESPACE,
        SCHEMA_NAMESPACE,
        XML_NAMESPACE,
        "http://www.w3.org/2001/XMLSchema-instance",
    }
)
_LITERALS: Final = MappingProxyType(
    {
        LiteralKind.STRING: ("string",),
        LiteralKind.INTEGER: ("integer", "decimal"),
        LiteralKind.DECIMAL: ("decimal",),
        LiteralKind.DOUBLE: ("double",),
    }
)
"""Kind of a literal -> types that it is of."""


@dataclass(frozen=True, slots=True)
class _Type:
    """What `as` says."""

    item: Step | str
    occurrence: str


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a function (`given` arguments) or of a variable; as it is written, and where."""

    name: str
    given: int | None
    written: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A function (its parameters and their types) or a variable.

    Attributes:
        name: With its namespace.
        parameters: None of a variable.
        declared: The type of the value.
        body: Where the expression begins.
        uses: What the expression uses.
    """

    name: str
    parameters: tuple[tuple[str, _Type | None], ...] | None
    declared: _Type | None
    body: int
    uses: tuple[_Use, ...]

    @property
    def arity(self) -> int | None:
        return None if self.parameters is None else len(self.parameters)

    @property
    def shown(self) -> str:
        local = self.name.rpartition("}")[2]
        return f"variable (${local})" if self.arity is None else f"function ({local}())"


class Declared(Computed):
    """The part of the parser that reads declarations of values, and puts them in."""

    def __init__(self, text: str, namespaces: Namespaces) -> None:
        self.declarations: list[_Declaration] = []
        self._skimmed: list[_Use] | None = None
        self._visible = 0
        self._bound = 0
        self._of_prolog: dict[str, str] = {}
        super().__init__(text, namespaces)

    @abstractmethod
    def sequence_type(self) -> tuple[Step | str, str]:
        """`element(a)*`, `xs:date?`, `empty-sequence()`."""

    # Declarations.

    def declare_value(self, offset: int) -> None:
        """`function name(...) as type {...};` or `variable $name as type := ...;`."""
        is_function = self.take_word("function")
        parameters = None
        if is_function:
            place = self.start
            name = self._function_name()
            parameters = self._parameters()
        else:
            self.advance()
            place = self.start
            name = self._declared_name()
        declared = self._declared_type()
        if self.is_word("external"):
            kind = "function" if is_function else "variable"
            raise self.unsupported(f"an external {kind}", offset, "write its value")
        arity = None if parameters is None else len(parameters)
        if self._find(name, arity) is not None:
            if arity is None:
                raise self.error("XQST0049", place, f"${name} is declared twice")
            reason = f"the function {name}() of {arity} parameters is declared twice"
            raise self.error("XQST0034", place, reason)
        if is_function:
            self.expect("{", "before the body")
        else:
            self.expect(":=", f"after ${name}")
        body = self.start
        if is_function and self.is_symbol("}"):
            raise self.unsupported("an empty enclosed expression {}", body, "write {()}")
        names = [each for each, _ in parameters or ()]
        uses = self._skim(names, is_function=is_function)
        if is_function:
            self.expect("}", "or an operator")
        self.expect(";", "after the declaration")
        self.declarations.append(_Declaration(name, parameters, declared, body, uses))
        self._visible += 1

    def _function_name(self) -> str:
        offset, written = self.start, self.value
        if self.kind is not Kind.NAME:
            raise self.unexpected("a name or *")
        self.advance()
        prefix, colon, local = written.partition(":")
        uri = ""
        if written.startswith("Q{"):
            uri, local = self.braced(written, offset)
        elif colon:
            uri = self.prefixed(prefix, offset)
        if uri in _RESERVED or local == "*":
            reason = "this name is none that a function may be given"
            raise self.error("XQST0045", offset, reason, "write the prefix local: local:f")
        return f"Q{{{uri}}}{local}"

    def _declared_name(self) -> str:
        if self.kind is not Kind.VARIABLE:
            raise self.unexpected("a variable")
        self.count(self.start)
        name = self.variable_name(self.value, self.start)
        self.advance()
        return name

    def _parameters(self) -> tuple[tuple[str, _Type | None], ...]:
        self.expect("(", "of the parameters")
        found: dict[str, _Type | None] = {}
        if self.take(")"):
            return ()
        while True:
            offset = self.start
            name = self._declared_name()
            if name in found:
                raise self.error("XQST0039", offset, f"the parameter ${name} is there twice")
            found[name] = self._declared_type()
            if not self.take(","):
                break
        self.expect(")", "or a comma")
        return tuple(found.items())

    def _declared_type(self) -> _Type | None:
        return _Type(*self.sequence_type()) if self.take_word("as") else None

    def _find(self, name: str, arity: int | None) -> int | None:
        for number, known in enumerate(self.declarations):
            if (known.name, known.arity) == (name, arity):
                return number
        return None

    def _skim(self, parameters: Iterable[str], *, is_function: bool) -> tuple[_Use, ...]:
        """Reads an expression for its end and the uses in it."""
        nodes, self._skimmed = self.nodes, []
        self.variables = frozenset(parameters)
        _ = self.sequence() if is_function else self.single()
        self.variables = frozenset()
        uses, self._skimmed, self.nodes = tuple(self._skimmed), None, nodes
        return uses

    # When the prolog has been read.

    def check_declared(self) -> None:
        """Looks at all declarations: what they use is there, and is not themselves."""
        self._of_prolog = self.namespaces
        graph = [
            [(self._used(use), use.offset) for use in declaration.uses]
            for declaration in self.declarations
        ]
        done: set[int] = set()
        for start in range(len(graph)):
            way = [(start, iter(graph[start]))] if start not in done else []
            while way:
                at, rest = way[-1]
                found = next(rest, None)
                if found is None:
                    done.add(at)
                    way.pop()
                    continue
                used, offset = found
                if any(used == each for each, _ in way):
                    construct = f"a recursive {self.declarations[used].shown}"
                    hint = "a call is replaced by the function, which has to end"
                    raise self.unsupported(construct, offset, hint)
                if used not in done:
                    way.append((used, iter(graph[used])))

    def _used(self, use: _Use) -> int:
        found = self._find(use.name, use.given)
        if found is None:
            raise self._no_declared(use)
        return found

    def _no_declared(self, use: _Use) -> QuerySyntaxError:
        arities = [
            str(known.arity)
            for known in self.declarations
            if known.name == use.name and known.arity is not None
        ]
        if not arities:
            return self.no_function(use.written, use.name.rpartition("}")[2], use.offset)
        takes = " or ".join(arities)
        noun = "argument" if takes == "1" else "arguments"
        reason = f"{use.written}() takes {takes} {noun}, {use.given} given"
        return self.error("XPST0017", use.offset, reason)

    # Uses.

    def declared_call(self, name: str, written: str, first: tuple[Expr, ...], offset: int) -> Expr:
        """A call of a function of the prolog."""
        is_known = any(it.name == name and it.arity is not None for it in self.declarations)
        if self._skimmed is None and not is_known:
            raise self.no_function(written, name.rpartition("}")[2], offset)
        self.count(offset)
        self.advance()
        arguments = first + self.arguments()
        use = _Use(name, len(arguments), written, offset)
        if self._skimmed is not None:
            self._skimmed.append(use)
            return Sequence((), offset)
        number = self._used(use)
        parameters = self.declarations[number].parameters or ()
        clauses: list[Let] = []
        scope: dict[str, str] = {}
        for (parameter, declared), argument in zip(parameters, arguments, strict=True):
            self._bound += 1
            scope[parameter] = f"{parameter}#{self._bound}"
            value = self._converted(declared, argument, offset)
            clauses.append(Let(scope[parameter], value, offset))
        body = self._put_in(number, scope, offset)
        return Flwor(tuple(clauses), None, (), body, offset) if clauses else body

    def declared_variable(self, name: str, offset: int) -> Expr | None:
        """The value of a variable of the prolog; None if it is none."""
        number = self._find(name, None)
        if number is None or number >= self._visible:
            return None
        if self._skimmed is not None:
            self._skimmed.append(_Use(name, None, name, offset))
            return Sequence((), offset)
        return self._put_in(number, {}, offset)

    def declared_names(self) -> set[str]:
        """The variables of the prolog."""
        return {known.name for known in self.declarations if known.arity is None}

    def _put_in(self, number: int, scope: dict[str, str], offset: int) -> Expr:
        """The expression of a declaration where it is used."""
        declaration = self.declarations[number]
        self.enter(offset)
        place = self.start
        around = self.namespaces, self.variables, self.parameters
        open_before, visible_before = self.predicates_open, self._visible
        self.namespaces, self.variables, self.parameters = self._of_prolog, frozenset(), scope
        self.predicates_open, self._visible = 0, number
        self.move(declaration.body)
        found = self.single() if declaration.arity is None else self.sequence()
        self.namespaces, self.variables, self.parameters = around
        self.predicates_open, self._visible = open_before, visible_before
        self.move(place)
        self.leave()
        return self._converted(declaration.declared, found, offset)

    def _converted(self, declared: _Type | None, value: Expr, offset: int) -> Expr:
        """A value as one of a declared type: atomic values are cast; nodes are what they are."""
        if declared is None or not isinstance(declared.item, str):
            return value
        prefix, _, to = declared.item.partition(":")
        if prefix != "xs":
            return value
        if to in ("anyAtomicType", "untypedAtomic"):
            return Call("data", (value,), offset)
        if _is_of_type(value, to):
            return value
        if declared.occurrence in ("", "?"):
            return self.cast(to, value, offset)
        return SimpleMap(value, self.cast(to, ContextItem(offset), offset), offset)


def _is_of_type(value: Expr, to: str) -> bool:
    """Whether an expression is written as values of a type."""
    match value:
        case Literal(kind=kind):
            return to in _LITERALS[kind]
        case Cast(to=known):
            return known == to
        case Comparison() | And() | Or() | Quantified() | Castable() | InstanceOf():
            return to == "boolean"
        case Call(function=function) if function in BOOLEAN_FUNCTIONS:
            return to == "boolean"
        case Call(function=function) if function in STRING_FUNCTIONS:
            return to == "string"
        case Sequence(items=items):
            return all(_is_of_type(item, to) for item in items)
    return False
