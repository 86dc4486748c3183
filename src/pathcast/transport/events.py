"""Events that processes tell their operators of: one catalogue, with a level and a sentence each.

Example:
    >>> EVENTS["inbox.full"].level == logging.WARNING
    True
    >>> EVENTS["inbox.freed"].sentence % {"subscriber": "ann"}
    'the inbox of ann takes deliveries again'

A record of Python's logging carries the name of its event (`event`) and its parameters (`args`), so
that a formatter may write them as data. Where they are written to, and from which level on, is the
command's affair (`pathcast.cli.log`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pathcast.errors import PathcastError

LOG: Final = logging.getLogger("pathcast.transport")

PERIOD_SECONDS: Final = 60.0
"""An event that strangers can cause is logged once in so long for each of its causes."""

CAUSES_MAX: Final = 50
"""Causes of a period that are told apart; more of them are counted together."""


class EventKind(NamedTuple):
    """An event as the catalogue has it.

    Attributes:
        level: Of Python's logging.
        sentence: With `%(name)s` for each parameter.
    """

    level: int
    sentence: str


EVENTS: Final[Mapping[str, EventKind]] = {
    "caller.refused": EventKind(
        logging.WARNING, "%(caller)s is refused, who calls from %(address)s: %(reason)s"
    ),
    "neighbour.connected": EventKind(logging.INFO, "%(name)s is connected to %(neighbour)s"),
    "neighbour.lost": EventKind(
        logging.WARNING, "%(name)s has lost its connection to %(neighbour)s"
    ),
    "neighbour.unreachable": EventKind(
        logging.WARNING, "%(name)s has no connection to %(neighbour)s: %(reason)s"
    ),
    "neighbour.refused": EventKind(
        logging.ERROR, "%(name)s and %(neighbour)s do not go together: %(reason)s"
    ),
    "neighbour.ended": EventKind(logging.INFO, "%(name)s: the process of %(neighbour)s has ended"),
    "packet.refused": EventKind(
        logging.ERROR, "%(name)s cannot send a packet to %(neighbour)s: %(reason)s"
    ),
    "connections.ended": EventKind(
        logging.WARNING, "%(count)d connections on which nobody said who they are were ended"
    ),
    "connections.unseen": EventKind(
        logging.ERROR, "connections on which nobody speaks cannot be found: %(reason)s"
    ),
    "request.failed": EventKind(logging.INFO, "%(name)s asked %(to)s in vain: %(reason)s"),
    "log.filling": EventKind(
        logging.WARNING,
        "the log of %(name)s is %(percent)d %% full of messages that some broker has not had; "
        "publishers are refused when it is full",
    ),
    "log.freed": EventKind(logging.INFO, "the log of %(name)s is %(percent)d %% full again"),
    "inbox.full": EventKind(
        logging.WARNING,
        "the inbox of %(subscriber)s is full: %(waiting)d deliveries of %(bytes)d bytes wait; what "
        "comes is dropped, which the subscriber is told",
    ),
    "inbox.freed": EventKind(logging.WARNING, "the inbox of %(subscriber)s takes deliveries again"),
    "subscription.lapsed": EventKind(
        logging.WARNING,
        "messages were lost to %(subscription)s, which its subscriber is told",
    ),
    "webhook.refused": EventKind(
        logging.WARNING, "a delivery of %(subscriber)s is a dead letter: %(reason)s"
    ),
    "webhook.stopped": EventKind(
        logging.ERROR,
        "nothing is posted to %(subscriber)s: it has as many dead letters as are kept; retry or "
        "drop some with pathcast broker dead-letters",
    ),
    "certificate.expiring": EventKind(
        logging.WARNING,
        "the certificate in %(file)s ends at %(end)s, in %(days)d days; renew it, and send the "
        "process SIGHUP",
    ),
    "certificate.expired": EventKind(
        logging.ERROR,
        "the certificate in %(file)s has ended at %(end)s: nobody takes it; renew it, and send the "
        "process SIGHUP",
    ),
    "settings.taken": EventKind(logging.INFO, "%(name)s has read its settings again: %(changed)s"),
    "settings.refused": EventKind(
        logging.ERROR, "%(name)s keeps the settings that it has: %(reason)s"
    ),
    "settings.restart": EventKind(
        logging.WARNING, "%(keys)s: %(name)s takes this up when it is started anew"
    ),
    "contacts.unreadable": EventKind(logging.ERROR, "%(file)s cannot be read: %(reason)s"),
    "contact.silent": EventKind(logging.DEBUG, "%(name)s greets in vain: %(reason)s"),
    "table.made": EventKind(
        logging.INFO,
        "%(name)s holds %(held)d entries for %(told)d that its neighbours told; of the bytes that "
        "it forwards by them a share of %(in_vain).3f is in vain",
    ),
    "table.kept": EventKind(logging.ERROR, "%(name)s keeps the table that it has: %(reason)s"),
    "profiles.kept": EventKind(
        logging.INFO,
        "%(name)s has kept a snapshot of its profiles, of which %(changed)d had changed, in "
        "%(seconds).1f s",
    ),
    "profiles.unkept": EventKind(
        logging.ERROR, "%(name)s cannot keep a snapshot of its profiles: %(reason)s"
    ),
    "lease.taken": EventKind(logging.INFO, "%(name)s is played at %(address)s"),
    "lease.lost": EventKind(logging.WARNING, "%(name)s is not played at %(address)s any more"),
    "lease.fenced": EventKind(logging.WARNING, "%(name)s is played elsewhere: %(reason)s"),
    "disk.awaited": EventKind(logging.INFO, "%(reason)s"),
    "disk.copied": EventKind(
        logging.WARNING,
        "%(name)s goes on with a copy of %(path)s: the process that has it stands still",
    ),
    "disk.uncopied": EventKind(
        logging.ERROR, "the directory cannot be copied; it is tried again: %(reason)s"
    ),
    "disk.unchecked": EventKind(
        logging.INFO, "%(path)s is large: not all of it was checked in %(seconds).0f s"
    ),
    "file.readable": EventKind(
        logging.WARNING, "others can read %(path)s, which cannot be changed: %(reason)s"
    ),
    "operator.told": EventKind(logging.ERROR, "%(subject)s: %(code)s: %(reason)s"),
    "process.ending": EventKind(logging.ERROR, "%(name)s ends: %(reason)s"),
    "process.listening": EventKind(logging.INFO, "%(name)s listens at %(address)s"),
    "process.ended": EventKind(logging.INFO, "%(name)s has ended"),
    "process.failed": EventKind(logging.ERROR, "%(name)s cannot go on: %(reason)s"),
}
"""Name -> level and sentence of every event."""


def log_event(event: str, *, exc_info: bool = False, **params: Any) -> None:
    """Logs an event of the catalogue.

    Args:
        event: Its name.
        exc_info: Whether the record has the traceback of the error that is being handled.
        params: Of its sentence.
    """
    kind = EVENTS[event]
    LOG.log(kind.level, kind.sentence, params, extra={"event": event}, exc_info=exc_info)


def reason_of(error: PathcastError) -> dict[str, Any]:
    """The parameters by which an event tells of an error: its sentence, and its code."""
    return {"reason": str(error), "code": error.code}


class RareEvents:
    """Logs an event once in a period for each cause, and how often it came meanwhile.

    Whoever causes events as fast as they can be caused gets two lines a period into the log, one
    when it begins and one when it is over; many who do so get `CAUSES_MAX` and a line for the
    rest.

    Args:
        clock: Seconds, which only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = clock()
        self._held: dict[tuple[str, ...], tuple[int, str, dict[str, Any]]] = {}
        self._others = 0

    def log(self, event: str, cause: tuple[str, ...], **params: Any) -> None:
        """Logs an event, or counts it.

        Args:
            event: Its name in the catalogue.
            cause: What makes it the same as another one.
            params: Of its sentence.
        """
        now = self._clock()
        if now >= self._until:
            self._end_period()
            self._until = now + PERIOD_SECONDS
        key = event, *cause
        if key in self._held:
            count, _, _ = self._held[key]
            self._held[key] = count + 1, event, params
        elif len(self._held) < CAUSES_MAX:
            self._held[key] = 0, event, params
            log_event(event, **params)
        else:
            self._others += 1

    def _end_period(self) -> None:
        for count, event, params in self._held.values():
            if count:
                kind = EVENTS[event]
                again = f"{kind.sentence} (%(again)d times more in a minute)"
                given = {**params, "again": count}
                LOG.log(kind.level, again, given, extra={"event": event})
        if self._others:
            text = "%(others)d events of other causes were not logged in a minute"
            given = {"others": self._others}
            LOG.log(logging.WARNING, text, given, extra={"event": "events.others"})
        self._held.clear()
        self._others = 0
