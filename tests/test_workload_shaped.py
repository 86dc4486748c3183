"""FLWR subscriptions to the sample domains.

If these fail, the demonstration and the benchmarks of customised delivery run on subscriptions that
an engine refuses, or that no message of their domain satisfies.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from oracles.engines import made_by
from pathcast import Registry, Subscription
from pathcast.errors import ConfigError
from pathcast.workload import (
    DOMAINS,
    DemoParameters,
    ShapedParameters,
    demo_messages,
    generate_shaped,
)
from pathcast.workload.shaped import filled
from pathcast.workload.shaped_templates import SHAPED_KINDS, SHAPED_SHARES, SHAPED_TEMPLATES
from pathcast.workload.templates import SLOTS
from pathcast.workload.values import Draw

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")


def test_every_domain_has_templates_of_every_kind() -> None:
    assert SHAPED_TEMPLATES.keys() == DOMAINS.keys()
    for templates in SHAPED_TEMPLATES.values():
        assert set(templates) == set(SHAPED_KINDS) == set(SHAPED_SHARES)
        assert all(templates.values())
    assert sum(SHAPED_SHARES.values()) == pytest.approx(1)


def test_the_seed_decides_everything() -> None:
    rows = list(generate_shaped(ShapedParameters(queries=200, seed=4)))
    assert rows == list(generate_shaped(ShapedParameters(queries=500, seed=4)))[:200]
    assert rows != list(generate_shaped(ShapedParameters(queries=200, seed=5)))
    assert [row.query_id for row in rows] == [f"f{number:06d}" for number in range(1, 201)]
    assert not [row.query for row in rows if "[[" in row.query], "a slot is left open"


def test_every_template_is_accepted_and_most_give_results() -> None:
    draw = Draw(1)
    texts = {
        filled(template, draw)
        for templates in SHAPED_TEMPLATES.values()
        for kind in templates.values()
        for template in kind
        for _ in range(3)
    }
    registry = made_by("reference", Registry)
    report = registry.add(
        Subscription(f"s{number}", "desk", text) for number, text in enumerate(sorted(texts))
    )
    assert not report.rejected, next(iter(report.rejected.items()))
    messages = [one.message for one in demo_messages(DemoParameters(messages=9, broken_ratio=0))]
    batch = registry.deliver(messages)
    assert batch.stats.refused == 0
    assert batch.verdicts.num_rows == 0
    delivered = Counter(batch.table.column("subscription_id").to_pylist())
    assert len(delivered) > 5, "hardly anything is delivered"
    assert all(count <= 9 for count in delivered.values()), "one result a message at most"


def test_slots_of_templates_exist() -> None:
    for templates in SHAPED_TEMPLATES.values():
        for texts in templates.values():
            for text in texts:
                assert set(re.findall(r"\[\[(\w+)\]\]", text)) <= SLOTS.keys()


@pytest.mark.parametrize("wrong", [{"queries": -1}, {"subscribers": 0}, {"domains": ("sports",)}])
def test_parameters_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ShapedParameters(**wrong)  # type: ignore[arg-type]
