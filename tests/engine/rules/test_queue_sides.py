"""Which queues a broker reads and numbers from that writes them into files and into a RocksDB."""

from __future__ import annotations

import pytest

from engine.config import from_mapping
from engine.rules.queue_sides import (
    loaded_sides,
    numbering_side,
    reading_side,
    reads_light_from_rocksdb,
    refusal,
    writes_both,
)

DOUBLE = {"rocksdbCQDoubleWriteEnable": "true"}


def config(**settings):
    return from_mapping({**DOUBLE, **settings})[0]


def test_a_broker_that_writes_both_reads_and_numbers_from_what_its_settings_name():
    chosen = config(combineCQPreferCQType="defaultRocksDB")
    assert (reading_side(chosen), numbering_side(chosen)) == ("rocksdb", "files")
    chosen = config(combineAssignOffsetCQType="DEFAULTROCKSDB")
    assert (reading_side(chosen, "5.4"), numbering_side(chosen, "5.4")) == ("files", "rocksdb")
    assert numbering_side(chosen, "5.3") == "files"


@pytest.mark.parametrize(
    ("settings", "is_both"),
    [({}, True), ({"storeType": "defaultRocksDB"}, False), ({"rocksdbCQDoubleWriteEnable": "false"}, False)],
)
def test_both_are_written_with_store_type_default_only(settings, is_both):
    assert writes_both(config(**settings)) is is_both
    assert not writes_both(None)


def test_settings_that_name_no_opened_queues_keep_a_broker_from_starting():
    assert refusal(config(combineCQPreferCQType="defaultRocksDB")) == ""
    assert refusal(None) == ""
    wrong = config(combineCQPreferCQType="RocksDB")
    assert "combineCQPreferCQType=RocksDB" in refusal(wrong)
    assert refusal(wrong, "5.3") == ""
    assert loaded_sides(config(combineCQLoadingCQTypes=" default ; ")) == {"files"}


@pytest.mark.parametrize(
    "settings",
    [
        {"combineCQUseRocksdbForLmq": "true", "combineAssignOffsetCQType": "defaultRocksDB"},
        {"combineCQUseRocksdbForLmq": "true", "combineCQLoadingCQTypes": "default"},
        {"rocksdbCQSelectiveDoubleWriteEnable": "true", "combineCQPreferCQType": "defaultRocksDB"},
    ],
)
def test_brokers_of_5_5_refuse_settings_with_which_5_4_starts(settings):
    assert "5.5" in refusal(config(**settings))
    assert refusal(config(**settings), "5.4") == ""


def test_light_queues_are_only_in_the_rocksdb_where_the_setting_says_so():
    assert reads_light_from_rocksdb(config(combineCQUseRocksdbForLmq="true"))
    assert not reads_light_from_rocksdb(config(combineCQUseRocksdbForLmq="true"), "5.4")
    assert not reads_light_from_rocksdb(config())
