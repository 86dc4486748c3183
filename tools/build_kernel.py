"""Builds the native kernel in release mode and installs it into the environment that runs this.

Where no kernel can be had it says why, takes an older one out, and ends with 1.

Needs nothing but the standard library and, for the build, a Rust toolchain, maturin and, on Linux,
zig (the distribution `ziglang`): the wheel that is installed here is the one that is shipped.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "build" / "wheels"
DISTRIBUTION = "pathcast-kernel"
ERROR_LINES_SHOWN = 25


def rust_version_needed() -> tuple[int, ...]:
    """The oldest Rust that builds the kernel, as Cargo.toml states it."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        version: str = tomllib.load(file)["workspace"]["package"]["rust-version"]
    return tuple(int(part) for part in version.split("."))


def why_no_rust() -> str | None:
    """Why the toolchain cannot build the kernel, or None if it can."""
    needed = rust_version_needed()
    text = ".".join(map(str, needed))
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return f"no Rust toolchain on the PATH (needed: {text} or newer)"
    answer = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    words = answer.stdout.split()
    if answer.returncode != 0 or len(words) < 2:
        return f"rustc --version fails: {answer.stderr.strip() or answer.returncode}"
    found = tuple(int(part) for part in words[1].split("-")[0].split("."))
    if found < needed:
        return f"Rust {words[1]} is too old (needed: {text} or newer)"
    return None


def build() -> str | None:
    """Builds and installs the wheel; gives the reason if that fails."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    maturin = [sys.executable, "-m", "maturin", "build", "--release", "--locked"]
    options = ["--manifest-path", "kernel/Cargo.toml", "--out", str(WHEELS)]
    options += ["--interpreter", sys.executable]
    environment = dict(os.environ)
    if sys.platform.startswith("linux"):
        # Zig links against the C library of old systems: one wheel for all of them.
        options += ["--zig", "--compatibility", "manylinux2014"]
        # It is found as a module of the `python3` on the PATH.
        here = str(Path(sys.executable).parent)
        environment["PATH"] = os.pathsep.join([here, environment.get("PATH", os.defpath)])
    print(
        "==> Building the native kernel in release mode (a few minutes the first time)", flush=True
    )
    built = subprocess.run(
        maturin + options,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        print("\n".join(built.stdout.splitlines()[-ERROR_LINES_SHOWN:]), file=sys.stderr)
        return "the kernel does not compile here (end of the compiler's output above)"
    wheel = next(WHEELS.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    installed = subprocess.run(
        [*pip, "--no-deps", "--no-index", "--force-reinstall", str(wheel)], cwd=ROOT, check=False
    )
    if installed.returncode != 0:
        return f"pip refuses {wheel.name}"
    # A wheel that installs may still not load: ask before saying that the kernel is there.
    loaded = subprocess.run(
        [sys.executable, "-c", "import pathcast_kernel"],
        capture_output=True,
        text=True,
        check=False,
    )
    if loaded.returncode != 0:
        return f"the kernel was built but does not load: {loaded.stderr.strip().splitlines()[-1]}"
    print(f"==> Installed {wheel.name}")
    return None


def uninstall() -> None:
    """Takes out an older kernel, which would otherwise answer in place of the sources."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "uninstall", "--quiet"]
    subprocess.run([*pip, "--yes", DISTRIBUTION], stderr=subprocess.DEVNULL, check=False)


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    reason = why_no_rust() or build()
    if reason is None:
        return 0
    uninstall()
    rust = ".".join(map(str, rust_version_needed()))
    print(
        f"The native kernel cannot be built: {reason}. Install Rust {rust} or newer, for example "
        "from https://rustup.rs, see that cargo reaches a crate registry, and call make again.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
