"""The table of faults in `tools/seeded_faults.py` still fits the kernel's sources and the tests.

If one of these fails, the sources or the tests have moved on and the table of faults has not: the
run of `make seeded-faults` would end without a verdict.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "seeded_faults.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seeded_faults", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A data class looks its module up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLE = load()


def test_there_are_ten_faults_at_least_and_each_has_a_name() -> None:
    names = {fault.name for fault in TABLE.FAULTS}
    assert len(names) == len(TABLE.FAULTS) >= 10


@pytest.mark.parametrize("fault", TABLE.FAULTS, ids=lambda fault: str(fault.name))
def test_a_fault_fits_the_source_once(fault: TABLE.Fault) -> None:  # type: ignore[name-defined]
    source = (ROOT / TABLE.SOURCES / fault.file).read_text("utf-8")
    assert TABLE.with_fault(source, fault) != source


@pytest.mark.parametrize("count", [0, 2])
def test_a_text_that_is_not_there_once_is_refused(count: int) -> None:
    fault = TABLE.FAULTS[0]
    with pytest.raises(ValueError, match=f"{fault.name}: its text occurs {count} times"):
        TABLE.with_fault(fault.right * count, fault)


def test_the_tests_that_must_find_a_fault_are_there() -> None:
    for fault in TABLE.FAULTS:
        for test in fault.tests:
            file, _, function = test.partition("::")
            tree = ast.parse((ROOT / file).read_text("utf-8"))
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert not function or function in names, f"{fault.name}: no test {test}"
