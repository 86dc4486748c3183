"""What joins broker processes of a test: network namespaces and veth pairs, or loopback.

Namespaces: one for each broker, a pair of virtual interfaces for each link, and one more to where
the test is. A link that is cut is an interface that is down: nothing is answered any more, and
nobody is told. They want root, and Linux.

Loopback: every link leads through a proxy; one that is cut resets connections and lets nobody
through.

Either way a link that is to be slow, late or lossy leads through a proxy, which runs in a thread of
the test, in the namespace of the broker that calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Coroutine, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from pathcast.transport.local_processes import free_ports
from patience import PATIENCE_SECONDS
from tcp_proxy import LinkFaults, Proxy

PREFIX: Final = "pathcast-test-"
"""Of namespaces; the id of the process that made them follows."""

PORT: Final = 7400

CLONE_NEWNET: Final = 0x40000000
"""Of `setns(2)`; `os.setns` is there from Python 3.12 on."""

Pair = tuple[str, str]


class Wires(Protocol):
    """Where brokers listen, how they reach each other, and what goes wrong on the way."""

    def listens(self, name: str) -> str:
        """HOST:PORT that a broker is told to listen at."""

    def seen_at(self, name: str) -> str:
        """HOST:PORT where a client of the test finds it."""

    def called_at(self, caller: str, name: str) -> str:
        """HOST:PORT where a neighbour finds it."""

    def within(self, name: str) -> Sequence[str]:
        """What stands before the command of its process."""

    def cut(self, one: str, other: str) -> None:
        """Nothing gets through any more, either way."""

    def mend(self, one: str, other: str) -> None:
        """It does again."""

    def reset(self, one: str, other: str) -> None:
        """Of a link through a proxy: its connections are reset."""

    def become(self, one: str, other: str, faults: LinkFaults) -> None:
        """Of a link through a proxy: how unkind it is from now on."""

    def close(self) -> None:
        """Takes everything away; brokers have ended."""


class Proxies:
    """Proxies in a thread, which may be in a namespace."""

    def __init__(self, namespace: str = "") -> None:
        self._loop = asyncio.new_event_loop()
        self._made: dict[Pair, Proxy] = {}
        self._thread = threading.Thread(target=self._run, args=(namespace,), daemon=True)
        self._thread.start()

    def _run(self, namespace: str) -> None:
        if namespace:
            with Path("/run/netns", namespace).open() as handle:
                failed = ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET)
            assert not failed, os.strerror(ctypes.get_errno())
        self._loop.run_forever()

    def _do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE_SECONDS)

    def add(self, link: Pair, address: str) -> None:
        """A proxy for a link, which leads there."""
        host, _, port = address.rpartition(":")
        self._made[link] = self._do(Proxy.start(host, int(port)))

    def port(self, link: Pair) -> int:
        """Where the proxy of a link listens."""
        return self._made[link].port

    def has(self, link: Pair) -> bool:
        """Whether it leads through a proxy of these."""
        return link in self._made

    def cut(self, link: Pair) -> None:
        """See `Proxy.cut`."""
        self._loop.call_soon_threadsafe(self._made[link].cut)

    def mend(self, link: Pair) -> None:
        """See `Proxy.heal`."""
        self._loop.call_soon_threadsafe(self._made[link].heal)

    def become(self, link: Pair, faults: LinkFaults) -> None:
        """See `Proxy.faults`."""
        self._made[link].faults = faults

    def close(self) -> None:
        """Ends them and their thread."""
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    async def _end(self) -> None:
        for proxy in self._made.values():
            await proxy.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Loopback:
    """Brokers at ports of 127.0.0.1.

    Args:
        names: Of the brokers.
        links: That lead through proxies; others are called directly.
    """

    def __init__(self, names: Iterable[str], links: Iterable[Pair] = ()) -> None:
        names = list(names)
        ports = zip(names, free_ports(len(names)), strict=True)
        self._addresses = {name: f"127.0.0.1:{port}" for name, port in ports}
        links = list(links)
        self._proxies = Proxies() if links else None
        for one, other in links:
            assert self._proxies is not None
            self._proxies.add(pair(one, other), self._addresses[max(one, other)])

    def listens(self, name: str) -> str:
        return self._addresses[name]

    def seen_at(self, name: str) -> str:
        return self._addresses[name]

    def called_at(self, caller: str, name: str) -> str:
        link = pair(caller, name)
        if self._proxies is None or not self._proxies.has(link):
            return self._addresses[name]
        return f"127.0.0.1:{self._proxies.port(link)}"

    def within(self, name: str) -> Sequence[str]:
        return ()

    def cut(self, one: str, other: str) -> None:
        assert self._proxies is not None
        self._proxies.cut(pair(one, other))

    def mend(self, one: str, other: str) -> None:
        assert self._proxies is not None
        self._proxies.mend(pair(one, other))

    def reset(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.mend(one, other)

    def become(self, one: str, other: str, faults: LinkFaults) -> None:
        assert self._proxies is not None
        self._proxies.become(pair(one, other), faults)

    def close(self) -> None:
        if self._proxies is not None:
            self._proxies.close()


class Namespaces:
    """Brokers in namespaces of their own.

    Args:
        names: Of the brokers, at most 60, of at most 12 letters.
        links: Between them.
        through_proxies: Those links that can be slow, late or lossy.
    """

    def __init__(
        self, names: Sequence[str], links: Iterable[Pair], through_proxies: Iterable[Pair] = ()
    ) -> None:
        sweep()
        self._prefix = f"{PREFIX}{os.getpid()}-"
        self._places = {name: place for place, name in enumerate(names)}
        self._links = {pair(*link): number for number, link in enumerate(links)}
        self._proxies: dict[str, Proxies] = {}
        try:
            self._make()
            for link in through_proxies:
                self._add_proxy(pair(*link))
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        for name in self._places:
            ip("netns", "add", self._prefix + name)
        outside = []
        for name in self._places:
            here, there = self._interface(name), self._prefix + name
            outside.append(f"link add {here} type veth peer name test netns {there}")
            outside.append(f"addr add {self._managed(name, 1)}/30 dev {here}")
            outside.append(f"link set {here} up")
        batch(outside)
        for name in self._places:
            inside = ["link set lo up", f"addr add {self._managed(name, 2)}/30 dev test"]
            inside.append("link set test up")
            for one, other in self._links:
                if one == name:
                    inside.append(
                        f"link add to-{other} type veth peer name to-{one} "
                        f"netns {self._prefix}{other}"
                    )
            batch(inside, self._prefix + name)
        for name in self._places:
            inside = []
            for (one, other), number in self._links.items():
                if name in (one, other):
                    peer = other if name == one else one
                    inside.append(f"addr add {_linked(number, name == one)}/30 dev to-{peer}")
                    inside.append(f"link set to-{peer} up")
            batch(inside, self._prefix + name)

    def _add_proxy(self, link: Pair) -> None:
        caller, name = link
        if caller not in self._proxies:
            self._proxies[caller] = Proxies(self._prefix + caller)
        self._proxies[caller].add(link, self._direct(name, link))

    def _direct(self, name: str, link: Pair) -> str:
        return f"{_linked(self._links[link], name == link[0])}:{PORT}"

    def _interface(self, name: str) -> str:
        return f"pct{os.getpid()}-{self._places[name]}"

    def _managed(self, name: str, end: int) -> str:
        return f"10.213.{os.getpid() % 256}.{4 * self._places[name] + end}"

    def listens(self, name: str) -> str:
        return f"0.0.0.0:{PORT}"

    def seen_at(self, name: str) -> str:
        return f"{self._managed(name, 2)}:{PORT}"

    def called_at(self, caller: str, name: str) -> str:
        link = pair(caller, name)
        proxies = self._proxies.get(link[0])
        if proxies is None or not proxies.has(link) or caller != link[0]:
            return self._direct(name, link)
        return f"127.0.0.1:{proxies.port(link)}"

    def within(self, name: str) -> Sequence[str]:
        return ("ip", "netns", "exec", self._prefix + name)

    def cut(self, one: str, other: str) -> None:
        ip("-n", self._prefix + one, "link", "set", f"to-{other}", "down")

    def mend(self, one: str, other: str) -> None:
        ip("-n", self._prefix + one, "link", "set", f"to-{other}", "up")

    def reset(self, one: str, other: str) -> None:
        link = pair(one, other)
        self._proxies[link[0]].cut(link)
        self._proxies[link[0]].mend(link)

    def become(self, one: str, other: str, faults: LinkFaults) -> None:
        link = pair(one, other)
        self._proxies[link[0]].become(link, faults)

    def close(self) -> None:
        for proxies in self._proxies.values():
            proxies.close()
        self._proxies = {}
        # A namespace ends some time after it is taken away, and with it what is in it.
        for name in self._places:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("link", "del", self._interface(name))
        remove(self._prefix)


def wires(names: Sequence[str], links: Sequence[Pair], through_proxies: Iterable[Pair]) -> Wires:
    """Namespaces where they can be made; else, or if PATHCAST_WIRES is "loopback", loopback."""
    if os.environ.get("PATHCAST_WIRES") != "loopback" and can_make_namespaces():
        return Namespaces(names, links, through_proxies)
    return Loopback(names, links)


@cache
def can_make_namespaces() -> bool:
    """Tries it."""
    if shutil.which("ip") is None:
        return False
    name = f"{PREFIX}{os.getpid()}-tried"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
        ip("netns", "exec", name, "true")
    except subprocess.CalledProcessError:
        return False
    finally:
        remove(name)
    return True


def pair(one: str, other: str) -> Pair:
    """A link by its ends; the first calls the second."""
    return (one, other) if one < other else (other, one)


def _linked(number: int, is_first: bool) -> str:
    return f"10.214.{number}.{1 if is_first else 2}"


def ip(*arguments: str) -> None:
    """Runs `ip`."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def batch(lines: Sequence[str], namespace: str = "") -> None:
    """Runs `ip` with several commands."""
    where = ["-n", namespace] if namespace else []
    subprocess.run(
        ["ip", *where, "-batch", "-"],
        input="\n".join(lines) + "\n",
        check=True,
        capture_output=True,
        text=True,
    )


def remove(prefix: str) -> None:
    """Takes namespaces away whose names begin so, with what is in them."""
    for path in Path("/run/netns").glob(f"{prefix}*"):
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("netns", "del", path.name)


def sweep() -> None:
    """Takes away what is left of runs that have ended."""
    for path in Path("/run/netns").glob(f"{PREFIX}*"):
        process = path.name.removeprefix(PREFIX).partition("-")[0]
        if not Path(f"/proc/{process}").exists():
            remove(path.name)
