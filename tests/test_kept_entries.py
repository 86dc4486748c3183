"""Entries that are kept with subscriptions.

If these fail, a broker that begins again finds the entries of all profiles anew, which takes longer
than all the rest; or goes on with those of other settings, and messages pass its subscribers by.
"""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from pathcast.errors import QuerySyntaxError
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.subscriptions import HostedSubscription, HostedSubscriptions, KeptSubscription

QUERIES = ("//a[b = 1]", "/a/b", "//a[b > 2]/c", "for $i in //a where $i/b = 3 return $i/c")


class CountingProfiles(XmlProfiles):
    """It is known for what entries were looked for."""

    def __init__(self, projection: bool = True) -> None:
        super().__init__(projection=projection)
        self.asked: list[str] = []

    def entries(self, profile: DeliveryProfile) -> tuple[str, ...]:
        self.asked.append(profile.query)
        return super().entries(profile)


def kept_rows() -> tuple[HostedSubscriptions, list[bytes]]:
    subscriptions = HostedSubscriptions(CountingProfiles(), count(1))
    rows = []
    for number, query in enumerate(QUERIES):
        subscriptions.put(f"s{number}", "ann", DeliveryProfile(query, "fragment"), 1)
        rows.append(msgspec.msgpack.encode(subscriptions.kept(f"s{number}")))
    return subscriptions, rows


def restored(profiles: CountingProfiles, rows: list[bytes]) -> HostedSubscriptions:
    again = HostedSubscriptions(profiles, count(1))
    for row in rows:
        again.restore(msgspec.msgpack.decode(row, type=KeptSubscription))
    return again


def test_entries_are_not_looked_for_again_and_leave_with_their_subscription() -> None:
    first, rows = kept_rows()
    profiles = CountingProfiles()
    again = restored(profiles, rows)
    assert profiles.asked == []
    assert again.entries() == first.entries() != ()
    assert [again.get(name) for name in again.names()] == [first.get(n) for n in first.names()]
    again.put("s0", "ann", DeliveryProfile("/other", "fragment"), 1)
    first.put("s0", "ann", DeliveryProfile("/other", "fragment"), 1)
    assert again.entries() == first.entries()
    for name in again.names():
        again.take_out(name)
    assert again.entries() == ()


def test_entries_of_other_settings_or_of_earlier_versions_are_found_anew() -> None:
    _, rows = kept_rows()
    other = CountingProfiles(projection=False)
    assert restored(other, rows).entries() == kept_without_projection()
    assert other.asked == list(QUERIES)
    # Of a version that kept none.
    earlier = [
        msgspec.msgpack.encode(
            HostedSubscription(f"s{n}", "ann", DeliveryProfile(query, "fragment"), 1)
        )
        for n, query in enumerate(QUERIES)
    ]
    profiles = CountingProfiles()
    assert restored(profiles, earlier).entries() == restored(CountingProfiles(), rows).entries()
    assert profiles.asked == list(QUERIES)


def kept_without_projection() -> tuple[str, ...]:
    subscriptions = HostedSubscriptions(CountingProfiles(projection=False), count(1))
    for number, query in enumerate(QUERIES):
        subscriptions.put(f"s{number}", "ann", DeliveryProfile(query, "fragment"), 1)
    return subscriptions.entries()


def test_a_profile_that_is_refused_changes_no_entries() -> None:
    first, _ = kept_rows()
    before = first.entries()
    with pytest.raises(QuerySyntaxError):
        first.put("s1", "ann", DeliveryProfile("//["), 1)
    assert first.entries() == before
    assert first.kept("s1").profile.query == QUERIES[1]
