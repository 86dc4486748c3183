"""Looks every few seconds for what operators must know before it stops something, and logs it.

A log of messages that fills, and certificates that end, are told at thresholds, once for each. What
a node improves beside its work is looked at as well.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from pathcast.errors import ConfigError
from pathcast.transport.events import log_event, reason_of
from pathcast.transport.security import Certificates

LOOK_SECONDS: Final = 10.0
LOG_PERCENTS: Final = (50, 75, 90, 100)
"""Thresholds of a log of messages that some broker has not had."""
CERTIFICATE_DAYS: Final = (30, 7, 1)
"""Days before its end at which a certificate is named."""


class Watch:
    """Facts already reported about one process, so that each is reported once.

    Args:
        name: Of the process.
        certificates: Those that count now; None where there are none.
        fullness: Share of the log that is taken, from 0 to 1.
    """

    def __init__(
        self,
        name: str,
        certificates: Callable[[], Certificates | None],
        fullness: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._name = name
        self._certificates = certificates
        self._fullness = fullness
        self._percent = 0
        self._ending: tuple[datetime, int] | None = None
        self._unreadable = ""

    def look(self, now: datetime) -> None:
        """Logs what has passed a threshold since the last look.

        Args:
            now: The time, with its zone.
        """
        self._look_at_log()
        certificates = self._certificates()
        if certificates is not None:
            try:
                self._look_at_certificate(certificates, now)
            except ConfigError as error:
                if self._unreadable != str(error):
                    self._unreadable = str(error)
                    log_event("settings.refused", name=self._name, **reason_of(error))

    def _look_at_log(self) -> None:
        share = 100 * self._fullness()
        percent = max((each for each in LOG_PERCENTS if share >= each), default=0)
        if percent > self._percent:
            log_event("log.filling", name=self._name, percent=int(share))
        elif self._percent and share < LOG_PERCENTS[0] / 2:
            log_event("log.freed", name=self._name, percent=int(share))
        else:
            # One that goes up and down around a threshold is told once.
            return
        self._percent = percent

    def _look_at_certificate(self, certificates: Certificates, now: datetime) -> None:
        end = certificates.end()
        days = (end - now).total_seconds() / 86_400
        passed = sum(days <= each for each in (*CERTIFICATE_DAYS, 0))
        before, self._ending = self._ending, (end, passed)
        if self._ending == before:
            return
        told: dict[str, Any] = {"file": str(certificates.certificate), "end": end.isoformat()}
        if days <= 0:
            log_event("certificate.expired", **told)
        elif passed:
            log_event("certificate.expiring", **told, days=int(days))

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            self.look(datetime.now(UTC))
            await asyncio.sleep(LOOK_SECONDS)


@contextlib.asynccontextmanager
async def watching(watch: Watch) -> AsyncIterator[None]:
    """Looks meanwhile."""
    async with beside(watch.run()):
        yield


@contextlib.asynccontextmanager
async def improving(improve: Callable[[], Awaitable[None]], seconds: float) -> AsyncIterator[None]:
    """Improves something every so many seconds, meanwhile."""

    async def run() -> None:
        while True:
            await asyncio.sleep(seconds)
            await improve()

    async with beside(run()):
        yield


@contextlib.asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Does some work meanwhile."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
