"""The settings of a pipeline: what `PIPELINE.toml` may say, with a description of every key.

Where a key is given more than once, the later of these counts: default, file, environment
(`PATHCAST__SECTION__KEY`), `--set section.key=value`. Relative paths are relative to the directory
of the file, wherever they were given. Unknown keys are refused.

Example:
    >>> settings = load_settings("examples/pipeline.toml", ["mode.kind=batch"])  # doctest: +SKIP

This module reads settings; it starts nothing and does not import pyspark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.records import record_path
from pathcast.settings import (
    FileSettings,
    HostPort,
    Place,
    SettingDescription,
    SettingsSection,
    described,
    did_you_mean,
    read_settings,
)
from pathcast.spark.connectors import KAFKA
from pathcast.spark.message_times import is_path
from pathcast.spark.network import NetworkSettings, PublishSettings
from pathcast.spark.schemas import DAY, RESERVED_COLUMNS, FragmentForm
from pathcast.spark.storage import Storage


def _as_spark_writes(value: object) -> object:
    """TOML's `true` as Spark writes it; other values are left to pydantic."""
    return str(value).lower() if isinstance(value, bool) else value


SparkValue = Annotated[str, BeforeValidator(_as_spark_writes)]


_MASTER: Final = re.compile(
    r"local|local\[(?:\d+|\*)(?:, *\d+)?\]|local-cluster\[.*\]|yarn|(?:spark|k8s)://.+"
)


SourceKind: TypeAlias = Literal[
    "directory", "parquet", "archive", "delta", "records", "broker", "spark"
]

WITH_COLUMNS: Final = ("parquet", "delta", "broker", "spark")
"""Kinds of sources whose messages are rows."""


class SourceSettings(SettingsSection):
    """Where messages come from."""

    kind: SourceKind = "directory"
    """ "directory": each file is a message and its path inside the directory the id; "parquet":
    each row is a message; "archive": each member of a .zip, .tar, .tar.gz, .tgz or .gz file is one;
    "delta": each row of a Delta table, and of what is added to it, is one; "records": each record
    of large files (source.record) is one; "broker": each delivery to an inbox of a broker
    ([network]) is one; "spark": each row of a source that Spark itself reads (source.format) is
    one."""
    path: Place
    """Directory of the messages, of the files that hold them, or of the table; or a URL that fsspec
    understands, such as s3://bucket/incoming. Broker: where deliveries are kept until they are
    committed; made if it is missing, and nobody else's. Spark: what the format loads; not
    required."""
    format: str | None = None
    """Spark: name of a format of its streaming sources, such as "kafka"; with it, the kind need not
    be given."""
    options: dict[str, SparkValue] = {}
    """Spark: options of the format, as they are."""
    row_schema: str | None = None
    """Spark: columns of the format, where it has to be told, such as "id string, message
    binary"."""
    select: tuple[str, ...] = ("*",)
    """Spark: SQL expressions that make of its rows the columns that other keys name, such as "value
    AS message"."""
    tombstones: bool | None = None
    """Spark: whether a row whose message is null is no message: it is counted, and nothing else;
    where not, it is a dead letter. True for format = "kafka" when not given."""
    storage_options: dict[str, str] = {}
    """What fsspec needs to open source.path where it is a URL: credentials, endpoints."""
    delta_options: dict[str, str] = {}
    """Delta: the same for the library deltalake, in its own words."""
    starting_version: Annotated[int, Field(ge=0)] | Literal["latest"] | None = None
    """Delta: first version of the table whose additions are messages; "latest": those that come
    after the first start; the table as it is, and what comes, when not given. A later version than
    was read gives up what was added between."""
    changes: Literal["error", "skip", "deliver"] = "error"
    """Delta: what becomes of a version that changes or removes rows. "error": the run ends; "skip":
    all of it is passed over; "deliver": the files that it adds are delivered, rows included that
    were there before."""
    pattern: str | None = None
    """Glob that the name of a file has to match, at any depth of folders; *.xml, *.parquet or what
    archives are called when not given. Names that begin with a dot or an underscore never count."""
    message_column: str = "message"
    """Parquet, Delta, Spark: column with the message, binary or string."""
    id_column: str = "message_id"
    """Parquet, Delta, Spark: column with the id of the message, which has to be unique; Spark: a
    digest of the message where it is not given and there is no such column."""
    columns: tuple[str, ...] = ()
    """Parquet, Delta, Spark and broker: columns that are passed through to inboxes and matches;
    none may have the name of a column that Pathcast writes."""
    read_bytes_max: int | None = Field(default=None, ge=1)
    """Parquet and Delta: bytes of memory that a task may take to read some rows; a file of which a
    single row takes more is a dead letter. 128 MiB, or 12 times the bytes of the file if that is
    more, when not given. Linux keeps it."""
    time: str | None = None
    """Where a message says when it was made, for the column message_time of inboxes: one of
    source.columns, or an XPath, such as /order/@at, whose first node counts. What is no date or
    time there is null."""
    time_namespaces: dict[str, str] = {}
    """Prefix -> namespace URI for source.time, where it is an XPath."""
    record: str | None = None
    """Records: path of the elements that are messages, such as /orders/order."""
    record_namespaces: dict[str, str] = {}
    """Records: prefix -> namespace URI for source.record."""
    range_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    """Records: bytes of a range of a large file, which one task works on at a time."""

    profile: str | None = None
    """Broker: what the pipeline subscribes to, such as /* for every message; its inbox gets what
    others subscribed it to when not given."""
    profile_deliver: Literal["message", "fragment"] = "message"
    """Broker: what the profile delivers, "message" the message or "fragment" the results of its
    query, each of which is a message then."""
    profile_namespaces: dict[str, str] = {}
    """Broker: prefix -> namespace URI for source.profile."""

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if columns and info.data.get("kind") not in WITH_COLUMNS:
            raise ValueError(f"only a source of kind {', '.join(WITH_COLUMNS)} has columns")
        seen: set[str] = set()
        for name in columns:
            # Readers such as Spark, Delta and DuckDB take names that differ in case for one.
            if name.casefold() in RESERVED_COLUMNS:
                raise ValueError(
                    f"{name} is a column that Pathcast writes itself; rename it in the source, or "
                    "leave it out"
                )
            if name.casefold() in seen:
                raise ValueError(f"{name} is there twice (upper and lower case are one)")
            seen.add(name.casefold())
        return columns

    @model_validator(mode="before")
    @classmethod
    def _take_kind(cls, given: object) -> object:
        if isinstance(given, dict):
            given = {"kind": "spark", **given} if "format" in given else given
            return {"path": "", **given} if given.get("kind") == "spark" else given
        return given

    @model_validator(mode="after")
    def _check_keys(self) -> SourceSettings:
        for key, kind in (("format", "spark"), ("profile", "broker"), ("record", "records")):
            if self.kind != kind and getattr(self, key) is not None:
                raise ValueError(f'{key} is given for kind = "{kind}", and for no other')
        if self.kind == "delta" and self.pattern is not None:
            raise ValueError("pattern: a Delta table says itself which files it has")
        if self.kind == "records":
            if self.record is None:
                raise ValueError('kind = "records" needs record, such as /orders/order')
            try:
                record_path(self.record, self.record_namespaces)
            except PathcastError as error:
                raise ValueError(str(error)) from error
        if self.time is None or is_path(self.time) or self.time in self.columns:
            return self
        raise ValueError(
            f"time is {self.time!r}: name a column of source.columns, or an XPath such as "
            f"//{self.time}"
        )

    @property
    def passes_over_lost(self) -> bool:
        """Whether Kafka's offsets that are gone before they were read are passed over."""
        given = {name.lower(): value.lower() for name, value in self.options.items()}
        return self.format == KAFKA and given.get("failondataloss") == "false"

    @property
    def has_tombstones(self) -> bool:
        """Whether a row without a message is none."""
        return self.format == KAFKA if self.tombstones is None else self.tombstones

    @property
    def storage(self) -> Storage:
        """Where messages come from."""
        return Storage(self.path, self.storage_options, self.delta_options)


class SubscriptionSettings(SettingsSection):
    """Settings of the subscriptions."""

    path: Path | None = None
    """File with the columns subscriber, query_id and query: separated by tabs (.tsv) or commas
    (.csv), with a header line, or Parquet (.parquet); or a .xq file, or a folder of them, whose
    results are delivered. A stream looks at it before each micro-batch and takes up what changed.
    Either this or subscriptions.store is given."""
    store: str | None = None
    """Profile database, sqlite:////PATH or postgresql://USER@HOST/NAME, whose active profiles are
    the subscriptions: owner, id and query, and what each says is delivered. A stream takes up
    before each micro-batch what its log of changes says."""
    labels: dict[str, str] = {}
    """Store: only profiles that have all of these labels."""
    host: str | None = None
    """Store: only profiles that have this host broker."""
    only: tuple[str, ...] = ()
    """Ids of the subscriptions that count; all when not given."""
    deliver: Literal["ids", "message", "fragment"] = "ids"
    """What a row of a table gets that does not say it in a column deliver: "ids" a notice,
    "message" the message, "fragment" the results of the query."""
    language: Literal["xpath1", "xquery"] | None = None
    """What a row of a table and a .xq file are read as that do not say it in a column or key
    language: "xpath1" or "xquery"; by default XPath 1.0 where its grammar takes the text, XQuery
    otherwise. Profiles of a store have their own."""
    values: Path | None = None
    """Folder of the lists that queries name: values-of("FILE") stands for the lines of a file below
    it. A stream looks at its files, too. Not of profiles of a store, which have their values."""
    namespaces: dict[str, str] = {}
    """Prefix -> namespace URI for all queries; the prefix "" is the default namespace of
    elements."""
    shrink_max: float = Field(default=0.5, ge=0, le=1)
    """Share of the subscriptions that may go at once. Where more are missing, as in a file that was
    cut short or emptied, the earlier ones stay, and the run says so; 1 takes every file as it
    is."""
    invalid: Literal["keep", "end"] = "keep"
    """What becomes of a subscription that was valid, once its row is not any more (a typo, an
    unknown prefix): "keep": its last valid version stays in force until the row is mended or taken
    out, and run, check, inbox and why say so; "end": it ends."""
    rejected_max: float = Field(default=1.0, ge=0, le=1)
    """Share of the rows that may be rejected for a run to start; 0 for none."""

    @model_validator(mode="after")
    def _check_place(self) -> SubscriptionSettings:
        if (self.path is None) == (self.store is None):
            raise ValueError("path or store is given, and not both")
        if self.store is None and (self.labels or self.host is not None):
            raise ValueError("labels and host choose among the profiles of a store")
        if self.store is not None and self.values is not None:
            raise ValueError("values is the folder of a file's queries, not of a store's")
        return self


class ModeSettings(SettingsSection):
    """Once, or for as long as messages come."""

    kind: Literal["batch", "stream"] = "batch"
    """ "batch" ends when what was there at the start is done; "stream" watches the source until it
    is stopped. Both go in micro-batches, and both go on where an earlier run ended or was
    killed."""
    checkpoint: Place | None = None
    """Directory that remembers which messages were handed on; _checkpoint in the output directory
    when not given. It belongs to the output: delete both or neither. A URL is opened with
    output.storage_options."""
    files_per_batch_max: int = Field(default=10_000, ge=1)
    """Files of the source in one micro-batch."""
    bytes_per_batch_max: int = Field(default=256 * 1024 * 1024, ge=1)
    """Bytes of messages in one micro-batch of a directory, a single larger file excepted."""
    seconds_between_batches: float = Field(default=1.0, ge=0)
    """Stream: how often the source is looked at, at most."""
    metrics: HostPort | None = None
    """HOST:PORT of /metrics of a run, for Prometheus and pathcast top; nothing listens when not
    given. It has no token: keep it on loopback."""


class TopicSettings(SettingsSection):
    """Topics of Kafka that get what the output gets."""

    options: dict[str, SparkValue]
    """Options of Spark's writer for Kafka, as they are: "kafka.bootstrap.servers", and what the
    producer needs, each with "kafka." before it."""
    deliveries: str | None = Field(default=None, min_length=1)
    """Topic of the deliveries: the subscriber is the key, what it is delivered the value (empty for
    a notice), and the delivery id the header pathcast-delivery-id."""
    dead_letters: str | None = Field(default=None, min_length=1)
    """Topic of the dead letters: the message id is the key, the row in JSON the value."""

    @model_validator(mode="after")
    def _check_topics(self) -> TopicSettings:
        if self.deliveries is None and self.dead_letters is None:
            raise ValueError("deliveries or dead_letters is given, or both")
        return self


class OutputSettings(SettingsSection):
    """Where results go, and what they look like."""

    path: Place
    """Directory for matches, dead_letters, inboxes and rejected_queries, on a file system that all
    workers see; or a URL that fsspec understands, such as s3://bucket/delivered."""
    format: Literal["parquet", "jsonl", "delta"] = "parquet"
    """Format of all outputs: "parquet", "jsonl" (JSON lines), or "delta" (each output is a Delta
    table)."""
    storage_options: dict[str, str] = {}
    """What fsspec needs to open output.path where it is a URL: credentials, endpoints."""
    delta_options: dict[str, str] = {}
    """The same for the library deltalake, in its own words."""
    inboxes: bool = True
    """Whether each delivery is a row of the inboxes."""
    compact_files: int = Field(default=64, ge=0)
    """Small files that are merged in the background when so many have come together; 0 for
    never."""
    keep_replaced_seconds: float = Field(default=3600, ge=0)
    """How long files stay that were merged into others: the time that a reader has."""
    keep_days: float | None = Field(default=None, gt=0)
    """Days that rows stay. Micro-batches that were begun earlier go, with their commits, and with
    subscriptions that no other one ran with; all stay when not given."""
    by_day: bool = False
    """Whether rows lie in a folder (Delta tables: a partition) for each day in UTC on which
    micro-batches were begun. Rows then go by whole days (keep_days)."""
    fragments: FragmentForm = "text"
    """Results and messages in inboxes: "text", with the bytes of a message that is no UTF-8 in the
    column fragment_bytes; or "binary", all of them as bytes."""
    matches: Literal["none", "numbers", "ids"] = "numbers"
    """Whether each message has a row with the queries delivered as an id that it satisfies, by
    number in the snapshot of the row, or by id, which takes more time and space."""

    @property
    def storage(self) -> Storage:
        """Where results go."""
        return Storage(self.path, self.storage_options, self.delta_options)


class EngineSettings(SettingsSection):
    """How messages are matched."""

    ENDED: ClassVar[Mapping[str, str]] = {
        "engine": "the native kernel answers, and no other engine can be chosen: leave the key "
        "out; the environment variable PATHCAST_ENGINE=nfa has its plain NFA answer, for debugging"
    }

    threads: int = Field(default=1, ge=1)
    """Threads in each Spark task. Spark runs a task a core: 1 is right as a rule."""
    cache_bytes_max: int | None = Field(default=None, ge=1)
    """Memory of one worker for compiled label paths."""
    limits: dict[str, int | str] = {}
    """Bounds on one message, by the names of pathcast.Limits, such as message_bytes_max, depth_max
    or dtd."""

    @field_validator("limits")
    @classmethod
    def _check_limits(cls, limits: dict[str, int | str]) -> dict[str, int | str]:
        known = [field.name for field in fields(Limits)]
        for name in limits:
            if name not in known:
                raise ValueError(f"{name} is not a limit{did_you_mean(name, known)}")
        Limits(**limits)  # type: ignore[arg-type]
        return limits

    def message_limits(self) -> Limits:
        """The bounds as the engine takes them."""
        return Limits(**self.limits)  # type: ignore[arg-type]


class SparkSettings(SettingsSection):
    """The Spark session that the pipeline starts, where there is none."""

    master: str = "local[*]"
    """Master URL; local[2] uses two cores of this machine, spark://HOST:7077 those of a cluster."""
    ship: bool = True
    """On a cluster: whether workers are sent Pathcast's own files, the kernel included; false where
    the same Pathcast is installed on all of them."""
    conf: dict[str, SparkValue] = {}
    """Further settings of Spark, over those of Pathcast."""

    @field_validator("master")
    @classmethod
    def _check_master(cls, master: str) -> str:
        if _MASTER.fullmatch(master) is None:
            raise ValueError(
                f"{master!r} is no master URL; there are local, local[2], local[*], "
                "spark://HOST:7077, yarn and k8s://https://HOST:PORT"
            )
        return master


class PipelineSettings(FileSettings):
    """Everything that `pathcast run` can be told."""

    ENDED: ClassVar[Mapping[str, str]] = {
        "placement": "every worker maps one snapshot of all queries, and nothing else can be "
        "chosen; leave [placement] out"
    }

    source: SourceSettings
    """Where messages come from."""
    subscriptions: SubscriptionSettings
    """Who wants what."""
    mode: ModeSettings = ModeSettings()
    """Once, or for as long as messages come."""
    output: OutputSettings
    """Where results go."""
    engine: EngineSettings = EngineSettings()
    """How messages are matched."""
    network: NetworkSettings | None = None
    """A broker of a network."""
    publish: PublishSettings | None = None
    """What is published into the network."""
    topics: TopicSettings | None = None
    """Topics of Kafka that get what the output gets."""
    spark: SparkSettings = SparkSettings()
    """The session that is started."""

    @model_validator(mode="after")
    def _check_network(self) -> PipelineSettings:
        if self.network is None and (self.source.kind == "broker" or self.publish is not None):
            raise ValueError('network is needed for source.kind = "broker" and for publish')
        if self.publish is not None and not self.output.inboxes:
            raise ValueError("publish needs output.inboxes = true: an inbox is what is published")
        if self.topics is not None and self.topics.deliveries and not self.output.inboxes:
            raise ValueError("topics.deliveries needs output.inboxes = true: they are published")
        if self.output.by_day and DAY in map(str.casefold, self.source.columns):
            raise ValueError(f"source.columns has {DAY}, which output.by_day = true makes itself")
        return self

    @property
    def checkpoint(self) -> Storage:
        """Where the checkpoint lies."""
        if self.mode.checkpoint is None:
            return self.output.storage.below("_checkpoint")
        return Storage(self.mode.checkpoint, self.output.storage_options)


def describe_settings() -> list[SettingDescription]:
    """Every key of the pipeline file, for documentation and help."""
    return described(PipelineSettings)


def load_settings(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> PipelineSettings:
    """Read a pipeline file.

    Args:
        path: The TOML file.
        overrides: `section.key=value`, the value as in TOML; text needs no quotes.

    Returns:
        The settings, all paths absolute.

    Raises:
        ConfigError: The file cannot be read, or a key is unknown, missing or has a value that
            cannot be used. The message names the key.
    """
    return read_settings(PipelineSettings, path, overrides)
