"""`pathcast dlq`: the dead letters of a pipeline, and taking them up again."""

from __future__ import annotations

from typing import Annotated

import typer

from pathcast.cli.console import answers, extra, say, say_error, write_json_line
from pathcast.cli.exits import ExitCode
from pathcast.cli.outputs import find_output


def dlq(
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT",
            help="Output of a pipeline, a directory or a URL, or the pipeline's TOML file, which "
            "says what opens a URL.",
        ),
    ],
    messages: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MESSAGE]...",
            help="Ids of messages or, of files that could not be read, their names. Default: all.",
            show_default=False,
        ),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Have them taken up again instead of listing them.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="mode.checkpoint of the pipeline. Default: _checkpoint in OUTPUT, or what the "
            "TOML file says.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print an object a dead letter, one a line.")
    ] = False,
) -> ExitCode:
    """List the dead letters of a pipeline, and have them taken up again.

    The state of each is one of: unread (a file that could not be read; it is
    taken up as soon as it has changed), refused (a message; --retry takes it
    up once it is mended), asked for, taken up, final (it cannot be).

    --retry hands on all files that could not be read, and the refused ones
    that have changed; or exactly the given ones. The next run, or the stream
    that is running, processes them once.
    """
    with extra("spark", "pathcast dlq"):
        from pathcast.spark.dead_letters import DeadLetterBox, count_states
    place, settings = find_output(output)
    if settings is None:
        box = DeadLetterBox(place, checkpoint)
    else:
        where = settings.checkpoint if checkpoint is None else checkpoint
        box = DeadLetterBox(place, where, settings.source.storage)
    wanted = set(messages or ())
    if retry:
        asked = box.ask_for(wanted)
        say(f"asked for: {len(asked)}; the next run or the running stream takes them up")
        left = sorted(wanted.difference(asked))
        for name in left:
            say_error(f"{name}: not among the dead letters that can be taken up")
        return ExitCode.REFUSED if left else ExitCode.OK
    out = answers()
    shown = []
    for letter in box.letters():
        if wanted and letter.message_id not in wanted:
            continue
        shown.append(letter._replace(reason=""))
        if as_json:
            write_json_line(letter._asdict())
        else:
            of = f", {letter.subscription_id} of {letter.subscriber}"
            told = "" if letter.subscription_id is None else of
            place = f"batch {letter.batch_id}: {letter.message_id}{told}"
            out.print(f"{place}: {letter.state}: {letter.code}: {letter.reason}")
    counts = ", ".join(f"{state}: {count}" for state, count in count_states(shown).items())
    say(f"dead letters: {len(shown)}" + (f", {counts}" if counts else ""))
    return ExitCode.OK
