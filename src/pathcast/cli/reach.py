"""How commands reach a node: on this machine, by a context, or by an address.

`pathcast net` and `pathcast peer` have these options in common, a parameter of type `CallOptions`
(`grouped_options`).

    pathcast net publish orders/ --at basel                       # a network of pathcast net up
    pathcast net publish orders/ --at basel --context ann.toml
    pathcast net publish orders/ --broker 10.0.0.7:7400 --as ann --token-file ann.token
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pathcast.errors import ConfigError

if TYPE_CHECKING:
    from pathcast.transport.client import BrokerClient
    from pathcast.transport.contexts import CallContext, NodeList
    from pathcast.transport.frames import Codec
    from pathcast.transport.grpc_streams import Address
    from pathcast.transport.nodes import Nodes

OPERATOR: Final = "operator"
TOKEN_VARIABLE: Final = "PATHCAST_TOKEN"
CONTEXT_VARIABLE: Final = "PATHCAST_CONTEXT"


@dataclass(frozen=True)
class CallOptions:
    """Options that say which node is called, and who calls.

    Attributes are as the options of their names; None where an option is not given.
    """

    at: Annotated[
        str | None,
        typer.Option("--at", metavar="NAME", help="Node that is asked. Default: the only one."),
    ] = None
    client: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Client that calls: one that the node's file names. Default: the operator of this "
            "machine; elsewhere, as the context says.",
        ),
    ] = None
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            help="Directory of a network (default: network) or ring (default: ring) on this "
            "machine.",
        ),
    ] = None
    context: Annotated[
        Path | None,
        typer.Option(
            "--context",
            metavar="FILE",
            help="TOML file that says where nodes are that somebody else started, and who calls: "
            f"pathcast net context. Default: {CONTEXT_VARIABLE}.",
        ),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            "--broker",
            "--peer",
            "--registry",
            metavar="HOST:PORT",
            help="Node that somebody else started; with --at NAME, the one of this name.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"File with the client's token. Default: {TOKEN_VARIABLE}, which has the token.",
        ),
    ] = None
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Certificate of the client (PEM)."),
    ] = None
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Private key of the certificate.")
    ] = None
    authority: Annotated[
        Path | None,
        typer.Option(
            "--authority",
            metavar="FILE",
            help="Certificates that those of the nodes have to be signed with.",
        ),
    ] = None
    allow_plain: Annotated[
        bool,
        typer.Option(
            "--allow-plain",
            help="Do without certificates at an address that is not loopback: everything, tokens "
            "included, is then readable on the way.",
        ),
    ] = False

    def remote(self) -> CallContext | None:
        """The context, with what options say put over it; None: nodes on this machine are meant.

        Raises:
            ConfigError: Options contradict each other, or the context cannot be used.
        """
        given = self.context
        if given is None and self.address is None and self.directory is None:
            named = os.environ.get(CONTEXT_VARIABLE)
            given = Path(named) if named else None
        if given is None and self.address is None:
            self._refuse_remote_options()
            return None
        if self.directory is not None:
            reason = "it names nodes on this machine; --context and --broker name others"
            raise ConfigError("config.invalid", key="--directory", reason=reason)
        from pathcast.transport.contexts import CallContext, load_context

        context = CallContext() if given is None else load_context(given)
        said = {
            "name": self.client,
            "certificate": self.certificate,
            "key": self.key,
            "authority": self.authority,
            "allow_plain": self.allow_plain or None,
        }
        known = {name: value for name, value in said.items() if value is not None}
        client = context.client.model_copy(update={**known, **self._token()})
        context = context.model_copy(update={"client": client})
        if not context.client.name:
            reason = "say who calls: a client that the node's file names"
            raise ConfigError("config.invalid", key="--as", reason=reason)
        return context

    def addresses(self, which: NodeList, context: CallContext) -> dict[str, Address]:
        """Name -> how a node is called.

        Raises:
            ConfigError: The address is none, or the context lists no such node.
        """
        from pathcast.settings import checked_address
        from pathcast.transport.contexts import NodeSection

        if self.address is None:
            return context.addresses(which)
        try:
            target = checked_address(self.address)
        except ValueError as error:
            raise ConfigError("config.invalid", key="--broker", reason=str(error)) from error
        # Without a name, a certificate has to show the host.
        name = self.at or target.rpartition(":")[0].strip("[]")
        return {name: context.address(NodeSection(name=name, address=target))}

    def _token(self) -> dict[str, object]:
        from pydantic import SecretStr

        if self.token_file is not None:
            return {"token_file": self.token_file}
        if token := os.environ.get(TOKEN_VARIABLE):
            return {"token": SecretStr(token), "token_file": None}
        return {}

    def _refuse_remote_options(self) -> None:
        remote = {
            "--token-file": self.token_file,
            "--certificate": self.certificate,
            "--key": self.key,
            "--authority": self.authority,
            "--allow-plain": self.allow_plain or None,
        }
        for option, value in remote.items():
            if value is not None:
                reason = "it is for nodes elsewhere, which --broker HOST:PORT or --context name"
                raise ConfigError("config.invalid", key=option, reason=reason)


@dataclass(frozen=True)
class Reached:
    """Nodes that a command may call.

    Attributes:
        nodes: All of them.
        client: Name of the caller.
        at: The node that was named, if one was.
        directory: Where nodes of this machine have what they keep.
    """

    nodes: Nodes
    client: str
    at: str | None
    directory: Path | None = None

    @property
    def node(self) -> str:
        """The node that is asked; raises ConfigError where several are meant."""
        return self.nodes.chosen(self.at)

    def kept_at(self, name: str) -> str:
        """The directory of a node, as a command on its machine is given it."""
        return "DIRECTORY" if self.directory is None else str(self.directory / name)

    async def statuses(self) -> dict[str, dict[str, Any] | None]:
        """Ask the named node, or all nodes, for their status (`Nodes`)."""
        return await self.nodes.statuses(None if self.at is None else [self.node])

    def connect(self) -> BrokerClient:
        """The caller's connection to the node that is asked, to be entered."""
        return self.nodes.client(self.node, self.client)


def reached(
    reach: CallOptions,
    which: NodeList,
    codec: Codec,
    local: Callable[[Path], Nodes],
    directory: Path,
) -> Reached:
    """The nodes that options name.

    Args:
        reach: The options.
        which: The list of a context that they are in.
        codec: Of their protocol.
        local: Gives those of a directory on this machine.
        directory: The directory, unless the options name one.

    Raises:
        ConfigError: The options cannot be used, or there are no nodes.
    """
    context = reach.remote()
    if context is None:
        place = reach.directory or directory
        return Reached(local(place), reach.client or OPERATOR, reach.at, place)
    from pathcast.transport.nodes import RemoteNodes

    name = context.client.name
    return Reached(RemoteNodes(reach.addresses(which, context), name, codec), name, reach.at)
