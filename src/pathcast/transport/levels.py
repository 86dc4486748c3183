"""The file that says at which level the entries of a broker's tables are told: TOML, by shape.

Example:
    >>> text = levels_text({"//order/no": "existence"})
    >>> text.splitlines()
    ['[levels]', '"//order/no" = "existence"']
    >>> levels_of(text, "levels.toml")("//order/no[.=7]")
    '//order/no'

`pathcast broker levels` writes it, for a budget; a broker reads it when it starts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pathcast.errors import ConfigError, PathcastError
from pathcast.overlay.generalisation import EXACTLY, LEVELS, Generalisation, shape_of

__all__ = ["levels_of", "levels_text", "read_levels"]


def levels_text(levels: Mapping[str, str]) -> str:
    """The text of a file; shapes in order."""
    rows = (f"{json.dumps(shape)} = {json.dumps(levels[shape])}" for shape in sorted(levels))
    return "\n".join(["[levels]", *rows]) + "\n"


def read_levels(path: Path) -> Generalisation:
    """Reads a file.

    Raises:
        ConfigError: It cannot be read, or says what cannot be.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError("config.invalid", key=str(path), reason=reason) from error
    return levels_of(text, str(path))


def levels_of(text: str, name: str) -> Generalisation:
    """Reads the text of a file.

    Args:
        text: TOML, with shapes and their levels in the table `levels`.
        name: Of the file.

    Raises:
        ConfigError: It says what cannot be; it names the shape.
    """
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("config.invalid", key=name, reason=str(error)) from error
    levels = told.get("levels")
    if not isinstance(levels, dict) or told.keys() != {"levels"}:
        reason = "there has to be one table, levels"
        raise ConfigError("config.invalid", key=name, reason=reason)
    for shape, level in levels.items():
        if level != EXACTLY and (not isinstance(level, str) or level not in LEVELS):
            reason = f"{level!r} is no level; there are {EXACTLY}, {', '.join(LEVELS)}"
            raise ConfigError("config.invalid", key=f"{name}: {shape}", reason=reason)
        if not _is_shape(shape):
            reason = "it is no shape of entries: what is compared with a value stands there alone"
            raise ConfigError("config.invalid", key=f"{name}: {shape}", reason=reason)
    return Generalisation(levels)


def _is_shape(text: str) -> bool:
    try:
        return shape_of(text) == text
    except PathcastError:
        return False
