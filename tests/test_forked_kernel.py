"""A process forked while the kernel works in the background can do all that its parent can."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from broker_engines import missing
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))

# A child that waits for ever is ended by its alarm, and its parent does not count it.
HEAD: Final = f"""
import os, signal
def children_that_end(work):
    ended = 0
    for _ in range(5):
        begin()
        child = os.fork()
        if not child:
            signal.alarm({PATIENCE_SECONDS // 10:.0f})
            work()
            os._exit(0)
        ended += os.waitpid(child, 0)[1] == 0
        work()
    return ended
"""
PROGRAMS: Final = {
    "queries": """
from pathcast import Query, Registry
index = Registry()
matcher = index
many = 40_000
assert not index.add([Query(f"q{n}", f"/a/b{n}[@c = {n}]//d") for n in range(many)]).rejected
names = (f"new{n}" for n in range(many))
begin = lambda: matcher.match([b"<a/>"])
def work():
    name = next(names)
    assert not index.add([Query(name, f"/{name}")]).rejected
    assert list(matcher.match([f"<{name}/>".encode()])[0].query_ids) == [name]
    assert len(index.freeze()) == len(index)
    assert not index.add([Query(f"{name}-{n}", f"//{name}-{n}") for n in range(many)]).rejected
print(children_that_end(work))
""",
    "subscriptions": """
from pathcast import Registry, Subscription
registry = Registry()
def subscribe(first, count):
    numbers = range(first, first + count)
    several = [Subscription(f"q{n}", "ann", f"//a[b{n}[last()]]") for n in numbers]
    assert not registry.add(several).rejected
begin = lambda: registry.deliver(b"<b/>")
subscribe(0, 40_000)
following = iter(range(40_000, 100_000))
def work():
    n = next(following)
    subscribe(n, 1)
    assert [each.subscriber for each in registry.deliver(f"<a><b{n}/></a>".encode())] == ["ann"]
print(children_that_end(work))
""",
}


@pytest.mark.parametrize("program", list(PROGRAMS.values()), ids=list(PROGRAMS))
def test_whoever_is_forked_during_a_merge_can_merge(program: str) -> None:
    ran = subprocess.run(
        # Later Pythons warn of every fork of a process that has had threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("5\n", "")
