"""The command `pathcast`.

Commands parse their arguments, call the library and print; they have no rules of their own.
Data goes to standard output, everything else to standard error. Nothing but the data is printed
when the output is piped: no colours, no control codes, no progress bars.

Exit codes are those of `pathcast.cli.exits.ExitCode`.
"""

from pathcast.cli.app import main

__all__ = ["main"]
