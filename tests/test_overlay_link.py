"""A reliable link: in order, once, over sessions that end, exhaustively and at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec")

from pathcast.errors import PeerError
from pathcast.overlay.link import LinkSettings, NeighbourLink
from pathcast.overlay.messages import (
    Interest,
    MessagePart,
    SessionFrame,
    SessionHello,
    Settled,
    decoded,
    encoded,
)
from pathcast.transport.connection import BESIDE_BYTES_MAX
from pathcast_lab.sim.ablations import without

LENGTHS = [10, 30_000, 30_000, 30_000, 30_000, 1, 60_000, 65_000, 2, 3] * 3


def numbers(start: int) -> Iterator[int]:
    return iter(range(start, start + 1_000_000))


class Pair:
    """Two ends, and everything that was ever sent between them: nothing is too old to arrive."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.settings = LinkSettings(window_frames=4, frame_payloads_max=2)
        self.lives = itertools.count(1)
        self.now = 0.0
        self.ends = [self.begun(), self.begun()]
        self.sent: list[list[list[int]]] = [[[]], [[]]]
        self.got: list[list[list[int]]] = [[[]], [[]]]
        self.on_the_way: list[list[SessionHello | SessionFrame]] = [[], []]
        self.said = itertools.count(1)

    def begun(self) -> NeighbourLink:
        return NeighbourLink(numbers(next(self.lives) * 1_000_000_000), self.settings)

    def flush(self) -> None:
        for n, end in enumerate(self.ends):
            self.on_the_way[1 - n] += [decoded(encoded(one)) for one in end.flush(self.now)]

    def arrive(self, n: int, which: int, keep: bool) -> None:
        message = self.on_the_way[n][which] if keep else self.on_the_way[n].pop(which)
        received = self.ends[n].receive(message, self.now)
        if received.began:
            self.got[n].append([])
            self.sent[n].append([])
        self.got[n][-1] += [one.number for one in received.payloads if isinstance(one, Settled)]

    def say(self, n: int) -> None:
        if self.ends[n].is_up:
            number = next(self.said)
            self.sent[n][-1].append(number)
            self.ends[n].send(Settled("", number))

    def tick(self) -> None:
        self.now += 0.3
        for n, end in enumerate(self.ends):
            if end.tick(self.now):
                self.sent[n].append([])

    def restart(self, n: int) -> None:
        self.ends[n] = self.begun()
        self.got[n].append([])
        self.sent[n].append([])

    def check(self, n: int) -> None:
        """What an end got in a session is a beginning of what the other said in one."""
        for got in self.got[n]:
            if got:
                said = next(one for one in self.sent[1 - n] if got[0] in one)
                assert got == said[: len(got)], (got, said)


def run(seed: int) -> None:
    pair = Pair(seed)
    draw = pair.draw
    for _ in range(250):
        pair.flush()
        kind = draw.random()
        n = draw.randrange(2)
        if kind < 0.55 and pair.on_the_way[n]:
            which = draw.randrange(min(len(pair.on_the_way[n]), draw.choice([1, 3, 50])))
            pair.arrive(n, which, keep=draw.random() < 0.2)
        elif kind < 0.6 and pair.on_the_way[n]:
            pair.on_the_way[n].pop(draw.randrange(len(pair.on_the_way[n])))
        elif kind < 0.8:
            pair.say(n)
        elif kind < 0.985:
            pair.tick()
        else:
            pair.restart(n)
        pair.check(0)
        pair.check(1)
    for _ in range(200):  # and at the end everything arrives
        pair.flush()
        for n in (0, 1):
            while pair.on_the_way[n]:
                pair.arrive(n, 0, keep=False)
        pair.tick()
    pair.check(0)
    pair.check(1)
    assert all(end.is_up for end in pair.ends), "the two ends found no common session"
    for n in (0, 1):
        assert pair.got[n][-1] == pair.sent[1 - n][-1], "something of the last session is missing"


def run_all(seeds: range) -> None:
    for seed in seeds:
        run(seed)


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 200, 50)])
def test_what_comes_is_what_was_said_in_order_and_once(seeds: range) -> None:
    for seed in seeds:
        run(seed)


@pytest.mark.nightly
def test_what_comes_is_what_was_said_at_length() -> None:
    for seed in range(200, 20_000):
        run(seed)


@pytest.mark.parametrize("name", ["sessions", "resend", "deduplicate", "order"])
def test_each_safeguard_of_a_link_is_missed(name: str) -> None:
    with without(name), pytest.raises((AssertionError, StopIteration, PeerError)):
        run_all(range(300))


def test_a_frame_is_no_longer_than_one_long_payload_or_the_bound() -> None:
    """A carrier refuses what is too long, and a link would say it again for ever."""
    settings = LinkSettings(frame_bytes_max=100_000, ahead_bytes_min=1 << 24)
    a, b = NeighbourLink(numbers(10), settings), NeighbourLink(numbers(1_000), settings)
    for hello in a.flush(0.0):
        b.receive(hello, 0.0)
    for hello in b.flush(0.0):
        a.receive(hello, 0.0)
    said = [Interest("", n, False, ("e" * length,), ()) for n, length in enumerate(LENGTHS, 1)]
    for one in said:
        a.send(one)
    frames = [each for each in a.flush(0.0) if isinstance(each, SessionFrame)]
    sizes = [len(encoded(each)) for each in frames]
    assert all(
        size < 101_000 or len(frame.payloads) == 1
        for size, frame in zip(sizes, frames, strict=True)
    )
    assert len(frames) < len(said)
    assert [one for frame in frames for one in b.receive(frame, 0.0).payloads] == said


def test_a_session_ends_with_silence_and_with_too_much_that_waits() -> None:
    pair = Pair(1)
    for _ in range(4):
        pair.flush()
        for n in (0, 1):
            while pair.on_the_way[n]:
                pair.arrive(n, 0, keep=False)
    end = pair.ends[0]
    assert end.is_up
    assert not end.tick(3.9)
    assert end.tick(4.1)
    assert not end.is_up
    other = pair.ends[1]
    for _ in range(pair.settings.waiting_max + 1):
        other.send(Settled("", 1))
    assert other.tick(0.1)
    assert not other.is_up


@pytest.mark.parametrize(
    ("number", "acknowledged", "code"),
    [(1000, 0, "overlay.window"), (0, 7, "overlay.acknowledged")],
)
def test_a_frame_that_cannot_be_is_refused(number: int, acknowledged: int, code: str) -> None:
    a, b = NeighbourLink(numbers(10)), NeighbourLink(numbers(1000))
    b.receive(a.flush(0.0)[0], 0.0)
    _, answer = b.flush(0.0)
    assert isinstance(answer, SessionHello)
    a.receive(answer, 0.0)
    with pytest.raises(PeerError) as refusal:
        a.receive(SessionFrame(answer.mine, answer.theirs, number, acknowledged, ()), 0.0)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        encoded(SessionHello(1, 2))[:-1],
        b"\x83\xa4type\xa5Hello\xa4mine\xff\xa6theirs\x00",
    ],
)
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    with pytest.raises(PeerError) as refusal:
        decoded(data)
    assert refusal.value.code == "overlay.frame"


def test_what_waits_on_a_slow_link_is_not_sent_twice() -> None:
    """Each frame takes half of the first patience: ten wait for longer, and are not lost."""
    a, b = NeighbourLink(iter(range(10, 20))), NeighbourLink(iter(range(20, 30)))
    now = 0.0
    for _ in range(3):
        for one, other in ((a, b), (b, a)):
            for message in one.flush(now):
                other.receive(message, now)
    assert a.is_up
    assert b.is_up
    sent = []
    for number in range(10):
        a.send(Settled("", number))
        sent += a.flush(now)
    for frame in sent:
        now += 0.15
        b.receive(frame, now)
        for answer in b.flush(now):
            a.receive(answer, now)
        assert not [one for one in a.flush(now) if isinstance(one, SessionFrame) and one.number]
    now += 0.3
    a.send(Settled("", 10))
    [last] = [one for one in a.flush(now) if isinstance(one, SessionFrame)]
    [again] = [one for one in a.flush(now + 2.01) if isinstance(one, SessionFrame) and one.number]
    assert again.number == last.number, "what is not acknowledged is sent again"


def _joined(settings: LinkSettings) -> tuple[NeighbourLink, NeighbourLink]:
    """Two ends with a session."""
    a, b = NeighbourLink(numbers(10), settings), NeighbourLink(numbers(10_000), settings)
    for _ in range(3):
        for one, other in ((a, b), (b, a)):
            for message in one.flush(0.0):
                other.receive(message, 0.0)
    assert a.is_up
    assert b.is_up
    return a, b


def test_a_connection_to_another_life_is_found_out_with_one_frame() -> None:
    """Else all that was under way to a broker that was killed goes to the next life of it."""
    a, b = _joined(LinkSettings(window_frames=8))
    for number in range(1, 6):
        a.send(Settled("", number))
        a.flush(1.0)
    a.connected(2.0)
    a.send(Settled("", 6))
    [probe] = a.flush(2.0)
    assert isinstance(probe, SessionFrame)
    assert (probe.number, a.has_room) == (1, False)
    b.receive(probe, 2.0)
    for message in b.flush(2.0):
        a.receive(message, 2.0)
    rest = [one for one in a.flush(2.0) if isinstance(one, SessionFrame)]
    assert [one.number for one in rest] == [2, 3, 4, 5, 6]
    got = [one for frame in rest for one in b.receive(frame, 2.0).payloads]
    assert got == [Settled("", number) for number in range(2, 7)]
    assert a.resent == 5


def test_patience_is_more_than_acknowledgements_take() -> None:
    """Else a neighbour that is busy for a second is sent everything twice, and is busier."""
    a, b = _joined(LinkSettings(resend_seconds=0.3, resend_seconds_max=20.0))
    now = 1.0
    for number in range(1, 40):
        a.send(Settled("", number))
        [frame] = [one for one in a.flush(now) if isinstance(one, SessionFrame)]
        now += 1.0  # the other end is slow
        b.receive(frame, now)
        for message in b.flush(now):
            a.receive(message, now)
    before = a.resent
    a.send(Settled("", 40))
    a.flush(now)
    assert [one for one in a.flush(now + 2.0) if isinstance(one, SessionFrame) and one.number] == []
    assert a.resent == before
    a.flush(now + 4.0)
    assert a.resent == before + 1


WITHOUT_MEASURE = LinkSettings(ahead_bytes_min=1 << 30, bytes_per_second_min=1e12)
"""As much under way as the window has, and as much patience as with short frames."""


def carried(width: float, settings: LinkSettings, total: int = 10) -> tuple[float, int, int]:
    """Long messages over a line of so many bytes a second: seconds, sessions, frames sent again.

    As a connection does, the line takes up to 256 KiB of what waits for it at once, which is there
    when all of it is; what is short goes first, and by itself.
    """
    ends = [NeighbourLink(numbers(1), settings), NeighbourLink(numbers(10_000_000), settings)]
    waiting: list[list[SessionHello | SessionFrame]] = [[], []]
    under_way: list[tuple[float, list[SessionHello | SessionFrame]] | None] = [None, None]
    came, now = 0, 0.0
    is_asked = False
    while came < total:
        now += 0.05
        assert now < 300, "it never comes"
        for n, end in enumerate(ends):
            end.tick(now)
            if ends[0].is_up and not is_asked:
                is_asked = True
                for number in range(total):
                    ends[0].send(MessagePart("a", 1, 1, 1, number << 16, bytes(1 << 16)))
            waiting[n] += end.flush(now)
            line = under_way[n]
            if line is not None and now >= line[0]:
                for one in line[1]:
                    received = ends[1 - n].receive(one, now)
                    came += sum(isinstance(each, MessagePart) for each in received.payloads)
                    is_asked = is_asked and not received.began  # all is said again
                    came = 0 if received.began else came
                under_way[n] = line = None
            if line is None and waiting[n]:
                waiting[n].sort(key=_is_long)
                taken = [waiting[n].pop(0)]
                while (
                    waiting[n]
                    and _is_long(taken[0]) == _is_long(waiting[n][0])
                    and sum(map(_size, taken)) + _size(waiting[n][0]) <= 1 << 18
                ):
                    taken.append(waiting[n].pop(0))
                under_way[n] = (now + sum(map(_size, taken)) / width, taken)
    return now, ends[0].sessions, ends[0].resent


def _size(message: SessionHello | SessionFrame) -> int:
    return len(encoded(message))


def _is_long(message: SessionHello | SessionFrame) -> bool:
    return _size(message) > BESIDE_BYTES_MAX


@pytest.mark.parametrize(
    "width", [4_000, 8_000, 18_000, 20_000, 50_000, 125_000, 1_000_000, 100_000_000]
)
def test_a_link_carries_long_messages_however_slow_it_is(width: float) -> None:
    seconds, sessions, resent = carried(width, LinkSettings())
    assert sessions == 1
    assert resent == 0
    assert seconds < 1.1 * (10 << 16) / width + 2.0


def test_that_is_missed_by_a_link_that_sends_all_it_has() -> None:
    with pytest.raises(AssertionError, match="it never comes"):
        carried(20_000, WITHOUT_MEASURE)


def test_that_is_missed_by_an_end_that_is_not_told_for_how_long_the_link_is_busy() -> None:
    with pytest.raises(AssertionError, match="it never comes"):
        carried(4_000, LinkSettings(bytes_per_second_min=1e12))


def test_an_end_that_was_told_of_long_frames_is_patient_for_so_long_and_no_longer() -> None:
    settings = LinkSettings()
    a, b = _joined(settings)
    assert not b.tick(settings.silence_seconds)
    a.send(MessagePart("a", 1, 1, 1, 0, bytes(1 << 16)))
    told, frame = a.flush(1.0)
    assert isinstance(told, SessionFrame)
    assert isinstance(frame, SessionFrame)
    assert (told.number, told.payloads, frame.number) == (0, (), 1)
    assert told.busy_seconds == pytest.approx((1 << 16) / settings.bytes_per_second_min, rel=0.01)
    b.receive(told, 1.0)
    until = 1.0 + settings.silence_seconds + told.busy_seconds
    assert not b.tick(until - 0.1)
    assert b.is_up
    # What comes meanwhile proves that it lives, and that no more is under way ends the patience.
    b.receive(frame, 17.0)
    for answer in b.flush(17.0):
        a.receive(answer, 17.0)
    assert not b.tick(until - 0.1)
    [beat] = a.flush(18.5)
    assert isinstance(beat, SessionFrame)
    assert beat.busy_seconds == 0.0
    b.receive(beat, 18.5)
    assert not b.tick(18.5 + settings.silence_seconds)
    assert b.tick(18.6 + settings.silence_seconds)


@pytest.mark.parametrize("seconds", [-1.0, 1e9, float("nan"), float("inf")])
def test_nobody_is_told_to_be_patient_for_ever(seconds: float) -> None:
    with pytest.raises(PeerError):
        decoded(encoded(SessionFrame(1, 2, 0, 0, (), seconds)))
