"""The archive of Spark's classes: who makes it, who reads it, and who does without."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from pathcast.errors import JavaMissingError
from pathcast.spark.class_archive import LEFT_BEHIND_SECONDS, ClassArchive
from pathcast.spark.java import JavaInstall, find_java


def install(home: Path, modules: str = "1") -> JavaInstall:
    """A Java home, as far as an archive looks at it."""
    file = home / "lib" / "modules"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(modules)
    return JavaInstall(home, 21, "test")


def written_to(options: tuple[str, ...]) -> Path:
    return Path(options[0].removeprefix("-XX:ArchiveClassesAtExit="))


def made(folder: Path, java: JavaInstall) -> Path:
    """The archive that a first run leaves."""
    archive = ClassArchive(folder)
    file = written_to(archive.options(java))
    archive.keep(lambda: file.write_bytes(b"classes"))
    (kept,) = folder.iterdir()
    return kept


def test_the_first_run_writes_it_when_its_jvm_ends_and_the_next_reads_it(tmp_path: Path) -> None:
    java, folder = install(tmp_path / "java"), tmp_path / "classes"
    first = ClassArchive(folder)
    options = first.options(java)
    assert options[0].startswith("-XX:ArchiveClassesAtExit=")
    ended = []

    def end_jvm() -> None:
        written_to(options).write_bytes(b"classes")
        ended.append(1)

    # Who starts meanwhile writes one of its own: nobody reads half an archive.
    other = ClassArchive(folder)
    assert other.options(java)[0].startswith("-XX:ArchiveClassesAtExit=")
    first.keep(end_jvm)
    (kept,) = folder.iterdir()
    assert (kept.read_bytes(), ended) == (b"classes", [1])
    second = ClassArchive(folder)
    assert second.options(java)[0] == f"-XX:SharedArchiveFile={kept}"
    second.keep(lambda: pytest.fail("nothing is to be waited for"))


def test_another_java_has_another_archive_and_an_update_replaces_that_of_its_own(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "classes"
    one = made(folder, install(tmp_path / "one"))
    archive = ClassArchive(folder)
    file = written_to(archive.options(install(tmp_path / "two")))
    archive.keep(lambda: file.write_bytes(b"two"))
    assert len(list(folder.iterdir())) == 2
    os.utime(tmp_path / "one" / "lib" / "modules", ns=(1, 1))
    archive = ClassArchive(folder)
    file = written_to(archive.options(JavaInstall(tmp_path / "one", 21, "test")))
    archive.keep(lambda: file.write_bytes(b"new"))
    assert not one.exists()
    assert sorted(path.read_bytes() for path in folder.iterdir()) == [b"new", b"two"]


def test_a_jvm_that_writes_none_leaves_nothing(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "classes")
    archive.options(install(tmp_path / "java"))
    archive.keep(lambda: None)
    assert list((tmp_path / "classes").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    archive = ClassArchive(tmp_path / "file" / "classes")
    assert archive.options(install(tmp_path / "java")) == ()
    archive.keep(lambda: pytest.fail("there is no archive to wait for"))


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    folder.mkdir()
    old, young = folder / "a-b.1.new", folder / "a-b.2.new"
    for file in (old, young):
        file.touch()
    long_ago = time.time() - LEFT_BEHIND_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    ClassArchive(folder).options(install(tmp_path / "java"))
    assert [path.name for path in folder.iterdir()] == [young.name]


def test_a_java_starts_with_any_archive_and_says_nothing(tmp_path: Path) -> None:
    try:
        java = find_java()
    except JavaMissingError:
        pytest.skip("there is no Java")
    folder = tmp_path / "classes"
    assert ClassArchive(folder).options(java)
    made(folder, java).chmod(0o644)
    for content in (b"", b"no archive at all" * 1000):
        (file,) = folder.glob("*.jsa")
        file.write_bytes(content)
        options = ClassArchive(folder).options(java)
        command = [str(java.home / "bin" / "java"), *options, "-version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "archive" not in done.stdout + done.stderr
