"""The kernel's refusals of an XQuery as errors, in words.

The kernel tells a reason, places and the words of the text; the sentence and what to write instead
are here.

Example:
    >>> text = "for $s in //story return $t"
    >>> print(error_of(text, ProgramRefusal("NoVariable", "XPST0008", 25, 25, ("t", "s"))))
    XPST0008: variable $t is not declared
      for $s in //story return $t
                               ^
      the message is $msg
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from pathcast.errors import Param, QuerySyntaxError, UnsupportedQueryError
from pathcast.query import suggestions
from pathcast.query.functions import (
    REFUSED_ARGUMENTS,
    argument_counts,
    arguments_expected,
)
from pathcast.query.refused_functions import for_refused, for_text_of, for_type
from pathcast.query.syntax import Axis, NodeKind

MESSAGE_VARIABLE: Final = "msg"
"""The message, as papers write it."""

_SHOWN_MAX: Final = 40


class ProgramRefusal(NamedTuple):
    """A refusal as the kernel gives it.

    Attributes:
        reason: Its name.
        code: The W3C's code, or one of ours.
        offset: First character of the place.
        end: One past the last character of the token that was found, where another is expected.
        details: What the sentence names.
    """

    reason: str
    code: str
    offset: int
    end: int
    details: tuple[str | int, ...]


class Sentence(NamedTuple):
    """The words of an error.

    Attributes:
        reason: What is wrong; the construct, where something is not supported.
        suggestion: What to write.
        params: What programs read.
    """

    reason: str
    suggestion: str | None = None
    params: Mapping[str, Param] = MappingProxyType({})


def error_of(text: str, refusal: ProgramRefusal) -> QuerySyntaxError:
    """The error that a subscriber sees. Cost: linear in the text."""
    reason, code, offset, end, details = refusal
    if code == "query.too_long":
        given, maximum = details
        return QuerySyntaxError(code, query=text, given=given, maximum=maximum, reason="too long")
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    expected = EXPECTED.get(reason)
    if expected is not None:
        words, hint = expected
        found = (
            _escaped(text[offset : min(end, offset + _SHOWN_MAX)]) if end > offset else "the end"
        )
        wanted = words.format(*details).rstrip()
        sentence = Sentence(f"found {found} where {wanted} is expected", hint)
    else:
        told = SENTENCES[reason]
        if isinstance(told, Sentence):
            sentence = told._replace(reason=told.reason.format(*details))
        else:
            sentence = told(text, offset, details)
    if code != "query.unsupported" and not code.startswith("subscription."):
        return QuerySyntaxError(
            code,
            query=text,
            offset=offset,
            line=line,
            column=column,
            reason=sentence.reason,
            suggestion=sentence.suggestion,
            **sentence.params,
        )
    return UnsupportedQueryError(
        code,
        query=text,
        offset=offset,
        line=line,
        column=column,
        construct=sentence.reason,
        reason=f"{sentence.reason} is not supported",
        suggestion=sentence.suggestion,
        **sentence.params,
    )


def _escaped(text: str) -> str:
    return ascii(text)[1:-1]


EXPECTED: Final[Mapping[str, tuple[str, str | None]]] = MappingProxyType(
    {
        "ExpectedExpression": ("an expression", None),
        "ExpectedEnd": ("an operator or the end", None),
        "ExpectedVersion": ("a version in quotes", None),
        "ExpectedEncoding": ("an encoding in quotes", None),
        "ExpectedWord": ("{0} {1}", None),
        "ExpectedSymbol": ("{0} {1}", None),
        "ExpectedAfterVariable": ("{0} after ${1}", None),
        "ExpectedDeclaration": (
            "namespace, default element namespace, function or variable",
            None,
        ),
        "ExpectedPrefix": ("a prefix", None),
        "ExpectedUri": ("a namespace URI in quotes", None),
        "ExpectedVariable": ("a variable", None),
        "ExpectedOrderBy": ("order by", None),
        "ExpectedStep": ("a location step", None),
        "ExpectedStepAfterSlash": (
            "a location step",
            "for the message itself, put the slash in parentheses: (/) < ...",
        ),
        "ExpectedTest": ("a name, * or a node test", None),
        "ExpectedKindTest": ("a node test", None),
        "ExpectedKindParenthesis": ("{0} of {1}()", None),
        "ExpectedTarget": ("a target", None),
        "ExpectedName": ("a name or *", None),
        "ExpectedElementName": ("the name of an element", None),
        "ExpectedAttribute": ("an attribute, > or />", None),
        "ExpectedBlank": ("a blank, > or />", None),
        "ExpectedValue": ("a value in quotes", None),
        "ExpectedEndTag": ("</{0}>", None),
    }
)
"""Reason -> what is expected, and what to write."""

_OPERATORS: Final = MappingProxyType(
    {
        "is": "the node comparison is",
        "<<": "the node comparison <<",
        ">>": "the node comparison >>",
        "=>": "a computed function after =>",
    }
)
_COMPUTED: Final = MappingProxyType(
    {
        "attribute": 'put it first into element name {...}, or into a tag: name="{...}"',
        "text": "put it into element name {...}, or write string(...)",
        "document": "write its content by itself",
        "comment": "a result has the comments of the message alone",
        "processing-instruction": "a result has the instructions of the message alone",
        "namespace": 'declare it in a tag: xmlns:p="..."',
    }
)
"""The word of a constructor that there is not -> what to write."""
_CLAUSES: Final = MappingProxyType(
    {
        "group": Sentence("group by"),
        "count": Sentence("the count clause"),
        "window": Sentence("window"),
        "where": Sentence(
            "a second where clause, or one after {1}",
            "join the conditions with and, before order by",
        ),
        **dict.fromkeys(
            ("for", "let"),
            Sentence(
                "a {0} clause after {1}",
                "write for and let before where and order by, or nest a FLWOR in return",
            ),
        ),
        **dict.fromkeys(
            ("order", "stable"),
            Sentence("a second order by clause", "write the keys after one order by, with commas"),
        ),
    }
)
"""First word of a clause that is not evaluated, or comes too late -> what is said of it."""

_Details: TypeAlias = tuple[str | int, ...]


def _words(details: _Details) -> tuple[str, ...]:
    return tuple(map(str, details))


def _maximum(reason: str) -> Callable[[str, int, _Details], Sentence]:
    return lambda text, offset, details: Sentence(reason, None, {"maximum": details[0]})


def _no_character(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(f"{_escaped(text[offset])} is no character of XML")


def _no_token(text: str, offset: int, details: _Details) -> Sentence:
    character = text[offset]
    shown = character if character.isprintable() else _escaped(character)
    return Sentence(f"found {shown}, which begins no token")


def _open_string(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence("the string that begins here does not end", f"close it with {text[offset]}")


def _no_referred_character(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(f"{_words(details)[0][:_SHOWN_MAX]} is no character of XML")


def _version(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(f"XQuery version {_escaped(_words(details)[0])}")


def _declared_twice(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(f"{details[0] or 'the default'} is declared twice")


def _prefix_not_bound(text: str, offset: int, details: _Details) -> Sentence:
    prefix, *bound = _words(details)
    meant = suggestions.nearest(prefix, bound)
    hint = f'declare namespace {prefix} = "...";'
    return Sentence(
        f"prefix {prefix} is not bound",
        f"did you mean {meant}:?" if meant else hint,
        {"prefix": prefix},
    )


def _computed_constructor(text: str, offset: int, details: _Details) -> Sentence:
    word = _words(details)[0]
    return Sentence(f"a computed {word} constructor", _COMPUTED[word])


def _declared_arguments(text: str, offset: int, details: _Details) -> Sentence:
    function, takes, given = details
    noun = "argument" if takes == "1" else "arguments"
    return Sentence(f"{function}() takes {takes} {noun}, {given} given")


def _clause(text: str, offset: int, details: _Details) -> Sentence:
    told = _CLAUSES[_words(details)[0]]
    return told._replace(reason=told.reason.format(*details))


def _operator(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(_OPERATORS[_words(details)[0]])


def _no_variable(text: str, offset: int, details: _Details) -> Sentence:
    name, *bound = _words(details)
    meant = suggestions.nearest(name, {MESSAGE_VARIABLE, *bound})
    return Sentence(
        f"variable ${name} is not declared",
        f"did you mean ${meant}?" if meant else f"the message is ${MESSAGE_VARIABLE}",
        {"name": name},
    )


def _no_axis(text: str, offset: int, details: _Details) -> Sentence:
    written = _words(details)[0]
    meant = suggestions.nearest(written, (axis.value for axis in Axis))
    return Sentence(f"there is no axis {written}::", f"did you mean {meant}::?" if meant else None)


def _schema_type(text: str, offset: int, details: _Details) -> Sentence:
    written, local = _words(details)
    return Sentence(f"the schema type {written}", for_type(local))


def _not_castable(text: str, offset: int, details: _Details) -> Sentence:
    value, to = _words(details)
    return Sentence(f"{_escaped(value[:_SHOWN_MAX])} is no value of xs:{to}", for_text_of(to))


def _quoted(told: str, suggestion: str | None = None) -> Callable[[str, int, _Details], Sentence]:
    """A sentence that begins with a literal in quotes, with single backslashes."""

    def tell(text: str, offset: int, details: _Details) -> Sentence:
        shown = _escaped(_words(details)[0][:_SHOWN_MAX]).replace("\\\\", "\\")
        return Sentence(f"'{shown}' {told}", suggestion)

    return tell


def _picture_part(text: str, offset: int, details: _Details) -> Sentence:
    return Sentence(f"[{_escaped(_words(details)[0][:_SHOWN_MAX])}] in a picture")


def _function(text: str, offset: int, details: _Details) -> Sentence:
    name = _words(details)[0]
    return Sentence(f"the function {name}()", for_refused(name))


def _no_function(text: str, offset: int, details: _Details) -> Sentence:
    written, local = _words(details)
    meant = suggestions.nearest(
        local, [*sorted(argument_counts()), *(kind.value for kind in NodeKind)]
    )
    return Sentence(
        f"there is no function {written}()", f"did you mean {meant}()?" if meant else None
    )


def _refused_arguments(text: str, offset: int, details: _Details) -> Sentence:
    function, given = details
    return Sentence(REFUSED_ARGUMENTS[str(function), int(given)])


def _argument_count(text: str, offset: int, details: _Details) -> Sentence:
    function, given = details
    return Sentence(f"{function}() takes {arguments_expected(str(function))}, {given} given")


def _atoms(why: str) -> Callable[[str, int, _Details], Sentence]:
    def told(text: str, offset: int, details: _Details) -> Sentence:
        is_sometimes, *function = details
        subject = why.format(*function)
        found = "may be" if is_sometimes else "is"
        return Sentence(f"{subject}, and this {found} an atomic value")

    return told


SENTENCES: Final[Mapping[str, Sentence | Callable[[str, int, _Details], Sentence]]] = (
    MappingProxyType(
        {
            "TooLarge": _maximum("has too many syntax nodes"),
            "TooManyValues": _maximum("has too many values in its lists"),
            "TooDeep": _maximum("nests too deep"),
            "TooManyPredicates": _maximum("has too many predicates on a step"),
            "NoCharacter": _no_character,
            "NoToken": _no_token,
            "OpenString": _open_string,
            "OpenComment": Sentence(
                "the comment that begins here does not end", "close it with :)"
            ),
            "NoVariableName": Sentence("a name is expected after $"),
            "NumberIntoName": Sentence("a number runs into a name", "put a blank between them"),
            "NoReference": Sentence("this & begins no reference", "write &amp;"),
            "NoReferredCharacter": _no_referred_character,
            "Version": _version,
            "NoEncoding": Sentence("this cannot be the name of an encoding"),
            "PrologDeclaration": Sentence("{0} in the prolog"),
            "Declaration": Sentence("declare {0}"),
            "LateDeclaration": Sentence("namespaces are declared before functions and variables"),
            "External": Sentence("an external {0}", "write its value"),
            "ReservedFunction": Sentence(
                "this name is none that a function may be given", "write the prefix local: local:f"
            ),
            "FunctionTwice": Sentence("the function {0}() of {1} parameters is declared twice"),
            "VariableTwice": Sentence("${0} is declared twice"),
            "ParameterTwice": Sentence("the parameter ${0} is there twice"),
            "Recursion": Sentence(
                "a recursive {0}", "a call is replaced by the function, which has to end"
            ),
            "DeclaredArguments": _declared_arguments,
            "XmlReserved": Sentence("xml and xmlns are reserved"),
            "XmlnsReserved": Sentence("the prefix xmlns is reserved"),
            "NamespaceReserved": Sentence("the namespace {0} is reserved"),
            "PrefixTwice": _declared_twice,
            "DefaultTwice": _declared_twice,
            "AttributeTwiceDeclared": _declared_twice,
            "PrefixTakenBack": Sentence("the prefix {0} cannot be taken back"),
            "PrefixNotBound": _prefix_not_bound,
            "UriWithSpace": Sentence("a namespace URI with white space to be collapsed"),
            "UriWithBraces": Sentence("a namespace URI with braces"),
            "UriWithSurrogate": Sentence("a namespace URI with a lone surrogate"),
            "Window": Sentence("a window clause"),
            "Construct": Sentence("{0}"),
            "ComputedConstructor": _computed_constructor,
            "Block": Sentence("{0} {{}}"),
            "FoundBeforeBrace": Sentence("found {0} before a brace"),
            "Clause": _clause,
            "VariableType": Sentence("a type declaration (as)"),
            "AllowingEmpty": Sentence("allowing empty"),
            "BoundTwice": Sentence("${0} is bound twice in one clause"),
            "ComparisonChain": Sentence(
                "comparisons cannot be chained", "put one of them in parentheses"
            ),
            "Operator": _operator,
            "Pragma": Sentence("a pragma (# #)"),
            "NoVariable": _no_variable,
            "IntegerDigits": Sentence("an integer of more than {0} digits"),
            "ExpressionAsStep": Sentence(
                "an expression as a path step", "use a for clause, or call on the path"
            ),
            "NoAxis": _no_axis,
            "NamespaceAxis": Sentence("the namespace axis"),
            "NameAfterStar": Sentence("a local name is expected after *:"),
            "KindTest": Sentence("the node test {0}()"),
            "SchemaTypeOfTest": Sentence("a schema type in {0}()"),
            "KindTestOnAxis": Sentence("{0}(name) on the {1} axis"),
            "SchemaType": _schema_type,
            "NoType": Sentence("there is no type {0}", "types have the prefix xs: xs:date"),
            "NotCastable": _not_castable,
            "Function": _function,
            "FunctionWord": Sentence("{0} ()"),
            "NoFunction": _no_function,
            "Arguments": _refused_arguments,
            "ArgumentCount": _argument_count,
            "ComputedDocument": Sentence(
                "{0}() of anything but one string literal",
                "the one document is the message: begin the path with /",
            ),
            "ComputedPattern": Sentence("a computed pattern in {0}()", "write it as a literal"),
            "Pattern": _quoted("is no regular expression of XPath"),
            "PatternFlags": _quoted("are no flags", "the flags are s, m, i, x and q"),
            "BackReference": Sentence("a back reference in a regular expression"),
            "PatternBlock": Sentence("a block of Unicode in a regular expression"),
            "PatternTooLarge": Sentence(
                "a regular expression of more than {1} bytes, or with many repetitions or classes"
            ),
            "PatternMatchesEmpty": _quoted("matches the empty text"),
            "Replacement": _quoted(
                "is no replacement", "write \\$ for a dollar sign, and \\\\ for a backslash"
            ),
            "NoName": _quoted("is no name of an element or attribute"),
            "NoCollation": _quoted(
                "is no collation that is known",
                "the collations are codepoint and html-ascii-case-insensitive of "
                "http://www.w3.org/2005/xpath-functions/collation/",
            ),
            "ComputedCollation": Sentence(
                "a computed collation in {0}()", "write its URI as a literal"
            ),
            "ComputedPicture": Sentence("a computed picture in {0}()", "write it as a literal"),
            "NumberPicture": _quoted("is no picture of numbers"),
            "NumberExponent": Sentence("an exponent in a picture"),
            "MomentPicture": _quoted("is no picture of dates or times"),
            "MomentPart": Sentence("xs:{1} has no [{0}]"),
            "PicturePart": _picture_part,
            "CommentConstructor": Sentence("a comment constructor", "use (: ... :) for comments"),
            "InstructionConstructor": Sentence("a processing instruction constructor"),
            "OpenValue": Sentence("the value that begins here does not end"),
            "OpenElement": Sentence("the element that begins here does not end"),
            "OpenSection": Sentence("the section that begins here does not end"),
            "LoneBrace": Sentence("a }} stands alone", "write }}"),
            "EmptyBraces": Sentence("an empty enclosed expression {{}}", "write {()}"),
            "ComputedNamespace": Sentence("a namespace is declared by a literal only"),
            "LateNamespace": Sentence(
                "a namespace declaration after an attribute with an enclosed expression",
                "write the declaration first",
            ),
            "AttributeTwice": Sentence("attribute {0} is there twice"),
            "BuiltValue": Sentence(
                "the value of a constructed element",
                "read the value from the message, and build the element last",
            ),
            "PathFromItem": _atoms("a path begins at nodes"),
            "PathFromAtoms": _atoms("a path begins at nodes"),
            "SetOfAtoms": _atoms("{0} is of nodes"),
            "NodeOfAtoms": _atoms("{0}() takes a node"),
            "Constant": Sentence("a constant body"),
            "BooleanResult": Sentence(
                "fragments of a boolean",
                "for a result of its own, write if (...) then <hit/> else (), or string(...)",
                {"found": "boolean"},
            ),
            "NoNodeResult": Sentence(
                "the place of what may be no node of the message",
                "give the nodes as they are, without a constructor, or deliver something else",
                {"found": "other items than nodes of the message"},
            ),
            "SeveralValues": Sentence(
                "several values, as this gives whatever the message, are neither true nor false",
                "say how they belong together: (...) and (...)",
            ),
        }
    )
)
