"""FLWR subscriptions to the sample domains.

If these fail, the demonstration and the benchmarks of customised delivery run on subscriptions that
an engine refuses, or that no message of their domain satisfies.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from command_line import run_command
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
from pathcast.workload.typed_templates import TYPED_TEMPLATES
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


def all_templates() -> list[str]:
    shaped = [each for kinds in SHAPED_TEMPLATES.values() for each in kinds.values()]
    return [text for texts in (*shaped, *TYPED_TEMPLATES.values()) for text in texts]


def test_as_many_rows_are_typed_as_asked_for() -> None:
    """Where none are, rows are those of before."""
    plain = list(generate_shaped(ShapedParameters(queries=300, seed=4)))
    assert plain == list(generate_shaped(ShapedParameters(queries=300, seed=4, typed=0)))
    signs = re.compile("xs:|declare|element |= \\(|matches|contains-token|compare")
    shares = []
    for typed in (0.0, 0.5, 1.0):
        rows = generate_shaped(ShapedParameters(queries=300, seed=4, typed=typed))
        shares.append(sum(signs.search(row.query) is not None for row in rows) / 300)
    assert shares[0] == 0
    assert 0.4 < shares[1] < 0.6
    assert shares[2] == 1


def test_every_typed_template_is_accepted_and_some_give_results() -> None:
    draw = Draw(1)
    texts = [
        filled(text, draw) for each in TYPED_TEMPLATES.values() for text in each for _ in range(40)
    ]
    registry = Registry()
    report = registry.add(
        Subscription(f"s{number}", "desk", text) for number, text in enumerate(texts)
    )
    assert not report.rejected, next(iter(report.rejected.values()))
    messages = [one.message for one in demo_messages(DemoParameters(messages=60, broken_ratio=0))]
    batch = registry.deliver(messages)
    assert batch.verdicts.num_rows == 0
    delivered = {int(each[1:]) // 40 for each in batch.table["subscription_id"].to_pylist()}
    assert len(delivered) >= 9, delivered


def test_the_command_writes_a_table_that_commands_read(tmp_path: Path) -> None:
    table = tmp_path / "subscriptions.tsv"
    arguments = ["generate", "subscriptions", "-n", "200", "--typed", "1", "--domain", "payments"]
    assert run_command(*arguments, "--out", str(table)).exit_code == 0
    assert run_command(*arguments).stdout == table.read_text()
    checked = run_command("check", str(table), "--strict")
    assert "subscriptions: 200, rejected: 0" in checked.stderr


def test_every_template_is_accepted_and_most_give_results() -> None:
    draw = Draw(1)
    texts = {filled(text, draw) for text in all_templates() for _ in range(3)}
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
    for text in all_templates():
        assert set(re.findall(r"\[\[(\w+)\]\]", text)) <= SLOTS.keys()


@pytest.mark.parametrize("wrong", [{"queries": -1}, {"subscribers": 0}, {"domains": ("sports",)}])
def test_parameters_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ShapedParameters(**wrong)  # type: ignore[arg-type]
