"""A node of the registration service as a process.

Several run at once over one profile database: the one that has the lease answers, and any of the
others takes over when that is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from pathcast.customize import Broker as Engine
from pathcast.customize.subscription_rows import read_rows
from pathcast.overlay.host_choice import ByContent, HostChoice, Nearest
from pathcast.overlay.registration import RegistrationNode
from pathcast.overlay.registration_messages import ToService
from pathcast.partition import PepPlacement
from pathcast.store import Store
from pathcast.transport.grpc_streams import Address
from pathcast.transport.process import STOP_SECONDS, until_ended
from pathcast.transport.registration import Callers, RegistrationMethods, is_request, key_of
from pathcast.transport.registry_settings import HostsSection, RegistrySettings
from pathcast.transport.request_carrier import RequestCarrier
from pathcast.transport.security import Gate
from pathcast.transport.service import listen
from pathcast.transport.settings import database_of, secret_of


def host_choice(hosts: HostsSection) -> HostChoice:
    """How hosts are chosen.

    Raises:
        ConfigError: The file of queries cannot be read.
        PathcastError: One of the queries is none.
    """
    if hosts.queries is None:
        return Nearest()
    engine = Engine()
    found = read_rows(hosts.queries, "fragment")
    refused = [each.error for each in found.rejected]
    for error in [*refused, *engine.subscribe(found.rows).errors.values()]:
        raise error
    placement = PepPlacement.of(engine.population(), hosts.partitions)
    return ByContent(placement, hosts.region_levels)


@contextlib.asynccontextmanager
async def serving(settings: RegistrySettings) -> AsyncIterator[tuple[RequestCarrier, str]]:
    """A node of the service that listens; the carrier, and where.

    Raises:
        ConfigError: It cannot listen there, or the database is none.
        StoreError: The database cannot be opened.
    """
    section = settings.registry
    choice = host_choice(settings.hosts)
    with Store.open(database_of(section.store)) as store:
        node = RegistrationNode(section.name, store, choice, lease_seconds=section.lease_seconds)

        def address(target: str) -> Address:
            # Of a broker, whose name its certificate has to show.
            names = [each.id for each in node.view.brokers.values() if each.address == target]
            name = names[0] if names else target
            token = secret_of(section.token)
            return Address(name, target, token, settings.certificates, section.allow_plain)

        callers = Callers(section.name, address)
        carrier = RequestCarrier(
            section.name, node, callers.call, key_of, is_request, lambda to, what: None
        )
        gate = Gate(settings.peers, with_certificates=settings.tls is not None)
        listener = await listen(
            [RegistrationMethods(carrier, gate, ToService)],
            section.listen,
            settings.certificates,
            allow_plain=section.allow_plain,
        )
        try:
            async with carrier.running():
                yield carrier, f"{section.listen.rpartition(':')[0]}:{listener.port}"
        finally:
            await listener.stop(STOP_SECONDS)
            await callers.close()
            if node.leadership.lease is not None:
                store.give_back(node.leadership.lease)


async def run_registry(
    settings: RegistrySettings, ready: Callable[[str], None] = lambda _: None
) -> None:
    """Runs a node of the service until SIGTERM or Ctrl-C.

    Args:
        settings: What it is told.
        ready: Called with the address where it listens, as soon as it does.

    Raises:
        ConfigError: It cannot listen there, or the database is none.
        StoreError: The database cannot be opened.
    """
    async with serving(settings) as (carrier, address):
        ready(address)
        await until_ended(carrier.run)
