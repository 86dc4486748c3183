"""Random frames, FLWORs and constructors: what is built of the expressions.

A subscription is a frame of constructors and sequences around expressions, some of the message and
some constant, of which one of the message must give an item for a message to be delivered. The
generator knows them as it writes the frame, so it says what delivery depends on without asking the
code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from generators.flwr_expressions import Binding, ExpressionWriter
from generators.flwr_paths import FlwrWidth, Selected

_TAGS: Final = ("r", "result", "item", "section", "stock_news", "x-y", "for", "\u00e9")
_BLANKS: Final = ("", " ", "\n", "\n  ")
_TEXTS: Final = (
    *("text", " a b ", "{{", "}}", "&lt;", "&amp;&#233;", "<![CDATA[<&{}]]>", "&#10;"),
    *("(: no comment :)", "]]&gt;", "'", '"', "&#x1F600;", "$x"),
)
_VALUE_TEXTS: Final = ("v", " a  b ", "{{}}", "&lt;&quot;", "&#10;", "''", "", "&#9;x")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFlwr:
    """A generated subscription.

    Attributes:
        text: The query.
        namespaces: Prefix -> namespace name, to be given with it.
        delivered: An XQuery expression that is true for the messages that are delivered.
        holds: One that is true for those of which a notice is due, or that are sent on.
        width: What it was asked to be.
    """

    text: str
    namespaces: Mapping[str, str]
    delivered: str
    holds: str
    width: FlwrWidth


class FrameWriter:
    """Writes one subscription."""

    def __init__(self, write: ExpressionWriter, depth: int) -> None:
        self.write = write
        self.random = write.random
        self.depth = depth
        self.width = write.width
        self.contents: list[str] = []
        self.parts: list[str] = []
        self.constructors = 0

    def flwr(self) -> GeneratedFlwr:
        """The subscription."""
        match self.width:
            case FlwrWidth.PAPER:
                body = self.paper_form()
            case FlwrWidth.SIMPLE if self.random.randrange(4):
                with self.constructed():
                    loop = self.asked(lambda: self.flwor(self.depth))
                body = self.element(2, loop)
            case _:
                body = self.frame(2)
        if not self.contents:
            with self.constructed():
                path = self.content(self.write.binding_path(0).text)
            body = self.element(1, path)
        delivered = " or ".join(self.contents)
        holds = f"boolean(({', '.join(self.parts)}))"
        prolog, namespaces = self.prolog()
        return GeneratedFlwr(
            text=prolog + body,
            namespaces=namespaces,
            delivered=prolog + delivered,
            holds=prolog + holds,
            width=self.width,
        )

    def notice(self) -> GeneratedFlwr:
        """A subscription that is asked whether it is true: a value of any type, or some of them."""
        write, random = self.write, self.random
        while not self.contents:
            count = random.choice((1, 1, 1, 2))
            body = ", ".join(self.asked(self.truth) for _ in range(count))
        prolog, namespaces = self.prolog()
        return GeneratedFlwr(
            text=prolog + (body if count == 1 and not write.one_in(4) else f"({body}, ())"),
            namespaces=namespaces,
            delivered=prolog + " or ".join(self.contents),
            holds=prolog + f"boolean(({', '.join(self.parts)}))",
            width=self.width,
        )

    def truth(self) -> str:
        """What is true or false, more or less."""
        write, depth = self.write, self.depth
        write.is_result = False
        writers = (write.any_number, write.any_string, write.values, write.anything, self.flwor)
        if self.random.randrange(3):
            return write.boolean(depth)
        text = self.random.choice(writers)(depth)
        # Constants of a sequence in the frame would say nothing.
        return f"data({text})" if text.startswith("(") else text

    def prolog(self) -> tuple[str, dict[str, str]]:
        """Declarations in the query, and the namespaces that are given beside it."""
        given = dict(self.write.vocabulary.namespaces)
        text = 'xquery version "1.0";\n' if self.write.one_in(10) else ""
        for prefix in sorted(given):
            if not self.write.one_in(3):
                continue
            uri = given[prefix].replace("&", "&amp;")
            if self.write.one_in(2):
                given[prefix] = "urn:not-this"
            else:
                del given[prefix]
            what = f"namespace {prefix} =" if prefix else "default element namespace"
            text += f'declare {what} "{uri}";\n'
        if self.write.one_in(12):
            text += "(: a comment (: in a comment :) ; :) "
        return text, given

    def content(self, expression: str, *, declared: tuple[str, ...] = ()) -> str:
        """Notes a content expression and gives it back.

        Args:
            expression: The expression.
            declared: The namespace declarations of the constructors around it, outermost first.
        """
        test = f"exists({expression})"
        if declared:
            test = f"{{{test}}}"
            for declaration in reversed(declared):
                test = f"<w{declaration}>{test}</w>"
            test = f'string({test}) = "true"'
        self.contents.append(test)
        # A constructor that is asked for is an element: true, as any node.
        built = f"(if ({test}) then $msg else ())"
        self.parts.append(built if self.constructors else f"({expression})")
        return expression

    @contextmanager
    def constructed(self) -> Iterator[None]:
        """What is written inside stands in a constructor."""
        self.constructors += 1
        yield
        self.constructors -= 1

    def asked(self, write: Callable[[], str], declared: tuple[str, ...] = ()) -> str:
        """An expression of the frame, noted as content if it depends on the message."""
        before = self.write.message_uses, self.write.is_result
        self.write.is_result = self.constructors == 0
        text = write()
        self.write.is_result = before[1]
        if self.write.message_uses > before[0]:
            self.content(text, declared=declared)
        return text

    # --- The paper's class -----------------------------------------------------------------------

    def paper_form(self) -> str:
        """One `for`, a conjunction of comparisons, a template."""
        write, random = self.write, self.random
        source = write.binding_path(0)
        name = write.new_name()
        start = f"${name}"
        conditions = [
            write.compared(self.predicate_path(source.name, start))
            for _ in range(random.choice((0, 1, 1, 2, 3)))
        ]
        where = f" where {' and '.join(conditions)}" if conditions else ""
        template = self.template(source.name, start, 1)
        blank = random.choice((" ", "\n  "))
        loop = f"for ${name} in {source.text}{blank}{where}{blank}return {template}"
        with self.constructed():
            self.content(loop)
        if write.one_in(6):
            return loop
        tag = random.choice(_TAGS)
        return f"<{tag}>{random.choice(_BLANKS)}{{ {loop} }}{random.choice(_BLANKS)}</{tag}>"

    def predicate_path(self, origin: str, start: str) -> Selected:
        """A path of a `where` clause: to elements, to an attribute, to text."""
        write = self.write
        if write.one_in(3):
            return write.value_step(start, origin)
        return write.path(origin, start)

    def template(self, origin: str, start: str, depth: int) -> str:
        """Constant tags and relative paths, interleaved."""
        random, write = self.random, self.write
        tag = random.choice(_TAGS)
        parts = []
        for _ in range(random.choice((1, 2, 2, 3))):
            if depth > 0 and write.one_in(5):
                parts.append(self.template(origin, start, depth - 1))
            else:
                path = start if write.one_in(10) else write.path(origin, start).text
                parts.append(f"{{ {path} }}")
        blank = random.choice(_BLANKS)
        return f"<{tag}>{blank}{blank.join(parts)}{blank}</{tag}>"

    # --- The frame -------------------------------------------------------------------------------

    def frame(self, levels: int, outer: tuple[str, ...] = (), *, is_inside: bool = False) -> str:
        """Constructors, sequences and content expressions."""
        random = self.random
        choice = random.randrange(8 if levels > 0 else 3)
        if choice == 2 and not is_inside:
            # A bare path is a subscription in XPath, of which this is no generator.
            choice = 7
        match choice:
            case 0 | 1:
                return self.asked(lambda: self.flwor(self.depth, is_built=True), outer)
            case 2:
                return self.asked(self.frame_value, outer)
            case 3:
                parts = [self.frame(levels - 1, outer, is_inside=True) for _ in range(2)]
                if self.write.one_in(4):
                    parts.insert(random.randrange(3), random.choice(("'text'", "1", "()")))
                return (
                    f"({', '.join(parts)})"
                    if levels < 2 or self.write.one_in(2)
                    else ", ".join(parts)
                )
            case _:
                declared = self.declaration() if self.write.one_in(5) else ""
                scope = (*outer, declared) if declared else outer
                with self.constructed():
                    inner = [
                        f"{{ {self.frame(levels - 1, scope, is_inside=True)} }}"
                        if random.randrange(4)
                        else self.literal()
                        for _ in range(random.choice((1, 1, 2, 3)))
                    ]
                return self.element(levels, None, declared, inner)

    def frame_value(self) -> str:
        """A value: of the message most of the time, or constant, which decides nothing.

        It is no sequence, of which a part might be constant.
        """
        write = self.write
        if self.width is FlwrWidth.SIMPLE:
            return write.binding_path(1).text
        before = write.message_uses
        while (text := write.anything(self.depth)).startswith("("):
            write.message_uses = before
        return text

    def declaration(self) -> str:
        """A namespace declaration on a constructor."""
        default = self.random.choice(("urn:a", "urn:example:line", ""))
        prefixed = self.random.choice(("urn:k", "urn:p?a&amp;b"))
        # A prefix of the vocabulary, bound to something else: what is copied must bind it again.
        prefix = self.random.choice(("k", "k", *filter(None, self.write.vocabulary.namespaces)))
        return self.random.choice((f' xmlns="{default}"', f' xmlns:{prefix}="{prefixed}"'))

    def element(
        self,
        depth: int,
        expression: str | None,
        declared: str = "",
        inner: list[str] | None = None,
    ) -> str:
        """A constructor around an expression, or around given content."""
        random = self.random
        tag = random.choice(_TAGS)
        if "xmlns:k" in declared and self.write.one_in(2):
            tag = "k:" + tag
        parts = inner if inner is not None else [f"{{{expression}}}"]
        if inner is None and self.write.one_in(3):
            parts.insert(random.randrange(2), self.literal())
        blank = random.choice(_BLANKS)
        attributes = self.attributes(depth) if self.write.one_in(3) else ""
        return f"<{tag}{declared}{attributes}>{blank}{blank.join(parts)}{blank}</{tag}>"

    def literal(self) -> str:
        """Text, or an element without anything of the message."""
        if self.write.one_in(4):
            return self.random.choice(("<br/>", "<hr></hr>", '<i n="1">x</i>', "{ 'lit' }"))
        return self.random.choice(_TEXTS)

    def attributes(self, depth: int) -> str:
        """Attributes of a constructor, with attribute value templates."""
        text = ""
        for name in self.random.sample(("n", "id", "xml:lang", "k"), self.random.choice((1, 1, 2))):
            quote = self.random.choice('""\'')
            value = self.random.choice(_VALUE_TEXTS) if self.write.one_in(2) else ""
            # Inside braces quotes are the expression's own; outside they are doubled.
            value = value.replace("''", "x") if quote == "'" else value
            for _ in range(self.random.choice((0, 1, 1, 2))):
                value += f"{{{self.template_value(depth)}}}"
            text += f" {name}={quote}{value}{quote}"
        return text

    def template_value(self, depth: int) -> str:
        """What stands in the braces of an attribute."""
        write = self.write
        if self.width is FlwrWidth.WHOLE:
            return write.anything(min(depth, 1))
        binding = write.bound("node", "nodes")
        if binding is None:
            return f"count({write.binding_path(0).text})"
        return write.value_step(write.use(binding), binding.element).text

    # --- FLWORs ----------------------------------------------------------------------------------

    def flwor(self, depth: int, *, is_built: bool = True) -> str:
        """A FLWOR expression; what it returns may be constructed."""
        write, random = self.write, self.random
        whole = self.width is FlwrWidth.WHOLE
        with write.scoped():
            starts_with_let = whole and write.one_in(8)
            clauses = [self.let_clause(depth)] if starts_with_let else []
            clauses.append(self.for_clause(depth, is_first=True))
            for _ in range(random.choice((0, 0, 1, 2)) if whole else random.choice((0, 0, 1))):
                is_let = write.one_in(2)
                clauses.append(self.let_clause(depth) if is_let else self.for_clause(depth))
            text = " ".join(clauses)
            if random.randrange(3):
                text += f" where {self.condition(depth)}"
            if (whole and write.one_in(3)) or write.one_in(10):
                text += self.order_by(depth)
            text += f"{random.choice((' ', chr(10)))}return {self.returned(depth, is_built)}"
        return text

    def for_clause(self, depth: int, *, is_first: bool = False) -> str:
        """`for $x at $p in ...`; the variables are in scope afterwards."""
        write = self.write
        whole = self.width is FlwrWidth.WHOLE
        position = f"p{len(write.scope)}" if write.one_in(5 if whole else 12) else None
        at = f" at ${position}" if position else ""
        if whole and write.one_in(8):
            source, binding = write.values(depth - 1), Binding(write.new_name(), "values")
        else:
            nodes = write.binding_path(1) if is_first else write.nodes(1)
            source, binding = nodes.text, Binding(write.new_name(), "node", nodes.name)
        write.scope.append(binding)
        if position:
            write.scope.append(Binding(position, "number"))
        return f"for ${binding.name}{at} in {source}"

    def let_clause(self, depth: int) -> str:
        """`let $x := ...`; the variable is in scope afterwards."""
        write = self.write
        name, before = write.new_name(), write.message_uses
        kind = self.random.randrange(5 if self.width is FlwrWidth.WHOLE else 2)
        binding: Binding
        if kind < 2:
            nodes = write.nodes(depth - 1)
            text, binding = nodes.text, Binding(name, "nodes", nodes.name)
        elif kind == 2:
            text, binding = write.any_number(depth - 1), Binding(name, "number")
        elif kind == 3:
            text, binding = write.any_string(depth - 1), Binding(name, "string")
        else:
            text, binding = self.element(0, write.nodes(depth - 1).text), Binding(name, "built")
        # Where the variable is used, its value is, and not before.
        is_of_message, write.message_uses = write.message_uses > before, before
        write.scope.append(replace(binding, is_of_message=is_of_message))
        return f"let ${name} := {text}"

    def condition(self, depth: int) -> str:
        """A `where` clause."""
        write = self.write
        if self.width is FlwrWidth.WHOLE:
            return write.boolean(depth - 1)
        parts = []
        for _ in range(self.random.choice((1, 1, 2, 3))):
            nodes = write.nodes(0)
            text = write.compared(nodes) if self.random.randrange(4) else nodes.text
            parts.append(f"not({text})" if write.one_in(6) else text)
        return self.random.choice((" and ", " and ", " or ")).join(parts)

    def order_by(self, depth: int) -> str:
        """An `order by` clause with one key or two."""
        write, random = self.write, self.random
        keys = []
        for _ in range(random.choice((1, 1, 2))):
            node = write.node(min(depth, 1))
            key = f"number({node.text})" if node.is_number and random.randrange(4) else node.text
            if write.one_in(5):
                key = write.any_string(1)
            elif write.one_in(5):
                key = write.any_number(1)
            key += random.choice(("", "", " ascending", " descending"))
            keys.append(key + random.choice(("", "", " empty greatest", " empty least")))
        return f" {random.choice(('order', 'stable order'))} by {', '.join(keys)}"

    def returned(self, depth: int, is_built: bool) -> str:
        """What a FLWOR returns."""
        write, random = self.write, self.random
        if is_built and random.randrange(4):
            return self.constructor(depth)
        binding = write.bound("built") if is_built else None
        if binding is not None and write.one_in(2):
            return write.use(binding)
        return (
            f"({self.value(depth - 1)})" if self.width is FlwrWidth.WHOLE else write.nodes(0).text
        )

    def constructor(self, depth: int) -> str:
        """A constructor in a return clause: literals, paths, constructors, nested FLWORs."""
        write, random = self.write, self.random
        declared = self.declaration() if write.one_in(12) else ""
        parts = []
        for _ in range(random.choice((1, 1, 2, 3))):
            if write.one_in(5):
                parts.append(self.literal())
            elif depth > 1 and write.one_in(4):
                parts.append(self.constructor(depth - 1))
            elif depth > 1 and write.one_in(4):
                parts.append(f"{{ {self.flwor(depth - 1)} }}")
            elif self.width is FlwrWidth.WHOLE:
                parts.append(f"{{ {self.value(depth - 1)} }}")
            else:
                parts.append(f"{{ {write.nodes(0).text} }}")
        return self.element(depth, None, declared, parts)

    def value(self, depth: int) -> str:
        """An expression of any type as content; constructed elements may be among it."""
        write = self.write
        match self.random.randrange(8):
            case 0 if depth > 0:
                return f"{write.anything(depth - 1)}, {write.anything(depth - 1)}"
            case 1 if depth > 0:
                condition = write.boolean(depth - 1)
                then = self.element(0, write.anything(depth - 1))
                return f"if ({condition}) then {then} else {write.anything(depth - 1)}"
            case 2:
                binding = write.bound("built")
                return write.use(binding) if binding else write.anything(depth)
            case _:
                return write.anything(depth)
