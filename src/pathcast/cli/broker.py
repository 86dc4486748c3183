"""`pathcast broker`: one broker of a network, as a process."""

from __future__ import annotations

import asyncio
import logging

import typer

from pathcast.cli.console import extra, guarded, print_settings, say
from pathcast.cli.exits import EXIT_CODES_HELP, ExitCode
from pathcast.cli.options import DescribeOption, OverrideOption, SettingsArgument


def build_broker() -> typer.Typer:
    """The commands about one broker."""
    app = typer.Typer(help="One broker of a network.", no_args_is_help=True)
    app.command("run", epilog=EXIT_CODES_HELP)(guarded(run_a_broker))
    return app


def run_a_broker(
    file: SettingsArgument = None,
    override: OverrideOption = None,
    describe: DescribeOption = False,
) -> ExitCode:
    """Run a broker until SIGTERM or Ctrl-C.

    It keeps what it has to know in its directory, connects to its neighbours
    for as long as both live, and ends gracefully; killed, it goes on where it
    was when it is started again. At SIGHUP it takes up neighbours that are
    new in its file:

        pathcast broker run broker.toml
    """
    with extra("net", "pathcast broker run"):
        from pathcast.overlay.xml_content import limits_of, xml_content
        from pathcast.transport.broker import broker_kind
        from pathcast.transport.hosted import run_hosted_broker
        from pathcast.transport.process import run_broker
        from pathcast.transport.settings import describe_settings, load_settings, node_settings
    if describe:
        print_settings(describe_settings())
        return ExitCode.OK
    if file is None:
        raise typer.BadParameter("name a file")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    settings = load_settings(file, override or ())
    name = settings.broker.name
    limits = limits_of(settings.broker.message_bytes_max)
    kind = broker_kind(
        name,
        [each.name for each in settings.neighbours],
        members=settings.broker.members,
        content=xml_content(
            limits=limits,
            projection=settings.broker.projection,
            whole_links=[each.name for each in settings.neighbours if not each.projection],
        ),
        settings=node_settings(settings),
        limits=limits,
    )
    ready = lambda address: say(f"{name} listens at {address}")  # noqa: E731
    run = run_broker if settings.registration is None else run_hosted_broker
    asyncio.run(run(settings, kind, ready, lambda: load_settings(file, override or ())))
    say(f"{name} has ended")
    return ExitCode.OK
