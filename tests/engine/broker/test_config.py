"""A broker's configuration: both halves of one file, defaults as RocketMQ's, and keys without effect named."""

from __future__ import annotations

import pytest

from engine.broker.config import PORT, BrokerConfig, read_config
from engine.errors import UsageError


def test_both_halves_come_out_of_one_file(tmp_path):
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b-1\nlistenPort=20911\nmappedFileSizeCommitLog=4096\nnobodysKey=1\nbrokerId=3\n")
    broker, store, others = read_config(file)
    assert (broker.broker_name, broker.listen_port, broker.broker_id) == ("b-1", 20_911, 3)
    assert store.mapped_file_size_commit_log == 4096
    assert others == ["nobodysKey"]


def test_what_nobody_says_is_as_rocketmq_has_it():
    lines = dict(BrokerConfig().lines())
    assert (lines["listenPort"], lines["brokerClusterName"]) == (str(PORT), "DefaultCluster")
    assert (lines["autoCreateTopicEnable"], lines["transactionCheckMax"]) == ("true", "15")


def test_a_value_of_another_kind_is_told_with_its_line(tmp_path):
    file = tmp_path / "broker.conf"
    file.write_text("brokerName=b\nlistenPort=high\n")
    with pytest.raises(UsageError, match="line 2, listenPort: expected a number"):
        read_config(file)
