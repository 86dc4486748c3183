"""From an accepting state to its subscribers: decided exactly, told once, and known to be told.

A query whose gate says all of it is satisfied where the gate is found. Any other is decided on the
whole message, which travels with the visit or is fetched from the publisher, once for each peer
and publication. Several visits can accept the same query, at several elements or in several
pieces: a peer decides and tells once, a subscriber takes a match once.

Source: 000, sections 5.2 (notification) and 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from pathcast.dht.courier import Courier
from pathcast.dht.decisions import CandidateIndex
from pathcast.dht.gates import gates_of
from pathcast.dht.identifiers import state_key
from pathcast.dht.messages import Done, Later, Reply, RequestRefused
from pathcast.dht.piece_messages import Body, FetchBody, Match, Problem, RemoveQuery
from pathcast.dht.piece_records import START_PIECE, Entry
from pathcast.dht.publication_memory import RememberedPublication
from pathcast.query import compile_query

_TRIES = 20
_AGAIN_SECONDS = 0.05


class Matching:
    """Decides entries that a publication has reached, and tells their subscribers.

    Args:
        courier: For what is sent.
        decisions: Of queries with conditions.
    """

    def __init__(self, courier: Courier, decisions: CandidateIndex) -> None:
        self._courier = courier
        self._decisions = decisions

    def settle(
        self,
        publication: RememberedPublication,
        entries: Iterable[Entry],
        then: Callable[[tuple[Problem, ...]], None],
    ) -> None:
        """Decide entries and tell their subscribers.

        Args:
            publication: That has reached them.
            entries: Any number, some perhaps settled before.
            then: Gets what could not be decided or told, when all else was.
        """
        different = {entry.registration: entry for entry in entries}
        problems: set[Problem] = set()
        left = 1

        def is_settled(problem: Problem | None) -> None:
            nonlocal left
            left -= 1
            if problem is not None:
                problems.add(problem)
            if not left:
                then(tuple(sorted(problems)))

        undecided = []
        for name, entry in different.items():
            if name in publication.settled:
                problem = publication.settled[name]
                if problem is not None:
                    problems.add(problem)
                continue
            left += 1
            if name in publication.settling:
                publication.settling[name].append(is_settled)
                continue
            publication.settling[name] = [is_settled]
            if entry.is_exact:
                self._tell(publication, entry)
            else:
                undecided.append(entry)
        if undecided:
            self._with_body(publication, partial(self._decide, publication, undecided))
        is_settled(None)

    def _decide(
        self, publication: RememberedPublication, entries: list[Entry], body: bytes | None
    ) -> None:
        if body is None:
            for entry in entries:
                self._settled(publication, entry, "the message is not to be had any more")
            return
        answers = self._decisions.decide(
            body, [(entry.query, entry.namespaces) for entry in entries]
        )
        for entry in entries:
            answer = answers[entry.query, entry.namespaces]
            if answer is True:
                self._tell(publication, entry)
            else:
                self._settled(publication, entry, answer or None)

    def _tell(self, publication: RememberedPublication, entry: Entry, left: int = _TRIES) -> None:
        def told(reply: Reply | None) -> None:
            if isinstance(reply, Later) and left:
                # It asks the publisher first.
                again = partial(self._tell, publication, entry, left - 1)
                self._courier.after(_AGAIN_SECONDS * (1 << min(_TRIES - left, 5)), again)
                return
            if isinstance(reply, RequestRefused):
                self._clear_out(entry)
            is_told = isinstance(reply, Done | RequestRefused)
            self._settled(publication, entry, None if is_told else "the peer does not answer")

        match = Match(publication.name, entry.registration, publication.publisher)
        self._courier.to_peer(entry.subscriber, match, told)

    def _clear_out(self, entry: Entry) -> None:
        """Take out a query that its subscriber does not know (any more)."""
        for gate in gates_of(compile_query(entry.query, dict(entry.namespaces))):
            key = state_key(gate.labels)
            asked = RemoveQuery(key, entry.registration, entry.subscriber, 0)
            self._courier.to_owner(START_PIECE, asked)

    def _settled(
        self, publication: RememberedPublication, entry: Entry, reason: str | None
    ) -> None:
        problem = None
        if reason is not None:
            problem = Problem(entry.subscriber, entry.subscription, reason[:4096])
        publication.settled[entry.registration] = problem
        waiting = publication.settling.pop(entry.registration, [])
        if not publication.settling:
            # Whoever comes to something else that has to be decided fetches it again.
            publication.body = None
        for then in waiting:
            then(problem)

    def _with_body(
        self, publication: RememberedPublication, then: Callable[[bytes | None], None]
    ) -> None:
        if publication.body is not None:
            then(publication.body)
            return
        publication.waiting_for_body.append(then)
        if len(publication.waiting_for_body) > 1:
            return

        def fetched(reply: Reply | None) -> None:
            if isinstance(reply, Body):
                publication.body = reply.body
            waiting = list(publication.waiting_for_body)
            publication.waiting_for_body.clear()
            for each in waiting:
                each(publication.body)

        self._courier.to_peer(publication.publisher, FetchBody(publication.name), fetched)
