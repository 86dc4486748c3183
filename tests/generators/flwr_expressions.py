"""Random expressions of the whole FLWR language, with the variables that are in scope.

Example:
    >>> import random
    >>> from generators.flwr_vocabulary import BIB
    >>> writer = ExpressionWriter(random.Random(5), BIB, FlwrWidth.WHOLE)
    >>> writer.boolean(1)
    '(007 >= 0)'

Every method gives the text of one expression that can stand wherever an operand can: compound ones
come in parentheses. What a method promises of the value (a node, one number, ...) holds for most
messages, so that functions of one item are called with one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from generators.flwr_paths import FlwrWidth, PathWriter, Selected
from generators.flwr_vocabulary import Vocabulary

__all__ = ["Binding", "ExpressionWriter", "FlwrWidth"]

_FACTORS: Final = ("1", "2", "4", "0.5", "-1", "8")
_NAMES: Final = ("s", "s", "x", "y", "for", "return", "a-b", "x.1", "\u00e9", "_", "msg2")
_ITEM_TYPES: Final = (
    *("node()*", "element()", "element()+", "attribute()?", "text()*", "item()", "item()+"),
    *("xs:string", "xs:double?", "xs:integer", "xs:anyAtomicType*", "xs:untypedAtomic"),
    *("document-node()", "empty-sequence()"),
)
_VALUE_OPERATORS: Final = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable in scope.

    Attributes:
        name: Without `$`.
        kind: What it is bound to: one node, any nodes, one number, one string, any atomic values,
            constructed elements.
        element: Name of the nodes' elements (or `@name`, `text()`); "" if not known.
        is_of_message: Of a `let`: whether its value depends on the message, so that what uses the
            variable does. (With a `for`, it is enough that the source does.)
    """

    name: str
    kind: Literal["node", "nodes", "number", "string", "values", "built"]
    element: str = ""
    is_of_message: bool = False


class ExpressionWriter(PathWriter):
    """Writes expressions.

    Attributes:
        scope: The variables in scope, outermost first; a name may be there twice.
        origin: Name of the context item's element inside a predicate, None outside.
        is_result: Whether what is written becomes a result by itself, outside all constructors.
    """

    def __init__(self, random: Random, vocabulary: Vocabulary, width: FlwrWidth) -> None:
        super().__init__(random, vocabulary, width)
        self.scope: list[Binding] = []
        self.origin: str | None = None
        self.is_result = False

    @contextmanager
    def scoped(self) -> Iterator[None]:
        """Variables bound inside are gone afterwards."""
        before = len(self.scope)
        yield
        del self.scope[before:]

    def new_name(self) -> str:
        """A name for a variable; it may hide another."""
        name = self.random.choice(_NAMES)
        return name if not self.one_in(3) else f"{name}{len(self.scope)}"

    def bound(self, *kinds: str) -> Binding | None:
        """A variable of one of some kinds that is not hidden; the innermost most of the time."""
        visible = {binding.name: binding for binding in self.scope}
        found = [binding for binding in visible.values() if binding.kind in kinds]
        if not found:
            return None
        return found[-1] if self.random.randrange(3) else self.random.choice(found)

    def use(self, binding: Binding) -> str:
        """A variable where its value is used."""
        self.message_uses += binding.is_of_message
        return f"${binding.name}"

    # --- Nodes -----------------------------------------------------------------------------------

    def nodes(self, depth: int) -> Selected:
        """Nodes, any number of them."""
        random = self.random
        if depth > 0:
            match random.randrange(14):
                case 0:
                    left, right = self.nodes(depth - 1), self.nodes(depth - 1)
                    word = random.choice(("|", "union", "intersect", "except"))
                    return Selected(f"({left.text} {word} {right.text})", "", False)
                case 1:
                    inner = self.nodes(depth - 1)
                    predicate = random.choice(("1", "2", "last()", "position() > 1", "*", "@*"))
                    text = f"({inner.text})[{predicate}]"
                    if self.one_in(2):
                        return Selected(text, inner.name, inner.is_number)
                    return self.path(inner.name, text, depth=depth - 1)
                case 2:
                    inner = self.nodes(depth - 1)
                    condition = self.boolean(depth - 1)
                    text = f"(if ({condition}) then {inner.text} else ())"
                    return Selected(text, inner.name, inner.is_number)
                case 3:
                    return self.filtered(depth)
        if self.origin is not None and random.randrange(3):
            return self.relative()
        binding = self.bound("node", "nodes")
        if binding is None or self.one_in(10):
            return self.binding_path(depth)
        if binding.element.startswith("@") or binding.element == "text()" or self.one_in(6):
            return self._selected_by(binding)
        start = self.use(binding)
        if binding.kind == "nodes" and self.one_in(4):
            start += random.choice(("[1]", "[last()]", "[position() < 3]"))
        return self.path(binding.element, start, depth=depth - 1)

    def relative(self) -> Selected:
        """A path from the context item of a predicate."""
        if self.one_in(8):
            return Selected(".", self.origin or "", self.vocabulary.is_number(self.origin or ""))
        if self.one_in(3):
            return self.value_step("", self.origin or "")
        return self.path(self.origin or "", "")

    def filtered(self, depth: int) -> Selected:
        """The nodes of a loop that meet a condition."""
        source = self.nodes(depth - 1)
        with self.scoped():
            name = self.new_name()
            self.scope.append(Binding(name, "node", source.name))
            condition = self.boolean(depth - 1)
        text = f"(for ${name} in {source.text} where {condition} return ${name})"
        return Selected(text, source.name, source.is_number)

    def node(self, depth: int) -> Selected:
        """One node, or none."""
        binding = self.bound("node")
        if binding is not None and self.random.randrange(3):
            kind = self.vocabulary.elements.get(binding.element)
            if kind is not None and kind.attributes and self.one_in(2):
                attribute = self.random.choice(kind.attributes)
                is_number = self.vocabulary.is_number("@" + attribute)
                return Selected(f"{self.use(binding)}/@{attribute}", "@" + attribute, is_number)
            if not self.one_in(3):
                return self._selected_by(binding)
        if self.origin is not None and self.one_in(3):
            return Selected(".", self.origin, self.vocabulary.is_number(self.origin))
        inner = self.nodes(depth)
        position = self.random.choice(("1", "1", "last()"))
        return Selected(f"({inner.text})[{position}]", inner.name, inner.is_number)

    def _selected_by(self, binding: Binding) -> Selected:
        is_number = self.vocabulary.is_number(binding.element)
        return Selected(self.use(binding), binding.element, is_number)

    def numeric_nodes(self, depth: int) -> str:
        """Nodes whose values are numbers, if some are found soon."""
        for _ in range(6):
            before = self.message_uses
            nodes = self.nodes(depth)
            if nodes.is_number:
                return nodes.text
            self.message_uses = before
        return f"{self.message()}//{self.random.choice(self._numeric_names())}"

    def _numeric_names(self) -> list[str]:
        names = [name for name in self.vocabulary.elements if self.vocabulary.is_number(name)]
        return sorted([*names, *(f"@{name}" for name in self.vocabulary.numbers)])

    def predicate(self, name: str, depth: int) -> str:
        """What stands in brackets: anything, if the width allows it."""
        if self.width is not FlwrWidth.WHOLE or depth <= 0 or self.one_in(2):
            return super().predicate(name, depth)
        before, self.origin = self.origin, name
        try:
            return self.boolean(depth - 1)
        finally:
            self.origin = before

    # --- Atomic values ---------------------------------------------------------------------------

    def any_number(self, depth: int) -> str:
        """One number, or none."""
        random = self.random
        if depth <= 0:
            binding = self.bound("number")
            if binding is not None and self.one_in(2):
                return self.use(binding)
            if self.origin is not None and self.one_in(3):
                return random.choice(("position()", "last()", "count(*)", "string-length()"))
            node = self.bound("node")
            if node is not None and random.randrange(3):
                function = "number" if self.vocabulary.is_number(node.element) else "string-length"
                return f"{function}({self.use(node)})"
            return self.number()
        match random.randrange(14):
            case 12:
                function = random.choice(("sum", "avg", "min", "max"))
                return f"{function}({self.sequence_of(self.any_number, depth)})"
            case 13:
                return f"number({self.atomic(depth - 1)})"
            case 0 | 1 | 2:
                return f"count({self.nodes(depth - 1).text})"
            case 3 | 4:
                function = random.choice(("sum", "sum", "avg", "min", "max"))
                return f"{function}({self.numeric_nodes(depth - 1)})"
            case 5:
                return f"string-length({self.any_string(depth - 1)})"
            case 6:
                return f"number({self.node(depth - 1).text})"
            case 7:
                function = random.choice(("floor", "ceiling", "round", "abs"))
                return f"{function}({self.any_number(depth - 1)})"
            case 8:
                return f"(- {self.any_number(depth - 1)})"
            case 9:
                sign = random.choice(("+", "-", "*"))
                return f"({self.any_number(depth - 1)} {sign} {self.any_number(depth - 1)})"
            case 10:
                word = random.choice(("div", "mod", "idiv", "*"))
                return f"({self.any_number(depth - 1)} {word} {random.choice(_FACTORS)})"
            case _:
                return f"count({self.values(depth - 1)})"

    def any_string(self, depth: int) -> str:
        """One string, or none."""
        random = self.random
        if depth <= 0:
            binding = self.bound("string", "node")
            if self.origin is not None and self.one_in(3):
                return random.choice(("string()", "name()", "string(.)", "normalize-space()"))
            if binding is None or self.one_in(3):
                return self.string()
            text = self.use(binding)
            return text if binding.kind == "string" else f"string({text})"
        match random.randrange(14):
            case 0 | 1 | 2:
                return f"string({self.node(depth - 1).text})"
            case 3:
                parts = [self.atomic(depth - 1) for _ in range(random.randrange(2, 4))]
                if self.one_in(2):
                    return f"({' || '.join(parts)})"
                return f"concat({', '.join(parts)})"
            case 4:
                ends = random.choice(("1", "2", "2, 2", "0, 3", "1.5, 2.6", "-1, 4"))
                return f"substring({self.any_string(depth - 1)}, {ends})"
            case 5:
                function = random.choice(("substring-before", "substring-after"))
                return f"{function}({self.any_string(depth - 1)}, {self.string()})"
            case 6:
                return f"normalize-space({self.any_string(depth - 1)})"
            case 7:
                function = random.choice(("upper-case", "lower-case"))
                if self.one_in(2):
                    return f"({self.any_string(depth - 1)} => {function}())"
                return f"{function}({self.any_string(depth - 1)})"
            case 8:
                pairs = random.choice(("'Xe', 'xE'", "'abc', ''", "' ', '_'", "'\u00e9', 'e'"))
                return f"translate({self.any_string(depth - 1)}, {pairs})"
            case 9:
                function = random.choice(("name", "local-name", "local-name", "namespace-uri"))
                return f"{function}({self.node(depth - 1).text})"
            case 10 | 11:
                separator = random.choice(("', '", "''", "'|'", '" &amp; "'))
                return f"string-join({self.strings(depth - 1)}, {separator})"
            case 12:
                return f"string({self.any_number(depth - 1)})"
            case _:
                condition = self.boolean(depth - 1)
                then, otherwise = self.any_string(depth - 1), self.any_string(depth - 1)
                return f"(if ({condition}) then {then} else {otherwise})"

    def sequence_of(self, writer: Callable[[int], str], depth: int) -> str:
        """No item, one or several, in parentheses."""
        parts = [writer(depth - 1) for _ in range(self.random.randrange(4))]
        return f"({', '.join(parts)})"

    def atomic(self, depth: int) -> str:
        """One atomic value or a node, for functions that take either."""
        writers = (self.any_number, self.any_string, self.any_string)
        if self.one_in(3):
            return self.node(depth).text
        return self.random.choice(writers)(depth)

    def string_of(self, depth: int) -> str:
        """One string, never none."""
        return f"string({self.node(depth).text})" if depth > 0 else self.string()

    def strings(self, depth: int) -> str:
        """A sequence for `string-join`."""
        nodes = self.nodes(depth)
        if self.one_in(2):
            return nodes.text
        with self.scoped():
            name = self.new_name()
            self.scope.append(Binding(name, "node", nodes.name))
            inner = self.any_string(depth - 1)
        return f"for ${name} in {nodes.text} return {inner}"

    def values(self, depth: int) -> str:
        """A sequence of atomic values."""
        random = self.random
        if depth <= 0:
            return random.choice((f"({self.number()}, {self.number()})", f"({self.string()})"))
        match random.randrange(10):
            case 8:
                first, last = random.choice(("1", "3", "-1", "()")), self.nodes(depth - 1)
                return f"({first} to count({last.text}))"
            case 9:
                inner = random.choice(("name()", "string(.)", "position()", "(last(), count(@*))"))
                return f"({self.nodes(depth - 1).text} ! {inner})"
            case 0 | 1:
                return f"distinct-values({self.nodes(depth - 1).text})"
            case 5:
                return f"distinct-values({self.sequence_of(self.any_number, depth)})"
            case 6:
                return f"{random.choice(('min', 'max'))}({self.sequence_of(self.string_of, depth)})"
            case 7:
                return f"distinct-values({self.sequence_of(self.atomic, depth)})"
            case 2:
                return f"data({self.nodes(depth - 1).text})"
            case 3:
                return f"({self.any_number(depth - 1)}, {self.any_string(depth - 1)}, ())"
            case _:
                binding = self.bound("values")
                return self.use(binding) if binding else f"({self.any_number(depth - 1)})"

    # --- Conditions ------------------------------------------------------------------------------

    def boolean(self, depth: int) -> str:
        """A condition; in parentheses where an operator might reach in."""
        random = self.random
        if depth <= 0:
            nodes = self.nodes(0)
            return f"({self.compared(nodes)})" if random.randrange(4) else nodes.text
        match random.randrange(16):
            case 0 | 1:
                word = random.choice(("and", "or"))
                parts = [self.boolean(depth - 1) for _ in range(random.choice((2, 2, 3)))]
                return f"({f' {word} '.join(parts)})"
            case 2:
                return f"not({self.boolean(depth - 1)})"
            case 3:
                function = random.choice(("exists", "empty", "boolean"))
                return f"{function}({self.nodes(depth - 1).text})"
            case 4 | 5:
                return self.quantified(depth)
            case 6 | 7:
                function = random.choice(("contains", "starts-with", "ends-with"))
                return f"{function}({self.any_string(depth - 1)}, {self.any_string(0)})"
            case 8:
                sides = [self.any_number(depth - 1), self.any_number(depth - 1)]
                return f"({sides[0]} {self.operator()} {sides[1]})"
            case 9:
                sides = [self.any_string(depth - 1), self.any_string(depth - 1)]
                word = random.choice((*_VALUE_OPERATORS, self.operator()))
                return f"({sides[0]} {word} {sides[1]})"
            case 10:
                sides = [self.any_number(depth - 1), self.number()]
                return f"({sides[0]} {random.choice(_VALUE_OPERATORS)} {sides[1]})"
            case 11:
                left, right = self.nodes(depth - 1), self.nodes(depth - 1)
                return f"({left.text} {self.operator()} {right.text})"
            case 12:
                language = "lang('en')" if self.origin is not None else "true()"
                return random.choice(("true()", "false()", language))
            case 13:
                return self.nodes(depth - 1).text
            case 14:
                return f"({self.anything(depth - 1)} instance of {random.choice(_ITEM_TYPES)})"
            case _:
                return f"({self.compared(self.nodes(depth - 1))})"

    def quantified(self, depth: int) -> str:
        """`some` or `every`, over one variable or two."""
        random = self.random
        clauses = []
        with self.scoped():
            for _ in range(random.choice((1, 1, 2))):
                nodes = self.nodes(depth - 1)
                name = self.new_name()
                self.scope.append(Binding(name, "node", nodes.name))
                clauses.append(f"${name} in {nodes.text}")
            condition = self.boolean(depth - 1)
        word = random.choice(("some", "every"))
        return f"({word} {', '.join(clauses)} satisfies {condition})"

    def anything(self, depth: int) -> str:
        """A value of any type but constructed elements, in parentheses where needed."""
        writers: tuple[Callable[[int], str], ...] = (
            lambda level: self.nodes(level).text,
            lambda level: self.nodes(level).text,
            lambda level: self.nodes(level).text,
            self.any_number,
            self.any_string,
            self.values,
            # A boolean is no result of its own.
            self.any_string if self.is_result else self.boolean,
        )
        return self.random.choice(writers)(depth)
