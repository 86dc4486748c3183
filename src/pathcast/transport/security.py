"""Authentication: certificates, tokens and roles, and the addresses where plain text is allowed.

With certificates both ends show one that the operator's authority signed (mTLS), and its subject
alternative name has to be the name that its owner goes by. A token is a secret of one peer, beside
or instead of a certificate. Without certificates an address that is not loopback is refused,
unless the settings ask for plain text.
"""

from __future__ import annotations

import hmac
import ipaddress
import ssl
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import grpc

from pathcast.errors import ConfigError, PeerRefusedError
from pathcast.overlay.deliveries import OPERATOR

Role: TypeAlias = Literal["neighbour", "publish", "subscribe", "operate", "register"]

NAME_KEY: Final = "pathcast-name"
TOKEN_KEY: Final = "pathcast-token"


@dataclass(frozen=True)
class KnownCaller:
    """Somebody who is known here.

    Attributes:
        name: The name that it goes by.
        token: Its secret; None where its certificate, or loopback, is enough.
        roles: What it may do.
    """

    name: str
    token: str | None = field(default=None, repr=False)
    roles: frozenset[Role] = frozenset({"neighbour"})


@dataclass(frozen=True)
class Certificates:
    """PEM files of one process.

    Attributes:
        certificate: Its own, with its name as subject alternative name.
        key: The private key of that.
        authority: Certificates that those of others have to be signed with.
    """

    certificate: Path
    key: Path
    authority: Path

    def _read(self) -> tuple[bytes, bytes, bytes]:
        try:
            return (
                self.certificate.read_bytes(),
                self.key.read_bytes(),
                self.authority.read_bytes(),
            )
        except OSError as error:
            reason = f"{error.filename} cannot be read: {error.strerror}"
            raise ConfigError("config.invalid", key="tls", reason=reason) from error

    def of_server(self) -> Any:
        """GRPC's configuration of a listener.

        Raises:
            ConfigError: A file cannot be read, or the key is not that of the certificate.
        """
        certificate, key, authority = self._read()
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            # A key that needs a password is refused, and nobody is asked for it.
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            context.load_verify_locations(self.authority)
        except (ssl.SSLError, OSError) as error:
            reason = f"{self.certificate} and {self.key} cannot be used together: {error}"
            raise ConfigError("config.invalid", key="tls", reason=reason) from error
        return grpc.ssl_server_certificate_configuration(
            [(key, certificate)], root_certificates=authority
        )

    def end(self) -> datetime:
        """When the certificate ends, or one that signed it and is in the same file.

        Raises:
            ConfigError: The file cannot be read, or has no certificate.
        """
        from cryptography import x509  # nodes without certificates begin sooner without it

        certificate, _, _ = self._read()
        try:
            chain = x509.load_pem_x509_certificates(certificate)
        except ValueError as error:
            reason = f"{self.certificate} has no certificate: {error}"
            raise ConfigError("config.invalid", key="tls", reason=reason) from error
        return min(each.not_valid_after_utc for each in chain)

    def of_caller(self) -> Any:
        """GRPC's credentials of a caller."""
        certificate, key, authority = self._read()
        return grpc.ssl_channel_credentials(authority, key, certificate)


class ServerCertificates:
    """The certificates of a listener, which may be changed while it listens.

    Every caller is asked for a certificate. Connections that are open stay as they are.

    Args:
        files: With which it begins.

    Raises:
        ConfigError: They cannot be used.
    """

    def __init__(self, files: Certificates) -> None:
        self._configuration = files.of_server()
        self._is_new = False
        self.files = files

    def credentials(self) -> Any:
        """GRPC's credentials of the listener."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration, self._fetched, require_client_authentication=True
        )

    def take_up(self, files: Certificates) -> None:
        """New connections are made with these; raises ConfigError, and changes nothing then."""
        self._configuration = files.of_server()
        self.files = files
        self._is_new = True

    def _fetched(self) -> Any:
        """The configuration for a new connection; None where it is that of the one before."""
        if not self._is_new:
            return None
        self._is_new = False
        return self._configuration


def is_local(address: str) -> bool:
    """Whether nothing that goes to an address leaves this machine.

    Example:
        >>> [is_local(a) for a in ("127.0.0.1:7000", "[::1]:7000", "unix:/run/p", "10.0.0.1:7000")]
        [True, True, True, False]
    """
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_plain(address: str, *, allow_plain: bool) -> None:
    """Refuses plain text to or at an address of a network.

    Raises:
        ConfigError: It is one, and plain text was not asked for.
    """
    if not allow_plain and not is_local(address):
        reason = (
            f"{address} is not a loopback address, and there are no certificates; "
            "give tls, or set allow_plain = true"
        )
        raise ConfigError("config.invalid", key="tls", reason=reason)


def own_id(client: str, id: str) -> str:
    """The id that a node has for something that a client calls by an id of its own.

    Two clients never have one of these in common, whatever names and ids they choose: a slash in
    the client's name is escaped, so the first slash ends it.

    Example:
        >>> own_id("ann", "cheap/4"), own_id("spiffe://bank/ann", "4")
        ('ann/cheap/4', 'spiffe:%2F%2Fbank%2Fann/4')
    """
    return f"{client.replace('%', '%25').replace('/', '%2F')}/{id}"


def check_name(name: str) -> str:
    """Refuses the name of a client that cannot be told from another.

    Raises:
        ValueError: It has a control character, or is the operator's.
    """
    if any(unicodedata.category(each) == "Cc" for each in name):
        raise ValueError(f"{name!a} has a control character")
    if name == OPERATOR:
        raise ValueError(f"{OPERATOR!r} is the name of whoever operates the process")
    return name


class Authenticator:
    """Tells who calls.

    Args:
        peers: All who may.
        with_certificates: Whether callers show certificates, whose name then counts.
        anybody: What holds of whoever is none of them, whatever the name; None: they may not call.
    """

    def __init__(
        self,
        peers: Iterable[KnownCaller],
        *,
        with_certificates: bool,
        anybody: KnownCaller | None = None,
    ) -> None:
        self._peers = {peer.name: peer for peer in peers}
        self._with_certificates = with_certificates
        self._anybody = anybody

    def replace(self, peers: Iterable[KnownCaller]) -> frozenset[str]:
        """From now on these may call; names of those who may not any more, or do less."""
        before, self._peers = self._peers, {peer.name: peer for peer in peers}
        now = self._peers
        return frozenset(
            name
            for name, peer in before.items()
            if name not in now or not peer.roles <= now[name].roles
        )

    def is_privileged(self, name: str) -> bool:
        """Whether somebody of this name keeps the network running, beside being a client or not."""
        peer = self._peers.get(name, self._anybody)
        return peer is not None and bool(peer.roles & {"neighbour", "operate", "register"})

    def add(self, peer: KnownCaller) -> None:
        """From now on this one may call."""
        self._peers[peer.name] = peer

    def admit(
        self,
        metadata: Mapping[str, str | bytes],
        identities: Iterable[bytes],
        role: Role | None = None,
    ) -> str:
        """The name of a caller.

        Args:
            metadata: Of the call.
            identities: Subject alternative names of its certificate.
            role: The role it needs; None where that is seen later.

        Raises:
            PeerRefusedError: It is not known, is not who it says it is, or may not do that.
        """
        name = str(metadata.get(NAME_KEY, ""))[:256]
        peer = self._peers.get(name, self._anybody if name else None)
        token = str(metadata.get(TOKEN_KEY, ""))
        # A name that nobody has costs as much time as a wrong token.
        expected = "" if peer is None or peer.token is None else peer.token
        is_same = hmac.compare_digest(token.encode(), expected.encode())
        if peer is None:
            raise PeerRefusedError("peer.unknown", name=name)
        if self._with_certificates:
            names = [identity.decode("utf-8", "replace") for identity in identities]
            if name not in names:
                raise PeerRefusedError("peer.certificate", name=name, found=", ".join(names))
        if peer.token is not None and not is_same:
            raise PeerRefusedError("peer.token", name=name)
        if role is not None and role not in peer.roles:
            raise PeerRefusedError("peer.role", name=name, role=role)
        return name


def introduction(name: str, token: str | None) -> tuple[tuple[str, str], ...]:
    """The metadata with which a caller says who it is."""
    if token is None:
        return ((NAME_KEY, name),)
    return ((NAME_KEY, name), (TOKEN_KEY, token))
