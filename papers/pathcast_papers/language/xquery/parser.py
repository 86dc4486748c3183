"""XQuery text -> syntax tree with its names resolved.

Recursive descent; operators of all levels are read by one function that climbs their precedence, so
that the call stack grows with what `DEPTH_MAX` bounds. Names, variables and functions are looked up
where they are read, so what the parser gives stands by itself.

Example:
    >>> program = parse('<hot>{for $s in //story where $s/@prio < 3 return $s/title}</hot>')
    >>> program.body.name.local
    'hot'
    >>> parse("for $s in //story return $t")
    Traceback (most recent call last):
    ...
    pathcast.errors.QuerySyntaxError: XPST0008: variable $t is not declared
      for $s in //story return $t
                               ^
      the message is $msg

Source: XQuery 1.0, sections 3 and 4.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from pathcast_papers.language.names import NCNAME, Namespaces, uri_of
from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.xquery.declared import Declared
from pathcast_papers.language.xquery.functions import CASE_BLIND
from pathcast_papers.language.xquery.lists import check_size, is_value
from pathcast_papers.language.xquery.scanner import Kind
from pathcast_papers.language.xquery.static import check
from pathcast_papers.language.xquery.syntax import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Axis,
    Call,
    Castable,
    Comparator,
    Comparison,
    Expr,
    Flwor,
    For,
    If,
    InstanceOf,
    Intersection,
    Let,
    Negation,
    Or,
    OrderKey,
    Program,
    Quantified,
    Range,
    Sequence,
    SimpleMap,
    Step,
    Union,
    Variable,
)

_OR, _AND, _COMPARISON, _CONCATENATION, _RANGE = range(1, 6)
_ADDITIVE, _MULTIPLICATIVE, _UNION, _INTERSECTION = range(6, 10)

_LEVELS: Final = MappingProxyType(
    {
        "or": _OR,
        "and": _AND,
        **dict.fromkeys(("=", "!=", "<", "<=", ">", ">="), _COMPARISON),
        **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _COMPARISON),
        "||": _CONCATENATION,
        "to": _RANGE,
        "+": _ADDITIVE,
        "-": _ADDITIVE,
        **dict.fromkeys(("*", "div", "idiv", "mod"), _MULTIPLICATIVE),
        "|": _UNION,
        "union": _UNION,
        "intersect": _INTERSECTION,
        "except": _INTERSECTION,
    }
)
_VALUE_COMPARATORS: Final = MappingProxyType(
    {
        "eq": Comparator.EQ,
        "ne": Comparator.NE,
        "lt": Comparator.LT,
        "le": Comparator.LE,
        "gt": Comparator.GT,
        "ge": Comparator.GE,
    }
)
_COMPARATORS: Final = MappingProxyType({each.value: each for each in Comparator})
_ARITHMETIC: Final = MappingProxyType({each.value: each for each in ArithmeticOperator})

_REFUSED_OPERATORS: Final = MappingProxyType(
    {
        "is": "the node comparison is",
        "<<": "the node comparison <<",
        ">>": "the node comparison >>",
    }
)
_REFUSED_CLAUSES: Final = MappingProxyType(
    {"group": "group by", "count": "the count clause", "window": "window"}
)
_REARRANGED: Final = MappingProxyType(
    {
        "where": "join the conditions with and, before order by",
        "for": "write for and let before where and order by, or nest a FLWOR in return",
        "let": "write for and let before where and order by, or nest a FLWOR in return",
        "order": "write the keys after one order by, with commas",
        "stable": "write the keys after one order by, with commas",
    }
)
"""The first word of a clause that comes too late -> what to write."""
_IMPORTS: Final = MappingProxyType({"import": ("schema", "module"), "module": ("namespace",)})
"""What follows the first word of a declaration that is refused."""

_ENCODING: Final = re.compile("[A-Za-z][A-Za-z0-9._-]*")
_VALIDATED: Final = LazyPattern(rf"validate[ \t\r\n]+{NCNAME}(?::{NCNAME})?[ \t\r\n]*\{{")
_WORD: Final = LazyPattern(rf"{NCNAME}(?::(?!:)(?:{NCNAME}|\*))?")


def parse(text: str, namespaces: Namespaces | None = None, deliver: str | None = None) -> Program:
    """The syntax tree of a FLWR subscription.

    Args:
        text: XQuery 1.0, of the subset that docs/subscriptions.md describes.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace. The
            prolog may add to them and replace them.
        deliver: "fragment", "message", "ids" or "nodes", for the rules that depend on it; None for
            the language alone.

    Returns:
        The tree, with names resolved and offsets in characters.

    Raises:
        QuerySyntaxError: With the code of the W3C: the text is not XQuery (XPST0003), names
            something that is not declared (XPST0008, XPST0017, XPST0081), builds an element that
            is not well-formed (XQST....), has a type error (XPTY....), never depends on the
            message, or is over a limit.
        UnsupportedQueryError: It is XQuery beyond the subset; `params["construct"]` names it.

    Cost: linear in the text.
    """
    check_size(text)
    parser = _Parser(text, namespaces or {})
    program = parser.program()
    check(program, parser, deliver)
    return program


class _Parser(Declared):
    """The descent: prolog, FLWOR and the like, operators."""

    # Prolog.

    def program(self) -> Program:
        """A whole module."""
        self.version()
        declared: set[str] = set()
        while self.is_declaration():
            self.declaration(declared)
        self.check_declared()
        if self.is_end():
            raise self.unexpected("an expression")
        body = self.sequence()
        if not self.is_end():
            raise self.unexpected("an operator or the end")
        return Program(body)

    def is_declaration(self) -> bool:
        """Whether the token begins a declaration, and not a path, as any name may."""
        if self.kind is not Kind.NAME:
            return False
        if self.value == "declare":
            return not (self.comes("({:") or self.text.startswith("/", self.end))
        following = _IMPORTS.get(self.value, ())
        return self.text.startswith(tuple(following), self.after_blanks(self.end))

    def version(self) -> None:
        """`xquery version "1.0";`."""
        if not self.is_word("xquery"):
            return
        following = _WORD.match(self.text, self.after_blanks(self.end))
        if following is None or following[0] != "version":
            return
        self.advance()
        self.advance()
        offset, version = self.start, self.value
        if self.kind is not Kind.STRING:
            raise self.unexpected("a version in quotes")
        if version != "1.0":
            raise self.unsupported(f"XQuery version {ascii(version)[1:-1]}", offset)
        self.advance()
        if self.take_word("encoding"):
            if self.kind is not Kind.STRING:
                raise self.unexpected("an encoding in quotes")
            if _ENCODING.fullmatch(self.value) is None:
                raise self.error("XQST0087", self.start, "this cannot be the name of an encoding")
            self.advance()
        self.expect(";", "after the version")

    def declaration(self, declared: set[str]) -> None:
        """One declaration of the prolog."""
        offset = self.start
        if not self.is_word("declare"):
            raise self.unsupported(f"{self.value} in the prolog", offset)
        self.advance()
        kind = self.value
        if self.is_word("function") or self.is_word("variable"):
            self.declare_value(offset)
            return
        if self.declarations:
            reason = "namespaces are declared before functions and variables"
            raise self.error("XPST0003", offset, reason)
        if self.is_word("namespace"):
            self.advance()
            prefix, place = self.value, self.start
            if self.kind is not Kind.NAME or set(":*{") & set(prefix):
                raise self.unexpected("a prefix")
            self.advance()
            self.expect("=", "after the prefix")
            code = "XQST0033"
        elif self.is_word("default"):
            self.advance()
            if not self.is_word("element"):
                raise self.unsupported(f"declare default {self.value}", offset)
            self.advance()
            prefix, place, code = "", self.start, "XQST0066"
            self.expect_word("namespace", "")
        elif self.kind is Kind.NAME:
            raise self.unsupported(f"declare {kind}", offset)
        else:
            expected = "namespace, default element namespace, function or variable"
            raise self.unexpected(expected)
        if self.kind is not Kind.STRING:
            raise self.unexpected("a namespace URI in quotes")
        uri = uri_of(self.value)
        self._check_declared(prefix, uri, place)
        if prefix in declared:
            raise self.error(code, place, f"{prefix or 'the default'} is declared twice")
        declared.add(prefix)
        if uri or not prefix:
            self.namespaces[prefix] = uri
        else:
            self.namespaces.pop(prefix, None)
        self.advance()
        self.expect(";", "after the declaration")

    def _check_declared(self, prefix: str, uri: str, offset: int) -> None:
        if prefix in ("xml", "xmlns"):
            raise self.error("XQST0070", offset, "xml and xmlns are reserved")
        self.bindable(prefix, uri, offset)

    # Sequences, FLWOR, quantifiers, conditionals.

    def sequence(self) -> Expr:
        """`a, b, ...`."""
        offset = self.start
        first = self.single()
        if not self.is_symbol(","):
            return first
        items: list[Expr] = []
        _append(items, first)
        self.values += is_value(first)
        while self.is_symbol(","):
            place, nodes = self.start, self.nodes
            self.count(place)
            self.advance()
            item = self.single()
            _append(items, item)
            if is_value(item):
                self.nodes = nodes
                self.count_value(place)
        return items[0] if len(items) == 1 else Sequence(tuple(items), offset)

    def single(self) -> Expr:
        """An expression without a comma."""
        if self.kind is Kind.NAME:
            word = self.value
            if word in ("for", "let", "some", "every"):
                if self.comes("$"):
                    return self.flwor() if word in ("for", "let") else self.quantified()
                self._refuse_window(word)
            elif word in ("if", "typeswitch", "switch", "try") and self.comes("({"):
                if word != "if":
                    raise self.unsupported(word, self.start)
                return self.conditional()
            elif word == "validate" and _VALIDATED.match(self.text, self.start):
                raise self.unsupported(word, self.start)
        return self.operators()

    def _refuse_window(self, word: str) -> None:
        following = self.text[self.after_blanks(self.end) :][:8]
        if word == "for" and following in ("tumbling", "sliding "):
            raise self.unsupported("a window clause", self.start)

    def flwor(self) -> Flwor:
        """`for ... let ... where ... order by ... return ...`."""
        offset, outer = self.start, self.variables
        self.enter(offset)
        clauses: list[For | Let] = []
        while self.kind is Kind.NAME and self.value in ("for", "let") and self.comes("$"):
            is_for = self.value == "for"
            self.advance()
            clauses.append(self.for_binding() if is_for else self.let_binding())
            while self.take(","):
                clauses.append(self.for_binding() if is_for else self.let_binding())
        where = self.single() if self.take_word("where") else None
        order = self.order()
        self._refuse_clause("order by" if order else "where")
        self.expect_word("return", "or another clause")
        body = self.single()
        self.variables = outer
        self.leave()
        return Flwor(tuple(clauses), where, order, body, offset)

    def _refuse_clause(self, before: str) -> None:
        """Refuses a clause of XQuery that is not evaluated, or not there, by its name."""
        if self.kind is not Kind.NAME:
            return
        word = self.value
        construct = _REFUSED_CLAUSES.get(word)
        if word == "where":
            construct = f"a second where clause, or one after {before}"
        elif word in ("for", "let") and self.comes("$"):
            construct = f"a {word} clause after {before}"
        elif word in ("order", "stable"):
            construct = "a second order by clause"
        if construct is not None:
            raise self.unsupported(construct, self.start, _REARRANGED.get(word))

    def binding_name(self) -> str:
        """The variable that is bound; goes on to what follows."""
        if self.kind is not Kind.VARIABLE:
            raise self.unexpected("a variable")
        self.count(self.start)
        name = self.variable_name(self.value, self.start)
        self.advance()
        if self.is_word("as"):
            raise self.unsupported("a type declaration (as)", self.start)
        if self.is_word("allowing"):
            raise self.unsupported("allowing empty", self.start)
        return name

    def for_binding(self) -> For:
        """`$v at $i in source`, and the scope of the variables."""
        offset = self.start
        name, position = self.binding_name(), None
        if self.take_word("at"):
            place = self.start
            position = self.binding_name()
            if position == name:
                raise self.error("XQST0089", place, f"${name} is bound twice in one clause")
        self.expect_word("in", f"after ${name}")
        source = self.single()
        self.variables |= {name} if position is None else {name, position}
        return For(name, position, source, offset)

    def let_binding(self) -> Let:
        """`$v := value`, and the scope of the variable."""
        offset = self.start
        name = self.binding_name()
        self.expect(":=", f"after ${name}")
        value = self.single()
        self.variables |= {name}
        return Let(name, value, offset)

    def order(self) -> tuple[OrderKey, ...]:
        """`stable order by key ascending empty least, ...`."""
        if self.take_word("stable"):
            if not self.is_word("order"):
                raise self.unexpected("order by")
        elif not self.is_word("order"):
            return ()
        self.advance()
        self.expect_word("by", "after order")
        keys = [self.order_key()]
        while self.take(","):
            keys.append(self.order_key())
        return tuple(keys)

    def order_key(self) -> OrderKey:
        """One key and its modifiers."""
        offset = self.start
        self.count(offset)
        key = self.single()
        is_descending = self.take_word("descending")
        if not is_descending:
            self.take_word("ascending")
        is_greatest = False
        if self.take_word("empty"):
            is_greatest = self.take_word("greatest")
            if not is_greatest:
                self.expect_word("least", "or greatest")
        place, is_case_blind = self.start, False
        if self.take_word("collation"):
            if self.kind is not Kind.STRING:
                raise self.unexpected("a namespace URI in quotes")
            self.check_collation(self.value, place)
            is_case_blind = self.value == CASE_BLIND
            self.advance()
        return OrderKey(key, is_descending, is_greatest, is_case_blind, offset)

    def quantified(self) -> Quantified:
        """`some $v in source, ... satisfies condition`."""
        offset, outer = self.start, self.variables
        self.enter(offset)
        self.count(offset)
        is_every = self.value == "every"
        self.advance()
        bindings: list[For] = []
        while True:
            place = self.start
            name = self.binding_name()
            self.expect_word("in", f"after ${name}")
            bindings.append(For(name, None, self.single(), place))
            self.variables |= {name}
            if not self.take(","):
                break
        self.expect_word("satisfies", "or a comma")
        condition = self.single()
        self.variables = outer
        self.leave()
        return Quantified(is_every, tuple(bindings), condition, offset)

    def conditional(self) -> If:
        """`if (condition) then a else b`."""
        offset = self.start
        self.enter(offset)
        self.count(offset)
        self.advance()
        self.expect("(", "after if")
        condition = self.sequence()
        self.expect(")", "after the condition")
        self.expect_word("then", "after the condition")
        then = self.single()
        self.expect_word("else", "(which is never left out)")
        otherwise = self.single()
        self.leave()
        return If(condition, then, otherwise, offset)

    # Operators.

    def operators(self) -> Expr:
        """Operands and the operators between them, folded by precedence."""
        place = self.start
        operands: list[tuple[Expr, int]] = [(self.operand(), place)]
        waiting: list[tuple[str, int]] = []
        while self.kind is Kind.SYMBOL or self.kind is Kind.NAME:
            written = self.value
            level = _LEVELS.get(written)
            if level is None:
                if written in _REFUSED_OPERATORS:
                    raise self.unsupported(_REFUSED_OPERATORS[written], self.start)
                break
            _fold(operands, waiting, level + 1)
            if level == _RANGE and waiting and waiting[-1][1] == _RANGE:
                break
            if level == _COMPARISON and waiting and waiting[-1][1] == _COMPARISON:
                reason = "comparisons cannot be chained"
                raise self.error("XPST0003", self.start, reason, "put one of them in parentheses")
            _fold(operands, waiting, level)
            self.count(self.start)
            waiting.append((written, level))
            self.advance()
            place = self.start
            operands.append((self.operand(), place))
        _fold(operands, waiting, _OR)
        return operands[0][0]

    def operand(self) -> Expr:
        """`... castable as xs:date treat as item() instance of item()`."""
        offset = self.start
        expr = self.castable(offset)
        if self.takes_words("treat", "as", offset):
            item, occurrence = self.sequence_type()
            treated = Variable("treated", offset)
            condition = InstanceOf(treated, item, occurrence, offset)
            chosen = If(condition, treated, Sequence((), offset), offset)
            expr = Flwor((Let("treated", expr, offset),), None, (), chosen, offset)
        if self.takes_words("instance", "of", offset):
            expr = InstanceOf(expr, *self.sequence_type(), offset)
        return expr

    def takes_words(self, first: str, second: str, offset: int) -> bool:
        """Goes on if two words come, which count as an operator."""
        is_here = self.is_word(first) and self.comes_word(second)
        if is_here:
            self.count(offset)
            self.advance()
            self.advance()
        return is_here

    def sequence_type(self) -> tuple[Step | str, str]:
        """`element(a)*`, `xs:date?`, `empty-sequence()`."""
        item = self.item_type()
        if item == "empty-sequence()":
            return item, ""
        occurrence = self.value if self.kind is Kind.SYMBOL and self.value in "?*+" else ""
        if occurrence:
            self.advance()
        return item, occurrence

    def item_type(self) -> Step | str:
        """What each item must be."""
        written, offset = self.value, self.start
        if self.kind is not Kind.NAME:
            raise self.unexpected("a name or *")
        if self.comes("(") and not set(":{") & set(written):
            if written in ("function", "map", "array"):
                raise self.unsupported(f"{written} ()", offset)
            if written not in ("item", "document-node", "empty-sequence"):
                axis = Axis.ATTRIBUTE if written == "attribute" else Axis.SELF
                return Step(*self.kind_test(axis), (), offset)
            self.advance()
            self.expect("(", f"of {written}()")
            if written == "document-node" and not self.is_symbol(")"):
                raise self.unsupported("the node test document-node()", offset)
            self.expect(")", f"of {written}()")
            return f"{written}()"
        return f"xs:{self.type_name(('anyAtomicType', 'untypedAtomic'))}"

    def type_name(self, others: tuple[str, ...] = ()) -> str:
        """The local name of a type that there is a cast to, or of one of some others."""
        if self.kind is not Kind.NAME:
            raise self.unexpected("a name or *")
        place, written = self.start, self.value
        found = self.schema_type(written, place, others)
        if found is None:
            reason = f"there is no type {written}"
            raise self.error("XQST0052", place, reason, "types have the prefix xs: xs:date")
        self.advance()
        return found

    def castable(self, offset: int) -> Expr:
        """`... cast as xs:date castable as xs:date?`."""
        expr = self.arrows()
        for word in ("cast", "castable"):
            if not self.takes_words(word, "as", offset):
                continue
            to = self.type_name()
            is_optional = self.take("?")
            if word == "cast":
                expr = self.cast(to, expr, offset)
            else:
                expr = Castable(to, is_optional, expr, offset)
        return expr

    def comes_word(self, word: str) -> bool:
        """Whether a word follows the token."""
        found = _WORD.match(self.text, self.after_blanks(self.end))
        return found is not None and found[0] == word

    def arrows(self) -> Expr:
        """`a => f(b)`, which is `f(a, b)`."""
        expr = self.unary()
        while self.take("=>"):
            if self.kind is Kind.VARIABLE or self.is_symbol("("):
                raise self.unsupported("a computed function after =>", self.start)
            if self.kind is not Kind.NAME:
                raise self.unexpected("an expression")
            expr = self.called((expr,))
        return expr

    def unary(self) -> Expr:
        """Signs before a path."""
        offset, minuses, has_sign = self.start, 0, False
        while self.kind is Kind.SYMBOL and self.value in ("-", "+"):
            self.count(self.start)
            minuses += self.value == "-"
            has_sign = True
            self.advance()
        expr = self.path()
        while self.is_symbol("!"):
            self.count(self.start)
            self.predicates_open += 1
            self.advance()
            expr = SimpleMap(expr, self.path(), offset)
            self.predicates_open -= 1
        if has_sign:
            # A plus makes a number of its operand, as two minuses do.
            for _ in range(1 if minuses % 2 else 2):
                expr = Negation(expr, offset)
        return expr


def _fold(operands: list[tuple[Expr, int]], waiting: list[tuple[str, int]], lowest: int) -> None:
    """Joins operands, from the right, while the operator between them is of a level or tighter."""
    while waiting and waiting[-1][1] >= lowest:
        written, _ = waiting.pop()
        right, _ = operands.pop()
        left, offset = operands.pop()
        operands.append((_joined(written, left, right, offset), offset))


def _joined(written: str, left: Expr, right: Expr, offset: int) -> Expr:
    """Two operands and the operator between them."""
    level = _LEVELS[written]
    if level == _COMPARISON:
        operator = _VALUE_COMPARATORS.get(written)
        if operator is not None:
            return Comparison(operator, True, left, right, offset)
        return Comparison(_COMPARATORS[written], False, left, right, offset)
    if level in (_ADDITIVE, _MULTIPLICATIVE):
        return Arithmetic(_ARITHMETIC[written], left, right, offset)
    if level == _CONCATENATION:
        return Call("concat", (*_texts(left), *_texts(right)), offset)
    if level == _RANGE:
        return Range(left, right, offset)
    if level == _INTERSECTION:
        return Intersection(written == "except", left, right, offset)
    # `(a or b) or c` says the same as `a or b or c`.
    if level == _OR:
        return Or((*_operands(left, Or), *_operands(right, Or)), offset)
    if level == _AND:
        return And((*_operands(left, And), *_operands(right, And)), offset)
    return Union((*_operands(left, Union), *_operands(right, Union)), offset)


def _append(items: list[Expr], item: Expr) -> None:
    """Adds an item to a sequence; sequences do not nest."""
    if isinstance(item, Sequence):
        items.extend(item.items)
    else:
        items.append(item)


def _texts(expr: Expr) -> tuple[Expr, ...]:
    """What `concat()` joins: `concat(a, b) || c` says the same as `concat(a, b, c)`."""
    if isinstance(expr, Call) and expr.function == "concat":
        return expr.arguments
    return (expr,)


def _operands(expr: Expr, kind: type[Or] | type[And] | type[Union]) -> tuple[Expr, ...]:
    return expr.operands if isinstance(expr, kind) else (expr,)
