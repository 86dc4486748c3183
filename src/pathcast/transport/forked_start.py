"""Starts processes of `pathcast` that have what they import in common: one interpreter, forked.

An interpreter takes a second of a core until it has imported what a broker or a peer needs, and
twenty of them take twenty. Here one does it and forks; each process is one like any other: of a
session of its own, with its own id, log and arguments, and it goes on when this one has ended.

    python -m pathcast.transport.forked_start DIRECTORY COMMAND MODULES NAME...

runs `pathcast COMMAND DIRECTORY/NAME.toml` for each name, with `DIRECTORY/NAME.log` as its output,
and prints a line of name and process id for each. COMMAND and MODULES, which are imported before,
are separated by commas. It opens nothing before it forks that processes must not share: no channel
and no engine.

Example:
    >>> from pathcast.transport.forked_start import start_forked
    >>> start_forked(Path("ring"), ["peer", "run"], [], ["p00"])  # doctest: +SKIP
    {'p00': 4711}
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pathcast.errors import UnavailableError


def start_forked(
    directory: Path, command: Sequence[str], modules: Sequence[str], names: Sequence[str]
) -> dict[str, int]:
    """Starts a process for each name; see the module.

    Args:
        directory: With the settings of each, and its log.
        command: Of `pathcast`.
        modules: What they import at the beginning; what is left out each imports by itself.
        names: Of the settings.

    Returns:
        Name -> process id.

    Raises:
        UnavailableError: None of them was started; it says why.

    Cost: the imports once, and some milliseconds a process.
    """
    arguments = [str(directory.absolute()), ",".join(command), ",".join(modules), *names]
    starter = subprocess.Popen(
        [sys.executable, "-m", "pathcast.transport.forked_start", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, wrong = starter.communicate()
    except BaseException:
        starter.kill()
        _end(_read(starter.communicate()[0]))
        raise
    started = _read(said)
    if starter.returncode:
        _end(started)
        reason = f"nothing was started: {wrong[-400:].strip()}"
        raise UnavailableError("peer.unreachable", name=", ".join(names), reason=reason)
    return started


def _read(said: str) -> dict[str, int]:
    rows = (line.rsplit(" ", 1) for line in said.splitlines())
    return {name: int(process) for name, process in rows}


def _end(started: Mapping[str, int]) -> None:
    for process in started.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def main(directory: str, command: str, modules: str, *names: str) -> None:
    """Forks, and returns in this process; the others end in here."""
    for module in filter(None, modules.split(",")):
        importlib.import_module(module)
    # What is there is never looked at by a collector again, so that its pages stay shared.
    gc.collect()
    gc.freeze()
    for name in names:
        process = os.fork()
        if not process:
            _become(Path(directory) / name, command.split(","))
        print(name, process, flush=True)


def _become(path: Path, command: Sequence[str]) -> None:
    """Be `pathcast COMMAND path.toml` from here on."""
    os.setsid()
    log = os.open(f"{path}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.argv = ["pathcast", *command, f"{path}.toml"]
    runpy.run_module("pathcast", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
