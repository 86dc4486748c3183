"""A reliable link in order, over messages that may be lost, doubled, late or overtaken.

Each end numbers a *session*; the pair of numbers names it. A session begins in three messages: an
offer, its answer, and whatever proves that the answer came. An end begins one session with a number
that it offers, and none with it after that or after a restart, so that a frame or an offer of a
former session can be late by days without harm. Within a session frames are numbered,
acknowledged together, sent again with growing patience, and given on in order and once. Patience is
more than acknowledgements have taken lately, so that a busy end is not made busier. A lost
connection is no more than lost frames: the session goes on when there is another connection, which
one frame finds out before the others are sent again.

How many bytes are under way goes by how fast the link has shown to be: no more than it carries in
`ahead_seconds`. What a slow link has not carried yet would hold up the word that the other end
lives, so that sessions end, and be sent again while it is still on its way. Where a single frame
takes a slow link longer than that word may be awaited, a short one goes before it, which says for
how long; an end that was told so is as patient, and no longer.

What a new session begins with is its users' business: they say everything again. A link forgets
what it had not delivered when its session ends; what must outlive that is a stream's
(`pathcast.overlay.streams`).

Example:
    >>> from pathcast.overlay.messages import Settled
    >>> a, b = NeighbourLink(iter(range(10, 20))), NeighbourLink(iter(range(20, 30)))
    >>> a.send(Settled("", 1))
    >>> offer, = a.flush(0.0)
    >>> b.receive(offer, 0.0)
    Received(began=False, payloads=[])
    >>> [a.receive(hello, 0.0).began for hello in b.flush(0.0)]
    [False, True]
    >>> a.send(Settled("", 2))
    >>> for frame in a.flush(0.0):
    ...     print(b.receive(frame, 0.0))
    Received(began=True, payloads=[])
    Received(began=False, payloads=[Settled(tree='', number=2)])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pathcast.errors import PeerError
from pathcast.overlay.messages import (
    BUSY_SECONDS_MAX,
    Payload,
    SessionFrame,
    SessionHello,
    size_of,
)


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Times in seconds and bounds of a link.

    Attributes:
        resend_seconds: Least first patience with a frame; it doubles with each time.
        resend_seconds_max: ... up to here.
        beat_seconds: An end that has nothing to say says so.
        silence_seconds: An end that has heard nothing gives the session up.
        window_frames: Frames under way, unacknowledged.
        ahead_seconds: Bytes under way are what the link carries in this time, by the last
            acknowledgement, and `frame_bytes_max` in each of `window_frames` at most.
        ahead_bytes_min: ... or these, as before anything is known of the link.
        bytes_per_second_min: Patience with a frame, and with an end that said that it sends it, is
            longer by what it and those before it take on a link that is so slow, as long as it is
            not known to be faster. No slower one keeps its sessions under long messages.
        frame_payloads_max: Payloads in one frame.
        frame_bytes_max: Bytes of their bodies and entries, unless one payload alone has more: one
            part of a long message, which is sent on when its frame has come.
        waiting_max: Payloads that wait for the window; with more the session is given up, because
            to say everything again is shorter.
        offer_seconds: Time between two offers of a session.
        offers: Times that an offer is repeated before a new one is made.
        answer_seconds: Least time between two answers to offers.
    """

    resend_seconds: float = 0.3
    resend_seconds_max: float = 2.0
    beat_seconds: float = 1.0
    silence_seconds: float = 4.0
    window_frames: int = 32
    ahead_seconds: float = 2.0
    ahead_bytes_min: int = 1 << 16
    bytes_per_second_min: float = 3 << 10
    frame_payloads_max: int = 64
    frame_bytes_max: int = 1 << 17
    waiting_max: int = 8192
    offer_seconds: float = 0.3
    offers: int = 4
    answer_seconds: float = 0.05


DEFAULT = LinkSettings()

SLOWER: Final = 8.0
"""How many times slower than it was last seen a link may have become."""


@dataclass(slots=True)
class Received:
    """The result of a received message.

    Attributes:
        began: A new session begins here: what was said in the one before is void.
        payloads: In order, none twice.
    """

    began: bool = False
    payloads: list[Payload] = field(default_factory=list)


@dataclass(slots=True)
class _Sent:
    number: int
    payloads: tuple[Payload, ...]
    at: float
    due: float
    patience: float
    size: int
    ahead: int
    is_resent: bool = False


class NeighbourLink:
    """One end of a link.

    Args:
        numbers: Numbers for sessions: each once, and none that a former life of this end had.
        settings: Times and bounds.

    Attributes:
        is_up: There is a session.
        sessions: How many there have been.
        resent: Frames that were sent again.
    """

    def __init__(
        self,
        numbers: Iterator[int],
        settings: LinkSettings = DEFAULT,
    ) -> None:
        self.sessions = 0
        self.resent = 0
        self._numbers = numbers
        self._settings = settings
        self._session: tuple[int, int] | None = None
        self._offer = next(numbers)
        self._offered = 0
        self._out: list[SessionHello] = [SessionHello(self._offer, 0)]
        self._offer_due = 0.0
        self._answer_due = float("-inf")
        self._ahead_bytes = float(settings.ahead_bytes_min)
        self._reset(0.0)

    def _reset(self, now: float) -> None:
        self._sent: deque[_Sent] = deque()
        self._sent_bytes = 0
        self._waiting: deque[Payload] = deque()
        self._waiting_bytes = 0
        self._last = 0
        self._come = 0
        self._early: dict[int, tuple[Payload, ...]] = {}
        self._owes = False
        self._said_at = now
        self._silent_until = now + self._settings.silence_seconds
        self._round_trip = 0.0
        self._least_round_trip: float | None = None
        self._is_probing = False

    def taken_round_trip(self) -> float | None:
        """Least seconds until a frame was acknowledged, of those since this was last asked."""
        taken, self._least_round_trip = self._least_round_trip, None
        return taken

    @property
    def is_up(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    @property
    def has_room(self) -> bool:
        """Whether a message can be sent now rather than wait: backpressure."""
        room = 2 * self._settings.frame_bytes_max
        return self._session is not None and self._waiting_bytes < room and not self._is_full

    @property
    def _is_full(self) -> bool:
        if self._is_probing or len(self._sent) >= self._settings.window_frames:
            return True
        more = size_of(self._waiting[0]) if self._waiting else 1
        return bool(self._sent) and self._sent_bytes + more > self._ahead_bytes

    def send(self, payload: Payload) -> None:
        """Give the payload to the other end, in this session; nothing without one."""
        if self._session is not None:
            self._waiting.append(payload)
            self._waiting_bytes += size_of(payload)

    def close(self, now: float) -> None:
        """Give the session up and offer another."""
        self._session = None
        self._ahead_bytes = float(self._settings.ahead_bytes_min)
        self._reset(now)
        self._offer_anew(now)

    def connected(self, now: float) -> None:
        """There is a connection again: nothing waits for its time."""
        if self._session is None:
            self._offer_anew(now)
        self._is_probing = bool(self._sent)
        for sent in self._sent:
            sent.due, sent.patience = now, self._patience(sent.ahead)

    def tick(self, now: float) -> bool:
        """Time has passed. Returns whether the session was given up."""
        settings = self._settings
        if self._session is None:
            if now >= self._offer_due:
                if self._offered >= settings.offers:
                    self._offer_anew(now)
                else:
                    self._say_offer(now)
            return False
        if now > self._silent_until or len(self._waiting) > settings.waiting_max:
            self.close(now)
            return True
        return False

    def receive(self, message: SessionHello | SessionFrame, now: float) -> Received:
        """A message of the other end.

        Raises:
            PeerError: A frame beyond the window (`overlay.window`), or one that acknowledges what
                was never sent (`overlay.acknowledged`).
        """
        if isinstance(message, SessionHello):
            return Received(began=self._hello(message, now))
        began = False
        if self._session != (message.theirs, message.mine):
            if self._offer == message.theirs:
                self._begin(message.mine, now)
                began = True
            else:
                self._astray(message, now)
                return Received()
        until = now + self._settings.silence_seconds
        if message.number == 0:
            # What was said before it has come, or the link is busy with it still.
            self._silent_until = until + message.busy_seconds
        self._silent_until = max(self._silent_until, until)
        self._acknowledge(message.acknowledged, now)
        self._is_probing = False
        return Received(began, self._take(message))

    def flush(self, now: float) -> list[SessionHello | SessionFrame]:
        """Return the messages to send now, best effort."""
        out: list[SessionHello | SessionFrame] = list(self._out)
        self._out.clear()
        if self._session is None:
            return out
        settings = self._settings
        while self._waiting and not self._is_full:
            self._last += 1
            payloads, size = self._next_payloads()
            self._sent_bytes += size
            ahead = self._sent_bytes
            patience = self._patience(ahead)
            self._sent.append(_Sent(self._last, payloads, now, now, patience, size, ahead))
        if self._busy_seconds and any(now >= each.due for each in self._sent):
            out.append(self._frame(0, ()))
        for sent in islice(self._sent, 1 if self._is_probing else None):
            if now >= sent.due:
                if now > sent.at:
                    sent.is_resent = True
                    self.resent += 1
                    self._ahead_bytes = float(settings.ahead_bytes_min)
                out.append(self._frame(sent.number, sent.payloads))
                sent.due = now + sent.patience
                most = max(settings.resend_seconds_max, self._patience(sent.ahead))
                sent.patience = min(2 * sent.patience, most)
        spoke = any(isinstance(message, SessionFrame) for message in out)
        if not spoke and (self._owes or now - self._said_at >= settings.beat_seconds):
            out.append(self._frame(0, ()))
            spoke = True
        if spoke:
            self._owes, self._said_at = False, now
        return out

    def _patience(self, ahead: int) -> float:
        """With a frame that has so many bytes under way, its own included."""
        settings = self._settings
        least = max(settings.resend_seconds, 3 * self._round_trip)
        return min(least, settings.resend_seconds_max) + self._carried_in(ahead)

    def _carried_in(self, size: int) -> float:
        """Seconds that so many bytes may take, on a link that became slower of late as well."""
        settings = self._settings
        speed = settings.bytes_per_second_min
        if self._ahead_bytes > settings.ahead_bytes_min:
            speed = max(speed, self._ahead_bytes / settings.ahead_seconds / SLOWER)
        return size / speed

    @property
    def _busy_seconds(self) -> float:
        """For how long the link may have to do with what is under way; 0.0 if not for long."""
        seconds = self._carried_in(self._sent_bytes)
        return min(seconds, BUSY_SECONDS_MAX) if seconds > self._settings.beat_seconds else 0.0

    def _next_payloads(self) -> tuple[tuple[Payload, ...], int]:
        """Take the next payloads within the bounds of a frame, one at least; and their bytes."""
        settings = self._settings
        most = min(settings.frame_bytes_max, self._ahead_bytes - self._sent_bytes)
        taken = [self._waiting.popleft()]
        size = size_of(taken[0])
        while self._waiting and len(taken) < settings.frame_payloads_max:
            more = size_of(self._waiting[0])
            if size + more > most:
                break
            size += more
            taken.append(self._waiting.popleft())
        self._waiting_bytes -= size
        return tuple(taken), size

    def _frame(self, number: int, payloads: tuple[Payload, ...]) -> SessionFrame:
        assert self._session is not None
        mine, theirs = self._session
        busy = 0.0 if number else self._busy_seconds
        return SessionFrame(mine, theirs, number, self._come, payloads, busy)

    # How a session begins.

    def _offer_anew(self, now: float) -> None:
        self._offer, self._offered = next(self._numbers), 0
        self._say_offer(now)

    def _say_offer(self, now: float) -> None:
        self._out.append(SessionHello(self._offer, 0))
        self._offered += 1
        self._offer_due = now + self._settings.offer_seconds

    def _hello(self, hello: SessionHello, now: float) -> bool:
        if self._session is not None and hello.mine == self._session[1]:
            self._owes = True  # the other end may not know yet that the session began
            return False
        if hello.theirs == self._offer:
            self._begin(hello.mine, now)
            return True
        believed = 0 if self._session is None else self._session[0]
        if hello.theirs in (0, believed):  # else an answer to an offer of long ago
            self._answer(hello.mine, now)
        return False

    def _answer(self, theirs: int, now: float) -> None:
        if now < self._answer_due:
            return  # two ends that answer each other's answers would never end
        self._answer_due = now + self._settings.answer_seconds
        self._out.append(SessionHello(self._offer, theirs))

    def _begin(self, theirs: int, now: float) -> None:
        self.sessions += 1
        self._session = (self._offer, theirs)  # of each number there is one session at most
        self._offer = next(self._numbers)
        self._reset(now)
        self._owes = True

    def _astray(self, frame: SessionFrame, now: float) -> None:
        """A frame of no session: late, or of an end that believes in one that is over."""
        if self._session is not None and frame.mine != self._session[1]:
            self._answer(frame.mine, now)

    # What happens in one.

    def _acknowledge(self, number: int, now: float) -> None:
        if number > self._last:
            raise PeerError("overlay.acknowledged", given=number, sent=self._last)
        if not (self._sent and self._sent[0].number <= number):
            return
        while self._sent and self._sent[0].number <= number:
            sent = self._sent.popleft()
            self._sent_bytes -= sent.size
            if not sent.is_resent:  # else it is not known which one was acknowledged
                took = now - sent.at
                least = self._least_round_trip
                self._least_round_trip = took if least is None else min(took, least)
                self._round_trip += (took - self._round_trip) / (8 if self._round_trip else 1)
                self._see_speed(sent, now)
        if not self._is_probing:  # else the others were sent on a connection of before
            # The link is at work: what waits behind on a slow one is not lost (RFC 6298, 5.3).
            for sent in self._sent:
                sent.due = max(sent.due, now + sent.patience)

    def _see_speed(self, sent: _Sent, now: float) -> None:
        """A frame has been carried, and what was under way before it."""
        settings = self._settings
        if 2 * sent.ahead < settings.ahead_bytes_min:
            return  # too little to tell width from delay
        most = settings.window_frames * settings.frame_bytes_max
        carried = settings.ahead_seconds * sent.ahead / max(now - sent.at, 1e-6)
        self._ahead_bytes = max(min(carried, most), settings.ahead_bytes_min)

    def _take(self, frame: SessionFrame) -> list[Payload]:
        number = frame.number
        if number == 0:
            return []
        self._owes = True
        if number > self._come + self._settings.window_frames:
            raise PeerError("overlay.window", given=number, maximum=self._come)
        if number <= self._come:
            return []
        self._early[number] = frame.payloads
        taken: list[Payload] = []
        while (payloads := self._early.pop(self._come + 1, None)) is not None:
            self._come += 1
            taken.extend(payloads)
        return taken
