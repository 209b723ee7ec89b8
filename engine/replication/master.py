"""Questions to a master's broker before its log is followed: its log, its slaves, its tables
(docs/protocol/broker.md#admin, docs/protocol/behaviour.md#offsets).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from engine.codec import config_tables as codec
from engine.codec.config_tables import ConsumerOffset, Rows, TopicConfig
from engine.codec.timer import TimerCheck, decode_check
from engine.files.properties_file import parse as parse_properties
from engine.releases import Release, of_version
from engine.releases import parse as parse_release
from engine.remoting.answers import UnexpectedAnswer, json_object, member_object, member_objects, reading
from engine.remoting.codes import STORE_RELEASE, RequestCode, ResponseCode
from engine.remoting.connection import Connection, connect, not_supported
from engine.remoting.frame import Command, release_of
from engine.sentences import sentence
from engine.store.config_tables import ConfigTables


class _Refusal(Exception):
    """The broker answers with a code that is an error."""


TABLES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
)
"""Topics, consumer offsets, delay offsets, groups."""
_TABLE_NAMES = ("topicConfigTable", "offsetTable", "offsetTable", "subscriptionGroupTable")
_MAY_BE_MISSING = {"offsetTable"}
"""Without a single offset a broker may leave the table out."""
_TIMEOUT_S = 5.0
_NO_ANSWER = (OSError, TimeoutError, _Refusal)
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Master:
    """The master's log: offsets of its first byte and behind its last one, and the length of its files (bytes); and the
    release that writes it, None if the broker names none that is known.
    """

    min_offset: int
    max_offset: int
    file_size: int
    release: Release | None = None
    log_kind: Literal["commit log", "controller mode", "DLedger"] = "commit log"
    """How the broker passes its log on: only a plain one can be followed."""

    @property
    def refusal(self) -> str:
        """Why the log of this master cannot be followed, and what can be done instead; "" if it can."""
        if self.log_kind == "controller mode":
            return sentence(
                "the master runs in controller mode: its HA port asks for terms of masters first, which is not spoken "
                "here. Copy its store, or consume its topics; its log goes from {n:,} to {m:,}",
                n=self.min_offset,
                m=self.max_offset,
            )
        if self.log_kind == "DLedger":
            return sentence(
                "the master keeps its log in DLedger, which has no HA port: copy its store (storescope snapshot), from "
                "{n:,} to {m:,}",
                n=self.min_offset,
                m=self.max_offset,
            )
        return ""


async def ask_master(host: str, port: int) -> Master | None:
    """Ask the broker at a port of its own where its log begins and ends; None if nobody there says it. Raises
    :class:`UnexpectedAnswer`.
    """
    try:
        runtime, config = await _ask(host, port, RequestCode.GET_BROKER_RUNTIME_INFO, RequestCode.GET_BROKER_CONFIG)
    except _NO_ANSWER:
        return None
    address = f"{host}:{port}"
    with reading(RequestCode.GET_BROKER_RUNTIME_INFO, address):
        table = member_object(json_object(runtime), "table")
        min_offset, max_offset = int(table["commitLogMinOffset"]), int(table["commitLogMaxOffset"])
    with reading(RequestCode.GET_BROKER_CONFIG, address):
        values = {line.key: line.value for line in parse_properties(config.decode("utf-8", "replace"))}
        file_size = int(values["mappedFileSizeCommitLog"])
        return Master(min_offset, max_offset, file_size, _release(table), _log_kind(values))


def _log_kind(config: Mapping[str, str]) -> Literal["commit log", "controller mode", "DLedger"]:
    if config.get("enableDLegerCommitLog") == "true":
        return "DLedger"
    return "controller mode" if config.get("enableControllerMode") == "true" else "commit log"


def _release(runtime: Mapping[str, Any]) -> Release | None:
    """The release whose rules the broker's store follows, by its runtime figures. RocketMQ has left the number of its
    version out since 5.4, and has its name only: ``V5_5_1``.
    """
    named = str(runtime.get(STORE_RELEASE, ""))
    with contextlib.suppress(ValueError):
        return parse_release(named)
    ordinal = str(runtime.get("brokerVersion", ""))
    if ordinal.isdecimal():
        return of_version(release_of(int(ordinal)))
    name = str(runtime.get("brokerVersionDesc", ""))
    return (
        of_version(name.removeprefix("V").replace("_SNAPSHOT", "-SNAPSHOT").replace("_", "."))
        if name.startswith("V")
        else None
    )


@dataclass(frozen=True, slots=True)
class MasterTables:
    """Rows of a broker's tables, as its answers have them."""

    topics: list[TopicConfig]
    groups: dict[str, dict[str, Any]]
    offsets: list[ConsumerOffset]
    delays: dict[int, int]


@dataclass(frozen=True, slots=True)
class SlavePosition:
    """A slave as its master sees it, in offsets of the log: ``wrote`` is the master's own end, ``sent`` what went
    to the slave, ``acknowledged`` what it says it has. ``peer`` is its address.
    """

    peer: str
    wrote: int
    sent: int
    acknowledged: int

    @property
    def behind(self) -> int:
        """Bytes of the master that the slave has not acknowledged."""
        return max(self.wrote - self.acknowledged, 0)


async def ask_slaves(host: str, port: int) -> tuple[SlavePosition, ...] | None:
    """Ask who follows the broker at a port of its own; None if it does not say so (it knows no 907: before 5.x).
    Raises :class:`UnexpectedAnswer`.
    """
    try:
        (body,) = await _ask(host, port, RequestCode.GET_BROKER_HA_STATUS)
    except _NO_ANSWER:
        return None
    with reading(RequestCode.GET_BROKER_HA_STATUS, f"{host}:{port}"):
        status = json_object(body)
        end = int(status["masterCommitLogMaxOffset"])
        return tuple(
            SlavePosition(str(link["addr"]), end, int(link["transferFromWhere"]), int(link["slaveAckOffset"]))
            for link in member_objects(status, "haConnectionInfo")
        )


async def copy_tables(host: str, port: int, tables: ConfigTables) -> bool:
    """Declare the broker's topics and groups, and set its offsets, in a store's own tables. Returns whether the
    broker gave them. What else is declared here stays. Raises ``OSError`` if the tables cannot be written, and
    :class:`UnexpectedAnswer`: then nothing is changed.
    """
    master_tables = await _tables_of(host, port)
    if master_tables is None:
        return False
    _apply_tables(master_tables, tables)
    tables.complete()
    tables.save()
    return True


async def mirror_tables(host: str, port: int, tables: ConfigTables) -> bool:
    """Do as :meth:`copy_tables`, and delete topics and groups that the broker does not declare, as a slave does
    (docs/protocol/behaviour.md#offsets).
    """
    master_tables = await _tables_of(host, port)
    if master_tables is None or not master_tables.topics:
        return False
    tables.delete_topics(tables.topics().keys() - {topic.name for topic in master_tables.topics})
    for group in tables.groups().keys() - master_tables.groups.keys():
        tables.delete_group(group)
    _apply_tables(master_tables, tables)
    tables.save()
    return True


async def ask_request_modes(host: str, port: int) -> dict[str, Any] | None:
    """Ask which groups pop, as ``messageRequestMode.json`` has it; None if the broker does not say so (before 5.x).
    Raises :class:`UnexpectedAnswer`.
    """
    try:
        (body,) = await _ask(host, port, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    except _NO_ANSWER:
        return None
    with reading(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, f"{host}:{port}"):
        return {str(key): value for key, value in json_object(body).items()}


@dataclass(frozen=True, slots=True)
class MasterTimers:
    """Positions of the master's timers, and the end of its log after they were read: a log that reaches this end has
    what the timers had put.
    """

    check: TimerCheck
    log_end: int


async def ask_timers(host: str, port: int) -> MasterTimers | None:
    """Ask for the positions of the broker's timers; None if it has none (before 5.x, or without a timer wheel).
    Raises :class:`UnexpectedAnswer`.
    """
    try:
        raw, runtime = await _ask(host, port, RequestCode.GET_TIMER_CHECK_POINT, RequestCode.GET_BROKER_RUNTIME_INFO)
    except _NO_ANSWER:
        return None
    address = f"{host}:{port}"
    with reading(RequestCode.GET_TIMER_CHECK_POINT, address):
        check = decode_check(raw)
    with reading(RequestCode.GET_BROKER_RUNTIME_INFO, address):
        return MasterTimers(check, int(member_object(json_object(runtime), "table")["commitLogMaxOffset"]))


async def ask_timer_metrics(host: str, port: int) -> bytes | None:
    """Ask how many timer messages wait by topic, as the file ``timermetrics`` has them; None if the broker has
    none.
    """
    try:
        (body,) = await _ask(host, port, RequestCode.GET_TIMER_METRICS)
    except _NO_ANSWER:
        return None
    return body


async def _tables_of(host: str, port: int) -> MasterTables | None:
    """All rows of the broker's tables. A topic or group that cannot be read is an error, because a slave deletes what
    its master does not declare; an offset under a key that is none is left out, as RocketMQ leaves it out.
    """
    try:
        bodies = await _ask(host, port, *TABLES)
    except _NO_ANSWER:
        return None
    tables: list[Mapping[Any, Any]] = []
    for code, name, body in zip(TABLES, _TABLE_NAMES, bodies, strict=True):
        with reading(code, f"{host}:{port}"):
            table = json_object(body)
            if name in table or name not in _MAY_BE_MISSING:
                member_object(table, name)
            tables.append(table)
    topics, offsets, delays, groups = tables
    with reading(TABLES[0], f"{host}:{port}"):
        topic_rows = _all_rows(codec.topics(topics))
    offset_rows = codec.consumer_offsets(offsets).rows
    with reading(TABLES[2], f"{host}:{port}"):
        delay_rows = _all_rows(Rows(tuple(codec.delay_offsets(delays)[0].items()), codec.delay_offsets(delays)[1]))
    with reading(TABLES[3], f"{host}:{port}"):
        raw_groups = groups["subscriptionGroupTable"]
        group_rows = {row.name: dict(raw_groups[row.name]) for row in _all_rows(codec.subscription_groups(groups))}
    return MasterTables(list(topic_rows), group_rows, list(offset_rows), dict(delay_rows))


def _all_rows(table: Rows[Row]) -> tuple[Row, ...]:
    """The rows of a table that has no problem. Raises :class:`UnexpectedAnswer`."""
    if table.problems:
        raise UnexpectedAnswer(table.problems[0])
    return table.rows


def _apply_tables(master_tables: MasterTables, tables: ConfigTables) -> None:
    declared = tables.topics()
    tables.declare_topics(topic for topic in master_tables.topics if declared.get(topic.name) != topic)
    for name, row in master_tables.groups.items():
        own_row = tables.group_row(name)
        if own_row is None or any(own_row.get(key) != value for key, value in row.items()):
            tables.create_group(name, extra_members=row)
    for offset in master_tables.offsets:
        if offset.mode == "cluster":
            for queue_id, committed in offset.offsets.items():
                tables.commit_consumer_offset(offset.group, offset.topic, queue_id, committed)
    for level, committed in master_tables.delays.items():
        tables.set_delay_offset(level, committed)


async def _ask(host: str, port: int, *codes: int) -> list[bytes]:
    """The bodies of the broker's answers. Raises ``OSError``, ``TimeoutError``, :class:`_Refusal`."""
    async with asyncio.timeout(_TIMEOUT_S):
        connection = await connect(host, port, _refuse_request)
    try:
        answers = [await connection.ask(Command(code), _TIMEOUT_S) for code in codes]
    finally:
        connection.close()
    refused = [answer.remark for answer in answers if answer.code != ResponseCode.SUCCESS]
    if refused:
        raise _Refusal(refused[0])
    return [bytes(answer.body) for answer in answers]


def _refuse_request(request: Command, _connection: Connection) -> Command:
    return not_supported(request)
