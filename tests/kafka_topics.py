"""A Kafka of the tests' own, with Spark's connector in the session that tests share.

Tests that want it are skipped, with the reason, where there is no Java, or where artefacts of Maven
cannot be fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_collections import ListConverter, MapConverter
from py4j.java_gateway import JavaMember
from py4j.protocol import STATIC_PREFIX

import leftovers
from pathcast.errors import JavaMissingError, UnavailableError
from pathcast.spark.connectors import connector_for
from pathcast_lab.kafka_server import KafkaServer, alone, kafka_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Kafka:
    """A server and a session that speaks to it: producer, consumer, administrator."""

    def __init__(self, server: KafkaServer, spark: SparkSession) -> None:
        self.server = server
        self.spark = spark

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.server.address}

    def produce(self, topic: str, rows: Sequence[tuple[str | None, bytes | None, str]]) -> None:
        """Writes records of a key, a value and a header `trace`."""
        frame = self.spark.createDataFrame(list(rows), "key string, value binary, trace string")
        header = "array(named_struct('key', 'trace', 'value', cast(trace AS binary))) AS headers"
        written = frame.coalesce(1).selectExpr("key", "value", header).write.format("kafka")
        written.options(**self.options).option("topic", topic).save()

    def consume(self, topic: str) -> list[dict[str, Any]]:
        """Reads all records there are: key, value, headers."""
        reader = self.spark.read.format("kafka").options(**self.options)
        reader = reader.option("subscribe", topic).option("includeHeaders", "true")
        names = ("cast(key AS string) AS key", "value", "partition", "offset", "headers")
        records = reader.load().selectExpr(*names)
        return [
            {
                "key": row.key,
                "partition": row.partition,
                "offset": row.offset,
                "value": None if row.value is None else bytes(row.value),
                **{header.key: bytes(header.value).decode() for header in row.headers or ()},
            }
            for row in records.collect()
        ]

    @property
    def _gateway(self) -> Any:
        return self.spark.sparkContext._gateway

    def make_topic(self, topic: str, partitions: int = 2) -> None:
        jvm: Any = self.spark._jvm
        new = jvm.org.apache.kafka.clients.admin.NewTopic(topic, partitions, 1)
        self._ask("createTopics", [new])

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Deletes the records of a partition before an offset."""
        jvm: Any = self.spark._jvm
        place = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        # Py4J itself finds a method of the same name that is not static.
        name = "org.apache.kafka.clients.admin.RecordsToDelete"
        find = JavaMember("beforeOffset", None, STATIC_PREFIX + name, self._gateway._gateway_client)
        self._ask("deleteRecords", {place: find(before)})

    def _ask(self, name: str, what: list[Any] | dict[Any, Any]) -> None:
        jvm: Any = self.spark._jvm
        properties = jvm.java.util.Properties()
        properties.put("bootstrap.servers", self.server.address)
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        convert = MapConverter() if isinstance(what, dict) else ListConverter()
        getattr(admin, name)(convert.convert(what, self._gateway._gateway_client)).all().get()
        admin.close()


@contextmanager
def kafka_of(spark: SparkSession, folder: Path) -> Iterator[Kafka]:
    """A server that runs, and the connector in the session."""
    import pyspark
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    package = connector_for(pyspark.__version__)
    try:
        with alone():
            spark.sql(f"ADD JAR 'ivy://{package}'")
        with kafka_server(folder) as server:
            leftovers.keep(server.process)
            yield Kafka(server, spark)
    except (JavaMissingError, UnavailableError) as error:
        pytest.skip(f"no Kafka: {error}")
    except (PySparkException, Py4JJavaError) as error:
        if "unresolved dependency" not in str(error):
            raise
        pytest.skip(f"no Kafka: {package} cannot be fetched")
