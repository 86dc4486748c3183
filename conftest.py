"""What the tests and the examples in docstrings have in common: what can be collected here."""

from __future__ import annotations

from importlib.util import find_spec

HAS_KERNEL = find_spec("pathcast_kernel") is not None

# Its examples cannot even be imported without the kernel; tests of the kernel skip by themselves.
collect_ignore = [] if HAS_KERNEL else ["src/pathcast/kernel", "src/pathcast/records"]


def pytest_report_header() -> str:
    """Says at the top which engines this run is about."""
    if HAS_KERNEL:
        return "native kernel: there"
    return "native kernel: MISSING; its tests and examples are skipped"
