"""The plan of ``put --plan``: a JSON object with ``config``, ``topics`` and ``messages``.

The Java store of our peer tests reads the same file and writes the same units, except for store times.

Fields of a message: ``topic queue body|bodyHex properties flag sysFlag reconsumeTimes preparedTransactionOffset
bornTimestamp bornHost storeHost``. Without ``bornTimestamp`` message *n* is born at ``bornBase`` + 7·n ms, at the first
of ``bornHosts``; without ``storeHost`` it is stored at the plan's ``storeHost``.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.codec import properties as props
from engine.codec.encode import Message, encode_properties
from engine.codec.java import hash_map_order, i32
from engine.codec.message import INNER_BATCH
from engine.config import MessageStoreConfig, from_mapping
from engine.errors import CannotRead, UsageError
from engine.releases import NEWEST, Release, rules_of
from engine.sentences import sentence

MAX_PLAN_BYTES = 1 << 30
BORN_BASE_MS = 1_700_000_000_000
BORN_STEP_MS = 7
BORN_HOST = "10.1.2.3:40001"
STORE_HOST = "127.0.0.1:10911"
GENERATOR_FIELDS = (
    "count",
    "body",
    "keys",
    "tags",
    "unicode",
    "storeHostV6",
    "halfEvery",
    "endHalfEvery",
    "batchEvery",
    "batchMax",
    "delayEvery",
    "delayLevels",
    "compressEvery",
    "seed",
    "uniqStart",
)
RUN_FIELDS = (
    "pauseEvery",
    "pauseMs",
    "bitmap",
    "flushAt",
    "crash",
    "crashAfter",
    "deleteFiles",
    "sessions",
    "damage",
    "rawIndex",
)
_PLAN_FIELDS = ("config", "topics", "messages", "bornHosts", "bornBase", "storeHost")
_IGNORED_PROPERTIES = (props.DELAY, props.TIMER_DELAY_SEC, props.TIMER_DELAY_MS, props.TIMER_DELIVER_MS)
"""Properties that a broker handles, not its store: the store of 5.x leaves them unchanged."""


@dataclass(frozen=True, slots=True)
class PutPlan:
    """A plan: ``batch_topics`` are (name, queues), ``remarks`` say which parts are ignored."""

    config: dict[str, object]
    batch_topics: tuple[tuple[str, int], ...]
    messages: tuple[Message, ...]
    remarks: tuple[str, ...]

    def with_settings(self, given_settings: MessageStoreConfig | None) -> MessageStoreConfig:
        """Return the plan's configuration, overlaid with the one of ``--config``."""
        config, _ = from_mapping(self.config)
        return config if given_settings is None else config.overlaid(given_settings)


def read_plan(path: str, release: Release = NEWEST) -> PutPlan:
    """Read the plan in a file; raises :class:`UsageError` naming the message and the field, :class:`CannotRead`."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=path) from error
    try:
        fields = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise UsageError(sentence("expected a plan in JSON: {error}", error=error), file=path) from None
    if not isinstance(fields, dict):
        raise UsageError(sentence("expected a plan: a JSON object"), file=path)
    try:
        return _plan(fields, release)
    except _PlanError as wrong:
        raise UsageError(str(wrong), file=path) from None


class _PlanError(ValueError):
    """An invalid plan; the message names the field."""


def _plan(fields: dict[str, Any], release: Release) -> PutPlan:
    config = fields.get("config", {})
    if not isinstance(config, dict):
        raise _PlanError("config: expected an object")
    _, unknown = from_mapping(config)
    remarks = [f"config: unknown to brokers: {name}" for name in unknown]
    if _number(fields, "count", 0):
        raise _PlanError("count: random messages are not supported; expected a list of messages")
    ignored = [name for name in fields if name in RUN_FIELDS]
    if ignored:
        remarks.append(f"ignored in the plan: {', '.join(ignored)}")
    unknown_fields = [name for name in fields if name not in (*_PLAN_FIELDS, *RUN_FIELDS, *GENERATOR_FIELDS)]
    if unknown_fields:
        remarks.append(f"unknown in a plan: {', '.join(unknown_fields)}")
    listed = fields.get("messages", [])
    if not isinstance(listed, list):
        raise _PlanError("messages: expected a list")
    hosts = fields.get("bornHosts", [BORN_HOST])
    if not isinstance(hosts, list) or not hosts:
        raise _PlanError("bornHosts: expected a list of ip:port")
    born = _host(hosts[0], "bornHosts")
    stored = _host(fields.get("storeHost", STORE_HOST), "storeHost")
    base = _number(fields, "bornBase", BORN_BASE_MS)
    messages = []
    for place, message_fields in enumerate(listed):
        try:
            messages.append(_message(message_fields, born, stored, base + BORN_STEP_MS * place, release))
        except ValueError as error:
            raise _PlanError(f"messages[{place}]: {error}") from None
    return PutPlan(config, tuple(_batch_topics(fields)), tuple(messages), tuple(remarks))


def _batch_topics(fields: dict[str, Any]) -> Iterator[tuple[str, int]]:
    topics = fields.get("topics", [])
    if not isinstance(topics, list) or not all(isinstance(topic, dict) and "name" in topic for topic in topics):
        raise _PlanError("topics: expected a list of objects with a name")
    for topic in topics:
        kind = topic.get("type", "SimpleCQ")
        if kind not in {"SimpleCQ", "BatchCQ"}:
            raise _PlanError(f"topics: {topic['name']}: expected SimpleCQ or BatchCQ, found {kind}")
        if kind == "BatchCQ":
            yield str(topic["name"]), max(_number(topic, "queues", 4) + _number(topic, "firstQueue", 0), 1)


def _message(fields: Any, born: str, stored: str, born_at: int, release: Release) -> Message:
    if not isinstance(fields, dict):
        raise _PlanError("expected an object")
    if not isinstance(fields.get("topic"), str):
        raise _PlanError("topic: expected a text")
    properties = _properties(fields.get("properties", {}))
    raw = encode_properties(properties)
    stored_properties = _with_room(properties, i32(_number(fields, "sysFlag", 0)))
    if not rules_of(release).closes_last_property:
        raw = raw[:-1]  # 4.9.1 to 5.1 leave the last pair open
    else:
        stored_properties = {
            name: value for name, value in stored_properties.items() if name not in _IGNORED_PROPERTIES
        }
    return Message(
        fields["topic"],
        _body(fields),
        i32(_number(fields, "queue", 0)),
        stored_properties,
        raw,
        flag=i32(_number(fields, "flag", 0)),
        sys_flag=i32(_number(fields, "sysFlag", 0)),
        born_timestamp=_number(fields, "bornTimestamp", born_at),
        born_host=_host(fields["bornHost"], "bornHost") if "bornHost" in fields else born,
        store_host=_host(fields["storeHost"], "storeHost") if "storeHost" in fields else stored,
        reconsume_times=i32(_number(fields, "reconsumeTimes", 0)),
        prepared_transaction_offset=_number(fields, "preparedTransactionOffset", 0),
    )


def _body(fields: dict[str, Any]) -> bytes:
    text = fields.get("bodyHex", fields.get("body", ""))
    if not isinstance(text, str):
        raise _PlanError("body: expected a text")
    if "bodyHex" not in fields:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _PlanError("bodyHex: expected pairs of hex digits") from None


def _properties(value_map: Any) -> dict[str, str]:
    """Return the properties in the order in which Java's hash map yields them, so that the stored text is the same."""
    if not isinstance(value_map, dict):
        raise _PlanError("properties: expected an object of texts")
    properties = {}
    for name, value in value_map.items():
        if isinstance(value, bool):
            properties[name] = "true" if value else "false"
        elif isinstance(value, str | int):
            properties[name] = str(value)
        else:
            raise _PlanError(f"properties: {name}: expected a text")
    return {name: properties[name] for name in hash_map_order(properties)}


def _with_room(properties: dict[str, str], sys_flag: int) -> dict[str, str]:
    """Return ``properties`` with those that the store adds, in the order of the encoded text."""
    added = dict(properties)
    if sys_flag & INNER_BATCH:
        added.setdefault(props.INNER_BASE, "0")
    if props.INNER_MULTI_DISPATCH in properties:
        added.setdefault(props.INNER_MULTI_QUEUE_OFFSET, "")
    return {name: added[name] for name in hash_map_order(added)}


def _number(fields: dict[str, Any], name: str, default: int) -> int:
    value = fields.get(name, default)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise _PlanError(f"{name}: expected a whole number within 64 bits, found {fields.get(name)!r}")
    return value


def _host(text: Any, name: str) -> str:
    """Return ``ip:port``. An IPv4-mapped IPv6 address becomes IPv4, as in Java."""
    address, colon, port = str(text).rpartition(":")
    try:
        ip = ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))
        if not colon or not 0 <= int(port) <= 65_535:
            raise ValueError
    except ValueError:
        raise _PlanError(f"{name}: expected ip:port or [ip]:port, found {text!r}") from None
    if isinstance(ip, ipaddress.IPv6Address):
        return f"{ip.ipv4_mapped}:{int(port)}" if ip.ipv4_mapped else f"[{ip}]:{int(port)}"
    return f"{ip}:{int(port)}"
