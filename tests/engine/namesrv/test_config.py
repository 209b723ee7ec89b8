"""A name server's configuration: RocketMQ's keys and defaults, and its text form."""

from __future__ import annotations

from engine.namesrv.config import PORT, NameServerConfig, read_config


def test_a_file_over_the_defaults(tmp_path):
    file = tmp_path / "namesrv.conf"
    file.write_text("listenPort=19876\norderMessageEnable=true\nrocketmqHome=/opt\n")
    results, unknown = read_config(file)
    assert (results.listen_port, results.order_message_enable, results.scan_interval) == (19876, True, 5000)
    assert unknown == ["rocketmqHome"]


def test_the_text_form_is_that_of_get_namesrv_config():
    lines = NameServerConfig().lines().splitlines()
    assert f"listenPort={PORT}" in lines
    assert "returnOrderTopicConfigToBroker=true" in lines
