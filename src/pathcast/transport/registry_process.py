"""A node of the registration service as a process.

Several run at once over one profile database: the one that has the lease answers, and any of the
others takes over when that is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping

from prometheus_client.core import Metric

from pathcast.overlay.registration import RegistrationNode
from pathcast.store import Store
from pathcast.transport.carrier import Carrier, NodeAdapter
from pathcast.transport.carrier_metrics import CarrierWatch
from pathcast.transport.disk import Disk
from pathcast.transport.grpc_streams import Address
from pathcast.transport.meters import gauge
from pathcast.transport.monitor import Monitor, monitored
from pathcast.transport.process import STOP_SECONDS, until_ended
from pathcast.transport.registration import CODEC, METHODS, SERVICE_ROLES, Callers
from pathcast.transport.registry_settings import RegistrySettings
from pathcast.transport.reread import Admission, rereading, tell_changes
from pathcast.transport.security import Authenticator
from pathcast.transport.service import AskMethods, listen
from pathcast.transport.settings import database_of, secret_of
from pathcast.transport.starting import Starting
from pathcast.transport.watching import Watch, watching


def registry_kind(make: Callable[[], RegistrationNode]) -> NodeAdapter[RegistrationNode]:
    """Nodes of the service."""
    return NodeAdapter(
        lambda saved, life: make(),
        CODEC,
        roles=SERVICE_ROLES,
        metrics=_metrics,
        unready=_unready,
        blocks=True,
    )


def _metrics(node: RegistrationNode, connected: Collection[str]) -> Iterable[Metric]:
    """Numbers of the network; a node that does not lead knows those that it last read."""
    view, lease = node.view, node.leadership.lease
    drift = 0.0 if view.placement is None else view.placement.drift
    gauges = (
        ("leader", "Whether this node leads.", lease is not None),
        ("brokers", "Brokers that have registered.", len(view.brokers)),
        ("sources", "Data sources.", len(view.sources)),
        ("profiles", "Profiles that have a host.", len(view.hosts)),
        ("pending", "Profiles and sources whose broker has not answered.", len(view.pending)),
        ("moving", "Profiles that have deliveries at a former host.", len(view.formers)),
        ("drift", "Share of the profiles that a message visits in vain.", drift),
    )
    for name, text, value in gauges:
        yield gauge(f"registry_{name}", text, value)


def _unready(node: RegistrationNode, connected: Collection[str]) -> Mapping[str, str]:
    """Why the profile database did not answer the last attempt to lead."""
    failure = node.leadership.failure
    return {} if failure is None else {"profile database": failure.message}


@contextlib.asynccontextmanager
async def serving(
    settings: RegistrySettings,
    monitor: Monitor,
    reread: Callable[[], RegistrySettings] | None = None,
    *,
    is_new: bool = False,
) -> AsyncIterator[tuple[Carrier, str]]:
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
    async with contextlib.AsyncExitStack() as stack:
        store = stack.enter_context(Store.open(database_of(section.store), create=is_new))
        node = RegistrationNode(
            section.name, store, settings.hosts.placing, lease_seconds=section.lease_seconds
        )
        stack.callback(_give_back, store, node)

        def address(target: str) -> Address:
            # Of a broker, whose name its certificate has to show.
            names = [each.id for each in node.view.brokers.values() if each.address == target]
            name = names[0] if names else target
            token = secret_of(section.token)
            return Address(name, target, token, settings.certificates, section.allow_plain)

        callers = Callers(section.name, address)
        stack.push_async_callback(callers.close)
        kind = registry_kind(lambda: node)
        carrier = Carrier(section.name, kind, Disk(None), requests=callers.requests())
        stack.push_async_callback(carrier.stop)
        gate = Authenticator(settings.peers, with_certificates=settings.tls is not None)
        starting = Starting(section.name)
        methods = AskMethods(starting, gate, METHODS)
        admission = Admission([methods], settings.certificates)
        listener = await listen(
            [methods],
            section.listen,
            admission.certificates,
            allow_plain=section.allow_plain,
        )
        stack.push_async_callback(listener.stop, STOP_SECONDS)
        await carrier.start()
        starting.end(carrier)
        now = settings

        async def take_up(found: RegistrySettings) -> None:
            nonlocal now
            admission.take_up(found.peers, found.certificates)
            tell_changes(section.name, settings, now, found)
            now = found

        await stack.enter_async_context(rereading(section.name, settings, reread, take_up))
        watch = Watch(section.name, lambda: now.certificates)
        await stack.enter_async_context(watching(watch))
        stack.enter_context(monitor.watching(CarrierWatch(carrier, [methods.meters])))
        yield carrier, f"{section.listen.rpartition(':')[0]}:{listener.port}"


def _give_back(store: Store, node: RegistrationNode) -> None:
    """Another node leads at once, and need not wait for the lease to expire."""
    if node.leadership.lease is not None:
        store.give_back(node.leadership.lease)


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
