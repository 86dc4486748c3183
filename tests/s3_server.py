"""A small S3 on loopback, over a directory: what `deltalake` asks of a store, and a file system of
fsspec that sees the same objects.

Both want credentials, each in its own words, so that a test sees whether they travel.

    with S3Server(folder) as server:
        Storage("s3://bucket/out", server.options, server.delta_options)    # folder/out
"""

from __future__ import annotations

import threading
import uuid
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

import fsspec

from object_store import ObjectStore

BUCKET = "bucket"
KEY = "let-me-in"
PAGE = 50


class S3Files(ObjectStore):
    """The objects of the server, as fsspec has them; whoever has no key is sent away."""

    protocol = "s3"
    root: ClassVar[str] = ""

    def __init__(self, *arguments: Any, key: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        if key != KEY:
            raise PermissionError(13, "no such key", "s3")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = str(path)
        if text.startswith(f"s3://{BUCKET}"):
            text = cls.root + text.removeprefix(f"s3://{BUCKET}")
        return ObjectStore._strip_protocol(text)


class S3Server:
    """See the module.

    Args:
        root: Holds the objects of the bucket.
    """

    def __init__(self, root: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.root = root  # type: ignore[attr-defined]
        self._server.parts = {}  # type: ignore[attr-defined]
        self._server.put_lock = threading.Lock()  # type: ignore[attr-defined]
        self.requests: list[str] = []
        self._server.log = self.requests  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._root = root
        self.options = {"key": KEY}
        self.delta_options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def url(self, name: str) -> str:
        """An object or a folder, as both libraries name it."""
        return f"s3://{BUCKET}/{name}"

    def __enter__(self) -> Self:
        S3Files.root = str(self._root)
        S3Files.clear_instance_cache()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        S3Files.clear_instance_cache()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the other side waits 40 ms for the second of two.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Any

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _begin(self) -> tuple[Path, dict[str, list[str]]] | None:
        """The file of the object, and the query; None where the answer was given."""
        parts = urlsplit(self.path)
        self.server.log.append(f"{self.command} {self.path}")
        self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if f"Credential={KEY}/" not in (self.headers.get("Authorization") or ""):
            self._send(403, b"<Error><Code>AccessDenied</Code></Error>")
            return None
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
        return self.server.root / key, parse_qs(parts.query, keep_blank_values=True)

    def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        begun = self._begin()
        if begun is None:
            return
        path, query = begun
        if "list-type" in query:
            self._list(query)
        elif not path.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            content = path.read_bytes()
            start, end = 0, len(content)
            asked = (self.headers.get("Range") or "").removeprefix("bytes=")
            if asked:
                first, _, last = asked.partition("-")
                start = int(first) if first else max(0, end - int(last))
                end = min(end, int(last) + 1) if first and last else end
            about = _about(path, content)
            if asked:
                about["Content_Range"] = f"bytes {start}-{end - 1}/{len(content)}"
            self._send(206 if asked else 200, content[start:end], **about)

    def do_HEAD(self) -> None:
        begun = self._begin()
        if begun is None:
            return
        path, _ = begun
        if not path.is_file():
            self._send(404)
        else:
            content = path.read_bytes()
            self._send(200, b"", Content_Length=str(len(content)), **_about(path, content))

    def do_PUT(self) -> None:
        begun = self._begin()
        if begun is None:
            return
        path, query = begun
        if "uploadId" in query:
            self.server.parts[query["uploadId"][0]][int(query["partNumber"][0])] = self._body
            self._send(200, ETag=_tag(self._body))
            return
        body = self._body
        if source := self.headers.get("x-amz-copy-source"):
            key = unquote(source).strip("/").removeprefix(f"{BUCKET}/")
            body = (self.server.root / key).read_bytes()
        with self.server.put_lock:
            if self.headers.get("If-None-Match") == "*" and path.exists():
                self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            _store(path, body)
        answer = f"<CopyObjectResult><ETag>{_tag(body)}</ETag></CopyObjectResult>"
        self._send(200, answer.encode() if source else b"", ETag=_tag(body))

    def do_DELETE(self) -> None:
        begun = self._begin()
        if begun is not None:
            begun[0].unlink(missing_ok=True)
            self._send(204)

    def do_POST(self) -> None:
        begun = self._begin()
        if begun is None:
            return
        path, query = begun
        if "delete" in query:
            answer = ""
            for part in self._body.decode().split("<Key>")[1:]:
                key = part.partition("</Key>")[0]
                (self.server.root / unescape(key)).unlink(missing_ok=True)
                answer += f"<Deleted><Key>{key}</Key></Deleted>"
            self._send(200, f"<DeleteResult>{answer}</DeleteResult>".encode())
        elif "uploads" in query:
            upload = uuid.uuid4().hex
            self.server.parts[upload] = {}
            answer = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"  # noqa: E501
            self._send(200, answer.encode())
        else:
            parts = self.server.parts.pop(query["uploadId"][0])
            body = b"".join(parts[number] for number in sorted(parts))
            with self.server.put_lock:
                _store(path, body)
            answer = f"<CompleteMultipartUploadResult><ETag>{_tag(body)}</ETag></CompleteMultipartUploadResult>"  # noqa: E501
            self._send(200, answer.encode())

    def _list(self, query: dict[str, list[str]]) -> None:
        root: Path = self.server.root
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        keys = sorted(
            str(path.relative_to(root))
            for path in (root / prefix.rpartition("/")[0]).rglob("*")
            if path.is_file() and not path.name.startswith(".")
        )
        folders: set[str] = set()
        found: list[str] = []
        for key in keys:
            if not key.startswith(prefix) or key <= after:
                continue
            inside, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
            if slash:
                folders.add(prefix + inside + slash)
            else:
                found.append(key)
        page, more = found[:PAGE], found[PAGE:]
        rows = []
        for key in page:
            content = (root / key).read_bytes()
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>2026-11-22T00:00:00.000Z</LastModified>"
                f"<ETag>{_tag(content)}</ETag></Contents>"
            )
        rows += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders]
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        answer = (
            f"<ListBucketResult><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{token}"
            f"{''.join(rows)}</ListBucketResult>"
        )
        self._send(200, answer.encode(), Content_Type="application/xml")


fsspec.register_implementation("s3", S3Files, clobber=True)


def _store(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{uuid.uuid4().hex}")
    hidden.write_bytes(body)
    hidden.replace(path)


def _tag(body: bytes) -> str:
    return f'"{md5(body, usedforsecurity=False).hexdigest()}"'


def _about(path: Path, content: bytes) -> dict[str, str]:
    modified = formatdate(path.stat().st_mtime, usegmt=True)
    return {"ETag": _tag(content), "Last_Modified": modified}
