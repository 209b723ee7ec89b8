"""Tables that a broker keeps in a RocksDB: which one applies, and when no value is given."""

from __future__ import annotations

import json
import shutil

import made_rocksdb
import pytest

from engine.codec.rocksdb_tables import GROUPS, OFFSETS, TOPICS
from engine.errors import CannotRead, DamagedDatabase
from engine.inspection import recovery, tables
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden


@pytest.fixture
def orders(golden, tmp_path):
    """A store of 5.5.1 with queues and tables in RocksDBs."""
    made_rocksdb.binding()
    return shutil.copytree(golden("rocksdb-orders-5.5.1"), tmp_path / "store")


def table_or_reason(root, name):
    with open_store(root) as store:
        try:
            table = tables.read_table(store, name)
        except CannotRead as error:
            return error.what
        assert table is not None
        return table


def test_tables_are_the_rows(orders):
    topics, groups, offsets = (table_or_reason(orders, name) for name in (TOPICS, GROUPS, OFFSETS))
    assert (topics.used, topics.file, topics.will_load) == ("rocksdb", "topics", True)
    assert len(topics.value["topicConfigTable"]) == 24
    assert len(groups.value["subscriptionGroupTable"]) == 13
    assert offsets.value["offsetTable"]["OrderEvents@billing"] == {0: 394, 1: 368, 2: 409, 3: 396}
    with open_store(orders) as store:
        assert tables.read_table(store, "lmqConsumerOffset.json").value == {}
        assert [table.name for table in tables.read_tables(store)][:3] == [TOPICS, GROUPS, OFFSETS]
        assert list(tables.undecoded_tables(store)) == []


@pytest.mark.parametrize(("counter", "used"), [(3, "rocksdb"), (12, "rocksdb"), (13, None)])
def test_a_file_with_a_higher_counter_is_merged_at_the_next_start(orders, counter, used):
    """Which of both a broker then uses depends on the release, so no value is given."""
    content = {"dataVersion": {"counter": counter, "timestamp": 1, "stateVersion": 0}, "topicConfigTable": {}}
    (orders / "config" / TOPICS).write_text(json.dumps(content))
    table = table_or_reason(orders, TOPICS)
    if used is None:
        assert "unknown: the topics are in a RocksDB (config/topics/)" in table
    else:
        assert table.used == used


def test_a_file_beside_rows_of_a_store_with_file_queues_depends_on_the_settings(golden, tmp_path):
    made_rocksdb.binding()
    root = shutil.copytree(golden("rocksdb-tables-v2-5.5.1"), tmp_path / "store")
    assert table_or_reason(root, OFFSETS).value["offsetTable"]["ClickStream@archive"] == {0: 129, 1: 131}
    (root / "config" / OFFSETS).write_text('{"offsetTable":{}}')
    assert "unknown: the consumer offsets are in a RocksDB (config/rdb/)" in table_or_reason(root, OFFSETS)


def test_two_databases_of_a_table_are_not_chosen_from(orders):
    shutil.copytree(orders / "config" / "consumerOffsets", orders / "config" / "rdb")
    assert "unknown: the consumer offsets" in table_or_reason(orders, OFFSETS)


def test_all_tables_in_one_database_with_families(orders):
    topic = b'{"topicName":"Orders","perm":6,"readQueueNums":4,"writeQueueNums":4}'
    families = {
        "default": {},
        "topic": {b"Orders": topic},
        "topicVersion": {b"kvDataVersionKey": b'{"counter":7}'},
        "subscriptionGroup": {b"billing": b"{}"},
        "subscriptionGroupVersion": {},
        "forbidden": {b"billing": b'{"Orders":2}'},
        "consumerOffset": {b"Orders@billing": b'{"offsetTable":{"0":5}}'},
        "consumerOffsetVersion": {},
    }
    for name in ("topics", "subscriptionGroups", "consumerOffsets"):
        shutil.rmtree(orders / "config" / name)
    made_rocksdb.make_database(orders / "config" / "metadata", families)
    assert table_or_reason(orders, TOPICS).value["dataVersion"] == {"counter": 7}
    assert table_or_reason(orders, GROUPS).value["forbiddenTable"] == {"billing": {"Orders": 2}}
    assert table_or_reason(orders, OFFSETS).value["offsetTable"] == {"Orders@billing": {0: 5}}


def test_a_row_that_is_no_table_row_is_damage(orders):
    made_rocksdb.make_database(
        orders / "config" / "topics", {"default": {b"Orders": b"{broken"}, "kvDataVersion": {b"x": b"y"}}
    )
    with open_store(orders) as store:
        with pytest.raises(DamagedDatabase, match="expected a JSON object in row Orders"):
            tables.read_table(store, TOPICS)
        assert store.unread


@pytest.mark.parametrize("name", ["rocksdb-orders-5.5.1", "rocksdb-tables-v2-5.5.1"])
def test_a_check_and_a_plan_use_the_rows(name, golden):
    """The check was not complete, and the plan said that it leaves the tables out."""
    made_rocksdb.binding()
    with open_store(golden(name)) as store:
        *findings, summary = check(store)
        plan = recovery.plan(store)
        assert not store.reading.undecoded
        group_offsets = list(recovery.source_of(store).group_offsets)
    assert summary.complete
    assert "DK02" not in {finding.id for finding in findings}
    assert plan.notes == ()
    assert len({offset.group for offset in group_offsets}) > 3


def test_a_topic_that_the_rows_lack_is_missing_for_a_broker_too(golden):
    """A real 5.5.1 with configManagerVersion=v2 had not written a topic that it created for a client: after the next
    start it did not list it.
    """
    made_rocksdb.binding()
    root = golden("rocksdb-tables-v2-5.5.1")
    with open_store(root) as store:
        (missing,) = (finding for finding in check(store) if isinstance(finding, Finding) and finding.id == "CQ14")
        groups = next(finding for finding in check(store) if isinstance(finding, Finding) and finding.id == "CF03")
    assert "MadeBySendingCartUpdates" in missing.message
    assert groups.file == str(root / "config" / "rdb")
