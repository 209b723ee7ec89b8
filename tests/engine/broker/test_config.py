"""A broker's configuration: both halves of one file, RocketMQ's defaults, and a list of keys without effect."""

from __future__ import annotations

import pytest

from engine.broker.config import PORT, BrokerConfig, read_config
from engine.errors import UsageError


def test_one_file_configures_broker_and_store(tmp_path):
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b-1\nlistenPort=20911\nmappedFileSizeCommitLog=4096\nnobodysKey=1\nbrokerId=3\n")
    broker, store, unused_keys = read_config(file)
    assert (broker.broker_name, broker.listen_port, broker.broker_id) == ("b-1", 20_911, 3)
    assert store.mapped_file_size_commit_log == 4096
    assert unused_keys == ["nobodysKey"]


def test_missing_keys_have_rocketmqs_defaults():
    lines = dict(BrokerConfig().lines())
    assert (lines["listenPort"], lines["brokerClusterName"]) == (str(PORT), "DefaultCluster")
    assert (lines["autoCreateTopicEnable"], lines["transactionCheckMax"]) == ("true", "15")


def test_a_value_of_the_wrong_type_is_reported_with_its_line(tmp_path):
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b\nlistenPort=high\n")
    with pytest.raises(UsageError, match="line 2, listenPort: expected a number"):
        read_config(file)
