"""The configuration of a name server, as ``namesrv.conf`` says it. Java: ``NamesrvConfig``, ``NettyServerConfig``."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.errors import CannotRead, UsageError
from engine.properties_file import parse

LARGEST_FILE = 1 << 20
PORT = 9876


def _key(java: str, default: Any) -> Any:
    return field(default=default, metadata={"java": java})


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """What a name server of RocketMQ may be told, as far as it changes an answer here."""

    listen_port: int = _key("listenPort", PORT)
    kv_config_path: str = _key("kvConfigPath", "")
    """File of the key-value table; empty: it is kept in memory."""
    order_message_enable: bool = _key("orderMessageEnable", default=False)
    return_order_config: bool = _key("returnOrderTopicConfigToBroker", default=True)
    delete_topic_with_registration: bool = _key("deleteTopicWithBrokerRegistration", default=False)
    enable_topic_list: bool = _key("enableTopicList", default=True)
    enable_all_topic_list: bool = _key("enableAllTopicList", default=True)
    scan_interval: int = _key("scanNotActiveBrokerInterval", 5_000)
    """Milliseconds from one look for silent brokers to the next."""

    def lines(self) -> str:
        """``key=value`` lines, as ``getNamesrvConfig`` shows them."""
        pairs = [(str(one.metadata["java"]), getattr(self, one.name)) for one in fields(self)]
        return "".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}\n" for key, value in pairs)


UNCHANGEABLE = ("configBlackList", "configStorePath", "kvConfigPath", "listenPort")
"""Keys that a request may not set."""


def read_config(path: Path | str) -> tuple[NameServerConfig, list[str]]:
    """The configuration in a properties file, and its keys that have no effect here.

    Raises :class:`CannotRead`, or :class:`UsageError` with file, line and what was expected.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    if len(raw) > LARGEST_FILE:
        raise UsageError(f"expected a configuration file of at most {LARGEST_FILE:,} bytes, found more", file=str(path))
    return with_lines(NameServerConfig(), raw.decode("latin-1"), str(path))


def with_lines(config: NameServerConfig, text: str, file: str | None = None) -> tuple[NameServerConfig, list[str]]:
    """``config`` with the properties of ``text``, and the keys that have no effect here. Raises :class:`UsageError`."""
    known = {str(one.metadata["java"]): one for one in fields(config)}
    values: dict[str, Any] = {one.name: getattr(config, one.name) for one in fields(config)}
    unknown = []
    for item in parse(text, file):
        one = known.get(item.key)
        if one is None:
            unknown.append(item.key)
            continue
        values[one.name] = _value(item.key, item.value.strip(), values[one.name], item.line, file)
    return NameServerConfig(**values), unknown


def _value(key: str, text: str, usual: Any, line: int, file: str | None) -> Any:
    if isinstance(usual, bool):
        if text not in {"true", "false"}:
            raise UsageError(f"line {line}, {key}: expected true or false, found {text!r}", file=file)
        return text == "true"
    if isinstance(usual, int):
        if not text.isdecimal():
            raise UsageError(f"line {line}, {key}: expected a number, found {text!r}", file=file)
        return int(text)
    return text
