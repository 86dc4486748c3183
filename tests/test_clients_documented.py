"""The page about clients in Python says what works: its example is run against brokers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from pathcast.overlay.deliveries import InboxDelivery
from pathcast.transport.broker import broker_kind
from pathcast.transport.process import read_control, running
from patience import PATIENCE_SECONDS
from test_broker_process import address_of, settings_for

PAGE = Path(__file__).parent.parent / "docs" / "clients.md"

if not PAGE.is_file():
    pytest.skip("not in a clone: there is no docs/clients.md", allow_module_level=True)


def example() -> dict[str, Any]:
    """What the page defines."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)
    return names


def test_a_client_subscribes_publishes_and_follows_over_a_restart_of_the_broker(
    tmp_path: Path,
) -> None:
    names = example()
    subscribe: Callable[..., Awaitable[int]] = names["subscribe"]
    publish: Callable[..., Awaitable[list[str]]] = names["publish"]
    follow: Callable[..., AsyncIterator[tuple[int, InboxDelivery]]] = names["follow"]

    async def main() -> None:
        settings = settings_for(tmp_path, clients=[{"name": "ann", "token": "hers"}])
        async with running(settings, broker_kind("b", [])):
            bern = address_of(settings, "hers")
            after = await subscribe(bern, "ann", "dear", "//total[. > 100]")
            refused = await publish(
                bern, "ann", [("1", b"<order><total>120</total></order>"), ("2", b"<order>")]
            )
            assert [each.partition(":")[0] for each in refused] == ["2"]
            following = follow(bern, "ann", after)
            position, delivery = await anext(following)
            assert (delivery.message, delivery.results) == ("1", (b"<total>120</total>",))
            listen = read_control(settings.broker.directory).listen
            # A profile with a fault is told.
            with pytest.raises(ValueError, match="XPST0003"):
                await subscribe(bern, "ann", "bad", "//total[")
        again = settings.model_copy(
            update={"broker": settings.broker.model_copy(update={"listen": listen})}
        )
        async with running(again, broker_kind("b", [])):
            assert await publish(bern, "ann", [("3", b"<total>300</total>")]) == []
            async with asyncio.timeout(PATIENCE_SECONDS):
                then, delivery = await anext(following)
            assert (delivery.message, then > position) == ("3", True)
            await following.aclose()  # type: ignore[attr-defined]

    asyncio.run(main())
