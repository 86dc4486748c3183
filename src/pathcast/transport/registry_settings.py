"""The settings of one node of the registration service: what `registry.toml` may say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from pathcast.settings import (
    FROZEN,
    FileSettings,
    Place,
    SettingDescription,
    described,
    read_settings,
)
from pathcast.transport.security import Certificates, Peer
from pathcast.transport.settings import CallerSection, MetricsAddress, TlsSection, checked_address


class RegistrySection(BaseModel):
    """The process itself."""

    model_config = FROZEN

    name: str = Field(
        min_length=1,
        max_length=256,
        description="Name of the node, which no other has; with certificates, the one that its own "
        "is made out to.",
    )
    store: Place = Field(
        description="The profile database, which brokers and service share: the path of a SQLite "
        'file, or a URL such as "postgresql://USER@HOST/NAME".'
    )
    listen: str = Field(
        default="127.0.0.1:0",
        description="HOST:PORT where sources and users call; port 0 takes one that is free.",
    )
    allow_plain: bool = Field(
        default=False,
        description="Whether to do without certificates at addresses that are not loopback.",
    )
    metrics: MetricsAddress = None
    token: SecretStr | None = Field(
        default=None, description="Secret that it gives to brokers, which all nodes have in common."
    )
    lease_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="After so long without a sign of the node that leads, another one does.",
    )

    _listen = field_validator("listen")(checked_address)


class HostsSection(BaseModel):
    """Which broker is the host of a profile; all nodes of the service have to say the same."""

    model_config = FROZEN

    choice: Literal["nearest", "content"] = Field(
        default="nearest",
        description='"nearest": by location. "content": by the partition that the profile is in.',
    )
    queries: Path | None = Field(
        default=None,
        description="File of queries as users will have them, which partitions are made for.",
    )
    partitions: int = Field(default=100, ge=1, le=65_535, description="Partitions of profiles.")
    region_levels: int = Field(
        default=0,
        ge=0,
        description="Levels of a location that name a region: hosts are of the user's region.",
    )

    @model_validator(mode="after")
    def _check_queries(self) -> HostsSection:
        if (self.choice == "content") != (self.queries is not None):
            raise ValueError('queries is given with choice = "content", and only then')
        return self


class RegistrySettings(FileSettings):
    """Everything that `pathcast registry run` can be told."""

    registry: RegistrySection = Field(description="The process itself.")
    tls: TlsSection | None = Field(
        default=None, description="Certificates; without them nothing leaves this machine."
    )
    hosts: HostsSection = Field(
        default=HostsSection(), description="Which broker is the host of a profile."
    )
    clients: tuple[CallerSection, ...] = Field(
        default=(), description="Who may register sources and profiles."
    )

    @property
    def certificates(self) -> Certificates | None:
        """Its certificates, if there are any."""
        return None if self.tls is None else self.tls.certificates

    @property
    def peers(self) -> list[Peer]:
        """Who may call."""
        return [each.peer for each in self.clients]


def describe_registry_settings() -> list[SettingDescription]:
    """Every key of the file, for documentation and help."""
    return described(RegistrySettings)


def load_registry_settings(
    path: str | os.PathLike[str], overrides: Sequence[str] = ()
) -> RegistrySettings:
    """Read a file of a node of the service.

    Args:
        path: The TOML file.
        overrides: `section.key=value`, the value as in TOML; text needs no quotes.

    Raises:
        ConfigError: As of `load_settings` of a broker.
    """
    return read_settings(RegistrySettings, path, overrides)
