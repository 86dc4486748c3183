"""Ctrl-C ends what takes long, and other threads go on while the kernel works or waits.

Each program runs in a process of its own and is sent SIGINT once it is at work. What it does takes
most of a minute if it is not ended, and then says so.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

import pytest

from broker_engines import missing
from pathcast.limits import Limits
from patience import PATIENCE_SECONDS

native = pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")
pytestmark = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))

STEPS: Final = 2**31 - 1
HEAD: Final = f"""
import os, signal, sys, threading, time
from pathcast import Limits, Query, Registry, Subscription
limits = Limits(evaluation_steps_max={STEPS}, message_steps_max={STEPS})
few = b"<a/>"
# Many seconds of work in less than a MiB, so that the signal comes in the middle of it.
costly = b"<a>" + b"<b><c/></b>" * 40_000 + b"</a>"
hostile = "count(//b[count(following::c[count(preceding::b) > 7]) > 3]) > 1"
def signal_at_work(main):
    # The kernel is called from this package; what is called from elsewhere takes no time.
    at_work = os.path.join("pathcast", "kernel")
    while at_work not in sys._current_frames()[main].f_code.co_filename:
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
def interrupted(work):
    ident = threading.get_ident()
    try:
        threading.Thread(target=signal_at_work, args=[ident], daemon=True).start()
        work()
    except KeyboardInterrupt:
        print("interrupted")
    else:
        print("ended by itself")
"""
PROGRAMS: Final = {
    "one message": """
index = Registry(limits=limits)
assert not index.add([Query("q", hostile)]).rejected
matcher = index.freeze()
interrupted(lambda: matcher.match([costly]))
print(list(matcher.match([few])[0].query_ids))
""",
    "messages on several threads": """
index = Registry(limits=limits)
assert not index.add([Query("q", hostile)]).rejected
matcher = index
interrupted(lambda: matcher.match([costly] * 2 + [b"<a>" + b"x" * 2_000_000 + b"</a>"]))
print(list(matcher.match([few])[0].query_ids))
""",
    "a delivery": """
registry = Registry(limits=limits)
text = "for $b in //b where " + hostile + " return $b"
assert not registry.add(Subscription("q", "ann", text)).rejected
interrupted(lambda: registry.deliver(costly))
print([each.subscriber for each in registry.deliver(few)])
""",
    "a step": """
registry = Registry(limits=limits)
steps = ("drop //b[" + hostile + "]",)
assert not registry.add(Subscription("q", "ann", "//c", steps=steps)).rejected
interrupted(lambda: registry.deliver(costly))
print([each.subscriber for each in registry.deliver(few)])
""",
}


@pytest.mark.parametrize("program", list(PROGRAMS.values()), ids=list(PROGRAMS))
def test_one_costly_message_is_interrupted(program: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("interrupted\n[]\n", "")


def test_other_threads_go_on_while_a_call_waits_for_a_registration() -> None:
    """A call that waits with the interpreter in its hands would stop every thread.

    No thread is made to give the interpreter up here: the one that looks runs during a call only if
    the call itself has let it go.
    """
    index = native.Dissemination(Limits(), 1, 0)
    index.register([("q5", "/a/b", None, None)], {})
    many = [(f"many{n}", f"/a/b//c{n % 1_000}", None, None) for n in range(16_000)]
    added = iter(range(10**9))

    def replace() -> None:
        name = f"added{next(added)}"
        assert index.register([(name, "/x[last()]", None, None)], {}) == []
        index.unsubscribe([name])

    calls: dict[str, Callable[[], object]] = {
        "contains": lambda: "q5" in index,
        "len": lambda: len(index),
        "query": lambda: index.subscription("q5"),
        "memory": index.memory,
        "register and remove": replace,
    }
    asked: str | None = None
    seen: set[str | None] = set()
    is_over = threading.Event()

    def register_many() -> None:
        while not is_over.is_set():
            # All of them under one lock, for which the other calls wait.
            assert index.register(many, {}) == []
            index.unsubscribe([name for name, *_ in many])
            index.freeze()

    def look() -> None:
        while not is_over.is_set():
            seen.add(asked)
            time.sleep(0)

    threads = [threading.Thread(target=register_many), threading.Thread(target=look)]
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(10_000)
        for thread in threads:
            thread.start()
        for name, call in calls.items():
            for _ in range(2_000):
                asked = name
                call()
                asked = None
                time.sleep(0)
                if name in seen:
                    break
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
    for thread in threads:
        thread.join()
    assert seen - {None} == set(calls)
