"""Contexts: where the nodes of a network are that somebody else started, and who calls them.

A context is a TOML file that several commands share:

    [client]
    name = "ann"
    token_file = "ann.token"
    certificate = "ann.pem"
    key = "ann.key"
    authority = "authority.pem"

    [[brokers]]
    name = "bern"
    address = "10.0.0.7:7400"

Example:
    >>> context = load_context("ann.toml")  # doctest: +SKIP
    >>> context.addresses("brokers")  # doctest: +SKIP
    {'bern': Address(name='bern', target='10.0.0.7:7400', ...)}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from pathcast.errors import ConfigError
from pathcast.settings import FileSettings, HostPort, SettingsSection, read_settings
from pathcast.transport.grpc_streams import Address
from pathcast.transport.security import Certificates
from pathcast.transport.settings import secret_of

NodeList = Literal["brokers", "peers", "registry"]
"""Which nodes of a context are meant."""


class ContextClientSection(SettingsSection):
    """The caller's name and credentials."""

    name: str = Field(default="", max_length=256)
    """Name of the client, as the nodes' files have it."""
    token: SecretStr | None = None
    """Secret that the nodes ask for."""
    token_file: Path | None = None
    """File with this secret; white space around it does not count."""
    certificate: Path | None = None
    """Certificate of the client, with its name, as a PEM file."""
    key: Path | None = None
    """Private key of the certificate."""
    authority: Path | None = None
    """Certificates that those of the nodes have to be signed with."""
    allow_plain: bool = False
    """Whether to do without certificates at addresses that are not loopback: everything, tokens
    included, is then readable on the way."""

    @property
    def certificates(self) -> Certificates | None:
        """Certificates of the client; None for plain text.

        Raises:
            ConfigError: One of the three files is given without the others.
        """
        given = {"certificate": self.certificate, "key": self.key, "authority": self.authority}
        missing = [name for name, path in given.items() if path is None]
        if self.certificate and self.key and self.authority:
            return Certificates(self.certificate, self.key, self.authority)
        if len(missing) < len(given):
            reason = f"certificate, key and authority are given together; {missing[0]} is missing"
            raise ConfigError("config.invalid", key="client", reason=reason)
        return None

    @property
    def secret(self) -> str | None:
        """The client's token.

        Raises:
            ConfigError: Its file cannot be read, or is empty.
        """
        if self.token_file is None:
            return secret_of(self.token)
        try:
            found = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = f"{self.token_file} cannot be read: {error}"
            raise ConfigError("config.invalid", key="token_file", reason=reason) from error
        if not found:
            reason = f"{self.token_file} is empty"
            raise ConfigError("config.invalid", key="token_file", reason=reason)
        return found


class NodeSection(SettingsSection):
    """A node that is called."""

    name: str = Field(min_length=1, max_length=256)
    """Name of the node; with certificates, the one that its own is made out to."""
    address: HostPort
    """HOST:PORT where it listens."""


class CallContext(FileSettings):
    """Everything that a context may say."""

    client: ContextClientSection = ContextClientSection()
    """Who calls, and how it proves that."""
    brokers: tuple[NodeSection, ...] = ()
    """Brokers; --at chooses one of several."""
    peers: tuple[NodeSection, ...] = ()
    """Peers of a ring; --at chooses one of several."""
    registry: tuple[NodeSection, ...] = ()
    """Nodes of the registration service; the one that leads answers."""

    def addresses(self, which: NodeList) -> dict[str, Address]:
        """Name -> how a node is called.

        Raises:
            ConfigError: The context lists none of these nodes, or says nothing usable of the
                client.
        """
        nodes: Mapping[NodeList, tuple[NodeSection, ...]] = {
            "brokers": self.brokers,
            "peers": self.peers,
            "registry": self.registry,
        }
        if not nodes[which]:
            raise ConfigError("config.invalid", key=which, reason="the context lists none")
        return {each.name: self.address(each) for each in nodes[which]}

    def address(self, node: NodeSection) -> Address:
        """How a node is called; raises as `addresses`."""
        client = self.client
        plain = client.allow_plain
        return Address(node.name, node.address, client.secret, client.certificates, plain)


def load_context(path: str | os.PathLike[str]) -> CallContext:
    """Read a context.

    Raises:
        ConfigError: The file cannot be read, or what it says cannot be used. The message names
            the key.
    """
    return read_settings(CallContext, path)
