"""`pathcast broker dead-letters`: what the webhooks of a broker did not take."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer

from pathcast.cli.console import answers, extra, say, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.net_client import delivery_row

if TYPE_CHECKING:
    from pathcast.transport.client import BrokerClient

POSITIONS_AT_ONCE: Final = 10_000

WHAT: Final = ("message", "subscription", "notice")
"""The parts of a delivery that are printed."""

Settled = Literal["retry", "drop"]


class _Row(NamedTuple):
    subscriber: str
    position: int
    told: dict[str, Any]
    reason: str


async def dead_letters(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="What a broker that runs here keeps.")
    ],
    messages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MESSAGE]...", help="Ids of messages. Default: all.", show_default=False
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--subscriber", metavar="NAME", help="Only those of one client.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Have them posted again instead of listing them.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Give them up: they are not kept any more.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object a dead letter, one a line.")
    ] = False,
) -> ExitCode:
    """List what the webhooks of a broker did not take; have it posted again, or drop it.

    A delivery becomes a dead letter when its webhook refuses it, or was tried
    too often. --retry puts it behind what waits for the webhook, with the
    delivery id that it had:

        pathcast broker dead-letters network/bern --subscriber ann --retry
    """
    if retry and drop:
        raise typer.BadParameter("--retry or --drop, not both")
    what: Settled | None = "retry" if retry else "drop" if drop else None
    with extra("net", "pathcast broker dead-letters"):
        from pathcast.transport.broker_requests import CODEC
        from pathcast.transport.process import operator_of
    wanted = set(messages or ())
    async with operator_of(directory, CODEC) as client:
        found, missing = await _found(client, wanted, subscriber)
        for message in missing:
            say_error(f"{message}: not among the dead letters")
        if what is None:
            _print_all(found, as_json)
            return ExitCode.REFUSED if missing else ExitCode.OK
        are_done = await _settle(client, what, found)
        return ExitCode.OK if are_done and not missing else ExitCode.REFUSED


async def _found(
    client: BrokerClient, wanted: set[str], subscriber: str | None
) -> tuple[list[_Row], list[str]]:
    """Dead letters that are asked for, without their results; and messages that have none."""
    found: list[_Row] = []
    async for letter in client.dead_letters():
        row = delivery_row(letter.body)
        if subscriber in (None, letter.subscriber) and (not wanted or row.get("message") in wanted):
            found.append(_Row(letter.subscriber, letter.position, row, letter.reason))
    return found, sorted(wanted.difference(str(each.told.get("message")) for each in found))


async def _settle(client: BrokerClient, what: Settled, found: list[_Row]) -> bool:
    """Whether all were posted again, or dropped."""
    positions: dict[str, list[int]] = defaultdict(list)
    for each in found:
        positions[each.subscriber].append(each.position)
    done = 0
    for name, of_one in positions.items():
        for at in range(0, len(of_one), POSITIONS_AT_ONCE):
            done += await client.settle_letters(what, name, of_one[at : at + POSITIONS_AT_ONCE])
    told = f"asked for: {done}; they are posted behind what waits"
    say(told if what == "retry" else f"dropped: {done}")
    if done < len(found):
        say_error(f"{len(found) - done} find no room behind what waits, and stay dead letters")
    return done == len(found)


def _print_all(found: list[_Row], as_json: bool) -> None:
    for each in found:
        if as_json:
            write_json_line(each._asdict())
            continue
        told = ", ".join(str(each.told[key]) for key in WHAT if key in each.told)
        place = f"position {each.position} of {each.subscriber}"
        answers().print(f"{place}: {told}: refused: {each.reason}")
    counts = Counter(each.subscriber for each in found)
    told = "".join(f", {name}: {count}" for name, count in sorted(counts.items()))
    say(f"dead letters: {len(found)}{told}")
