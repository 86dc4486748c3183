"""Safeguards of the protocols, and how to take one away: a run without it breaks an invariant.

The product has no switch for a safeguard. `without` changes the source text of the functions that
have it, compiles them again and puts the code into the functions of the running process, and takes
it back at the end. Objects of before and during the context run the changed code inside, and the
product's code outside. What a process started inside runs is not changed.

Example:
    >>> from pathcast.overlay.publishers import Numbered, Publishers
    >>> publishers, first = Publishers(), Numbered("loader", 1)
    >>> publishers.took(first)
    >>> publishers.has_had(first)
    True
    >>> with without("numbers"):
    ...     publishers.has_had(first)
    False
"""

from __future__ import annotations
import __future__

import importlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Final, NamedTuple

__all__ = ["ABLATIONS", "AUTOMATON", "OVERLAY", "RING", "Ablation", "changed_code", "without"]


class Ablation(NamedTuple):
    """A change of one function.

    Attributes:
        module: Where the function is.
        function: Its qualified name.
        right: Text as it stands in its source, exactly once.
        wrong: Text in its place.
    """

    module: str
    function: str
    right: str
    wrong: str


_BROKER: Final = "pathcast.overlay."
_PEER: Final = "pathcast.dht."

OVERLAY: Final[Mapping[str, tuple[Ablation, ...]]] = {
    # A link takes frames of its present session alone.
    "sessions": (
        Ablation(
            _BROKER + "link",
            "NeighbourLink.receive",
            "else:\n                self._astray(",
            "elif self._session is None:\n                self._astray(",
        ),
        Ablation(
            _BROKER + "link",
            "NeighbourLink._acknowledge",
            'raise PeerError("overlay.acknowledged", given=number, sent=self._last)',
            "return",
        ),
        Ablation(
            _BROKER + "link",
            "NeighbourLink._take",
            'raise PeerError("overlay.window", given=number, maximum=self._come)',
            "pass",
        ),
    ),
    # A frame that is not acknowledged is sent again.
    "resend": (
        Ablation(
            _BROKER + "link",
            "NeighbourLink.flush",
            "sent.due = now + sent.patience",
            'sent.due = float("inf")',
        ),
    ),
    # A frame that has come before is dropped.
    "deduplicate": (
        Ablation(
            _BROKER + "link",
            "NeighbourLink._take",
            "if number <= self._come:\n            return []",
            "if number <= self._come:\n            return list(frame.payloads)",
        ),
    ),
    # A frame that came too early waits for those before it.
    "order": (
        Ablation(
            _BROKER + "link",
            "NeighbourLink._take",
            "self._early[number] = frame.payloads",
            "self._come = max(self._come, number)\n        return list(frame.payloads)",
        ),
    ),
    # A new session begins with the whole table.
    "resync": (
        Ablation(
            _BROKER + "query_plane",
            "QueryPlane._tell_whole",
            "if self._attached[name]",
            "if False",
        ),
    ),
    # A follower's position goes up to the root, behind the interest of its side, and is served
    # from there.
    "rewind": (
        Ablation(
            _BROKER + "streams",
            "Stream.rewind",
            "positions = [follower.told for follower in served]",
            "positions = []",
        ),
        Ablation(
            _BROKER + "streams",
            "Stream.activate",
            "follower.rewinds = True",
            "follower.rewinds = False",
        ),
    ),
    # What a `Follow` of before has brought is dropped.
    "generations": (
        Ablation(
            _BROKER + "streams",
            "Stream._check_follows",
            "if said.after != self.at:",
            "if False:",
        ),
        Ablation(
            _BROKER + "streams",
            "Stream._is_astray",
            "is_late = generation != self.generation",
            "is_late = False",
        ),
    ),
    # The root keeps a message until all members have had it, within its retention.
    "retain": (
        Ablation(
            _BROKER + "root",
            "StreamRoot.trim",
            "position = max(min(positions.values(), default=own), min(self._old(), own))",
            "position = stream.at",
        ),
    ),
    # Who follows from before the log is told which positions are not kept any more.
    "lapse": (
        Ablation(
            _BROKER + "streams",
            "Stream._tell_trimmed",
            "if follower.told < follower.position:",
            "follower.position = upto\n            continue\n            if False:",
        ),
    ),
    # ... and subscriptions of this life lapse only where the root gave positions up.
    "had": (
        Ablation(
            _BROKER + "host",
            "HostSubscriptions.miss",
            "restored_only=given_up < first",
            "restored_only=False",
        ),
        Ablation(
            _BROKER + "host",
            "HostSubscriptions.miss",
            "is_all = self.subscriptions.is_restored(one.name)",
            "is_all = True",
        ),
    ),
    # A subscription is acknowledged when all brokers that can be reached know it.
    "settle": (
        Ablation(
            _BROKER + "query_plane",
            "QueryPlane._is_settled",
            "return all(",
            "return True or all(",
        ),
    ),
    # ... and all members know its host.
    "known": (
        Ablation(
            _BROKER + "host",
            "HostSubscriptions._acknowledge",
            "if unknown:",
            "if False:",
        ),
    ),
    # ... and the ticket that is settled is not one of a former life of its id.
    "tickets": (
        Ablation(
            _BROKER + "subscriptions",
            "HostedSubscriptions.acknowledge",
            " or self.ticket(name) > ticket",
            "",
        ),
    ),
    # A message is on the root's disk before it is sent.
    "save_first": (Ablation(_BROKER + "root", "StreamRoot.keep", "if taken:", "if False:"),),
    # A host drops what its position says it has had.
    "cursor": (
        Ablation(
            _BROKER + "streams",
            "Stream.take_own",
            " if one.position > self.taken]",
            "]",
        ),
    ),
    # Parts of a message whose rest will not come are dropped, and others are told so.
    "drop": (
        Ablation(
            _BROKER + "parts",
            "Parts.drop_arriving",
            "self.arriving = None",
            "return",
        ),
        Ablation(
            _BROKER + "parts",
            "Parts.stop",
            "if one is not None and",
            "if False and",
        ),
    ),
    # What came over a link that left the tree is taken out of the tables.
    "detach": (
        Ablation(
            _BROKER + "query_plane",
            "QueryPlane.hear_detach",
            "if peer in self._attached:",
            "if False:",
        ),
    ),
    # A root takes no message of a publisher twice that numbers them.
    "numbers": (
        Ablation(
            _BROKER + "publishers",
            "Publishers.has_had",
            "return numbered is not None and",
            "return False and",
        ),
    ),
    # A subscription is not given a message that was cut before it was known.
    "consider": (
        Ablation(
            _BROKER + "local_queries",
            "LocalQueries._is_regarded",
            "if one.considers is None:",
            "if True:",
        ),
    ),
    # A root whose followers have had what it does not know begins another stream.
    "lives": (
        Ablation(
            _BROKER + "streams",
            "Stream.adopt",
            "agrees = do_agree(self.lives, lives, self.taken)",
            "agrees = True",
        ),
        Ablation(
            _BROKER + "streams",
            "Stream._is_foreign",
            "if self.life_at(position) == life:",
            "if True:",
        ),
        Ablation(
            _BROKER + "streams",
            "Stream._is_known",
            "if self.lives and life == self.lives[-1][0]:",
            "if True:",
        ),
        Ablation(
            _BROKER + "local_queries",
            "LocalQueries.begin",
            "common = common_end(kept.lives, lives, kept.position)",
            "common = 0",
        ),
    ),
    # A host that comes back to a history that it had left knows what it has had of it.
    "left": (
        Ablation(
            _BROKER + "local_queries",
            "LocalQueries.begin",
            "position = known_end(lives, had, common)",
            "position = common",
        ),
    ),
    # Of two processes of one name, the one that began earlier takes nothing any more.
    "elder": (
        Ablation(
            _BROKER + "announcements",
            "Announcements.hear",
            "if is_own and known is not None:",
            "if False:",
        ),
    ),
    # A host does the steps of a profile that were not done on the way, and no others.
    "steps": (
        Ablation(
            _BROKER + "local_queries",
            "LocalQueries._answer",
            "done = [one.steps for _, one in work]",
            "done = [0 for _ in work]",
        ),
    ),
}
"""Of brokers: the safeguard, and the changes that take it away."""

AUTOMATON: Final[Mapping[str, tuple[Ablation, ...]]] = {
    # A subscription is acknowledged when every peer that has read a piece before it was stored has
    # read it anew, not when it is stored.
    "waits_for_readers": (
        Ablation(
            _PEER + "acknowledging",
            "Acknowledging.__init__",
            "self._settle_seconds = settle_seconds",
            "self._settle_seconds = 0.0",
        ),
    ),
    # ... and every peer that has a copy of it, as publishers have of the top.
    "waits_for_copies": (
        Ablation(
            _PEER + "filtering",
            "FilteringPeer.__init__",
            "self.substrate.settle_seconds + copy_seconds * CLOCK_RATES",
            "self.substrate.settle_seconds",
        ),
    ),
    # A copy is used for as long as acknowledgements wait, not for as long as there is one.
    "renews_copies": (
        Ablation(
            _PEER + "piece_leases",
            "PieceLeases.read",
            "if held is not None and self._now() < held.until:",
            "if held is not None:",
        ),
    ),
    # A registration that was removed does not come back with a message that came twice.
    "remembers_removals": (
        Ablation(
            _PEER + "piece_indexing",
            "PieceIndexing._change",
            "return with_entry(record, ",
            "return with_entry(replace(record, removed=()), ",
        ),
    ),
    # What comes to a piece that has given it away is passed on to where it went.
    "passes_on": (
        Ablation(
            _PEER + "piece_running",
            "PieceRunning._run",
            "if covers is None:",
            "if True:",
        ),
    ),
    # A piece that was cut off is waited for, not taken for empty, until it is stored at its peer.
    "waits_for_pieces": (
        Ablation(
            _PEER + "piece_running",
            "PieceRunning._has_read",
            "if record is not None and record.is_there:",
            "if record is not None:",
        ),
    ),
    # What was lost is not taken for empty, until it has been restored.
    "keeps_doubt": (
        Ablation(
            _PEER + "piece_store",
            "PieceStore._read",
            "if not self._substrate.is_whole(key):",
            "if False:",
        ),
    ),
    # A subscriber that has not asked for long takes a match only of a publication that is not over.
    "asks_publisher": (
        Ablation(
            _PEER + "subscriptions",
            "PeerSubscriptions.match",
            "elif self._may_be_late(standing, asked):",
            "elif False:",
        ),
    ),
    # A subscriber takes a match once.
    "tells_once": (
        Ablation(
            _PEER + "subscriptions",
            "PeerSubscriptions.match",
            "told in self._matched or ",
            "",
        ),
    ),
    # A publisher says that a publication is proved when all credits are back, not when it is begun.
    "counts_credits": (
        Ablation(
            _PEER + "publishing",
            "Publishing._check_end",
            " and execution.ledger.is_over",
            "",
        ),
        Ablation(
            _PEER + "publishing",
            "Publishing._end",
            "tuple(sorted(execution.ledger.missing))",
            "()",
        ),
    ),
}
"""Of the automaton on a ring."""

RING: Final[Mapping[str, tuple[Ablation, ...]]] = {
    # Who joins takes the successors of the member before it, not only the first successor, to get
    # the others with time.
    "whole_list": (
        Ablation(
            _PEER + "ring",
            "Ring.join",
            "self.successors = found.successors",
            "self.successors = found.successors[:1]",
        ),
        Ablation(
            _PEER + "ring",
            "Ring.join",
            "self.predecessor = found.before",
            "self.predecessor = None",
        ),
    ),
    # Stabilisation reads the predecessor of its successor before it is taken.
    "live_only": (
        Ablation(
            _PEER + "ring",
            "Ring._has_read",
            "self._asking.ask(nearer, Read(), lambda reply: self._has_read_nearer(nearer, reply))",
            "self._point_to((nearer, *self.successors))\n            self._tell()",
        ),
    ),
    # A predecessor is asked when somebody further away says that it is one, and replaced if it is
    # dead; else it stays.
    "ask_predecessor": (
        Ablation(
            _PEER + "ring",
            "Ring._rectify",
            "or self._asking.is_dead(known)",
            "",
        ),
        Ablation(
            _PEER + "ring",
            "Ring._rectify",
            "self._asking.ask(known, Read(), lambda reply: self._has_asked(known, member, reply))",
            "pass",
        ),
    ),
    # A member is dead when the base has expelled it (`pathcast.dht.membership`), not when it is
    # silent.
    "ask_base": (
        Ablation(
            _PEER + "asking",
            "Asking.put",
            "if member is not None and member in self._dead:",
            "if False:",
        ),
        Ablation(
            _PEER + "asking",
            "Asking.wake",
            "elif isinstance(opened.ask.what, _NEEDED):",
            "elif False:",
        ),
        Ablation(
            _PEER + "asking",
            "Asking.heard",
            "self._ended.discard(host_of(sender))",
            """self._ended.discard(host_of(sender))
        for member in [each for each in self._dead if each.name == sender]:
            del self._dead[member]""",
        ),
        Ablation(
            _PEER + "asking",
            "Asking._has_no_answer",
            "is_new = is_over and",
            """from pathcast.dht.messages import Get, Put, RingQuestion
        what = opened.ask.what
        is_new = isinstance(what, RingQuestion) and not isinstance(what, Get | Put) and""",
        ),
        Ablation(
            _PEER + "asking",
            "Asking._is_new_death",
            "for opened in self._open.values():",
            "for opened in ():",
        ),
    ),
}
"""Of the ring's operations. Those of Chord as published have all but the last taken away."""

ABLATIONS: Final[Mapping[str, tuple[Ablation, ...]]] = {**OVERLAY, **AUTOMATON, **RING}


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Run the product without some safeguards.

    Args:
        names: Of `ABLATIONS`.

    Raises:
        ValueError: A text does not stand in its function exactly once; or a function is changed
            already, by a context around this one.
    """
    of: dict[tuple[str, str], list[Ablation]] = {}
    for one in (one for name in names for one in ABLATIONS[name]):
        of.setdefault((one.module, one.function), []).append(one)
    changed = [(_function(*at), changed_code(*at, ablations)) for at, ablations in of.items()]
    with ExitStack() as stack:
        for function, code in changed:
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = code
        yield


def changed_code(module: str, name: str, ablations: list[Ablation]) -> CodeType:
    """The code of a function after some changes.

    A method is compiled in the body of its classes, as it stands in its module, so that `super()`
    and private names mean the same; its decorators are not run again.

    Raises:
        ValueError: As of `without`.
    """
    function = _function(module, name)
    if function.__code__.co_filename.startswith("<"):
        raise ValueError(f"{module}.{name} is changed already: {function.__code__.co_filename}")
    text = inspect.getsource(function)
    for one in ablations:
        if (count := text.count(one.right)) != 1:
            raise ValueError(f"{module}.{name}: the text {one.right!r} occurs {count} times")
        text = text.replace(one.right, one.wrong)
    *classes, _ = name.split(".")
    head = "".join(f"{'    ' * depth}class {each}:\n" for depth, each in enumerate(classes))
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    made: CodeType = compile(head + text, f"<{name} changed>", "exec", flags, dont_inherit=True)
    for each in name.split("."):
        made = next(
            one for one in made.co_consts if isinstance(one, CodeType) and one.co_name == each
        )
    return made


def _function(module: str, name: str) -> FunctionType:
    """A function or method, below its decorators, or what reads a property."""
    found: object = importlib.import_module(module)
    for each in name.split("."):
        found = inspect.getattr_static(found, each)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if callable(found):
        found = inspect.unwrap(found)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{module}.{name} is no function of Python")
    return found
