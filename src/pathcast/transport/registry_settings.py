"""The settings of one node of the registration service: what `registry.toml` may say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from pathcast.overlay.placing import PlacementSettings
from pathcast.settings import FileSettings, Place, SettingsSection
from pathcast.transport.security import Certificates, KnownCaller
from pathcast.transport.settings import CallerSection, ProcessSection, TlsSection, check_different


class RegistrySection(ProcessSection):
    """The process itself."""

    store: Place
    """The profile database, which brokers and service share: the path of a SQLite file, or a URL
    such as "postgresql://USER@HOST/NAME"."""
    token: SecretStr | None = None
    """Secret that it gives to brokers, which all nodes have in common."""
    lease_seconds: float = Field(default=10.0, gt=0, le=3600)
    """After so long without a sign of the node that leads, another one does."""


class HostsSection(SettingsSection):
    """Which broker is the host of a profile; all nodes of the service have to say the same.

    The defaults are those of `pathcast.overlay.placing.PlacementSettings`.
    """

    choice: Literal["nearest", "content"] = "nearest"
    """ "nearest": by location. "content": by the partition that the profile is in."""
    partitions: int = Field(default=100, ge=1, le=4_096)
    """Partitions of profiles."""
    region_levels: int = Field(default=0, ge=0)
    """Levels of a location that name a region: hosts are of the user's region."""
    review_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """How often partitions are measured, if profiles, schemas or samples changed."""
    drift_max: float = Field(default=0.05, ge=0, le=1)
    """Partitions are made anew if a message visits this share of the profiles more than it would
    with new ones; profiles then move."""

    @property
    def placing(self) -> PlacementSettings | None:
        """How profiles are placed by content; None: by location alone."""
        if self.choice == "nearest":
            return None
        return PlacementSettings(
            self.partitions, self.region_levels, self.review_seconds, self.drift_max
        )


class RegistrySettings(FileSettings):
    """Everything that `pathcast registry run` can be told."""

    registry: RegistrySection
    """The process itself."""
    tls: TlsSection | None = None
    """Certificates; without them nothing leaves this machine."""
    hosts: HostsSection = HostsSection()
    """Which broker is the host of a profile."""
    clients: tuple[CallerSection, ...] = ()
    """Who may register sources and profiles."""

    @model_validator(mode="after")
    def _check_names(self) -> RegistrySettings:
        check_different([each.name for each in self.clients])
        return self

    @property
    def certificates(self) -> Certificates | None:
        """Its certificates, if there are any."""
        return None if self.tls is None else self.tls.certificates

    @property
    def peers(self) -> list[KnownCaller]:
        """Return all callers that are admitted."""
        return [each.peer for each in self.clients]
