"""The part of a broker's configuration that concerns the files.

Keys of a broker's configuration.
"""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import (
    BROKER_KEYS,
    OTHER_STORE_KEYS,
    RENAMED,
    MessageStoreConfig,
    delay_levels,
    from_mapping,
    parse_properties,
    permitted,
    read_properties,
)
from engine.errors import CannotRead, UsageError


def test_only_written_keys_count_as_given():
    config, _ = parse_properties("maxIndexNum=20000000\nbrokerName=a")
    assert config.given == {"maxIndexNum"}
    assert config.max_index_num == MessageStoreConfig().max_index_num


def test_ratios_out_of_range_are_reported_with_the_brokers_value():
    config, _ = parse_properties("diskMaxUsedSpaceRatio=99\ndiskSpaceCleanForciblyRatio=10")
    assert config.clamped() == [("diskMaxUsedSpaceRatio", 99, 95), ("diskSpaceCleanForciblyRatio", 10, 30)]


def test_the_last_of_repeated_keys_counts():
    assert parse_properties("maxIndexNum=5\nmaxIndexNum=400")[0].max_index_num == 400


BAD = [
    ("mappedFileSizeCommitLog=1g", "expected a whole number from 128 to 2147483647 (bytes), found '1g'"),
    ("mappedFileSizeCommitLog=1048576 ", "found '1048576 '"),
    ("mappedFileSizeCommitLog=-1", "found '-1'"),
    ("mappedFileSizeCommitLog=4294967296", "found '4294967296'"),
    ("maxHashSlotNum=0", "expected a whole number from 1 to"),
    ("maxHashSlotNum=1_000", "found '1_000'"),
    ("enableLmq=yes", "expected true or false, found 'yes'"),
    ("flushDiskType=FAST", "expected ASYNC_FLUSH or SYNC_FLUSH, found 'FAST'"),
    ("messageDelayLevel=1s 5x", "expected a number and s, m, h or d for level 2, found '5x'"),
    ("logicalDiskSpaceCleanForciblyThreshold=nan", "found 'nan'"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_impossible_values_are_refused_with_key_line_and_range(line, message):
    with pytest.raises(UsageError) as error:
        parse_properties(f"# head\n{line}\n", "broker.conf")
    assert message in str(error.value)
    assert str(error.value).startswith(f"broker.conf: {line.partition('=')[0]}")


def test_the_line_is_named():
    with pytest.raises(UsageError, match=r"enableLmq \(line 3\)"):
        parse_properties("\n\nenableLmq=1")


def test_a_plan_gives_booleans_numbers_and_texts():
    config, unknown = from_mapping(
        {"enableLmq": True, "maxIndexNum": 400, "maxHashSlotNum": "100", "peerOnly": 1, "brokerName": "a"}
    )
    assert (config.enable_lmq, config.max_index_num, config.max_hash_slot_num) == (True, 400, 100)
    assert config.given == {"enableLmq", "maxIndexNum", "maxHashSlotNum"}
    assert unknown == ["peerOnly"]
    with pytest.raises(UsageError, match="maxIndexNum: expected a whole number from 2"):
        from_mapping({"maxIndexNum": [1]})


def test_a_plan_overrides_a_file():
    base, _ = parse_properties("maxIndexNum=400\nmaxHashSlotNum=100")
    config, _ = from_mapping({"maxIndexNum": 500}, base)
    assert (config.max_index_num, config.max_hash_slot_num) == (500, 100)
    assert config.given == {"maxIndexNum", "maxHashSlotNum"}


def test_files_are_read_in_latin_1_as_java_does(tmp_path):
    path = tmp_path / "broker.conf"
    path.write_bytes("storePathRootDir=/données".encode("latin-1"))
    assert read_properties(path)[0].store_path_root_dir == "/données"


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(CannotRead, match=r"missing.conf: No such file"):
        read_properties(tmp_path / "missing.conf")
    with pytest.raises(CannotRead):
        read_properties(tmp_path)
    big = tmp_path / "big.conf"
    big.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(UsageError, match="at most 1,048,576 bytes"):
        read_properties(big)


def test_default_levels():
    levels = MessageStoreConfig().delay_levels()
    assert len(levels) == 18
    assert (levels[0], levels[4], levels[17]) == (1000, 60_000, 7_200_000)
    assert delay_levels("2d") == (172_800_000,)


@pytest.mark.parametrize("text", ["", "1s  5s", "s", "1", "-1s", "1s ", "1S", "9999999999999s"])
def test_bad_levels_are_refused(text):
    with pytest.raises(UsageError, match="messageDelayLevel: expected a number"):
        delay_levels(text)


@given(st.text())
def test_any_text_gives_a_configuration_or_a_usage_error(text):
    try:
        config, unknown = parse_properties(text)
    except UsageError:
        return
    assert isinstance(config, MessageStoreConfig)
    assert all(isinstance(key, str) for key in unknown)


@given(st.integers(128, (1 << 31) - 1), st.booleans())
def test_written_values_round_trip(size, lmq):
    config, _ = parse_properties(f"mappedFileSizeCommitLog={size}\nenableLmq={str(lmq).lower()}")
    assert (config.mapped_file_size_commit_log, config.enable_lmq) == (size, lmq)


BROKER_CONF = """\
# a cluster of two
brokerClusterName = DefaultCluster
brokerName=broker-a
brokerId=0
namesrvAddr=192.168.0.1:9876;192.168.0.2:9876
brokerIP1=10.0.0.5
listenPort=10911
autoCreateTopicEnable=false
deleteWhen=04
fileReservedTime=48
brokerRole=SYNC_MASTER
flushDiskType=SYNC_FLUSH
storePathRootDir=/data/rocketmq/store
storePathCommitLog=/data1/commitlog,/data2/commitlog
mappedFileSizeCommitLog=1048576
mappedFileSizeConsumeQueue=6001
mapedFileSizeConsumeQueue=300000
diskMaxUsedSpaceRatio=99
useTLS=true
frobnicate=1
"""


def test_a_real_file_is_read():
    config, unknown = parse_properties(BROKER_CONF, "broker.conf")
    assert config.mapped_file_size_commit_log == 1 << 20
    assert config.consume_queue_file_size == 6020
    assert config.store_path_commit_log == "/data1/commitlog,/data2/commitlog"
    assert (config.broker_role, config.flush_disk_type, config.file_reserved_time) == ("SYNC_MASTER", "SYNC_FLUSH", 48)
    assert unknown == ["mapedFileSizeConsumeQueue", "frobnicate"]
    assert RENAMED[unknown[0]] == "mappedFileSizeConsumeQueue"


OUR_OWN = {"given", "file", "paths_from_config", "paths_left_out", "other_paths"}


def test_every_attribute_is_named_after_its_key_and_documented():
    javas = [item.metadata["java"] for item in dataclasses.fields(MessageStoreConfig) if item.name not in OUR_OWN]
    assert len(javas) == len(set(javas))
    assert not set(javas) & (BROKER_KEYS | OTHER_STORE_KEYS)
    for item in dataclasses.fields(MessageStoreConfig):
        if item.name in OUR_OWN:
            continue
        squeezed = item.metadata["java"].lower()
        assert re.sub("_", "", item.name) == squeezed
        assert item.metadata["meaning"]
        assert permitted(item)
