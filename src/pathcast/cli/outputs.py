"""`pathcast inbox` and `pathcast why`: what a pipeline has written, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pathcast.cli.console import answers, extra, say, say_warning, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import Format, FormatOption, existing
from pathcast.cli.queries import read_bytes
from pathcast.errors import ConfigError
from pathcast.query.near_names import near

if TYPE_CHECKING:
    from pathcast.spark import PipelineSettings, Storage

PIPELINE_FILE = "pipeline.toml"

SUBSCRIBERS_SHOWN = 10
"""Names that are shown where none is like the one that was given."""

PlaceOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="PLACE",
        help="The output of a pipeline, a directory or a URL, or the pipeline's TOML file. "
        "Default: that of pipeline.toml in this directory.",
        show_default=False,
    ),
]


def inbox(
    subscriber: Annotated[
        str, typer.Argument(metavar="SUBSCRIBER", help="Whose deliveries to print.")
    ],
    output: PlaceOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            metavar="BATCH",
            help="Only micro-batches after this one: batch_id of the last row that was seen.",
            show_default=False,
        ),
    ] = None,
) -> ExitCode:
    """Print what was delivered to a subscriber, one line of JSON a delivery.

    A name that nobody has subscribed under is an error, unless something was
    delivered to it before; with --follow, a warning.

    Deliveries come in the order of micro-batches. With --follow, those that
    are there, then those that come; a program that remembers the batch_id of
    the last line goes on with --after, and misses nothing.

        pathcast inbox ann --output delivered | jq -r .fragment
        pathcast inbox ann --follow --after 41
    """
    with extra("spark", "pathcast inbox"):
        from pathcast.spark import follow as following
        from pathcast.spark.json_lines import as_json_rows
        from pathcast.spark.outputs import KEPT, kept_of, since
    place, _ = find_output(output)
    if follow:
        # Who is waited for may be about to subscribe.
        told = _unknown(place, subscriber)
        if told is not None:
            say_warning(told)
    for kept in kept_of(place, subscriber):
        say_warning(f"{kept.query_id}: {KEPT}: {kept.in_force}; {kept.told}")
    tables = (
        following(place, "inboxes", subscriber=subscriber, after=after)
        if follow
        else since(place, "inboxes", subscriber=subscriber, after=after)
    )
    is_empty = True
    for _, rows in tables:
        is_empty = False
        for row in as_json_rows(rows):
            write_json_line(row)
        # A reader behind a pipe sees a micro-batch when it is there.
        typer.get_text_stream("stdout").flush()
    if is_empty:
        told = _unknown(place, subscriber)
        if told is not None:
            raise ConfigError("config.invalid", key="SUBSCRIBER", reason=told)
    return ExitCode.OK


def _unknown(place: str | Storage, name: str) -> str | None:
    """Why nothing comes to a subscriber whom nobody knows; None for one with an empty inbox.

    Cost: reads who has subscriptions, where nothing was delivered to this name.
    """
    from pathcast.spark import inbox as rows_of
    from pathcast.spark.reasons import subscribers_of

    # A subscriber who has left has an inbox still.
    if len(rows_of(place, name)):
        return None
    known = subscribers_of(place)
    if known is None:
        say("no micro-batch is complete yet: nothing was delivered to anybody")
        return None
    return None if name in known else f"nobody has subscribed as {name!r}{_likely(name, known)}"


def _likely(name: str, known: Sequence[str]) -> str:
    """The subscribers with similar names, or some of those that exist."""
    close = near(name, known)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    more = f" and {len(known) - SUBSCRIBERS_SHOWN:,} more" if len(known) > SUBSCRIBERS_SHOWN else ""
    return f"; there are {', '.join(known[:SUBSCRIBERS_SHOWN])}{more}" if known else ""


def why(
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT",
            help="The output of a pipeline, a directory or a URL, or the pipeline's TOML file.",
        ),
    ],
    subscriber: Annotated[
        str, typer.Option("--subscriber", metavar="SUBSCRIBER", help="Who asks.")
    ],
    message: Annotated[str, typer.Option("--message", metavar="ID", help="About which message.")],
    content: Annotated[
        Path | None,
        typer.Option(
            "--content",
            metavar="FILE",
            dir_okay=False,
            callback=existing,
            help="The message, - for standard input. Default: it is looked for in the pipeline's "
            "source, if OUTPUT is a TOML file.",
            show_default=False,
        ),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> ExitCode:
    """Say why a message came to a subscriber, or why it did not.

    Answers from the subscriptions that the message's micro-batch was pinned
    to, whatever has changed since: what was delivered, what was not decided,
    what was not satisfied and, with the message at hand, where each query
    fails first.

        pathcast why pipeline.toml --subscriber ann --message 7.xml
    """
    with extra("spark", "pathcast why"):
        from pathcast.spark.reasons import batch_of, message_of
        from pathcast.spark.reasons import why as reasons_of
    place, settings = find_output(output)
    batch_id, found = None, None if content is None else read_bytes(content)
    if settings is not None:
        batch_id = batch_of(settings, message)
        found = message_of(settings, message) if found is None else found
    told = reasons_of(
        place,
        subscriber,
        message,
        batch_id=batch_id,
        content=found,
        limits=None if settings is None else settings.engine.message_limits(),
    )
    if format_ is Format.JSON:
        write_json_line(told.to_dict())
    else:
        answers().print(told.to_text())
        if found is None and told.reasons:
            say("the message is not at hand: --content FILE shows where a query fails")
    return ExitCode.OK


def find_output(place: str | None) -> tuple[str | Storage, PipelineSettings | None]:
    """Where an output lies, and the settings of its pipeline where they are known.

    Raises:
        ConfigError: Nothing says where.
    """
    from pathcast.spark import load_settings

    if place is None:
        if not Path(PIPELINE_FILE).is_file():
            raise ConfigError(
                "config.invalid",
                key="--output",
                reason=f"is missing, and there is no {PIPELINE_FILE} in this directory",
            )
        place = PIPELINE_FILE
    if place.endswith(".toml"):
        settings = load_settings(place)
        return settings.output.storage, settings
    return place, None
