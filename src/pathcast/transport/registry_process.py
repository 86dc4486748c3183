"""A node of the registration service as a process.

Several run at once over one profile database: the one that has the lease answers, and any of the
others takes over when that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from pathcast.customize import Broker as Engine
from pathcast.customize.subscription_rows import read_rows
from pathcast.errors import StoreError
from pathcast.overlay.host_choice import ByContent, HostChoice, Nearest
from pathcast.overlay.registration import RegistrationNode
from pathcast.overlay.registration_messages import ToService
from pathcast.partition import PepPlacement
from pathcast.store import Broker, Store
from pathcast.transport.events import log_event
from pathcast.transport.grpc_streams import Address
from pathcast.transport.meters import CallMeters, call_metrics
from pathcast.transport.monitor import Monitor, monitored
from pathcast.transport.process import STOP_SECONDS, until_ended
from pathcast.transport.registration import Callers, RegistrationMethods, is_request, key_of
from pathcast.transport.registry_settings import HostsSection, RegistrySettings
from pathcast.transport.request_carrier import RequestCarrier
from pathcast.transport.reread import Admission, rereading
from pathcast.transport.security import Gate
from pathcast.transport.service import listen
from pathcast.transport.settings import database_of, secret_of
from pathcast.transport.watching import Watch, watching


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


class RegistryWatch:
    """A node of the service as monitoring sees it.

    Args:
        node: The node.
        store: The profile database.
        calls: Of its methods.
    """

    def __init__(self, node: RegistrationNode, store: Store, calls: CallMeters) -> None:
        self._node = node
        self._store = store
        self._calls = calls

    async def metrics(self) -> list[Metric]:
        """What it knows of the network; a node that does not lead knows what it last read."""
        view, lease = self._node.view, self._node.leadership.lease
        gauges = (
            ("leader", "Whether this node leads.", lease is not None),
            ("brokers", "Brokers that have registered.", len(view.brokers)),
            ("sources", "Data sources.", len(view.sources)),
            ("profiles", "Profiles that have a host.", len(view.hosts)),
            ("pending", "Profiles and sources whose broker has not answered.", len(view.pending)),
        )
        found = [
            GaugeMetricFamily(f"pathcast_registry_{name}", text, value=value)
            for name, text, value in gauges
        ]
        return [*call_metrics([self._calls]), *found]

    async def unready(self) -> Mapping[str, str]:
        """Whether the profile database answers."""
        try:
            await asyncio.to_thread(self._store.get, Broker, self._node.name)
        except StoreError as error:
            return {"profile database": error.message}
        return {}


@contextlib.asynccontextmanager
async def serving(
    settings: RegistrySettings,
    monitor: Monitor,
    reread: Callable[[], RegistrySettings] | None = None,
    *,
    is_new: bool = False,
) -> AsyncIterator[tuple[RequestCarrier, str]]:
    """A node of the service that listens; the carrier, and where.

    Args:
        settings: What it is told.
        monitor: Shows the node to monitoring.
        reread: Reads the settings again, at SIGHUP; raises ConfigError.
        is_new: Whether the profile database is made if it is empty or missing.

    Raises:
        ConfigError: It cannot listen there, or the database is none.
        StoreError: The database cannot be opened.
    """
    section = settings.registry
    choice = host_choice(settings.hosts)
    with Store.open(database_of(section.store), create=is_new) as store:
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
        methods = RegistrationMethods(carrier, gate, ToService)
        admission = Admission([methods], settings.certificates)
        listener = await listen(
            [methods],
            section.listen,
            admission.certificates,
            allow_plain=section.allow_plain,
        )
        now = settings

        async def take_up(found: RegistrySettings) -> None:
            nonlocal now
            admission.take_up(found.peers, found.certificates)
            _tell_changes(settings, now, found)
            now = found

        watch = Watch(section.name, lambda: now.certificates)
        try:
            async with (
                carrier.running(),
                rereading(section.name, settings, reread, take_up),
                watching(watch),
            ):
                with monitor.watching(RegistryWatch(node, store, methods.meters)):
                    yield carrier, f"{section.listen.rpartition(':')[0]}:{listener.port}"
        finally:
            await listener.stop(STOP_SECONDS)
            await callers.close()
            if node.leadership.lease is not None:
                store.give_back(node.leadership.lease)


def _tell_changes(
    begun_with: RegistrySettings, before: RegistrySettings, now: RegistrySettings
) -> None:
    """Logs what counts from now on, and what counts when the process is started anew."""
    name = begun_with.registry.name
    restart = [
        key for key in ("registry", "hosts") if getattr(begun_with, key) != getattr(now, key)
    ]
    if (begun_with.tls is None) != (now.tls is None):
        restart.append("tls")
    if restart:
        log_event("settings.restart", name=name, keys=", ".join(restart))
    changed = [key for key in ("clients", "tls") if getattr(before, key) != getattr(now, key)]
    log_event("settings.taken", name=name, changed=", ".join(changed) or "the certificates")


async def run_registry(
    settings: RegistrySettings,
    ready: Callable[[str], None] = lambda _: None,
    reread: Callable[[], RegistrySettings] | None = None,
    *,
    is_new: bool = False,
) -> None:
    """Runs a node of the service until SIGTERM or Ctrl-C.

    Args:
        settings: What it is told.
        ready: Called with the address where it listens, as soon as it does.
        reread: Reads the settings again, at SIGHUP.
        is_new: As of `serving`.

    Raises:
        ConfigError: It cannot listen there, or the database is none.
        StoreError: The database cannot be opened, or is empty.
    """
    async with (
        monitored(settings.registry.metrics) as monitor,
        serving(settings, monitor, reread, is_new=is_new) as (carrier, address),
    ):
        ready(address)
        await until_ended(carrier.run)
