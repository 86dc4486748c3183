"""External parameter entities of a DTD, put in place or left out, without any network.

The DTD reader would fetch what a DTD names. So nothing external is left in the text it gets: a
module in a local file beside the DTD, or below that directory, takes the place of its reference,
everything else is replaced by nothing and reported.

Example:
    >>> text = '<!ENTITY % m SYSTEM "http://example.org/m.mod"> %m; <!ELEMENT a EMPTY>'
    >>> resolved = with_modules(text, None, "the DTD")
    >>> resolved.text, resolved.unread
    ('<!ENTITY % m "">  <!ELEMENT a EMPTY>', ('m',))

It does not read external general entities (a DTD's structure does not need them), and it does not
put a module into the middle of a declaration: that is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pathcast.errors import SchemaError
from pathcast.limits import MIB

DTD_BYTES_MAX = 8 * MIB
"""Bytes of a DTD with its modules; the largest in public use (DocBook, TEI) have about 1 MiB."""

MODULE_DEPTH_MAX = 16
"""Modules that call modules; also ends a module that calls itself."""

_LITERAL = r"""(?:"[^"]*+"|'[^']*+')"""
# What is not closed goes on to the end of the text: nothing behind it can be told apart, and the
# DTD reader refuses it anyway. Trying again at each sign would take quadratic time.
_TOKEN = re.compile(
    rf"""(?P<comment><!--.*?-->|<\?.*?\?>)
    |(?P<open_comment>(?:<!--|<\?).*)
    |(?P<section><!\[\s*+[^\[<>]*+\[)
    |(?P<declaration><!(?:[^"'>]++|{_LITERAL})*+>)
    |(?P<open_declaration><!.*)
    |%(?P<reference>[^\s;%]++);
    |(?P<other>[^<%]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_PARAMETER_ENTITY = re.compile(
    rf"""<!ENTITY\s+%\s+(?P<name>\S+)\s+
    (?:(?P<value>{_LITERAL})|SYSTEM\s+(?P<system>{_LITERAL})
    |PUBLIC\s+{_LITERAL}(?:\s+(?P<public_system>{_LITERAL}))?)\s*>""",
    re.VERBOSE,
)
_TEXT_DECLARATION = re.compile(
    r"""\A<\?xml\s(?:[^?]*?\sencoding\s*=\s*["'](?P<encoding>[A-Za-z][\w.-]*)["'])?[^?]*\?>"""
)


class Resolved(NamedTuple):
    """A DTD without external parameter entities.

    Attributes:
        text: The declarations.
        unread: Names of the entities that were left out, in order.
    """

    text: str
    unread: tuple[str, ...]


def decode(data: bytes, path: str) -> str:
    """The text of a DTD by its byte order mark or text declaration, without either.

    Raises:
        SchemaError: The bytes are not text in that encoding, or the DTD is too large.
    """
    if len(data) > DTD_BYTES_MAX:
        raise SchemaError(
            "schema.unreadable", path=path, reason=f"it has more than {DTD_BYTES_MAX} bytes"
        )
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif not data.startswith(b"\xef\xbb\xbf"):
        declared = _TEXT_DECLARATION.match(data[:200].decode("latin-1"))
        if declared and declared["encoding"]:
            encoding = declared["encoding"]
    try:
        text = data.decode(encoding)
    except (UnicodeError, LookupError) as error:
        raise SchemaError("schema.unreadable", path=path, reason=str(error)) from error
    return _TEXT_DECLARATION.sub("", text, count=1)


def encoded(text: str, path: str) -> bytes:
    """The UTF-8 of a text, without a declaration that says what it was encoded in before.

    Raises:
        SchemaError: It has a lone surrogate, which is no character.
    """
    try:
        return _TEXT_DECLARATION.sub("", text, count=1).encode()
    except UnicodeEncodeError as error:
        reason = f"there is a lone surrogate, which is no character, at character {error.start}"
        raise SchemaError("schema.unreadable", path=path, reason=reason) from None


def with_modules(text: str, directory: Path | None, path: str) -> Resolved:
    """Puts local modules in place in a DTD.

    Args:
        text: Declarations, without text declaration.
        directory: Where relative system identifiers begin, and outside which no file is read by
            them; None reads no file.
        path: What errors call the DTD.

    Raises:
        SchemaError: A module is called inside a declaration, or modules call each other for ever.
    """
    resolver = _Resolver(path)
    return Resolved(resolver.resolve(text, directory, directory, 0), tuple(resolver.unread))


class _Module(NamedTuple):
    text: str
    directory: Path
    root: Path


@dataclass
class _Resolver:
    path: str
    modules: dict[str, _Module | None] = field(default_factory=dict)  # None: left out
    declared: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    characters: int = 0

    def resolve(self, text: str, directory: Path | None, root: Path | None, depth: int) -> str:
        if depth > MODULE_DEPTH_MAX:
            self._refuse(f"modules are nested more than {MODULE_DEPTH_MAX} deep")
        self.characters += len(text)
        if self.characters > DTD_BYTES_MAX:
            self._refuse(f"its modules have more than {DTD_BYTES_MAX} characters in all")
        out: list[str] = []
        for token in _TOKEN.finditer(text):
            if token["declaration"] is not None:
                out.append(self._declaration(token["declaration"], directory, root))
            elif token["reference"] is not None and token["reference"] in self.modules:
                module = self.modules[token["reference"]]
                if module is not None:
                    out.append(self.resolve(module.text, module.directory, module.root, depth + 1))
            else:
                out.append(token[0])
        return "".join(out)

    def _declaration(self, declaration: str, directory: Path | None, root: Path | None) -> str:
        for name in re.findall(r"%([^\s;%]+);", declaration):
            if self.modules.get(name) is not None:
                self._refuse(f"the module %{name}; is called inside a declaration")
        entity = _PARAMETER_ENTITY.fullmatch(declaration)
        if entity is None:
            return declaration
        name = entity["name"]
        if name in self.declared:  # The first declaration holds (XML 1.0, 4.2).
            return declaration if entity["value"] else ""
        self.declared.add(name)
        if entity["value"]:
            return declaration
        literal = entity["system"] or entity["public_system"] or '""'
        self.modules[name] = self._read(literal[1:-1], directory, root)
        if self.modules[name] is None:
            self.unread.append(name)
        return f'<!ENTITY % {name} "">' + "\n" * declaration.count("\n")

    def _read(self, system: str, directory: Path | None, root: Path | None) -> _Module | None:
        if directory is None or root is None:
            return None
        file = local_file(system, directory, root)
        return None if file is None else _Module(read_text(file), file.parent, root)

    def _refuse(self, reason: str) -> None:
        raise SchemaError("schema.unreadable", path=self.path, reason=reason)


def local_file(system: str, directory: Path, root: Path) -> Path | None:
    """The file that a relative system identifier names; None if it is none or lies outside `root`.

    A DTD may come from anyone; it does not choose which files are looked at.
    """
    if not system or re.match(r"[A-Za-z][\w+.-]*:|[/\\]", system) or "\0" in system:
        return None
    file = (directory / system).resolve()
    return file if file.is_relative_to(root.resolve()) and file.is_file() else None


def read_text(file: Path) -> str:
    """The text of a file with declarations.

    Raises:
        SchemaError: It cannot be read, or has too many bytes.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(DTD_BYTES_MAX + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SchemaError("schema.unreadable", path=str(file), reason=reason) from error
    return decode(data, str(file))
