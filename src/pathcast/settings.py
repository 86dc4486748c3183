"""Settings in TOML files: how a file, the environment and overrides become one checked value.

Where a key is given more than once, the later of these counts: default, file, environment
(`PATHCAST__SECTION__KEY`), override (`section.key=value`). Relative paths are relative to the
directory of the file, wherever they were given. Unknown keys are refused. Keys that a section had
before stand in its class variable `ENDED`, each with what to do instead, and are refused with that.

Example:
    >>> did_you_mean("mdoe", ["mode", "source"])
    '; did you mean mode?'

It knows no setting: each room that has a file describes its own.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from pathcast.errors import ConfigError

ENVIRONMENT_PREFIX = "PATHCAST__"


class SettingsSection(BaseModel):
    """A table of a file; its fields are described by the text below each."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, coerce_numbers_to_str=True, use_attribute_docstrings=True
    )
    ENDED: ClassVar[Mapping[str, str]] = {}
    """Keys that were there before -> what to do instead."""


def checked_address(address: str) -> str:
    """HOST:PORT, or a ValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{address!r} is not HOST:PORT")
    return address


HostPort: TypeAlias = Annotated[str, AfterValidator(checked_address)]
"""HOST:PORT in a file."""


def _as_text(value: object) -> object:
    """A path as its text; other values are left to pydantic."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


_PLACE: Final = "path or URL"
Place: TypeAlias = Annotated[str, BeforeValidator(_as_text), _PLACE]
"""A path, or a URL that fsspec understands: see `pathcast.spark.storage`."""


class FileSettings(BaseSettings):
    """Everything that one kind of file may say: its sections as fields."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
        use_attribute_docstrings=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is passed in: `read_settings` has merged file, environment and overrides."""
        return (init_settings,)


S = TypeVar("S", bound=FileSettings)


class SettingDescription(NamedTuple):
    """One key of a file.

    Attributes:
        key: Section and key, such as "mode.kind".
        type: What it takes.
        default: Its default as TOML would write it, or "required".
        description: What it means.
    """

    key: str
    type: str
    default: str
    description: str


def described(settings: type[FileSettings]) -> list[SettingDescription]:
    """Every key of a kind of file, for documentation and help."""
    found = []
    for section, model in _sections(settings):
        for name, field in model.model_fields.items():
            default = "required"
            if not field.is_required():
                value = field.get_default(call_default_factory=True, validated_data={})
                default = "not set" if value is None else repr(value).replace("'", '"')
            found.append(
                SettingDescription(
                    f"{section}.{name}",
                    _PLACE if _is_place(field) else _type_name(field.annotation),
                    default,
                    " ".join((field.description or "").split()),
                )
            )
    return found


def _type_name(annotation: Any) -> str:
    """A type in the words of TOML."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _PLACE if _PLACE in inner else _type_name(inner[0])
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in inner)
    if origin is tuple:
        return f"list of {_type_name(inner[0])}"
    if origin in (Union, UnionType):
        parts = [_type_name(part) for part in inner if part is not NoneType]
        return " | ".join(dict.fromkeys(parts))
    if origin is dict:
        return f"table of {_type_name(inner[1])}"
    names: dict[Any, str] = {
        str: "text",
        int: "whole number",
        float: "number",
        Path: "path",
        bool: "true or false",
        SecretStr: "text",
        IPv4Network: "network",
        IPv6Network: "network",
    }
    return names[annotation]


def read_settings(
    settings: type[S], path: str | os.PathLike[str], overrides: Sequence[str] = ()
) -> S:
    """Read a file of settings.

    Args:
        settings: What the file may say.
        path: The TOML file.
        overrides: `section.key=value`, the value as in TOML; text needs no quotes.

    Returns:
        The settings, all paths absolute.

    Raises:
        ConfigError: The file cannot be read, or a key is unknown, missing or has a value that
            cannot be used. The message names the key.
    """
    file = Path(path)
    try:
        merged: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise _invalid(str(file), error.strerror or str(error)) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _invalid(str(file), str(error)) from error
    _merge(merged, EnvSettingsSource(settings)())
    for override in overrides:
        _merge(merged, _parse_override(override))
    _resolve_paths(settings, merged, file.absolute().parent)
    return checked_settings(settings, merged)


def checked_settings(settings: type[S], values: Mapping[str, Any]) -> S:
    """The settings of sections and their keys.

    Raises:
        ConfigError: A key is unknown, missing or has a value that cannot be used.
    """
    try:
        return settings(**values)
    except ValidationError as error:
        raise _config_error(settings, error) from error


def _sections(settings: type[FileSettings]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Name and model of each table of a file, or of each in a list of tables."""
    for section, field in settings.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield section, part


def _merge(into: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _parse_override(override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    # At most three parts: the keys of spark.conf have dots of their own.
    parts = [part.strip() for part in key.split(".", 2)]
    if not equals or len(parts) < 2 or not all(parts):
        raise _invalid(override, "not of the form section.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for part in reversed(parts):
        value = {part: value}
    found: dict[str, Any] = value
    return found


def _resolve_paths(settings: type[FileSettings], merged: dict[str, Any], base: Path) -> None:
    for section, model in _sections(settings):
        given = merged.get(section)
        for values in given if isinstance(given, list) else [given]:
            if isinstance(values, dict):
                _resolve_section(model, values, base)


def _resolve_section(model: type[BaseModel], values: dict[str, Any], base: Path) -> None:
    for name, field in model.model_fields.items():
        given = values.get(name)
        if not isinstance(given, str) or not (_is_path(field) or _is_place(field)):
            continue
        if not (_is_place(field) and "://" in given):
            values[name] = os.path.normpath(base / Path(given).expanduser())


def _is_path(field: FieldInfo) -> bool:
    return field.annotation is Path or field.annotation == (Path | None)


def _is_place(field: FieldInfo) -> bool:
    # pydantic keeps what stands beside the type of a field that is required.
    return _PLACE in field.metadata or field.annotation == (Place | None)


def _config_error(settings: type[FileSettings], error: ValidationError) -> ConfigError:
    """The first problem as key and reason, and the others after it."""
    found = [_problem(settings, detail) for detail in error.errors()]
    (key, reason), others = found[0], found[1:]
    return _invalid(key, "; ".join([reason, *(f"{key}: {reason}" for key, reason in others)]))


def _problem(settings: type[FileSettings], detail: Mapping[str, Any]) -> tuple[str, str]:
    place = [str(part) for part in detail["loc"]]
    key = ".".join(place) or "settings"
    if detail["type"] == "missing":
        return key, "is missing"
    if isinstance(detail["input"], Mapping) and detail["type"] == "value_error":
        # Of a whole table, which may hold secrets.
        return key, str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] != "extra_forbidden":
        return key, f"{detail['msg'].removeprefix('Value error, ')} (given: {detail['input']!r})"
    model = dict(_sections(settings)).get(place[0]) if len(place) > 1 else settings
    ended: Mapping[str, str] = getattr(model, "ENDED", {})
    if place[-1] in ended:
        return key, f"has ended: {ended[place[-1]]}"
    known = list(model.model_fields) if model else []
    return key, f"is not a setting{did_you_mean(place[-1], known)}"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a refusal of a name: the one that was likely meant, or all that there are."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _invalid(key: str, reason: str) -> ConfigError:
    return ConfigError("config.invalid", key=key, reason=reason)
