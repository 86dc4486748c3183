"""Native kernel of Pathcast. Use it through `pathcast`; this is its bare boundary."""

from os import PathLike
from typing import Any, Literal, final

__all__ = [
    "Chunker",
    "Dissemination",
    "IdTable",
    "Index",
    "Matcher",
    "PathFinder",
    "PushParser",
    "QueryRefusal",
    "RecordCutter",
    "RecordSurvey",
    "RoutingStream",
    "RoutingTable",
    "Snapshot",
    "SnapshotError",
    "__version__",
    "canonical_form",
    "canonical_steps",
    "compile_query",
    "compile_subscription",
    "delivery_ids",
    "door_error_codes",
    "is_xquery",
    "parse",
    "place_after",
    "read_head",
    "read_queries",
    "read_query",
    "tag_end",
    "without_comments",
    "xquery_program",
    "xquery_reasons",
]

__version__: str

class QueryRefusal(ValueError): ...
class SnapshotError(ValueError): ...

def parse(
    message: bytes, limits: object, encoding: str | None = None
) -> dict[str, Any] | tuple[str, dict[str, Any]]: ...
def delivery_ids(
    versions: bytes,
    version_places: Any,
    messages: list[str],
    message_places: Any,
    results: Any,
) -> Any: ...
def door_error_codes() -> list[str]: ...
def read_queries(
    path: str | PathLike[str],
) -> tuple[str, list[tuple[str, str, dict[str, str]]]]: ...
def is_xquery(text: str) -> bool: ...
def xquery_reasons() -> list[str]: ...
def without_comments(text: str) -> str: ...
def xquery_program(
    text: str, namespaces: list[tuple[str, str]], deliver: str | None = None
) -> tuple[tuple[Any, ...] | None, tuple[str, str, int, int, tuple[str | int, ...]] | None]: ...
def canonical_form(text: str, namespaces: dict[str, str]) -> str | None: ...
def canonical_steps(text: str) -> list[Any] | None: ...
def compile_query(
    text: str, namespaces: dict[str, str]
) -> tuple[Any, Any, str | None, str, list[tuple[str, int]]]: ...
def read_query(text: str, namespaces: dict[str, str] | None) -> list[tuple[Any, ...]]: ...
def compile_subscription(
    text: str, namespaces: dict[str, str], deliver: str, language: str | None = None
) -> (
    tuple[
        Literal["xpath", "xquery"],
        Literal["shared", "gated", "selecting", "filtering"],
        str,
        list[Any],
        list[Any],
        str | None,
        list[tuple[str, int]],
    ]
    | None
): ...

@final
class PushParser:
    def __new__(
        cls,
        limits: object,
        message_bytes_max: int,
        elements_max: int,
        held_bytes_max: int,
        encoding: str | None = None,
    ) -> PushParser: ...
    def feed(self, block: bytes) -> tuple[str, dict[str, Any]] | None: ...
    def finish(self) -> tuple[str, dict[str, Any]] | None: ...
    def summary(self) -> dict[str, int]: ...
    def memory(self) -> int: ...

@final
class Chunker:
    def __new__(
        cls,
        chunks: int,
        paths: list[tuple[list[tuple[str, str]], int, int]],
        schema: tuple[tuple[str, str], list[tuple[tuple[str, str], tuple[str, str]]]] | None,
        limits: object,
        bounds: tuple[int, int, int],
    ) -> Chunker: ...
    def begin(self, encoding: str | None = None) -> None: ...
    def feed(self, block: bytes) -> tuple[str, dict[str, Any]] | None: ...
    def grown(self, chunk: int) -> bytes: ...
    def finish(self) -> tuple[list[int], str | None] | tuple[str, dict[str, Any]]: ...

@final
class Index:
    def __new__(cls, limits: str) -> Index: ...
    def __len__(self) -> int: ...
    def __contains__(self, id: str, /) -> bool: ...
    def register(
        self, queries: list[Any], namespaces: dict[str, str]
    ) -> list[tuple[int, tuple[str, str, int, dict[str, Any]]]]: ...
    def remove(self, ids: list[str]) -> None: ...
    def query(self, id: str) -> tuple[str, dict[str, str]] | None: ...
    def freeze(self) -> Snapshot: ...
    def matcher(
        self,
        limits: object,
        threads: int,
        cache_bytes_max: int,
    ) -> Matcher: ...
    def memory(self) -> int: ...

@final
class RoutingTable:
    def __new__(
        cls,
        targets: int,
        paths: list[str],
        entries: list[list[int]],
        masks: bytes,
        prunes: bool,
    ) -> RoutingTable: ...
    def matcher(
        self,
        limits: object,
        threads: int,
        cache_bytes_max: int,
    ) -> Matcher: ...
    def stream(
        self,
        limits: object,
        cache_bytes_max: int,
        message_bytes_max: int,
        elements_max: int,
        held_bytes_max: int,
    ) -> RoutingStream: ...
    def memory(self) -> int: ...

@final
class RoutingStream:
    def begin(self, encoding: str | None = None) -> None: ...
    def feed(self, block: bytes) -> tuple[str, dict[str, Any]] | None: ...
    def finish(self) -> tuple[str, dict[str, Any]] | None: ...
    def targets(self) -> list[int]: ...
    def decided_at(self) -> int | None: ...
    def memory(self) -> int: ...

@final
class Snapshot:
    @staticmethod
    def open(path: str | PathLike[str]) -> Snapshot | None: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def ids(self) -> IdTable: ...
    @property
    def limits(self) -> str: ...
    @property
    def metadata(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    def query(self, id: str) -> tuple[int, str, dict[str, str]] | None: ...
    def population(
        self,
    ) -> tuple[
        list[tuple[list[tuple[int, str | None, str | None]], int, tuple[str | None, str | None]]],
        Any,
        Any,
        Any,
        list[Any],
        list[Any],
    ]: ...
    def matcher(
        self,
        limits: object,
        threads: int,
        cache_bytes_max: int,
    ) -> Matcher: ...

@final
class IdTable:
    def __len__(self) -> int: ...
    def take(self, numbers: list[int]) -> list[str]: ...
    def to_arrow(self) -> Any: ...

@final
class Matcher:
    def match(self, messages: Any, encoding: str | None = None) -> Answer: ...

@final
class Answer:
    def __len__(self) -> int: ...
    def count(self, row: int) -> int: ...
    def numbers(self, row: int) -> list[int]: ...
    def matches(self) -> Any: ...
    def refusals(self) -> list[tuple[int, str, dict[str, Any]]]: ...
    @property
    def undecided_count(self) -> int: ...
    def undecided(self) -> list[Any]: ...
    def stats(self) -> dict[str, int]: ...
    def ids(self) -> IdTable: ...

@final
class Dissemination:
    def __new__(
        cls,
        limits: object,
        threads: int,
        cache_bytes_max: int,
        *,
        spans: bool = False,
    ) -> Dissemination: ...
    def __len__(self) -> int: ...
    def __contains__(self, id: str, /) -> bool: ...
    def subscribe(
        self, subscriptions: list[Any], namespaces: dict[str, str]
    ) -> list[tuple[int, bool]]: ...
    def unsubscribe(self, ids: list[str]) -> None: ...
    def subscription(
        self, id: str
    ) -> tuple[str, str, str, dict[str, str], str | None] | None: ...
    def memory(self) -> int: ...
    def explain(self, id: str) -> dict[str, Any] | None: ...
    def process(
        self,
        messages: Any,
        encoding: str | None = None,
        budgets: list[tuple[int, int]] | None = None,
    ) -> tuple[
        list[Any],
        Any,
        list[tuple[int, str, dict[str, Any]]],
        list[tuple[int, int, str, dict[str, Any]]],
        dict[str, int],
        IdTable,
        list[tuple[int, int, int, bool]],
    ]: ...
    def process_few(
        self, messages: list[bytes], budgets: list[tuple[int, int]] | None = None
    ) -> tuple[
        list[tuple[int, str, bytes | None]],
        list[tuple[int, str, dict[str, Any]]],
        list[tuple[int, int, str, dict[str, Any]]],
        IdTable,
        list[tuple[int, int, int, bool]],
    ]: ...
    def count_groups(self, messages: Any, visits: bool) -> dict[str, int]: ...

@final
class PathFinder:
    def __new__(cls) -> PathFinder: ...
    def __len__(self) -> int: ...
    def number(self, labels: list[tuple[str | None, str | None] | None]) -> int: ...
    def find(
        self,
        names: list[tuple[str, str]],
        name: list[int],
        depth: list[int],
        entries: list[tuple[int, int]],
    ) -> tuple[list[tuple[int, int]], int]: ...
    def memory(self) -> int: ...

def read_head(
    start: bytes, is_whole: bool, limits: object
) -> tuple[bytes, int, bool] | tuple[str, dict[str, Any]] | None: ...
def tag_end(text: bytes) -> int | None: ...
def place_after(
    place: tuple[int, int, bool, list[int]],
    outcomes: list[tuple[int, int, int, int, list[int]] | None],
    ancestors: int,
) -> tuple[int, int, bool, list[int]] | None: ...

@final
class RecordSurvey:
    def __new__(cls, ancestors: int, start: int) -> RecordSurvey: ...
    def feed(self, block: bytes) -> None: ...
    def outcomes(self) -> list[tuple[int, int, int, int, list[int]] | None]: ...

@final
class RecordCutter:
    def __new__(
        cls,
        path: list[tuple[str | None, str | None]],
        limits: object,
        context_bytes_max: int,
        head: tuple[bytes, bool],
        place: tuple[int, int, bool, list[int]],
        tags: list[bytes],
        start: int,
        until: int,
    ) -> RecordCutter: ...
    def feed(self, block: bytes, at: int) -> int: ...
    def finish(self) -> None: ...
    @property
    def is_done(self) -> bool: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def offset(self) -> int: ...
    @property
    def after(self) -> tuple[int, int, bool, list[int]] | None: ...
    def take(self) -> tuple[list[Any], list[tuple[int, str, dict[str, Any]]]]: ...
