"""``put``: put messages into an existing or a new store; prints one record a message.

The plan of ``put --plan`` is a JSON object with ``config``, ``topics`` and ``messages``. The Java store of our peer
tests reads the same file and writes the same units, except for store times.

Fields of a message: ``topic queue body|bodyHex properties flag sysFlag reconsumeTimes preparedTransactionOffset
bornTimestamp bornHost storeHost``. Without ``bornTimestamp`` message *n* is born at ``bornBase`` + 7·n ms, at the first
of ``bornHosts``; without ``storeHost`` it is stored at the plan's ``storeHost``.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.backup import add_consent, ask_consent, backed_up
from engine.cli.options import add_command, add_release, common_options, number
from engine.cli.output import Column, Output
from engine.cli.writing import WriteTarget, find_target, given_config, report_compilation, target_release
from engine.codec import properties as props
from engine.codec.encode import Message, encode_properties
from engine.codec.java import hash_map_order, i32
from engine.codec.message import INNER_BATCH
from engine.config import MessageStoreConfig, from_mapping
from engine.english import number_of
from engine.errors import CannotRead, UsageError
from engine.inspection import records
from engine.releases import NEWEST, Release, of
from engine.sentences import sentence

_COLUMNS = (
    Column("Status", "status"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Size", "size", "number"),
    Column("Stored", "storeTimestamp", "time"),
    Column("Message id", "msgId"),
)
_MESSAGE_OPTIONS = ("queue", "body", "tags", "keys", "unique_key", "properties", "flag")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "put",
        "Put messages into a store, or into a new one (writes)",
        "put /tmp/new --topic Orders --body hello --tags OrderPaid --keys O-1042",
        "put /tmp/new --plan messages.json --yes",
        parents=[common_options()],
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a new or empty folder")
    parser.add_argument(
        "--plan", metavar="PLAN.json", help="read the messages, and the configuration of a new store, from this file"
    )
    parser.add_argument("--topic", metavar="T", help="the topic of one message")
    parser.add_argument("--queue", type=number, metavar="Q", help="its queue id (default: 0)")
    parser.add_argument("--body", metavar="TEXT", help="its body")
    parser.add_argument("--tags", metavar="TAG", help="its tag")
    parser.add_argument("--keys", metavar="'K1 K2'", help="its keys, separated by spaces")
    parser.add_argument("--unique-key", metavar="ID", help="its unique key (UNIQ_KEY)")
    parser.add_argument(
        "--property",
        action="append",
        dest="properties",
        metavar="NAME=VALUE",
        help="a property; may be given several times",
    )
    parser.add_argument("--flag", type=number, metavar="N", help="its flag (default: 0)")
    add_release(
        parser, "write as this RocketMQ release does (default: as the store was written; new store: the newest)"
    )
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    report_compilation(out)
    release = target_release(args.store, args.release)
    plan = _plan_from_arguments(args, release)
    for remark in plan.remarks:
        out.say(remark)
    target = find_target(args.store, plan.with_settings(given_config(args, out)), release)
    planned = _planned(target, plan.messages)
    if target.exists and not ask_consent(args, planned, "Put them there?", empty_log=target.empty_log):
        return 2
    return 0 if _put(args, out, target, plan) else 1


def _put(args: argparse.Namespace, out: Output, target: WriteTarget, plan: PutPlan) -> bool:
    from engine.message_store import MessageStore

    stored = True
    changes = target.recovery is not None and not target.recovery.changes_nothing
    with backed_up(args, target.path, target.config, enabled=changes) as backup:
        opened = MessageStore(
            target.path, target.config, disk=backup.store_disk, release=target.release, empty_log=args.empty_log
        )
        with opened as store:
            backup.settled = True
            for name, queues in plan.batch_topics:
                if not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, queues, attributes={"queue.type": "BatchCQ"})
            for message in plan.messages:
                result = store.put_message(message)
                stored &= result.ok
                out.record({**records.put(result), **backup.place}, _COLUMNS)
            store.wait_dispatched()
    backup.say(out)
    return stored


def _plan_from_arguments(args: argparse.Namespace, release: Release) -> PutPlan:
    """Return the plan of ``--plan``, or one with the message that the options describe."""
    named = [name for name in _MESSAGE_OPTIONS if getattr(args, name) is not None]
    if args.plan is not None:
        if args.topic is not None or named:
            raise UsageError(sentence("expected either --plan or one message by --topic and --body, found both"))
        return read_plan(args.plan, release)
    if args.topic is None or args.body is None:
        raise UsageError(sentence("expected --plan PLAN.json, or --topic T and --body TEXT"))
    properties = {}
    for text in args.properties or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(sentence("--property: expected NAME=VALUE, found '{text}'", text=text))
        properties[name] = value
    message = Message(
        args.topic,
        args.body.encode("utf-8", "surrogateescape"),
        args.queue or 0,
        properties,
        flag=args.flag or 0,
        tags=args.tags,
        keys=args.keys,
        unique_key=args.unique_key,
    )
    return PutPlan({}, (), (message,), ())


def _planned(target: WriteTarget, messages: Sequence[Message]) -> Iterator[str]:
    yield from target.planned()
    size = sum(len(message.body) for message in messages)
    topics = len({message.topic for message in messages})
    are = "is" if len(messages) == 1 else "are"
    summary = f"{number_of(len(messages), 'message', 'messages')} of {number_of(topics, 'topic', 'topics')}"
    yield f"Then {summary} {are} appended, {number_of(size, 'byte', 'bytes')} of bodies."


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
    if not of(release).closes_last_property:
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
