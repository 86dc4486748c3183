"""Options that several commands share, as one parameter: a dataclass with a field an option.

Example: `pathcast net ls --at bern` calls `ls(CallOptions(at="bern"))` after

    @dataclass(frozen=True)
    class CallOptions:
        at: Annotated[str | None, typer.Option("--at")] = None

    def ls(reach: CallOptions) -> ExitCode: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def with_options(command: Callable[..., T]) -> Callable[..., T]:
    """A command, each parameter of which that is a dataclass is given as options, one a field."""
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for name, each in signature.parameters.items():
        if name not in groups:
            parameters.append(each.replace(annotation=hints[name], kind=keyword))
    for kind in groups.values():
        options = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            parameters.append(
                inspect.Parameter(
                    field.name, keyword, default=field.default, annotation=options[field.name]
                )
            )

    @functools.wraps(command)
    def run(**given: Any) -> T:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        return command(**given, **made)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run
