"""Pipeline files: what they may say, what is refused and how, and what overrides what."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.errors import ConfigError
from pathcast.limits import Limits
from pathcast.spark.settings import describe_settings, load_settings

MINIMAL = """
[source]
path = "messages"
[subscriptions]
path = "subscriptions.tsv"
[output]
path = "out"
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A pipeline file with what is required and nothing else."""
    path = tmp_path / "pipeline.toml"
    path.write_text(MINIMAL)
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(path, overrides)
    return str(caught.value)


def test_paths_are_relative_to_the_file_not_to_the_caller(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A pipeline started by cron would otherwise read and write somewhere else.
    monkeypatch.chdir("/")
    settings = load_settings(pipeline, ["mode.checkpoint=../memory"])
    assert settings.source.storage.folder == tmp_path / "messages"
    assert settings.mode.checkpoint == str(tmp_path.parent / "memory")
    assert settings.checkpoint.folder == tmp_path.parent / "memory"
    assert load_settings(pipeline).checkpoint.folder == tmp_path / "out" / "_checkpoint"


def test_a_url_is_no_path(pipeline: Path) -> None:
    settings = load_settings(pipeline, ["output.path=s3://bucket/a/../out/"])
    assert settings.output.path == "s3://bucket/a/../out/"
    assert str(settings.checkpoint) == "s3://bucket/a/../out/_checkpoint"
    described = {setting.key: setting.type for setting in describe_settings()}
    assert described["output.path"] == described["mode.checkpoint"] == "path or URL"


def test_overrides_go_over_environment_over_file_over_defaults(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings(pipeline).output.compact_files == 64
    pipeline.write_text(MINIMAL + "compact_files = 4\n")
    assert load_settings(pipeline).output.compact_files == 4
    monkeypatch.setenv("PATHCAST__OUTPUT__COMPACT_FILES", "5")
    assert load_settings(pipeline).output.compact_files == 5
    assert load_settings(pipeline, ["output.compact_files=6"]).output.compact_files == 6


def test_values_of_overrides_are_toml_or_plain_text(pipeline: Path) -> None:
    settings = load_settings(
        pipeline,
        [
            "source.pattern=*.msg",
            'subscriptions.namespaces={n = "urn:n"}',
            "engine.limits.depth_max=9",
            'engine.limits.dtd="refuse"',
            "spark.conf.spark.ui.enabled=true",
            "spark.conf.spark.driver.memory=4g",
            "source.id_column=7",
        ],
    )
    assert settings.source.pattern == "*.msg"
    assert settings.subscriptions.namespaces == {"n": "urn:n"}
    assert settings.engine.message_limits() == Limits(depth_max=9, dtd="refuse")
    assert settings.spark.conf == {"spark.ui.enabled": "true", "spark.driver.memory": "4g"}
    assert settings.source.id_column == "7"


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("mode.kin=batch", ("mode.kin", "did you mean kind?")),
        ("outputs.path=x", ("outputs", "did you mean output?")),
        ("mode.kind=both", ("mode.kind", "'batch' or 'stream'", "both")),
        ("output.compact_files=-1", ("output.compact_files", "greater than or equal to 0")),
        ("engine.limits.depth=3", ("engine.limits", "did you mean depth_max?")),
        ("engine.limits.depth_max=0", ("engine.limits", "not a whole number from 1 on")),
        ("engine.engine=nfa", ("engine", "PATHCAST_ENGINE=nfa")),
        ("placement.kind=partitioned", ("placement", "has ended", "leave [placement] out")),
        ("mode", ("mode", "section.key=value")),
        ("mode.kind", ("mode.kind", "section.key=value")),
    ],
)
def test_refusals_name_the_key_and_the_reason(
    pipeline: Path, override: str, parts: tuple[str, ...]
) -> None:
    text = refusal(pipeline, override)
    for part in parts:
        assert part in text


def test_all_missing_keys_are_named_at_once(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.write_text("[source]\n")
    text = refusal(empty)
    for key in ("source.path", "subscriptions", "output"):
        assert key in text


def test_an_unreadable_file_is_a_refusal_that_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[source\n")
    assert "broken.toml" in refusal(broken)
    assert "absent.toml" in refusal(tmp_path / "absent.toml")


def test_every_key_is_described() -> None:
    described = describe_settings()
    assert len(described) > 20, "the guard looked at (almost) nothing"
    assert [setting.key for setting in described if len(setting.description) < 15] == []
    assert [setting.key for setting in described if "Annotated" in setting.type] == []


def test_the_guide_names_every_key_and_the_example_can_be_loaded() -> None:
    root = Path(__file__).resolve().parent.parent
    guide, example = root / "docs" / "pipeline.md", root / "examples" / "pipeline.toml"
    if not guide.exists():
        pytest.skip("the documentation is not beside the tests")
    text = guide.read_text(encoding="utf-8")
    assert [s.key for s in describe_settings() if f"`{s.key}`" not in text] == []
    assert load_settings(example).mode.kind in ("batch", "stream")


def test_what_a_table_is_read_with(pipeline: Path) -> None:
    kind = 'source.kind="delta"'
    source = load_settings(pipeline, [kind]).source
    assert (source.starting_version, source.changes) == (None, "error")
    assert load_settings(pipeline, [kind, "source.starting_version=7"]).source.starting_version == 7
    latest = load_settings(pipeline, [kind, "source.starting_version=latest"]).source
    assert latest.starting_version == "latest"
    options = ["source.delta_options.AWS_REGION=x", "output.delta_options.AWS_REGION=y"]
    settings = load_settings(pipeline, [kind, *options])
    assert settings.source.storage.delta_options == {"AWS_REGION": "x"}
    assert settings.output.storage.below("inboxes").delta_options == {"AWS_REGION": "y"}
    for wrong in ("source.starting_version=-1", "source.starting_version=newest"):
        assert "source.starting_version" in refusal(pipeline, kind, wrong)
    assert "source.changes" in refusal(pipeline, kind, "source.changes=ignore")
    assert "which files it has" in refusal(pipeline, kind, "source.pattern=*.parquet")


def test_topics_have_names_and_something_to_say(pipeline: Path) -> None:
    options = "topics.options={ 'kafka.bootstrap.servers' = 'a:1' }"
    topics = load_settings(pipeline, [options, "topics.deliveries=d"]).topics
    assert topics is not None
    assert topics.options == {"kafka.bootstrap.servers": "a:1"}
    assert "deliveries or dead_letters" in refusal(pipeline, options)
    without = "output.inboxes=false"
    assert "topics.deliveries" in refusal(pipeline, options, "topics.deliveries=d", without)
    assert load_settings(pipeline, [options, "topics.dead_letters=d", without]).topics is not None
