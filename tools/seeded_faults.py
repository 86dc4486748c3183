"""Puts faults into the native kernel, one at a time, and says which differential test finds each.

    python tools/seeded_faults.py                  # all faults; about a minute each
    python tools/seeded_faults.py gate last        # some of them
    python tools/seeded_faults.py --list

A differential test proves little if a wrong kernel passes it. Each fault is an exact replacement
of a piece of source text in `kernel/core/src`, with the tests that must find it. The sources are
copied to a temporary directory and changed there; the tests run on that build of the kernel, and
neither the clone nor the installed kernel changes. The tests run once on the unchanged kernel
first: a test that fails there would find every fault.

Ends with 1 if a fault is missed. Needs Linux, the environment that `make` sets up, and a Rust
toolchain.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = Path("kernel", "core", "src")

TEST_SECONDS_MAX: Final = 300.0
"""Seconds that the tests of one fault may take; a fault may make the kernel run for ever."""

QUICK_BUILD: Final = {
    # Answers do not depend on these, and a build takes a quarter of the time.
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "none",
    "CARGO_INCREMENTAL": "1",
}


@dataclass(frozen=True)
class Fault:
    """One replacement in the kernel's sources.

    Args:
        name: Short name for the command line.
        meaning: Wrong behaviour of a kernel that has the fault.
        file: The source file, below `kernel/core/src`.
        right: Text as it stands there, exactly once.
        wrong: Text in its place.
        tests: Tests that must find it, as pytest names them.
    """

    name: str
    meaning: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


COMPILED: Final = "tests/test_differential_compile.py"
CONTENT: Final = "tests/test_differential_content.py"
DELIVERIES: Final = "tests/test_customised_engines.py"

FAULTS: Final = (
    Fault(
        "walk",
        "the parent of a node below `//` is always the node before in the pattern",
        "language/compile/moving.rs",
        "Ok(vec![self.lifted(direct), between])",
        "Ok(vec![self.lifted(direct)])",
        (f"{COMPILED}::test_compiled_queries_mean_the_same",),
    ),
    Fault(
        "not",
        "`not` of a comparison is the comparison",
        "language/compile/weakening.rs",
        "self.comparison(operator.opposite(), left, right, spine, counts)",
        "self.comparison(operator, left, right, spine, counts)",
        (f"{COMPILED}::test_compiled_queries_mean_the_same",),
    ),
    Fault(
        "gate",
        "the gate of a subscription knows the first of its alternatives only",
        "registry/delivery/plans.rs",
        "self.add_gated(&paths, compiled.expression.as_ref(), way)",
        "self.add_gated(&paths[..1], compiled.expression.as_ref(), way)",
        (f"{DELIVERIES}::test_many_subscriptions_at_once",),
    ),
    Fault(
        "less",
        "`<` holds for equal numbers",
        "engine/predicates/block_index.rs",
        "at > low || (equal && at == low)",
        "at > low || at == low",
        (f"{CONTENT}::test_thresholds_that_meet",),
    ),
    Fault(
        "zero",
        "0 and -0 are different numbers",
        "engine/predicates/keys.rs",
        "if value == 0.0 { 0.0f64.to_bits() } else { value.to_bits() }",
        "value.to_bits()",
        (f"{CONTENT}::test_every_comparison_of_every_value",),
    ),
    Fault(
        "position",
        "positions among siblings of one name count on from another name",
        "engine/conditions/message_index.rs",
        "if *counted == name { *count + 1 } else { 1 }",
        "if *counted == name { *count + 1 } else { *count + 1 }",
        (f"{CONTENT}::test_families_of_queries",),
    ),
    Fault(
        "last",
        "`last()` is never 1",
        "engine/evaluate/call.rs",
        "Function::Last => Ok(f64::from(context.size)),",
        "Function::Last => Ok(f64::from(context.size.max(2))),",
        ("tests/test_differential_xpath.py::test_expressions",),
    ),
    Fault(
        "nested",
        "conditions in a nested path are looked at one element too high",
        "engine/predicates/run.rs",
        "let base = tree.depth[anchor.element as usize] as usize + 1;",
        "let base = tree.depth[anchor.element as usize] as usize;",
        ("tests/test_differential_anchors.py::test_nested_paths_at_their_anchors",),
    ),
    Fault(
        "bottom-up",
        "nested paths found from the leaves up take over what children of a sibling satisfied",
        "engine/predicates/bottom_up.rs",
        "self.child[here + at] = 0;",
        "",
        ("tests/test_differential_depth.py",),
    ),
    Fault(
        "starts-with",
        "no value starts with itself",
        "engine/predicates/text_index.rs",
        "take_while(|&&length| length <= value.len())",
        "take_while(|&&length| length < value.len())",
        (f"{CONTENT}::test_prefixes_of_prefixes",),
    ),
    Fault(
        "contains",
        "of strings that overlap in a value only the first is contained",
        "engine/predicates/text_table.rs",
        "automaton.find_overlapping_iter(searched)",
        "automaton.find_iter(searched)",
        (f"{CONTENT}::test_prefixes_of_prefixes",),
    ),
    Fault(
        "folded",
        "texts within values are not looked for where these are folded",
        "engine/predicates/atoms.rs",
        "let reads_all = with_contained && index.reads_all();",
        "let reads_all = with_contained && index.reads_all() && fold == Fold::None;",
        ("tests/test_indexed_texts.py::test_what_is_indexed_holds_where_the_papers_say",),
    ),
    Fault(
        "self-loop",
        "`//` reaches one level further down and no more",
        "engine/dfa.rs",
        "let looping = active.looping.to_vec();",
        "let looping = Vec::new();",
        ("tests/test_differential_matching.py::test_engine_agrees_with_oracle",),
    ),
    Fault(
        "binding",
        "a predicate that holds at several nodes selects all but the first for every binding path",
        "engine/plans/run.rs",
        "mask | u64::from(is_bound(node)) << at",
        "mask | u64::from(is_bound(node) || at > 0) << at",
        (f"{DELIVERIES}::test_many_subscriptions_at_once",),
    ),
    Fault(
        "return",
        "paths below a bound node end at the first node that one of them reaches",
        "engine/plans/streams.rs",
        "element += 1;\n        }",
        "element = if run.accepted(state).is_empty() { element + 1 } else { end };\n        }",
        (f"{DELIVERIES}::test_many_subscriptions_at_once",),
    ),
    Fault(
        "flwr-predicate",
        "`>=` in a predicate of a FLWR expression does not hold for equal values",
        "engine/plans/probe.rs",
        "self.at_least.range((Bound::Unbounded, more))",
        "self.at_least.range((Bound::Unbounded, less))",
        (f"{DELIVERIES}::test_many_subscriptions_at_once",),
    ),
)


def with_fault(source: str, fault: Fault) -> str:
    """The source with the fault.

    Raises:
        ValueError: The text that the fault replaces does not stand there exactly once.
    """
    count = source.count(fault.right)
    if count != 1:
        raise ValueError(
            f"fault {fault.name}: its text occurs {count} times in {SOURCES / fault.file}, and "
            f"must occur once; mend the table in tools/{Path(__file__).name}:\n  {fault.right}"
        )
    return source.replace(fault.right, fault.wrong)


class FaultyKernel:
    """A copy of the kernel's sources, its build, and a place from which Python imports it."""

    def __init__(self, directory: Path, target: Path) -> None:
        self._tree = directory / "tree"
        self._target = target
        self._site = directory / "site"
        for name in ("Cargo.toml", "Cargo.lock"):
            self._tree.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self._tree)
        ignored = shutil.ignore_patterns("target", "__pycache__")
        # New times of change: Cargo takes an older source for one that it has built, fault and all.
        shutil.copytree(
            ROOT / "kernel", self._tree / "kernel", ignore=ignored, copy_function=shutil.copy
        )
        installed = importlib.util.find_spec("pathcast_kernel")
        if installed is None or installed.origin is None:
            raise ValueError("the kernel is not installed here; call `make build`")
        package = Path(installed.origin).parent
        shutil.copytree(package, self._site / package.name)
        self._library = next((self._site / package.name).glob("pathcast_kernel*.so"))

    def build(self, fault: Fault | None) -> None:
        """Builds the kernel with a fault, or without one.

        Raises:
            ValueError: The fault does not fit the source, or the source with it does not compile.
        """
        path = None if fault is None else self._tree / SOURCES / fault.file
        right = "" if path is None else path.read_text("utf-8")
        if path is not None and fault is not None:
            path.write_text(with_fault(right, fault), "utf-8")
        command = ["cargo", "build", "--quiet", "--release", "--locked"]
        command += ["-p", "pathcast-kernel", "--features", "pyo3/extension-module"]
        try:
            built = subprocess.run(
                command,
                cwd=self._tree,
                env=os.environ
                | QUICK_BUILD
                | {"CARGO_TARGET_DIR": str(self._target), "PYO3_PYTHON": sys.executable},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            if path is not None:
                path.write_text(right, "utf-8")
        if built.returncode != 0:
            raise ValueError(f"the kernel does not compile:\n{built.stderr[-2000:]}")
        shutil.copy(self._target / "release" / "libpathcast_kernel.so", self._library)

    def failing_test(self, tests: tuple[str, ...]) -> str | None:
        """The first of some tests that fails with this kernel; None if all pass.

        Raises:
            ValueError: The tests do not run, or do not end.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        # The reference engine does not run the kernel.
        command += ["-k", "not reference"]
        try:
            run = subprocess.run(
                [*command, "--tb=no", "-rf", *tests],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(self._site)},
                capture_output=True,
                text=True,
                check=False,
                timeout=TEST_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"the tests do not end within {TEST_SECONDS_MAX:.0f} s") from None
        failed = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
        if failed is not None:
            return failed[1]
        if run.returncode != 0:
            raise ValueError(f"the tests do not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        return None


def seed(faults: tuple[Fault, ...], directory: Path, target: Path) -> list[str]:
    """Seeds faults one by one, prints each verdict, and gives the names of those not found.

    Args:
        faults: The faults, in order.
        directory: An empty directory for sources and the kernels that are built.
        target: Where Cargo keeps its artefacts.

    Raises:
        ValueError: The kernel is not installed, or the tests fail without a fault.
    """
    kernel = FaultyKernel(directory, target)
    kernel.build(None)
    tests = tuple(dict.fromkeys(test for fault in faults for test in fault.tests))
    failing = kernel.failing_test(tests)
    if failing is not None:
        raise ValueError(f"{failing} fails on the kernel without a fault")
    print(f"no fault: {len(tests)} selections of tests pass", flush=True)
    missed = []
    for fault in faults:
        try:
            kernel.build(fault)
            found = kernel.failing_test(fault.tests)
            verdict = f"found by {found}" if found else f"MISSED by {' '.join(fault.tests)}"
        except ValueError as error:
            found, verdict = None, f"NO VERDICT: {error}"
        if found is None:
            missed.append(fault.name)
        print(f"{fault.name} ({fault.meaning}): {verdict}", flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    by_name = {fault.name: fault for fault in FAULTS}
    parser.add_argument("names", nargs="*", metavar="FAULT", help="faults to seed; default: all")
    parser.add_argument("--list", action="store_true", help="list the faults and build nothing")
    parser.add_argument(
        "--target",
        type=Path,
        metavar="DIRECTORY",
        help="keep Cargo's artefacts here for the next run; default: a temporary directory",
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in by_name]
    if unknown:
        parser.error(f"no fault is called {unknown[0]}; there are {', '.join(by_name)}")
    chosen = tuple(by_name[name] for name in arguments.names) or FAULTS
    if arguments.list:
        for fault in chosen:
            print(f"{fault.name}: {fault.meaning} ({fault.file})")
        return 0
    with tempfile.TemporaryDirectory(prefix="seeded-faults-") as directory:
        try:
            target = arguments.target or Path(directory, "target")
            missed = seed(chosen, Path(directory), target.resolve())
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
