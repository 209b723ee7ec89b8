"""Config tables: changed and unchanged rows, and files that a broker reads back."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from engine.codec.json_dialect import parse
from engine.errors import UsageError
from engine.files.layout import StorePaths
from engine.mapped.disk import RealDisk
from engine.store import config_tables
from engine.store.config_tables import BadTable, ConfigTables

NOW = 1_700_000_000_000


def tables(root: Path, release: Any = "5.3", light: bool = False) -> ConfigTables:
    new_tables = ConfigTables(StorePaths(root), RealDisk(), lambda: NOW, release=release, light=light)
    new_tables.load()
    return new_tables


def test_a_topic_is_written_at_once_in_the_brokers_form(tmp_path: Path) -> None:
    topic = tables(tmp_path).create_topic("Orders", 4)
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.batch) == (4, 4, 6, False)
    text = (tmp_path / "config" / "topics.json").read_text()
    assert text.startswith(
        '{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n\t\t"timestamp":1700000000000'
    )
    assert '\t\t"Orders":{\n\t\t\t"attributes":{},\n\t\t\t"order":false,\n\t\t\t"perm":6,\n' in text
    assert not (tmp_path / "config" / "topics.json.bak").exists()


def test_4_9_knows_neither_attributes_nor_state_version(tmp_path: Path) -> None:
    new_tables = tables(tmp_path, release="4.9")
    new_tables.create_topic("Orders")
    new_tables.commit_consumer_offset("g", "Orders", 0, 5)
    new_tables.save()
    assert "attributes" not in (tmp_path / "config" / "topics.json").read_text()
    assert "stateVersion" not in (tmp_path / "config" / "topics.json").read_text()
    assert (tmp_path / "config" / "consumerOffset.json").read_text() == (
        '{\n\t"offsetTable":{\n\t\t"Orders@g":{0:5\n\t\t}\n\t}\n}'
    )


def test_the_backup_is_the_previous_file(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.create_topic("A")
    first_bytes = (tmp_path / "config" / "topics.json").read_bytes()
    new_tables.create_topic("B")
    assert (tmp_path / "config" / "topics.json.bak").read_bytes() == first_bytes
    assert set(tables(tmp_path).topics()) == {"A", "B"}


def test_a_bad_file_never_becomes_the_backup(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.create_topic("A")
    new_tables.create_topic("B")
    good = (tmp_path / "config" / "topics.json.bak").read_bytes()
    (tmp_path / "config" / "topics.json").write_text("{torn")
    second_tables = tables(tmp_path)
    assert set(second_tables.topics()) == {"A"}
    second_tables.create_topic("C")
    assert (tmp_path / "config" / "topics.json.bak").read_bytes() == good
    assert set(tables(tmp_path).topics()) == {"A", "C"}


def test_two_bad_files_refuse_to_load(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    for name in ("topics.json", "topics.json.bak"):
        (tmp_path / "config" / name).write_text("{torn")
    with pytest.raises(BadTable, match="a broker does not start"):
        tables(tmp_path)


def test_offsets_are_written_by_save_with_the_derived_map(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.commit_consumer_offset("billing", "Orders", 0, 12)
    new_tables.commit_consumer_offset("billing", "Orders", 1, 7)
    assert not (tmp_path / "config").exists()
    assert new_tables.save() == 1
    assert new_tables.save() == 0
    text = (tmp_path / "config" / "consumerOffset.json").read_text()
    assert '"groupTopicMap":{\n\t\t"billing":["Orders"]\n\t}' in text
    assert '"Orders@billing":{0:12,1:7\n\t\t}' in text
    second_tables = tables(tmp_path)
    assert [second_tables.consumer_offset("billing", "Orders", queue) for queue in (0, 1, 2)] == [12, 7, -1]


def test_light_offsets_have_a_file_of_their_own(tmp_path: Path) -> None:
    new_tables = tables(tmp_path, light=True)
    new_tables.commit_consumer_offset("g", "T", 0, 1)
    new_tables.save()
    assert [path.name for path in (tmp_path / "config").iterdir()] == ["lmqConsumerOffset.json"]


def test_delay_offsets_are_by_level(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.set_delay_offset(3, 17)
    new_tables.save()
    assert (tables(tmp_path).delay_offset(3), tables(tmp_path).delay_offset(4)) == (17, 0)


def test_a_deleted_topic_loses_its_offsets(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.create_topic("A", attributes={"queue.type": "BatchCQ"})
    new_tables.create_topic("B")
    new_tables.commit_consumer_offset("g", "A", 0, 1)
    new_tables.commit_consumer_offset("g", "B", 0, 2)
    new_tables.save()
    assert new_tables.is_batch_topic("A")
    assert new_tables.delete_topics(["A", "unknown"]) == 1
    second_tables = tables(tmp_path)
    assert (set(second_tables.topics()), second_tables.is_batch_topic("A")) == ({"B"}, False)
    assert (second_tables.consumer_offset("g", "A", 0), second_tables.consumer_offset("g", "B", 0)) == (-1, 2)


def test_groups(tmp_path: Path) -> None:
    new_tables = tables(tmp_path)
    new_tables.create_group("billing", retry_max_times=3)
    new_tables.commit_consumer_offset("billing", "A", 0, 1)
    assert tables(tmp_path).groups()["billing"].retry_max_times == 3
    assert '"forbiddenTable":{}' in (tmp_path / "config" / "subscriptionGroup.json").read_text()
    assert new_tables.delete_group("billing")
    assert not new_tables.delete_group("billing")
    assert (tables(tmp_path).groups(), new_tables.consumer_offset("billing", "A", 0)) == ({}, -1)


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "x" * 128, "..", "中" * 43])
def test_invalid_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="topic: expected"):
        tables(tmp_path).create_topic(name)


@pytest.mark.parametrize("queues", [0, 65_537])
def test_impossible_numbers_of_queues(tmp_path: Path, queues: int) -> None:
    with pytest.raises(UsageError, match="queues: expected"):
        tables(tmp_path).create_topic("A", queues)


@pytest.mark.golden
def test_unchanged_rows_stay(golden: Any, tmp_path: Path) -> None:
    shutil.copytree(Path(golden("broker-orders")) / "config", tmp_path / "config")
    table_before = parse((tmp_path / "config" / "topics.json").read_bytes()).value
    new_tables = tables(tmp_path)
    new_tables.create_topic("New")
    new_tables.commit_consumer_offset("billing", "OrderEvents", 0, 400)
    new_tables.save()
    table_after = parse((tmp_path / "config" / "topics.json").read_bytes()).value
    assert table_after["dataVersion"]["counter"] == table_before["dataVersion"]["counter"] + 1
    assert set(table_after["topicConfigTable"]) - set(table_before["topicConfigTable"]) == {"New"}
    for name, row in table_before["topicConfigTable"].items():
        assert table_after["topicConfigTable"][name] == row
    offsets = parse((tmp_path / "config" / "consumerOffset.json").read_bytes()).value["offsetTable"]
    assert "ShipmentEvents@dashboard@broadcast" in offsets
    assert offsets["OrderEvents@billing"][0] == 400


def test_commits_do_not_wait_for_a_table_write(tmp_path, monkeypatch) -> None:
    """A broker commits offsets in its event loop. On a busy disk every client waited for the table to be written."""
    new_tables = tables(tmp_path)
    writing, go_on = threading.Event(), threading.Event()
    put = config_tables.put_file

    def slow(disk, path, data) -> None:
        if path.name == "consumerOffset.json":
            writing.set()
            assert go_on.wait(60)
        put(disk, path, data)

    monkeypatch.setattr(config_tables, "put_file", slow)
    new_tables.commit_consumer_offset("g", "T", 0, 1)
    saving = threading.Thread(target=new_tables.save)
    saving.start()
    assert writing.wait(60)
    new_tables.commit_consumer_offset("g", "T", 0, 2)
    assert new_tables.consumer_offset("g", "T", 0) == 2
    go_on.set()
    saving.join(60)
    assert new_tables.save() == 1
    second_tables = tables(tmp_path)
    assert second_tables.consumer_offset("g", "T", 0) == 2


def test_an_older_text_does_not_replace_a_newer_one(tmp_path) -> None:
    new_tables = tables(tmp_path)
    table = new_tables._tables["consumerOffset.json"]
    new_tables.commit_consumer_offset("g", "T", 0, 1)
    older_text = table.taken()
    new_tables.commit_consumer_offset("g", "T", 0, 2)
    table.write(*table.taken())
    table.write(*older_text)
    assert tables(tmp_path).consumer_offset("g", "T", 0) == 2


def test_a_table_that_was_only_read_is_written_at_the_end(tmp_path: Path) -> None:
    """Reading a missing table gave it members in memory, and its file was never written."""
    new_tables = tables(tmp_path)
    assert new_tables.groups_with_offsets() == []
    assert new_tables.consumer_offset("g", "t", 0) == -1
    new_tables.complete()
    new_tables.save()
    written = {file.name for file in (tmp_path / "config").iterdir()}
    assert written == {"consumerOffset.json", "delayOffset.json", "topics.json", "subscriptionGroup.json"}
    second_tables = tables(tmp_path)
    second_tables.complete()
    assert second_tables.save() == 0


def test_a_light_group_has_one_offset_of_each_topic(tmp_path: Path) -> None:
    """This applies with ``enableLmq``. Without it, the group is an ordinary one."""
    for light in (True, False):
        new_tables = tables(tmp_path, light=light)
        assert new_tables.consumer_offset("%LMQ%me", "%LMQ%room", 0) == -1
        new_tables.commit_consumer_offset("%LMQ%me", "%LMQ%room", 0, 5)
        new_tables.commit_consumer_offset("others", "%LMQ%room", 0, 6)
        assert new_tables.consumer_offset("%LMQ%me", "%LMQ%room", 0) == 5
        new_tables.save()
    value = parse((tmp_path / "config" / "lmqConsumerOffset.json").read_bytes()).value
    assert (value["lmqOffsetTable"], value["offsetTable"]) == ({"%LMQ%room@%LMQ%me": 5}, {"%LMQ%room@others": {0: 6}})
    assert "lmqOffsetTable" not in (tmp_path / "config" / "consumerOffset.json").read_text()
    new_tables = tables(tmp_path, light=True)
    new_tables.create_group("%LMQ%me")
    assert new_tables.delete_group("%LMQ%me")
    assert new_tables.consumer_offset("%LMQ%me", "%LMQ%room", 0) == -1
