"""What a master's broker says of its log before it is followed, and its tables (docs/protocol/broker.md#admin,
docs/protocol/behaviour.md#offsets).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from engine.codec import config_tables as codec
from engine.codec.config_tables import ConsumerOffset, TopicConfig
from engine.codec.json_dialect import parse
from engine.properties_file import parse as parse_properties
from engine.remoting.connection import Connection, connect, not_supported
from engine.remoting.frame import Command
from engine.store.config_tables import ConfigTables

GET_BROKER_CONFIG, GET_BROKER_RUNTIME_INFO, GET_BROKER_HA_STATUS = 26, 28, 907
GET_ALL_MESSAGE_REQUEST_MODE = 402
TABLES = (21, 43, 45, 201)
"""Topics, consumer offsets, delay offsets, groups."""
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Master:
    """The master's log: offsets of its first byte and behind its last one, and the length of its files (bytes)."""

    min_offset: int
    max_offset: int
    file_size: int


async def ask_master(host: str, port: int) -> Master | None:
    """What the broker at a port of its own says; None where nobody there says it."""
    try:
        runtime, config = await _ask(host, port, GET_BROKER_RUNTIME_INFO, GET_BROKER_CONFIG)
        table = parse(runtime).value["table"]
        lines = {one.key: one.value for one in parse_properties(config.decode("utf-8", "replace"))}
        size = int(lines["mappedFileSizeCommitLog"])
        return Master(int(table["commitLogMinOffset"]), int(table["commitLogMaxOffset"]), size)
    except (OSError, TimeoutError, ValueError, KeyError, TypeError):
        return None


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
        """Bytes that the master has and the slave has not said it has."""
        return max(self.wrote - self.acknowledged, 0)


async def ask_slaves(host: str, port: int) -> tuple[SlavePosition, ...] | None:
    """Who follows the broker at a port of its own; None where it does not say so (it knows no 907: before 5.x)."""
    try:
        (body,) = await _ask(host, port, GET_BROKER_HA_STATUS)
        told = parse(body).value
        end = int(told["masterCommitLogMaxOffset"])
        return tuple(
            SlavePosition(str(one["addr"]), end, int(one["transferFromWhere"]), int(one["slaveAckOffset"]))
            for one in told["haConnectionInfo"]
        )
    except (OSError, TimeoutError, ValueError, KeyError, TypeError):
        return None


async def copy_tables(host: str, port: int, tables: ConfigTables) -> bool:
    """Declare the broker's topics and groups, and set its offsets, in a store's own tables; whether the broker gave
    them. What else is declared here stays. Raises ``OSError`` where the tables cannot be written.
    """
    found = await _tables_of(host, port)
    if found is None:
        return False
    _take(found, tables)
    tables.complete()
    tables.save()
    return True


async def mirror_tables(host: str, port: int, tables: ConfigTables) -> bool:
    """:meth:`copy_tables`, and what the broker does not declare is declared no more, as a slave does
    (docs/protocol/behaviour.md#offsets).
    """
    found = await _tables_of(host, port)
    if found is None or not found.topics:
        return False
    tables.delete_topics(tables.topics().keys() - {one.name for one in found.topics})
    for group in tables.groups().keys() - found.groups.keys():
        tables.delete_group(group)
    _take(found, tables)
    tables.save()
    return True


async def ask_request_modes(host: str, port: int) -> dict[str, Any] | None:
    """Which groups pop, as ``messageRequestMode.json`` has it; None where the broker does not say so (before 5.x)."""
    try:
        (body,) = await _ask(host, port, GET_ALL_MESSAGE_REQUEST_MODE)
        table = parse(body).value
    except (OSError, TimeoutError, ValueError):
        return None
    return {str(key): value for key, value in table.items()} if isinstance(table, dict) else None


async def _tables_of(host: str, port: int) -> MasterTables | None:
    try:
        bodies = await _ask(host, port, *TABLES)
        topics, offsets, delays, groups = (parse(body).value for body in bodies)
    except (OSError, TimeoutError, ValueError):
        return None
    rows = groups.get("subscriptionGroupTable", {}) if isinstance(groups, dict) else {}
    named = {one.name: dict(rows[one.name]) for one in codec.subscription_groups(groups).rows}
    read = codec.consumer_offsets(offsets).rows
    return MasterTables(list(codec.topics(topics).rows), named, list(read), dict(codec.delay_offsets(delays)[0]))


def _take(found: MasterTables, tables: ConfigTables) -> None:
    declared = tables.topics()
    tables.declare_topics(one for one in found.topics if declared.get(one.name) != one)
    for name, row in found.groups.items():
        held = tables.group_row(name)
        if held is None or any(held.get(key) != value for key, value in row.items()):
            tables.create_group(name, more=row)
    for offset in found.offsets:
        if offset.mode == "cluster":
            for queue_id, at in offset.offsets.items():
                tables.commit_consumer_offset(offset.group, offset.topic, queue_id, at)
    for level, at in found.delays.items():
        tables.set_delay_offset(level, at)


async def _ask(host: str, port: int, *codes: int) -> list[bytes]:
    """The bodies of the broker's answers. Raises ``OSError``, ``TimeoutError``, ``ValueError`` for a refusal."""
    async with asyncio.timeout(_PATIENCE):
        connection = await connect(host, port, _hear)
    try:
        answers = [await connection.ask(Command(code), _PATIENCE) for code in codes]
    finally:
        connection.close()
    refused = [answer.remark for answer in answers if answer.code != 0]
    if refused:
        raise ValueError(refused[0])
    return [bytes(answer.body) for answer in answers]


def _hear(request: Command, _connection: Connection) -> Command:
    return not_supported(request)
