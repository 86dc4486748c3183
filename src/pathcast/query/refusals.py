"""A refusal of the kernel's reader as an error: the sentence, the place, a suggestion.

The kernel hands over data: a code, the name of a reason, its parameters, a place in the text. This
catalogue has a sentence for every reason.

Example:
    >>> refusal = Refusal("XPST0003", "OpenString", 3, {"character": '"'})
    >>> error = error_of(refusal, '/a["b]', {})
    >>> error.params["reason"], error.params["suggestion"]
    ('the string that begins here does not end', 'close it with "')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pathcast.boundary import native, native_errors
from pathcast.errors import QuerySyntaxError, UnsupportedQueryError, shown
from pathcast.query import suggestions
from pathcast.query.functions import CORE_FUNCTIONS, arguments_expected
from pathcast.query.names import Namespaces
from pathcast.query.prefixes import binding, usual_uri
from pathcast.query.refused_functions import for_function, for_type, in_xquery
from pathcast.query.syntax import Axis

_MESSAGE_VARIABLE: Final = "$msg"

_AXES: Final = tuple(axis.value for axis in Axis)
_NODE_TYPES: Final = ("comment", "node", "processing-instruction", "text")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal as the kernel gives it.

    Attributes:
        code: Of the W3C, or of a limit.
        reason: The name of the reason.
        offset: Where in the text, in characters.
        params: Parameters of the reason.
    """

    code: str
    reason: str
    offset: int
    params: Mapping[str, Any]


@contextmanager
def query_errors(text: str, namespaces: Namespaces) -> Iterator[None]:
    """Calls that read a query run in this: a refusal becomes an error."""
    try:
        with native_errors():
            yield
    except native.QueryRefusal as refusal:
        raise error_of(Refusal(*refusal.args), text, namespaces) from None
    except UnicodeEncodeError as error:
        raise no_character(text, error.start) from None


def error_of(refusal: Refusal, text: str, namespaces: Namespaces) -> QuerySyntaxError:
    """The error that a refusal is.

    Args:
        refusal: What the kernel said.
        text: The query.
        namespaces: What it was read with.
    """
    params = refusal.params
    if "maximum" in params:
        sentence = LIMITS[refusal.reason]
        place = {} if refusal.reason == "TooLong" else {"offset": refusal.offset}
        return QuerySyntaxError(refusal.code, query=text, **place, **params, reason=sentence)
    sentence, hint = SENTENCES[refusal.reason](_Fault(refusal.offset, params, text, namespaces))
    told: dict[str, Any] = {
        "query": text,
        "offset": refusal.offset,
        "reason": sentence,
        "suggestion": hint,
    }
    if refusal.code == "query.unsupported":
        told |= {"construct": sentence, "reason": f"{sentence} is not supported"}
        return UnsupportedQueryError(refusal.code, **told)
    if refusal.reason in _NAMING:
        named = _NAMING[refusal.reason]
        told[named] = params[named]
    return QuerySyntaxError(refusal.code, **told)


def no_character(text: str, offset: int) -> QuerySyntaxError:
    """The error of a text with a lone surrogate.

    Args:
        text: The text, which cannot be written in UTF-8.
        offset: Where the surrogate stands.
    """
    reason = "found a lone surrogate, which is no character"
    return QuerySyntaxError("XPST0003", query=shown(text), offset=offset, reason=reason)


LIMITS: Final = MappingProxyType(
    {
        "TooLong": "too long",
        "TooLarge": "has too many syntax nodes",
        "TooDeep": "nests too deep",
        "TooManyPredicates": "has too many predicates on a step",
    }
)
"""Reason -> its sentence, of limits."""

_NAMING: Final = MappingProxyType({"NoVariable": "name", "NoPrefix": "prefix"})
"""Reason -> the parameter that the error has, too."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """A refusal and what its sentence is made of."""

    offset: int
    params: Mapping[str, Any]
    text: str
    namespaces: Namespaces


_Sentence = tuple[str, str | None]


def _no_operator(fault: _Fault) -> _Sentence:
    word = fault.params["word"]
    reason = f"found {_printable(word)} where an operator is expected"
    return reason, suggestions.for_word_after_operand(word)


def _no_local_name(fault: _Fault) -> _Sentence:
    return f"a local name is expected after {_printable(fault.params['after'])}", None


def _open_braces(_: _Fault) -> _Sentence:
    return "found Q{ without }name after it", "write Q{uri}name"


def _open_string(fault: _Fault) -> _Sentence:
    reason = "the string that begins here does not end"
    return reason, f"close it with {fault.params['character']}"


def _no_variable_name(_: _Fault) -> _Sentence:
    return "a name is expected directly after $", None


def _no_token(fault: _Fault) -> _Sentence:
    reason = f"found {_printable(fault.params['character'])}, which begins no token"
    return reason, suggestions.for_character(fault.text, fault.offset)


_CLOSING: Final = MappingProxyType({"(": ")", "[": "]"})

_EXPECTED: Final = MappingProxyType(
    {
        "expression": "an expression",
        "step": "a location step",
        "step-not-function": "a location step",
        "node-test": "a name, * or a node type",
        "operator-or-end": "an operator or the end",
        "operator-or-closing": "an operator or {closing}",
        "operator-or-comma": "an operator, a comma or )",
        **{f"{each}-end": f"the ) of {each}()" for each in _NODE_TYPES},
    }
)


def _unexpected(fault: _Fault) -> _Sentence:
    expected, found, bracket = (fault.params[key] for key in ("expected", "found", "bracket"))
    wanted = _EXPECTED[expected].format(closing=_CLOSING.get(bracket))
    reason = f"found {ascii(found)[1:-1] or 'the end'} where {wanted} is expected"
    hint = None
    if expected.startswith("operator"):
        hint = suggestions.for_operator(fault.text, fault.offset, bracket=bracket)
    elif expected == "step-not-function":
        hint = suggestions.for_function_as_step(found)
    elif not expected.endswith("-end"):
        hint = suggestions.for_operand(fault.text, fault.offset)
    return reason, hint


def _no_axis(fault: _Fault) -> _Sentence:
    name = fault.params["name"]
    meant = suggestions.nearest(name, _AXES)
    return f"there is no axis {name}::", f"did you mean {meant}::?" if meant else None


def _no_function(fault: _Fault) -> _Sentence:
    name = fault.params["name"]
    return f"there is no function {name}()", _for_unknown_function(name)


def _argument_count(fault: _Fault) -> _Sentence:
    name, given = fault.params["name"], fault.params["given"]
    return f"{name}() takes {arguments_expected(name)}, {given} given", None


_NEEDS: Final = MappingProxyType(
    {
        "filter": "a predicate in brackets filters a node-set",
        "path": "a path begins at a node-set",
        "union": "| unites node-sets",
        "function": "{function}() takes a node-set",
    }
)


def _no_node_set(fault: _Fault) -> _Sentence:
    function, found = fault.params["function"], fault.params["found"]
    why = _NEEDS[fault.params["needed_by"]].format(function=function)
    hint = suggestions.for_node_set_function(function, is_string=found == "string")
    return f"{why}, and this is a {found}", hint


def _no_variable(fault: _Fault) -> _Sentence:
    hint = f"there are no variables; the message is {_MESSAGE_VARIABLE}"
    return f"variable ${fault.params['name']} is not declared", hint


def _no_prefix(fault: _Fault) -> _Sentence:
    prefix, local = fault.params["prefix"], fault.params["local"]
    bound = sorted({"xml", *fault.namespaces} - {""})
    meant = suggestions.nearest(prefix, bound)
    anyhow = "*" if local == "*" else f"*:{local}"
    hint = f"bind it: {binding(prefix, usual_uri(prefix) or '...')}, or write {anyhow}"
    return f"prefix {prefix} is not bound", f"did you mean {meant}:?" if meant else hint


def _computed_document(fault: _Fault) -> _Sentence:
    hint = "the one document is the message: begin the path with /"
    return f"{fault.params['name']}() of a computed name", hint


_BAD_URIS: Final = MappingProxyType(
    {
        "blanks": "a namespace URI with white space to be collapsed",
        "braces": "a namespace URI with braces",
        "unwritable": "a namespace URI with a lone surrogate",
    }
)


def _bad_uri(fault: _Fault) -> _Sentence:
    return _BAD_URIS[fault.params["fault"]], None


SENTENCES: Final[Mapping[str, Callable[[_Fault], _Sentence]]] = MappingProxyType(
    {
        "NoOperator": _no_operator,
        "NoLocalName": _no_local_name,
        "OpenBraces": _open_braces,
        "OpenString": _open_string,
        "NoVariableName": _no_variable_name,
        "NoToken": _no_token,
        "Unexpected": _unexpected,
        "NoAxis": _no_axis,
        "NoFunction": _no_function,
        "ArgumentCount": _argument_count,
        "NoNodeSet": _no_node_set,
        "NoVariable": _no_variable,
        "NoPrefix": _no_prefix,
        "ComputedDocument": _computed_document,
        "BadUri": _bad_uri,
    }
)
"""Reason -> what gives its sentence and a suggestion, of everything but limits."""


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]


def _for_unknown_function(written: str) -> str | None:
    """A guess at the meaning of a function that XPath 1.0 does not have.

    Args:
        written: Its name, perhaps with a prefix.
    """
    prefix, _, local = written.rpartition(":")
    if local in ("element", "attribute"):
        return "write * for any element, @* for any attribute"
    if prefix == "xs":
        return for_type(local)
    if (instead := for_function(local)) is not None:
        return instead
    known = [*CORE_FUNCTIONS, *_NODE_TYPES]
    if (meant := suggestions.nearest(local, known)) is not None:
        return f"did you mean {meant}()?"
    meant = suggestions.nearest(local, sorted(in_xquery()))
    return f"did you mean {meant}()? {for_function(meant)}" if meant is not None else None
