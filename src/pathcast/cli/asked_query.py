"""The query that a command is asked about, with how it is read and delivered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pathcast.cli.options import LanguageOption, StepOption, ValuesOption, read_language
from pathcast.cli.queries import read_bytes
from pathcast.errors import ConfigError
from pathcast.model import Subscription
from pathcast.registry import with_values
from pathcast.registry.subscription_files import subscription_of

QUERY_ID = "query"

QueryArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help="An XQuery FLWR or XPath expression, or @FILE for the one in FILE; @- for standard "
        "input.",
    ),
]


class DeliverChoice(StrEnum):
    """Choices of `--deliver`."""

    FRAGMENT = "fragment"
    MESSAGE = "message"
    IDS = "ids"


@dataclass(frozen=True)
class AskOptions:
    """Options that say how a query is read."""

    step: StepOption = None
    language: LanguageOption = None
    values: ValuesOption = None

    def read(self, given: str) -> Subscription:
        """The query that an argument means: itself or, after an @, the content of a file.

        Returns:
            With `QUERY_ID` for id and subscriber; delivered as the file says, else as fragments.
            Steps of the options are done after those of the file, whose language comes first.

        Raises:
            ConfigError: The file is not UTF-8, or a list cannot be read.
            OSError: The file cannot be read.
        """
        chosen, steps = read_language(self.language), tuple(self.step or ())
        if not given.startswith("@"):
            row = Subscription(QUERY_ID, QUERY_ID, given, steps=steps, language=chosen)
            return self._with_values(row)
        path = Path(given[1:])
        try:
            text = read_bytes(path).decode("utf-8")
        except UnicodeDecodeError as error:
            reason = f"not UTF-8: {error.reason} at byte {error.start}"
            raise ConfigError("config.invalid", key=str(path), reason=reason) from error
        said = subscription_of(text, Path(path.name))
        row = said._replace(
            id=QUERY_ID,
            subscriber=QUERY_ID,
            steps=(*said.steps, *steps),
            language=said.language or chosen,
        )
        return self._with_values(row)

    def _with_values(self, row: Subscription) -> Subscription:
        return row if self.values is None else with_values(row, self.values)


@dataclass(frozen=True)
class SubscribeOptions(AskOptions):
    """Options that say how a query is read, and what of it is delivered."""

    deliver: Annotated[
        DeliverChoice | None,
        typer.Option(
            "--deliver",
            help="Results of the query, the message, or its id. Default: as FILE says, else "
            "fragment.",
            show_default=False,
        ),
    ] = None

    def read(self, given: str) -> Subscription:
        """The query that an argument means, delivered as the options say (`AskOptions.read`)."""
        asked = super().read(given)
        return asked if self.deliver is None else asked._replace(deliver=self.deliver.value)
