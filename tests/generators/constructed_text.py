"""Random constructors, written with tags and computed; random prologs of functions and variables.

Example:
    >>> import random
    >>> tags, computed = random_constructor(random.Random(24))
    >>> print(tags)
    <é xml:lang="{//c/@k}"><b-c></b-c></é>
    >>> print(computed)
    element {'é'} {attribute xml:lang {//c/@k},element {'b-c'} {}}
    >>> print(random_prolog(random.Random(22), "//b"))
    declare variable $v1 := ("x", "2");
    declare function local:f1($x, $y as item()*) { ($x, $y) };
    <r>{local:f1((//b/@k)[1], $v1), local:f1((), //b)}</r>
"""

from __future__ import annotations

from random import Random
from typing import Final

NAMESPACES: Final = {"p": "urn:p"}
"""Those of the names that constructors have."""

_NAMES: Final = ("a", "b-c", "p:x", "element", "text", "é")
_VALUES: Final = (
    *("//b", "count(//b)", "//c/@k", "'x', 1", "(//b, //c)[2]", "//c ! (@k, 1)", "''"),
    *("for $i in //b return string($i)", "if (//c) then //b else 1", "//c/text()", "1 to 3"),
)
_ELEMENT_NAMES: Final = (
    *("concat('p:', name(//b[1]))", "(//c/@k)[1]", "if (//c) then ' a ' else 'p:x'", "name(/*)"),
    *("upper-case('é')", "concat('xml', ':a')", "string(//b[1]/@k)", "local-name((//c, //b)[1])"),
)
_ATTRIBUTE_NAMES: Final = (
    *("concat('p:', name(//b[1]))", "concat('xml', ':id')", "name(/*)", "lower-case('N')"),
    *("local-name((//c, //b)[1])", "if (//c) then 'k' else 'p:m'", "string(//c[1]/@k)"),
)
_CONTENTS: Final = ("//b", "text {//b}", "'x', 1", "<e/>", "(//c, 'z')", "//c ! name()", "//b/@k")
_TYPES: Final = ("", " as item()*", " as xs:string?", " as xs:string*", " as xs:integer?")
_BODIES: Final = (
    *("$x || count($y)", "count(($x, $y))", "($x, $y)", "if ($x = $y) then 'same' else 'other'"),
    *("for $x at $i in $y return concat($i, $x)", "string-join(($x, $y) ! string(.), '-')"),
    *("let $y := $x return ($y, $x)", "$v1[. = ($x, $y)]", "element f {attribute n {$x}, $y}"),
)


def random_constructor(random: Random, depth: int = 2) -> tuple[str, str]:
    """One element, with tags and computed; both have one tree."""
    name = random.choice(_NAMES)
    names = random.sample(("n", "p:m", "xml:lang"), random.choice((0, 1, 2)))
    attributes = [(each, random.choice(_VALUES)) for each in names]
    tags: list[str] = []
    computed = [f"attribute {each} {{{value}}}" for each, value in attributes]
    items: list[str] = []
    for _ in range(random.randrange(4)):
        if depth > 0 and random.randrange(3) == 0:
            if items:
                tags.append(f"{{{', '.join(items)}}}")
                items = []
            inner = random_constructor(random, depth - 1)
            tags.append(inner[0])
            computed.append(random.choice(inner))
        else:
            value = random.choice(_VALUES)
            items.append(value)
            computed.append(value)
    if items:
        tags.append(f"{{{', '.join(items)}}}")
    written = "".join(f' {each}="{{{value}}}"' for each, value in attributes)
    shown = random.choice((name, name, f"{{'{name}'}}"))
    blank = random.choice(("", "", " ", "(: c :)"))
    content = f",{blank}".join(computed)
    return (
        f"<{name}{written}>{''.join(tags)}</{name}>",
        f"element {shown}{blank} {{{blank}{content}}}",
    )


def random_named(random: Random, depth: int = 2) -> str:
    """One constructor, names of which may be expressions that give names or none."""
    items = [
        f"attribute {{{random.choice(_ATTRIBUTE_NAMES)}}} {{{random.choice(_VALUES)}}}"
        for _ in range(random.choice((0, 1, 1, 2)))
    ]
    if random.randrange(3) == 0:
        items.append(f"attribute {random.choice(('n', 'p:m', 'k'))} {{{random.choice(_VALUES)}}}")
    for _ in range(random.randrange(3)):
        is_inner = depth > 0 and random.randrange(2)
        items.append(random_named(random, depth - 1) if is_inner else random.choice(_CONTENTS))
    content = ", ".join(items)
    match random.randrange(5):
        case 0:
            return f"<p:r xmlns:p='urn:q' xmlns='urn:d'>{{{random_named(random, 0)}, //b}}</p:r>"
        case 1:
            return f"element {random.choice(_NAMES)} {{{content}}}"
        case 2:
            return (
                f"(let $e := element {{{random.choice(_ELEMENT_NAMES)}}} {{{content}}} return $e)"
            )
    return f"element {{{random.choice(_ELEMENT_NAMES)}}} {{{content}}}"


def random_prolog(random: Random, path: str) -> str:
    """A subscription that calls functions which call others, on nodes of a path."""
    lines = [f'declare variable $v1{random.choice(("", " as xs:string*"))} := ("x", "2");']
    calls = [f"local:f1(({path}/@k)[1], $v1)"]
    for number in range(1, random.choice((2, 3, 4))):
        types = [random.choice(_TYPES), random.choice(_TYPES[:2])]
        body = random.choice(_BODIES)
        if number > 1 and random.randrange(2):
            body = f"({body}, local:f{random.randrange(1, number)}($y[1] ! string(.), $x))"
        # An integer that is cast to a text is an error in XQuery.
        result = ""
        signature = f"local:f{number}($x{types[0]}, $y{types[1]}){result}"
        lines.append(f"declare function {signature} {{ {body} }};")
        calls.append(f"local:f{number}({random.choice(('()', f'{path}[1]/@k'))}, {path})")
    return "\n".join([*lines, f"<r>{{{', '.join(calls)}}}</r>"])
