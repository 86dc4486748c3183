"""A ring of peer processes on this machine: for trying out, demonstrations and tests.

A directory holds what `local_processes` describes. It is no way to run a ring of machines: there
each peer is its own service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pathcast.settings import read_settings
from pathcast.transport.local_processes import LocalProcesses, free_ports
from pathcast.transport.peer import CODEC
from pathcast.transport.peer_settings import PeerSettings

BASE_SIZE = 4
"""Peers of the base at least; it has to be larger than lists of successors."""


def with_virtual_nodes(count: int) -> dict[str, float | str]:
    """Keys of the section `ring`, for so many members in each process.

    There is a copy more than members, so that a process that ends takes not all of them.

    Example:
        >>> with_virtual_nodes(3)
        {'virtual_nodes': 3, 'copies': 4, 'successors': 4}

    Source: 000, section 6.4 (3 virtual nodes a peer).
    """
    return {"virtual_nodes": count, "copies": max(count + 1, 3), "successors": max(count + 1, 3)}


class LocalRing(LocalProcesses):
    """The peer processes of a directory, which `write` made."""

    COMMAND = ("peer", "run")
    MODULES = ("pathcast.cli.app", "pathcast.transport.process", "pathcast.transport.peer_settings")
    CODEC = CODEC
    BEGUN_BY = "pathcast peer up"
    HEALED_BY = "pathcast peer heal"

    @classmethod
    def write(
        cls, directory: Path, count: int, settings: Mapping[str, float | str] | None = None
    ) -> LocalRing:
        """Writes the settings of peers p00, p01, ..., with ports that are free now.

        Args:
            directory: Where.
            count: Peers, at least as many as the base has; the first are the base.
            settings: Keys of the section `ring`.

        Raises:
            ConfigError: There are settings in the directory.
        """
        cls.prepared(directory)
        chosen = settings or {}
        base = max(BASE_SIZE, int(chosen.get("successors", 0)) + 1)
        names = [f"p{number:02d}" for number in range(max(count, base))]
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        for name in names:
            text = _settings(name, ports, names[:base], chosen)
            (directory / f"{name}.toml").write_text(text, encoding="utf-8")
        return cls(directory)

    @property
    def base(self) -> list[str]:
        """Peers that must not be ended."""
        return list(read_settings(PeerSettings, self.directory / "p00.toml").ring.base)


def _settings(
    name: str, ports: Mapping[str, int], base: Sequence[str], settings: Mapping[str, float | str]
) -> str:
    parts = [
        f'[peer]\nname = "{name}"\ndirectory = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n',
        f"[ring]\nbase = [{', '.join(f'{each!r}' for each in base)}]\n"
        + "".join(f"{key} = {value!r}\n" for key, value in settings.items()),
    ]
    parts += [
        f'[[peers]]\nname = "{each}"\naddress = "127.0.0.1:{port}"\n'
        for each, port in ports.items()
        if each != name
    ]
    return "\n".join(parts)
