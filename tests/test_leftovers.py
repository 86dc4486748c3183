"""If this fails, a test that fails leaves processes behind, beside which those that follow run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import leftovers


def a_child() -> Callable[[], object]:
    return subprocess.Popen(["sleep", "600"]).wait


def a_child_of_one_that_has_ended() -> Callable[[], object]:
    subprocess.run(["sh", "-c", "sleep 600 &"], check=True)
    return lambda: None


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are not listed here")
@pytest.mark.parametrize("leave", [a_child, a_child_of_one_that_has_ended])
def test_what_a_test_has_left_is_ended_and_told(leave: Callable[[], Callable[[], object]]) -> None:
    with (
        pytest.raises(AssertionError, match=r"left processes behind: \{\d+: '[^']*sleep 600"),
        leftovers.ended(seconds=0.0),
    ):
        wait = leave()
    wait()
    with leftovers.ended(seconds=0.0):
        pass
