"""The configuration of a name server, as ``namesrv.conf`` states it. Java: ``NamesrvConfig``, ``NettyServerConfig``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.files.properties_file import read_text
from engine.remoting.settings import key, key_value_pairs, overlay

PORT = 9876


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """The options of RocketMQ's name server that change an answer here."""

    listen_port: int = key("listenPort", PORT)
    kv_config_path: str = key("kvConfigPath", "")
    """File of the key-value table; empty: the table is only in memory."""
    order_message_enable: bool = key("orderMessageEnable", default=False)
    return_order_config: bool = key("returnOrderTopicConfigToBroker", default=True)
    delete_topic_with_registration: bool = key("deleteTopicWithBrokerRegistration", default=False)
    enable_topic_list: bool = key("enableTopicList", default=True)
    enable_all_topic_list: bool = key("enableAllTopicList", default=True)
    scan_interval: int = key("scanNotActiveBrokerInterval", 5_000)
    """Milliseconds between two searches for silent brokers."""

    def lines(self) -> str:
        """``key=value`` lines, as ``getNamesrvConfig`` shows them."""
        return "".join(f"{name}={value}\n" for name, value in key_value_pairs(self))


UNCHANGEABLE = ("configBlackList", "configStorePath", "kvConfigPath", "listenPort")
"""Keys that a request may not set."""


def read_config(path: Path | str) -> tuple[NameServerConfig, list[str]]:
    """The configuration in a properties file, and its keys that have no effect here.

    Raises :class:`CannotRead`, or :class:`UsageError` with file, line and what was expected.
    """
    return overlay(NameServerConfig(), read_text(path), str(path))
