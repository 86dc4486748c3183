"""A place that behaves as an object store does, over a directory of this machine.

Objects appear at once when they are closed, there are no folders but in names, and nothing can be
renamed, appended to or locked. `objects:///tmp/x` is the directory `/tmp/x`.
"""

from __future__ import annotations

import io
import uuid
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.local import LocalFileSystem


class ObjectStore(LocalFileSystem):  # type: ignore[misc]
    """See the module."""

    protocol = "objects"
    requests: ClassVar[list[tuple[str, str]]] = []
    """What was asked for in this process: verb and path."""

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return LocalFileSystem._strip_protocol(str(path).removeprefix("objects://"))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        self.requests.append((mode, path))
        if mode == "rb":
            return super()._open(path, mode, **options)
        if mode != "wb":
            raise NotImplementedError(f"an object cannot be opened with {mode}")
        return _Upload(Path(self._strip_protocol(path)))

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        self.requests.append(("find", path))
        return super().find(path, *arguments, **options)

    def mv_file(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("nothing is renamed here")

    mv = rename = move = mv_file

    def mkdir(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("there are no folders")

    makedirs = mkdir


class _Upload(io.BytesIO):
    """Bytes that become an object when they are closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            hidden = self._path.parent / f".{uuid.uuid4().hex}"
            hidden.write_bytes(self.getvalue())
            hidden.replace(self._path)
        super().close()

    def __del__(self) -> None:
        """Whoever is killed leaves nothing: what was not closed never appears."""


fsspec.register_implementation("objects", ObjectStore, clobber=True)
