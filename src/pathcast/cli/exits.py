"""Exit codes of the commands.

Example:
    >>> exit_code_for(ConfigError("config.invalid", key="depth_max", reason="0 is not from 1 on"))
    <ExitCode.USAGE: 2>
"""

from __future__ import annotations

from enum import IntEnum

from pathcast.errors import (
    ConfigError,
    JavaMissingError,
    KernelMissingError,
    MissingDependencyError,
    PathcastError,
)


class ExitCode(IntEnum):
    """Exit codes of every command.

    Attributes:
        OK: Done; every query and message was taken.
        REFUSED: Done as far as possible, but some query or message was refused, an input could not
            be read, or a query could not be decided on some message.
            `pathcast lint` ends with it when it found something.
        USAGE: The command line or a setting cannot be used; nothing was done.
        ENVIRONMENT: Something is missing on this machine: the kernel, Java, or an optional library.
        INTERRUPTED: Ctrl-C.
        PIPE_CLOSED: The reader of the output went away (`pathcast match ... | head`).
    """

    OK = 0
    REFUSED = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXIT_CODES_HELP = (
    "Exit codes: 0 done; 1 done, but a query or message was refused, an input could not be read, "
    "or a query could not be decided on a message; 2 the command line or a setting cannot be used; "
    "3 something is missing on this machine (kernel, Java, an optional library: see pathcast "
    "doctor); 130 interrupted; 141 the reader of the output went away."
)


def exit_code_for(error: PathcastError) -> ExitCode:
    """The exit code of a command that ends with this error."""
    if isinstance(error, KernelMissingError | MissingDependencyError | JavaMissingError):
        return ExitCode.ENVIRONMENT
    if isinstance(error, ConfigError):
        return ExitCode.USAGE
    return ExitCode.REFUSED
