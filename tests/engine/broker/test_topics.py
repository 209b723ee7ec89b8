"""Topics and groups of a broker: declared, created by a first send, or light ones that need no declaration."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from simulated_disk import SimulatedDisk

from engine.broker import topics as names
from engine.broker.config import BrokerConfig
from engine.broker.topics import OWN_GROUPS, Topics, plain_topic, wrong_name
from engine.codec.config_tables import TopicConfig
from engine.files.layout import StorePaths
from engine.mapped.disk import RealDisk
from engine.releases import Release
from engine.store.config_tables import ConfigTables


def topics(root: Path, *, release: str = "5.3", light: bool = False, config: BrokerConfig | None = None) -> Topics:
    tables = ConfigTables(StorePaths(root), RealDisk(), lambda: 7, light=light)
    tables.load()
    return Topics(tables, lambda: config or BrokerConfig(), release, light=light)  # type: ignore[arg-type]


_X = "x" * 300


@pytest.mark.parametrize("release", ["5.4", "5.5"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Orders", None),
        (_X[:127], None),
        (_X[:128], f"The specified topic: {_X[:128]}, is longer than topic max length: 127"),
        ("a$b", "The specified topic: a$b, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        (" ", "The specified topic is blank."),
        ("%RETRY%" + _X[:248], None),
        ("%DLQ%" + _X[:250], None),
        (
            "%DLQ%" + _X[:251],
            f"The specified topic is DLQ or Retry topic: %DLQ%{_X[:251]}, and it's longer than topic max length: 255",
        ),
    ],
)
def test_names_since_5_4(name: str, words: str | None, release: Release) -> None:
    """Retry and dead-letter topics may have 255 letters since 5.4. The messages are those of real brokers of 5.4.0 and
    5.5.1.
    """
    assert wrong_name(name, release) == words


@pytest.mark.parametrize("release", ["4.9", "5.3"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Orders", None),
        (" ", "The specified topic is blank."),
        ("a+b", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("a" * 128, "The specified topic is longer than topic max length."),
        ("%RETRY%" + "a" * 121, "The specified topic is longer than topic max length."),
        ("%RETRY%" + "a" * 120, None),
    ],
)
def test_names(name: str, words: str | None, release: Release) -> None:
    assert wrong_name(name, release) == words


@pytest.mark.parametrize(("release", "declares"), [("4.9", False), ("5.3", False), ("5.4", True), ("5.5", True)])
def test_a_broker_since_5_4_declares_the_topics_of_half_messages_in_a_rocksdb(
    tmp_path: Path, release, declares
) -> None:
    new_topics = topics(tmp_path, release=release)
    new_topics.create_at_start()
    for name in ("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"):
        topic = new_topics.get(name)
        assert (topic is not None) == declares
        assert topic is None or (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)


def test_a_broker_of_5_has_a_revive_topic(tmp_path: Path) -> None:
    """A broker of 4.9 has none. The topic's name contains the cluster."""
    for release in ("5.3", "4.9"):
        new_topics = topics(tmp_path / release, release=release, config=BrokerConfig(cluster="Mine", revive_queues=3))
        new_topics.create_at_start()
        results = new_topics.get("rmq_sys_REVIVE_LOG_Mine")
        assert (results is None) == (release == "4.9")
        assert ("rmq_sys_REVIVE_LOG_Mine" in new_topics.own_names()) == (release != "4.9")
        if results is not None:
            assert (results.read_queue_nums, results.perm) == (3, 6)


def test_light_queues_and_light_groups_need_no_declaration(tmp_path: Path) -> None:
    new_topics = topics(tmp_path, light=True)
    assert new_topics.get("%LMQ%room") == plain_topic("%LMQ%room", 1)
    group = new_topics.group("%LMQ%me")
    assert group is not None
    assert (group.consume_enable, group.retry_max_times) == (True, 16)
    actual_names: list[str] = []
    new_topics.changed = lambda new: actual_names.extend(item.name for item in new)
    new_topics.declare(plain_topic("%LMQ%room", 4), plain_topic("Orders", 4))
    assert actual_names == ["Orders"]
    assert not (tmp_path / "config" / "subscriptionGroup.json").exists()
    assert topics(tmp_path / "other").get("%LMQ%room") is None


def test_names_that_are_too_long_are_not_remembered() -> None:
    """A client that sends names of megabytes must not fill the memory."""
    names._wrong_name.cache_clear()
    for number in range(10):
        assert "longer than topic max length" in str(names.wrong_name(f"{number}" * 1_000, "5.3"))
    assert names._wrong_name.cache_info().currsize == 0
    assert names.wrong_name("Orders", "5.3") is None
    assert names._wrong_name.cache_info().currsize == 1


def test_a_topic_that_cannot_be_saved_is_declared_anyway(tmp_path: Path) -> None:
    """The first send to a new topic failed while the disk was full. RocketMQ's broker logs that the table could not be
    saved and accepts the message.
    """
    disk = SimulatedDisk()
    tables = ConfigTables(StorePaths(tmp_path), disk, lambda: 7)
    tables.load()
    new_topics, actual_names = Topics(tables, BrokerConfig), []
    new_topics.changed = lambda new: actual_names.extend(item.name for item in new)
    disk.fail(errno.ENOSPC, kind="write_file")
    new_topics.create_at_start()
    assert new_topics.create_by_send("Orders", "TBW102", 4) is not None
    new_topics.declare(TopicConfig("Batches", 1, 1, 6, False, 0, "SINGLE_TAG", {"queue.type": "BatchCQ"}))
    assert new_topics.group("readers") is not None
    assert actual_names == ["Orders", "Batches"]
    assert tables.is_batch_topic("Batches")
    disk.heal()
    assert tables.save() == 2
    second_tables = ConfigTables(StorePaths(tmp_path), disk, lambda: 7)
    second_tables.load()
    assert {"Orders", "Batches"} <= second_tables.topics().keys()
    assert second_tables.groups().keys() == {"readers", *OWN_GROUPS}


def test_topics_declared_in_one_turn_are_saved_once(tmp_path: Path) -> None:
    """300 first sends to new topics blocked a broker for twelve seconds, because each topic was saved separately."""
    disk = SimulatedDisk()
    tables = ConfigTables(StorePaths(tmp_path), disk, lambda: 7)
    tables.load()
    new_topics, later = Topics(tables, BrokerConfig), []
    new_topics.create_at_start()
    new_topics.soon = later.append

    def saved() -> tuple[set[str], set[str]]:
        second_tables = ConfigTables(StorePaths(tmp_path), disk, lambda: 7)
        second_tables.load()
        return set(second_tables.topics()), set(second_tables.groups())

    for number in range(300):
        assert new_topics.create_by_send(f"New{number}", "TBW102", 4) is not None
        assert new_topics.group(f"readers{number}") is not None
    assert new_topics.create_plain("%RETRY%readers0", 1) is not None
    assert len(later) == 1
    assert "New0" not in saved()[0]
    later.pop()()
    topics_now, groups_now = saved()
    assert {"New0", "New299", "%RETRY%readers0"} <= topics_now
    assert {"readers0", "readers299"} <= groups_now
    assert new_topics.create_by_send("Later", "TBW102", 4) is not None
    assert len(later) == 1
    new_topics.save_created()  # the broker saves before it answers a send
    assert "Later" in saved()[0]
