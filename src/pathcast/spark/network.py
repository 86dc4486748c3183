"""A pipeline's connection to a network of brokers: settings, and a loop that waits for it.

    [network]   one broker, and who the pipeline is to it
    [publish]   the network as a subscriber of the pipeline: see `publishing`
    [source]    kind = "broker", the pipeline as a subscriber of the network: see `arrivals`

It imports `pathcast.transport` where it is used: pipelines without a network need not have it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, SecretStr, model_validator

from pathcast.errors import extra
from pathcast.settings import SettingsSection

if TYPE_CHECKING:
    from pathcast.transport.client import BrokerClient

T = TypeVar("T")


class NetworkSettings(SettingsSection):
    """A broker of a network."""

    address: str
    """HOST:PORT of a broker, where messages come from or go to."""
    broker: str = "broker"
    """Name of the broker; with certificates, the one that its own is made out to."""
    client: str = Field(min_length=1, max_length=256)
    """Name of the pipeline, as the broker knows it."""
    token: SecretStr | None = None
    """Secret that the broker asks for."""
    certificate: Path | None = None
    """Certificate of the pipeline, with its name, as a PEM file."""
    key: Path | None = None
    """Private key of the certificate."""
    authority: Path | None = None
    """Certificates that that of the broker has to be signed with."""
    allow_plain: bool = False
    """Whether to do without certificates at an address that is not loopback."""

    @model_validator(mode="after")
    def _check_certificates(self) -> NetworkSettings:
        given = {each is None for each in (self.certificate, self.key, self.authority)}
        if len(given) > 1:
            raise ValueError("certificate, key and authority are given together")
        return self


class PublishSettings(SettingsSection):
    """Settings of the deliveries that are published into the network."""

    subscriber: str = Field(default="network", min_length=1)
    """Subscriber of this pipeline whose deliveries are published: each message, or result, is a
    message of the network."""
    source: str = Field(min_length=1, max_length=128)
    """Id of the data source that they are messages of; it is registered at the broker, its root, if
    it is not known there."""


def connect(network: NetworkSettings) -> BrokerClient:
    """A client of the broker, to be entered.

    Raises:
        MissingDependencyError: The extra `net` is not installed.
    """
    with extra("net", "[network]"):
        from pathcast.transport.broker_requests import CODEC
        from pathcast.transport.client import BrokerClient
        from pathcast.transport.grpc_streams import Address
        from pathcast.transport.security import Certificates
    certificates = None
    if network.certificate and network.key and network.authority:
        certificates = Certificates(network.certificate, network.key, network.authority)
    token = None if network.token is None else network.token.get_secret_value()
    address = Address(network.broker, network.address, token, certificates, network.allow_plain)
    return BrokerClient(network.client, address, CODEC)


def call(network: NetworkSettings, ask: Callable[[BrokerClient], Coroutine[Any, Any, T]]) -> T:
    """Does something with a connection of its own, and returns when it is done.

    Raises:
        PathcastError: As `ask`; or the broker is not there, or does not let the pipeline in.
    """

    async def connected() -> T:
        async with connect(network) as client:
            return await ask(client)

    return wait_for(connected())


def wait_for(doing: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop of this process, and return its result.

    There is one for all: gRPC goes on asking the first one, closed or not, for what concerns later
    ones.
    """
    future = asyncio.run_coroutine_threadsafe(doing, _event_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # where it was interrupted here, not there
        raise


@lru_cache(maxsize=1)
def _event_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="network", daemon=True).start()
    return loop
