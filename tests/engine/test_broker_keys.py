"""Keys of a broker's configuration."""

from __future__ import annotations

import dataclasses
import re

from engine.broker_keys import BROKER_KEYS, OTHER_STORE_KEYS, RENAMED
from engine.config import MessageStoreConfig, parse_properties, permitted

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
    assert config.commit_log_paths == ("/data1/commitlog", "/data2/commitlog")
    assert (config.broker_role, config.flush_disk_type, config.file_reserved_time) == ("SYNC_MASTER", "SYNC_FLUSH", 48)
    assert unknown == ["mapedFileSizeConsumeQueue", "frobnicate"]
    assert RENAMED[unknown[0]] == "mappedFileSizeConsumeQueue"


def test_every_attribute_is_named_after_its_key_and_documented():
    javas = [
        item.metadata["java"] for item in dataclasses.fields(MessageStoreConfig) if item.name not in {"given", "file"}
    ]
    assert len(javas) == len(set(javas))
    assert not set(javas) & (BROKER_KEYS | OTHER_STORE_KEYS)
    for item in dataclasses.fields(MessageStoreConfig):
        if item.name in {"given", "file"}:
            continue
        squeezed = item.metadata["java"].lower()
        assert re.sub("_", "", item.name) == squeezed
        assert item.metadata["meaning"]
        assert permitted(item)
