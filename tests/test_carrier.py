"""A node in memory: order, disk, connections that come and go, bounds."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")

from flooding import CODEC, Count, Item, Publish, Taken, flooding
from killed_carriers import abandon
from pathcast.errors import DiskError, FrameError, UnavailableError
from pathcast.transport import carrier as carrier_module
from pathcast.transport.carrier import INBOX_BYTES_MAX, Arrivals, Carrier
from pathcast.transport.connection import (
    BESIDE_BYTES_MAX,
    FRAMES_ALONE_MAX,
    WINDOW,
    Connection,
)
from pathcast.transport.disk import REMEMBERED, Disk, Waiting
from pathcast.transport.frames import (
    ConnectionHello,
    Flow,
    Packet,
    PacketFrame,
    decode_frame,
    encode_frame,
)
from pathcast_lab.sim.memory_streams import MemoryNetwork, MemoryStream
from patience import PATIENCE_SECONDS, eventually

LINE = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}


def a_carrier(network: MemoryNetwork, name: str, directory: Path | None) -> Carrier:
    carrier = Carrier(name, flooding(name, LINE[name]), Disk(directory), network.dial_from(name))
    network.add(carrier)
    return carrier


def delivered(carrier: Carrier) -> list[str]:
    return [each.delivery_id for each in carrier.disk.waiting("reader", 0, 10**6)]


def test_messages_reach_all_over_two_hops_once() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        carriers = {name: a_carrier(network, name, None) for name in LINE}
        for name, carrier in carriers.items():
            await carrier.start([peer for peer in LINE[name] if name < peer])
        ids = [f"m{number}" for number in range(500)]
        for id in ids:
            await carriers["a"].submit("publisher", [Publish(id, b"x")])
        await eventually(lambda: all(len(delivered(c)) >= 500 for c in carriers.values()))
        for carrier in carriers.values():
            assert sorted(delivered(carrier)) == sorted(ids)
        await eventually(lambda: not any(sum(c.backlog().values()) for c in carriers.values()))
        await network.stop()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_when_carriers_are_killed_and_connections_cut(
    tmp_path: Path, seed: int
) -> None:
    # A kill forgets what is not on disk, at whatever point; cuts lose what is under way.
    chance = random.Random(seed)

    async def main() -> None:
        network = MemoryNetwork()
        for name in LINE:
            carrier = a_carrier(network, name, tmp_path / name)
            await carrier.start([peer for peer in LINE[name] if name < peer])
        acknowledged: list[str] = []

        async def publish() -> None:
            for number in range(300):
                id = f"m{number}"
                while True:
                    try:
                        async with asyncio.timeout(1.0):
                            await network.carriers["a"].submit("publisher", [Publish(id, b"x")])
                        break
                    except (UnavailableError, TimeoutError, RuntimeError):
                        await asyncio.sleep(0.005)
                acknowledged.append(id)

        publishing = asyncio.create_task(publish())
        for _ in range(8):
            await asyncio.sleep(chance.uniform(0.0, 0.05))
            if chance.random() < 0.4:
                one, other = chance.choice([("a", "b"), ("b", "c")])
                await network.cut(one, other)
                await asyncio.sleep(chance.uniform(0.0, 0.02))
                network.heal(one, other)
            else:
                name = chance.choice("abc")
                await abandon(network.carriers[name])
                carrier = a_carrier(network, name, tmp_path / name)
                await carrier.start([peer for peer in LINE[name] if name < peer])
        await publishing
        everywhere = network.carriers.values()
        await eventually(lambda: all(len(delivered(c)) >= 300 for c in everywhere))
        for carrier in everywhere:
            assert sorted(delivered(carrier)) == sorted(acknowledged)
        await network.stop()

    asyncio.run(main())


def test_what_is_sent_is_on_disk_before(tmp_path: Path) -> None:
    # The disk is slowed down: whatever a neighbour hears has to be in it by then.
    async def main() -> None:
        network = MemoryNetwork()
        a, b = a_carrier(network, "a", None), a_carrier(network, "b", None)
        heard: list[bool] = []
        commit, receive = a.disk.commit, b.node.receive

        def slowly(*args: object) -> dict[str, list[Waiting]]:
            import time

            time.sleep(0.02)
            return commit(*args)  # type: ignore[arg-type]

        def hearing(sender: str, message: object, now: float):  # type: ignore[no-untyped-def]
            if isinstance(message, Item):
                heard.append(f"seen/{message.id}" in a.disk.saved())
            return receive(sender, message, now)

        a.disk.commit = slowly  # type: ignore
        b.node.receive = hearing
        await a.start(["b"])
        await b.start()
        await eventually(lambda: "b" in a.neighbours.connections)
        await asyncio.gather(*(a.submit("p", [Publish(f"m{n}", b"")]) for n in range(50)))
        await eventually(lambda: len(heard) >= 50)
        assert all(heard)
        await network.stop()

    asyncio.run(main())


@pytest.mark.parametrize("clients", [1, 1000])
def test_many_effects_are_kept_with_one_wait(clients: int) -> None:
    """Also those of many calls of one client: else each of them would wait for the disk alone."""

    async def main() -> None:
        network = MemoryNetwork()
        a = a_carrier(network, "a", None)
        await a.start()
        commits = []
        commit = a.disk.commit
        a.disk.commit = lambda *args: commits.append(1) or commit(*args)  # type: ignore
        calls = (a.submit(f"p{n % clients}", [Publish(f"m{n}", b"")]) for n in range(1000))
        await asyncio.gather(*calls)
        assert len(commits) <= 5
        assert len(a.disk.saved()) == 2000
        await network.stop()

    asyncio.run(main())


async def an_open_connection(credit: int) -> tuple[Connection, MemoryStream, asyncio.Task[None]]:
    """A connection of a to b that runs, the stream at b's end, and its task."""
    here, there = MemoryStream.pair()

    async def take(peer: str, taken: object) -> None: ...

    connection = Connection("a", "b", here, CODEC, take, lambda peer: True)
    await there.send(encode_frame(ConnectionHello("b", credit)))
    await connection.open()
    await there.receive()
    return connection, there, asyncio.create_task(connection.run())


def test_frames_are_full_under_load_and_leave_at_once_when_idle() -> None:
    async def main() -> None:
        connection, there, running = await an_open_connection(credit=10**6)
        connection.offer(Packet(Flow.MESSAGE, b"one"))
        data = await there.receive()
        assert data is not None
        assert len(decode_frame(data, "a").packets) == 1
        for _ in range(5000):
            connection.offer(Packet(Flow.MESSAGE, b"x" * 100))
        sizes: list[int] = []
        while sum(sizes) < 5000:
            data = await there.receive()
            assert data is not None
            sizes.append(len(decode_frame(data, "a").packets))
        assert min(sizes[:-1]) >= 50
        await connection.close()
        await running

    asyncio.run(main())


def test_what_is_urgent_goes_before_a_long_message_and_does_not_keep_it_back() -> None:
    """A slow link brings a frame when all of it is there: a word of life is not to wait for it."""

    async def main() -> None:
        connection, there, running = await an_open_connection(credit=10**6)
        long = Packet(Flow.MESSAGE, bytes(BESIDE_BYTES_MAX + 1))
        found = []
        for _ in range(3 * FRAMES_ALONE_MAX):
            # As many more are offered as are sent: something urgent is always there.
            connection.offer(Packet(Flow.CONTROL, b"beat"))
            connection.offer(long)
            data = await there.receive()
            assert data is not None
            found.append([each.flow for each in decode_frame(data, "a").packets])
        assert found[0] == [Flow.CONTROL]
        assert sum(Flow.MESSAGE in flows for flows in found) >= 2
        await connection.close()
        with contextlib.suppress(UnavailableError):  # it was about to send
            await running

    asyncio.run(main())


def test_a_neighbour_gets_no_more_messages_than_it_gave_credit_for_but_all_control() -> None:
    async def main() -> None:
        connection, there, running = await an_open_connection(credit=3)
        for _ in range(10):
            connection.offer(Packet(Flow.MESSAGE, b"m"))
        connection.offer(Packet(Flow.CONTROL, b"c"))
        got: list[Packet] = []

        async def get(count: int) -> list[Flow]:
            while len(got) < count:
                data = await there.receive()
                assert data is not None
                got.extend(decode_frame(data, "a").packets)
            return sorted(packet.flow for packet in got)

        assert await get(4) == [Flow.CONTROL, Flow.MESSAGE, Flow.MESSAGE, Flow.MESSAGE]
        await asyncio.sleep(0.02)
        assert connection.queued == 7
        await there.send(encode_frame(PacketFrame((), 5)))
        assert len(await get(6)) == 6
        assert connection.queued == 5
        await connection.close()
        await running

    asyncio.run(main())


def test_who_sends_more_than_the_credit_is_cut_off() -> None:
    async def main() -> None:
        here, there = MemoryStream.pair()

        async def take(peer: str, taken: object) -> None: ...

        connection = Connection("a", "b", here, CODEC, take, lambda peer: False)
        await there.send(encode_frame(ConnectionHello("b", 1)))
        await connection.open()
        body = msgspec.msgpack.encode(Item("i", b""))
        running = asyncio.create_task(connection.run())
        for _ in range(WINDOW // 1000 + 1):
            await there.send(encode_frame(PacketFrame((Packet(Flow.MESSAGE, body),) * 1000, 1)))
        with pytest.raises(FrameError) as caught:
            await running
        assert caught.value.code == "frame.credit"

    asyncio.run(main())


GARBAGE = [
    b"",
    b"\xff",
    b"GET / HTTP/1.1\r\n\r\n",
    encode_frame(PacketFrame((Packet(Flow.CONTROL, b"garbage"),), 1)),
    encode_frame(PacketFrame((Packet(Flow.MESSAGE, msgspec.msgpack.encode(Taken("x"))),), 1)),
    encode_frame(PacketFrame((Packet(Flow.CONTROL, msgspec.msgpack.encode({"type": "Os"})),), 1)),
    msgspec.msgpack.encode([[[9, b""]], 1]),
    msgspec.msgpack.encode([[[0, b""]] * 1025, 1]),
    msgspec.msgpack.encode([[], -1]),
    msgspec.msgpack.encode([[], 2**60]),
    b"\x91" * 100_000,
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_a_peer_that_sends_garbage_is_cut_off_and_others_are_not(garbage: bytes) -> None:
    async def main() -> None:
        network = MemoryNetwork()
        b, c = a_carrier(network, "b", None), a_carrier(network, "c", None)
        await b.start(["c"])
        await c.start()
        await eventually(lambda: "c" in b.neighbours.connections)
        kept = b.neighbours.connections["c"]
        stream = await network.dial_from("a")("b")
        await stream.send(encode_frame(ConnectionHello("a", 10)))
        await eventually(lambda: "a" in b.neighbours.connections)
        await stream.send(garbage)
        await eventually(lambda: "a" not in b.neighbours.connections)
        assert isinstance(b.neighbours.refusals["a"], FrameError)
        assert b.neighbours.connections["c"] is kept
        await b.submit("p", [Publish("m", b"")])
        await eventually(lambda: delivered(c) == ["m"])
        await network.stop()

    asyncio.run(main())


def test_random_bytes_are_frames_or_frame_errors() -> None:
    chance = random.Random(5)
    real = encode_frame(PacketFrame((CODEC.packet(Item("i", b"body")),) * 3, 7))
    counts = {"frame": 0, "error": 0}
    for _ in range(10_000):
        data = bytearray(real if chance.random() < 0.8 else chance.randbytes(40))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            frame = decode_frame(bytes(data), "x")
            for packet in frame.packets:
                CODEC.message(packet, "x")
            counts["frame"] += 1
        except FrameError:
            counts["error"] += 1
    assert min(counts.values()) > 200


def test_publishers_wait_when_neighbours_do_not_take_what_there_is() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        a = Carrier("a", flooding("a", ["b"]), Disk(None), network.dial_from("a"), backlog_max=20)
        network.add(a)
        b = a_carrier(network, "b", None)
        await a.start(["b"])
        for number in range(20):
            await a.submit("p", [Publish(f"m{number}", b"")])
        with pytest.raises(UnavailableError) as caught:
            await a.submit("p", [Publish("more", b"")])
        assert caught.value.code == "broker.full"
        await b.start()
        await eventually(lambda: a.backlog()["b"] == 0)
        await a.submit("p", [Publish("more", b"")])
        await network.stop()

    asyncio.run(main())


def test_a_disk_that_fails_stops_the_carrier_before_it_speaks() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        a, b = a_carrier(network, "a", None), a_carrier(network, "b", None)
        await a.start(["b"])
        await b.start()
        await eventually(lambda: "b" in a.neighbours.connections)
        a.disk._base.execute("drop table saved")
        with pytest.raises(DiskError):
            await a.submit("p", [Publish("m", b"")])
        with pytest.raises(DiskError):
            await a.run()
        await asyncio.sleep(0.05)
        assert delivered(b) == []
        await network.stop()

    asyncio.run(main())


def test_a_directory_has_one_owner_and_a_format(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "d")
    with pytest.raises(DiskError) as caught:
        Disk(tmp_path / "d")
    assert caught.value.code == "disk.taken"
    disk.commit({"k": b"v"})
    disk._base.execute("pragma user_version = 99")
    disk.close()
    with pytest.raises(DiskError) as caught:
        Disk(tmp_path / "d")
    assert caught.value.code == "disk.format"
    (tmp_path / "d" / "broker.sqlite").write_bytes(b"no base" * 5000)
    with pytest.raises(DiskError) as caught:
        Disk(tmp_path / "d")
    assert caught.value.code == "disk.damaged"


def test_an_inbox_remembers_ids_past_their_acknowledgement() -> None:
    disk = Disk(None)
    disk.commit({}, [("ann", f"d{n}", b"x") for n in range(10)])
    disk.commit({}, acknowledged={"ann": 7})
    disk.commit({}, [("ann", "d3", b"x"), ("ann", "d10", b"x"), ("bob", "d3", b"x")])
    assert [each.delivery_id for each in disk.waiting("ann", 0, 99)] == ["d7", "d8", "d9", "d10"]
    assert {name: each.waiting for name, each in disk.inboxes().items()} == {"ann": 4, "bob": 1}
    disk.commit({}, acknowledged={"ann": 2})
    assert disk.cursor("ann") == 7
    disk.commit({}, acknowledged={"ann": 10**9})
    assert (disk.cursor("ann"), disk.inboxes()["ann"].waiting) == (11, 0)
    assert REMEMBERED > 1000
    with pytest.raises(ZeroDivisionError):
        disk.commit({}, (("ann", f"e{n}", bytes(1 // (3 - n))) for n in range(9)))
    disk.commit({}, [("ann", "e0", b"x")])
    assert [each.position for each in disk.waiting("ann", 0, 99)] == [12]
    disk.close()


def test_calls_of_one_client_at_once_get_each_its_own_answer(tmp_path: Path) -> None:
    async def main() -> None:
        network = MemoryNetwork()
        a = a_carrier(network, "a", tmp_path / "a")
        await a.start()

        async def ask(number: int) -> object:
            await a.submit("ann", [Publish(f"m{number}", b"")])
            return await a.ask("ann", Count(number), PATIENCE_SECONDS)

        # The node answers with what it has seen by then: all have to be answered, in turn.
        answers = await asyncio.gather(*(ask(number) for number in range(30)))
        seen = [each.seen for each in answers if isinstance(each, Count)]
        assert len(seen) == 30
        assert seen == sorted(seen)
        await network.stop()

    asyncio.run(main())


def test_what_has_come_into_an_inbox_is_given_once_and_in_order() -> None:
    # Whoever follows an inbox gets it from memory if nothing lies between, and else from the disk.
    arrivals = Arrivals()
    arrivals.put([Waiting(3, "c", b"3"), Waiting(4, "d", b"4")])
    arrivals.put([Waiting(5, "e", b"5")])
    assert [one.position for one in arrivals.take(3)] == [4, 5]
    assert arrivals.take(5) == []
    arrivals.put([Waiting(7, "g", b"7")])
    assert arrivals.take(5) == []  # 6 is missing
    arrivals.put([Waiting(8, "h", bytes(INBOX_BYTES_MAX + 1))])
    arrivals.put([Waiting(9, "i", b"9")])
    assert arrivals.take(7) == []
    arrivals.put([Waiting(10, "j", b"10")])
    assert [one.position for one in arrivals.take(9)] == [10]


def test_acknowledgements_are_not_kept_with_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrier_module, "ACKNOWLEDGE_SECONDS", 3600.0)

    async def main() -> None:
        carrier = a_carrier(MemoryNetwork(), "a", None)
        carrier.disk.commit({}, [("ann", f"d{n}", b"x") for n in range(9)])
        await carrier.start()
        carrier.acknowledge("ann", 6)
        for number in range(3):
            await carrier.submit("pub", [Publish(f"m{number}", b"x")])
            assert carrier.disk.cursor("ann") == 0
        keeping = asyncio.create_task(carrier.kept())
        await asyncio.sleep(0)
        # Another end of the same inbox, which is not so far: it takes nothing back.
        carrier.acknowledge("ann", 2)
        await asyncio.gather(keeping, carrier.kept())
        assert carrier.disk.cursor("ann") == 6
        await carrier.stop()

    asyncio.run(main())


def test_an_acknowledgement_waits_for_others_and_is_kept_with_them() -> None:
    async def main() -> None:
        network = MemoryNetwork()
        carrier = a_carrier(network, "a", None)
        commits: list[object] = []
        commit = carrier.disk.commit
        carrier.disk.commit = lambda *given: commits.append(given) or commit(*given)  # type: ignore
        carrier.disk.commit({}, [("ann", f"d{n}", b"x") for n in range(9)])
        await carrier.start()
        await carrier.kept()
        before = len(commits)
        for position in (3, 5, 4):
            carrier.acknowledge("ann", position)
        await carrier.kept()
        assert (len(commits) - before, carrier.disk.cursor("ann")) == (1, 5)
        carrier.acknowledge("ann", 7)
        assert carrier.disk.cursor("ann") == 5
        await eventually(lambda: carrier.disk.cursor("ann") >= 7)
        await carrier.stop()
        with pytest.raises(UnavailableError):
            await carrier.kept()
        # Whoever follows an inbox may ask for more at this moment.
        with pytest.raises(UnavailableError):
            await carrier.on_disk(carrier.disk.last, "ann")

    asyncio.run(main())


def test_what_was_committed_stays_whenever_the_log_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathcast.transport.disk.CHECKPOINT_BYTES", 20_000)
    disk = Disk(tmp_path / "d")
    for n in range(60):
        disk.commit({f"key{n % 7}": bytes([n]) * 3000}, [("ann", f"d{n}", bytes(5000))])
    disk.close()
    disk = Disk(tmp_path / "d")
    assert {key: value[0] for key, value in disk.saved().items()} == {
        f"key{n % 7}": n for n in range(53, 60)
    }
    assert [each.position for each in disk.waiting("ann", 0, 99)] == list(range(1, 61))
    disk.close()
