"""Why a name of a query does not occur, and which one may be meant.

Example:
    >>> from pathcast.lint.structure import structure_of_sample
    >>> from pathcast.kernel import parse
    >>> from pathcast.limits import Limits
    >>> sample = structure_of_sample([parse(b"<nitf><tobject/></nitf>", Limits())])
    >>> advisor = NameAdvisor(sample, {})
    >>> advice = advisor.advice("", "tobjct", is_attribute=False)
    >>> advice.code, advice.message, advice.instead
    ('PL101', 'no element of the sample is called `tobjct`', 'tobject')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pathcast.lint.structure import ANY_NAMESPACE, Structure, names_with_local
from pathcast.message import ExpandedName
from pathcast.query.near_names import near
from pathcast.query.notation import Notation


@dataclass(frozen=True, slots=True)
class NameAdvice:
    """The advice on a name that does not occur.

    Attributes:
        code: PL101, PL102, PL103 or PL104.
        message: What is wrong.
        fix: What may be meant; None if nothing is near.
        instead: The name to write, if it is sure what it is.
        names: The names that may be meant, expanded.
        bindings: Prefixes in `instead` that the query does not bind yet, with their namespaces.
    """

    code: str
    message: str
    fix: str | None
    instead: str | None
    names: tuple[ExpandedName, ...]
    bindings: tuple[tuple[str, str], ...] = ()


class NameAdvisor:
    """Looks names up in what messages can look like."""

    def __init__(self, structure: Structure, namespaces: Mapping[str, str]) -> None:
        self._structure = structure
        self._notation = Notation(namespaces)
        self._bound = dict(namespaces)
        self._proposed: dict[str, str] = {}
        self._known: dict[tuple[str, str | None, bool], NameAdvice | None] = {}

    def names(self, *, is_attribute: bool) -> Mapping[ExpandedName, int]:
        """The names that occur, and how often."""
        return self._structure.attributes if is_attribute else self._structure.elements

    def advice(self, uri: str, local: str | None, *, is_attribute: bool) -> NameAdvice | None:
        """Return the advice on a name; None if it occurs.

        Args:
            uri: Its namespace; `ANY_NAMESPACE` for `*:name`.
            local: Its local name; None for `prefix:*`.
            is_attribute: Whether an attribute is meant, or an element.
        """
        key = (uri, local, is_attribute)
        if key not in self._known:
            self._known[key] = self._advice(uri, local, is_attribute)
        return self._known[key]

    def _advice(self, uri: str, local: str | None, is_attribute: bool) -> NameAdvice | None:
        names = self.names(is_attribute=is_attribute)
        if local is None:
            return self._namespace_advice(uri, names)
        same = tuple(names_with_local(names, local))
        if any(ANY_NAMESPACE in (uri, other) or uri == other for other, _ in same):
            return None
        if same:
            return self._other_namespace(uri, local, same, is_attribute)
        return self._unknown(uri, local, names, is_attribute)

    def _namespace_advice(self, uri: str, names: Mapping[ExpandedName, int]) -> NameAdvice | None:
        uris = dict.fromkeys(uri for uri, _ in names)
        if uri in uris or ANY_NAMESPACE in uris:
            return None
        meant = near(uri, (each for each in uris if each))
        fix = f"did you mean the namespace {meant[0]}?" if meant else None
        return NameAdvice(
            "PL104", f"nothing in {self._structure.described} is in namespace {uri}", fix, None, ()
        )

    def _other_namespace(
        self, uri: str, local: str, same: tuple[ExpandedName, ...], is_attribute: bool
    ) -> NameAdvice:
        where = " or ".join(f"namespace {other}" if other else "no namespace" for other, _ in same)
        written = self._notation.name(uri, local, has_default=not is_attribute)
        kind = "attribute" if is_attribute else "element"
        if uri:
            message = f"{kind} `{written}` is in {where} in {self._structure.described}"
            message += f", the query asks for namespace {uri}"
        else:
            message = f"`{local}` is in {where} in {self._structure.described}"
            message += ", not in none as in the query"
        written_otherwise = [self.written(each, is_attribute=is_attribute) for each in same]
        fix = "write " + " or ".join(f"`{other}`" for other in written_otherwise[:2])
        bindings = tuple((self._proposed[each], each) for each, _ in same if each in self._proposed)
        fix += "".join(f", with {prefix} bound to {bound}" for prefix, bound in bindings[:2])
        has_fault = bool(uri) or is_attribute
        instead = written_otherwise[0] if len(same) == 1 else None
        code = "PL104" if has_fault else "PL103"
        return NameAdvice(code, message, fix, instead, same, bindings)

    def _unknown(
        self, uri: str, local: str, names: Mapping[ExpandedName, int], is_attribute: bool
    ) -> NameAdvice:
        kind = "attribute" if is_attribute else "element"
        code = "PL102" if is_attribute else "PL101"
        written = self._notation.name(uri, local, has_default=not is_attribute)
        written = local if uri == ANY_NAMESPACE else written
        message = f"no {kind} of {self._structure.described} is called `{written}`"
        others = self.names(is_attribute=not is_attribute)
        if any(names_with_local(others, local)):
            other = "element" if is_attribute else "attribute"
            meant_name = local if is_attribute else f"@{local}"
            fix = f"`{local}` is an {other}: `{meant_name}`"
            return NameAdvice(code, message, fix, None, ())
        # Names that are there in the same namespace come first.
        here = [each for each in names if each[0] == uri]
        elsewhere = [each for each in names if each[0] != uri]
        for group in (here, elsewhere):
            meant = near(local, (name for _, name in group))
            found = tuple(each for name in meant for each in group if each[1] == name)
            if found:
                shown = [self.written(each, is_attribute=is_attribute) for each in found[:3]]
                fix = f"did you mean {' or '.join(f'`{name}`' for name in shown)}?"
                if self._structure.source == "sample":
                    fix += f" ({self._often(found[0], is_attribute)})"
                return NameAdvice(code, message, fix, shown[0], found[:1])
        return NameAdvice(code, message, None, None, ())

    def _often(self, name: ExpandedName, is_attribute: bool) -> str:
        count = self.names(is_attribute=is_attribute)[name]
        return "it occurs once" if count == 1 else f"it occurs {count} times"

    def written(self, name: ExpandedName, *, is_attribute: bool) -> str:
        """A name as the query would have to write it; with a new prefix where none is bound."""
        uri, local = name
        if uri == ANY_NAMESPACE:
            return f"*:{local}"
        written = self._notation.name(uri, local, has_default=not is_attribute)
        if not uri or not written.startswith("Q{"):
            return written
        return f"{self._prefix(uri)}:{local}"

    def _prefix(self, uri: str) -> str:
        """A prefix for a namespace that the query does not bind: p, p2, p3, ..."""
        if uri not in self._proposed:
            number = len(self._proposed) + 1
            taken = {*self._bound, *self._proposed.values()}
            while (prefix := f"p{number}" if number > 1 else "p") in taken:
                number += 1
            self._proposed[uri] = prefix
        return self._proposed[uri]
