"""``put``: messages into a store that is there or into a new one, by the engine; one record a message.

The plan of ``put --plan``: a JSON object with ``config``, ``topics`` and ``messages``, as the Java store of our peer
tests reads it; the same list gives the same units there and here, store times aside.

Of a message: ``topic queue body|bodyHex properties flag sysFlag reconsumeTimes preparedTransactionOffset bornTimestamp
bornHost storeHost``. Without a birth of its own message *n* is born at ``bornBase`` + 7·n ms, at the first of
``bornHosts``; without a store host it is stored at the plan's ``storeHost``.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cli.keeping import add_consent, consented, keeping
from engine.cli.options import add_release, common, number
from engine.cli.output import Column, Output
from engine.cli.writing import WriteTarget, find_target, given_config, say_compilation, target_release
from engine.codec import properties as props
from engine.codec.encode import Message, encode_properties
from engine.codec.java import hash_map_order, i32
from engine.codec.message import INNER_BATCH
from engine.config import MessageStoreConfig, from_mapping
from engine.counted import counted
from engine.errors import CannotRead, UsageError
from engine.inspection import records
from engine.releases import NEWEST, Release, of

_COLUMNS = (
    Column("Status", "status"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Size", "size", "number"),
    Column("Stored", "storeTimestamp", "time"),
    Column("Message id", "msgId"),
)
_OF_ONE = ("queue", "body", "tags", "keys", "unique_key", "properties", "flag")


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "put", parents=[common()], help="writes: puts messages into a store, or into a new one"
    )
    parser.add_argument("store", metavar="STORE", help="a store, or a directory that is absent or empty")
    parser.add_argument("--plan", metavar="PLAN.json", help="the messages and the configuration of a new store")
    parser.add_argument("--topic", metavar="T", help="the topic of one message")
    parser.add_argument("--queue", type=number, metavar="Q", help="its queue; 0 unless given")
    parser.add_argument("--body", metavar="TEXT")
    parser.add_argument("--tags", metavar="TAG")
    parser.add_argument("--keys", metavar="'K1 K2'", help="its keys, a space between them")
    parser.add_argument("--unique-key", metavar="ID")
    parser.add_argument("--property", action="append", dest="properties", metavar="NAME=VALUE")
    parser.add_argument("--flag", type=number, metavar="N")
    add_release(parser, "the release whose rules apply (default: that of the store, a new one is of the newest)")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    say_compilation(out)
    release = target_release(args.store, args.release)
    plan = _asked(args, release)
    for remark in plan.remarks:
        out.say(remark)
    target = find_target(args.store, plan.over(given_config(args, out)), release)
    planned = _planned(target, plan.messages)
    if target.exists and not consented(args, planned, "Put them there?", empty_log=target.empty_log):
        return 2
    return 0 if _put(args, out, target, plan) else 1


def _put(args: argparse.Namespace, out: Output, target: WriteTarget, plan: PutPlan) -> bool:
    from engine.message_store import MessageStore

    stored = True
    changes = target.recovery is not None and not target.recovery.changes_nothing
    with keeping(args, target.path, target.config, wanted=changes) as kept:
        opened = MessageStore(
            target.path, target.config, disk=kept.store_disk, release=target.release, empty_log=args.empty_log
        )
        with opened as store:
            kept.settled = True
            for name, queues in plan.batch_topics:
                if not store.tables.is_batch_topic(name):
                    store.tables.create_topic(name, queues, attributes={"queue.type": "BatchCQ"})
            for message in plan.messages:
                result = store.put_message(message)
                stored &= result.ok
                out.record({**records.put(result), **kept.place}, _COLUMNS)
            store.wait_dispatched()
    kept.say(out)
    return stored


def _asked(args: argparse.Namespace, release: Release) -> PutPlan:
    """The plan that was given, or one of the single message that the options describe."""
    named = [name for name in _OF_ONE if getattr(args, name) is not None]
    if args.plan is not None:
        if args.topic is not None or named:
            raise UsageError("expected either --plan or one message by --topic and --body, found both")
        return read_plan(args.plan, release)
    if args.topic is None or args.body is None:
        raise UsageError("expected --plan PLAN.json, or --topic T and --body TEXT")
    properties = {}
    for text in args.properties or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--property: expected NAME=VALUE, found '{text}'")
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
    what = f"{counted(len(messages), 'messages')} of {counted(topics, 'topics')}"
    yield f"Then {what} {are} put behind it, {size:,} bytes of bodies."


LARGEST_PLAN = 1 << 30
BORN_BASE = 1_700_000_000_000
BORN_STEP = 7
BORN_HOST = "10.1.2.3:40001"
STORE_HOST = "127.0.0.1:10911"
OF_THE_GENERATOR = (
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
OF_THE_RUN = (
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
_READ = ("config", "topics", "messages", "bornHosts", "bornBase", "storeHost")
_NOT_LOOKED_AT = (props.DELAY, props.TIMER_DELAY_SEC, props.TIMER_DELAY_MS, props.TIMER_DELIVER_MS)
"""Properties that a broker, not its store, has rules for: the store of 5.x keeps them as they are."""


@dataclass(frozen=True, slots=True)
class PutPlan:
    """A plan that was read: ``batch_topics`` are (name, queues), ``remarks`` tell what is left out."""

    config: dict[str, object]
    batch_topics: tuple[tuple[str, int], ...]
    messages: tuple[Message, ...]
    remarks: tuple[str, ...]

    def over(self, given: MessageStoreConfig | None) -> MessageStoreConfig:
        """The plan's configuration below what was ``given`` by ``--config``."""
        config, _ = from_mapping(self.config)
        return config if given is None else config.overlaid(given)


def read_plan(path: str, like: Release = NEWEST) -> PutPlan:
    """The plan in a file; raises :class:`UsageError` naming the message and the field, :class:`CannotRead`."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(LARGEST_PLAN + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=path) from error
    try:
        found = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"expected a plan in JSON: {error}", file=path) from None
    if not isinstance(found, dict):
        raise UsageError("expected a plan: a JSON object", file=path)
    try:
        return _plan(found, like)
    except _Wrong as wrong:
        raise UsageError(str(wrong), file=path) from None


class _Wrong(ValueError):
    """What is wrong with a plan, in words."""


def _plan(found: dict[str, Any], like: Release) -> PutPlan:
    config = found.get("config", {})
    if not isinstance(config, dict):
        raise _Wrong("config: expected an object")
    _, unknown = from_mapping(config)
    remarks = [f"config: no broker knows {name}" for name in unknown]
    if _number(found, "count", 0):
        raise _Wrong("count: random messages are not made here; expected an explicit list of messages")
    ignored = [name for name in found if name in OF_THE_RUN]
    if ignored:
        remarks.append(f"left out of the plan: {', '.join(ignored)}")
    strange = [name for name in found if name not in (*_READ, *OF_THE_RUN, *OF_THE_GENERATOR)]
    if strange:
        remarks.append(f"not known in a plan: {', '.join(strange)}")
    listed = found.get("messages", [])
    if not isinstance(listed, list):
        raise _Wrong("messages: expected a list")
    hosts = found.get("bornHosts", [BORN_HOST])
    if not isinstance(hosts, list) or not hosts:
        raise _Wrong("bornHosts: expected a list of ip:port")
    born = _host(hosts[0], "bornHosts")
    stored = _host(found.get("storeHost", STORE_HOST), "storeHost")
    base = _number(found, "bornBase", BORN_BASE)
    messages = []
    for place, one in enumerate(listed):
        try:
            messages.append(_message(one, born, stored, base + BORN_STEP * place, like))
        except ValueError as error:
            raise _Wrong(f"messages[{place}]: {error}") from None
    return PutPlan(config, tuple(_batch_topics(found)), tuple(messages), tuple(remarks))


def _batch_topics(found: dict[str, Any]) -> Iterator[tuple[str, int]]:
    topics = found.get("topics", [])
    if not isinstance(topics, list) or not all(isinstance(one, dict) and "name" in one for one in topics):
        raise _Wrong("topics: expected a list of objects with a name")
    for one in topics:
        kind = one.get("type", "SimpleCQ")
        if kind not in {"SimpleCQ", "BatchCQ"}:
            raise _Wrong(f"topics: {one['name']}: expected SimpleCQ or BatchCQ, found {kind}")
        if kind == "BatchCQ":
            yield str(one["name"]), max(_number(one, "queues", 4) + _number(one, "firstQueue", 0), 1)


def _message(one: Any, born: str, stored: str, born_at: int, like: Release) -> Message:
    if not isinstance(one, dict):
        raise _Wrong("expected an object")
    if not isinstance(one.get("topic"), str):
        raise _Wrong("topic: expected a text")
    properties = _properties(one.get("properties", {}))
    raw = encode_properties(properties)
    looked_at = _with_room(properties, i32(_number(one, "sysFlag", 0)))
    if not of(like).closes_last_property:
        raw = raw[:-1]  # 4.9.1 to 5.1 leave the last pair open
    else:
        looked_at = {name: value for name, value in looked_at.items() if name not in _NOT_LOOKED_AT}
    return Message(
        one["topic"],
        _body(one),
        i32(_number(one, "queue", 0)),
        looked_at,
        raw,
        flag=i32(_number(one, "flag", 0)),
        sys_flag=i32(_number(one, "sysFlag", 0)),
        born_timestamp=_number(one, "bornTimestamp", born_at),
        born_host=_host(one["bornHost"], "bornHost") if "bornHost" in one else born,
        store_host=_host(one["storeHost"], "storeHost") if "storeHost" in one else stored,
        reconsume_times=i32(_number(one, "reconsumeTimes", 0)),
        prepared_transaction_offset=_number(one, "preparedTransactionOffset", 0),
    )


def _body(one: dict[str, Any]) -> bytes:
    text = one.get("bodyHex", one.get("body", ""))
    if not isinstance(text, str):
        raise _Wrong("body: expected a text")
    if "bodyHex" not in one:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _Wrong("bodyHex: expected pairs of hex digits") from None


def _properties(given: Any) -> dict[str, str]:
    """In the order in which Java's hash map gives them out, so that the stored text is the same."""
    if not isinstance(given, dict):
        raise _Wrong("properties: expected an object of texts")
    found = {}
    for name, value in given.items():
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, str | int):
            found[name] = str(value)
        else:
            raise _Wrong(f"properties: {name}: expected a text")
    return {name: found[name] for name in hash_map_order(found)}


def _with_room(properties: dict[str, str], sys_flag: int) -> dict[str, str]:
    """``properties`` with what the store adds already in its place, where it makes the text anew."""
    added = dict(properties)
    if sys_flag & INNER_BATCH:
        added.setdefault(props.INNER_BASE, "0")
    if props.INNER_MULTI_DISPATCH in properties:
        added.setdefault(props.INNER_MULTI_QUEUE_OFFSET, "")
    return {name: added[name] for name in hash_map_order(added)}


def _number(one: dict[str, Any], name: str, default: int) -> int:
    value = one.get(name, default)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise _Wrong(f"{name}: expected a whole number within 64 bits, found {one.get(name)!r}")
    return value


def _host(text: Any, name: str) -> str:
    """``ip:port``, an IPv4 address in IPv6 clothes undressed as Java does."""
    address, colon, port = str(text).rpartition(":")
    try:
        ip = ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))
        if not colon or not 0 <= int(port) <= 65_535:
            raise ValueError
    except ValueError:
        raise _Wrong(f"{name}: expected ip:port or [ip]:port, found {text!r}") from None
    if isinstance(ip, ipaddress.IPv6Address):
        return f"{ip.ipv4_mapped}:{int(port)}" if ip.ipv4_mapped else f"[{ip}]:{int(port)}"
    return f"{ip}:{int(port)}"
