"""Cleaning of static topics: forget ranges whose messages are deleted, and queues that other brokers lead by now
(docs/protocol/static-topics.md).

Java: ``TopicQueueMappingCleanService``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engine.codec.json_dialect import parse
from engine.codec.queue_mappings import TopicMapping, read_mapping
from engine.errors import cause_of
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.frame import Command
from engine.rules.retention_rules import delete_hours

if TYPE_CHECKING:
    from engine.broker.broker import Broker


_log = logging.getLogger(__name__)
CLEAN_INTERVAL_S = 300.0


def clean_later(broker: Broker) -> None:
    """Clean the mappings in a task of its own, in the hours of ``deleteWhen`` only."""
    hour = datetime.fromtimestamp(broker.now() / 1000).astimezone().hour
    if not broker.static_topics.mappings or hour not in delete_hours(broker.store.config.delete_when):
        return
    task = asyncio.get_running_loop().create_task(clean(broker))
    broker.tasks.add(task)
    task.add_done_callback(broker.tasks.discard)


async def clean(broker: Broker) -> None:
    """Forget ranges without messages, and queues whose leader moved to a third broker."""
    for topic in list(broker.static_topics.mappings):
        try:
            await _drop_empty_ranges(broker, topic)
            await _drop_lost_queues(broker, topic)
        except (OSError, TimeoutError, ValueError) as error:
            _log.warning("the mapping of %s is not cleaned: %s", topic, cause_of(error, type(error).__name__))


async def _drop_empty_ranges(broker: Broker, topic: str) -> None:
    """Forget the oldest range of each queue that this broker leads if its messages are deleted."""
    mapping = broker.static_topics.mappings[topic]
    led_queues = {
        number: ranges for number, ranges in mapping.queues.items() if len(ranges) > 1 and mapping.leads(number)
    }
    tables: dict[str, Mapping[Any, Any]] = {}
    for name in {ranges[0].broker for ranges in led_queues.values()}:
        fields = {"topic": topic, "bname": name, "lo": "false"}
        answer = await broker.ask_broker(name, Command(RequestCode.GET_TOPIC_STATS_INFO, fields))
        if answer.code == ResponseCode.SUCCESS:
            tables[name] = _bounds(bytes(answer.body))
    emptied = {
        number: ranges[1:]
        for number, ranges in led_queues.items()
        if (bounds := tables.get(ranges[0].broker, {}).get(ranges[0].queue_id)) is not None
        and (bounds[0] == bounds[1] or bounds[1] == 0)
    }
    if emptied and broker.static_topics.mappings.get(topic) is mapping:
        broker.static_topics.replace_queues(topic, {**mapping.queues, **emptied})


def _bounds(body: bytes) -> dict[int, tuple[int, int]]:
    """Return minimum and maximum offset by queue from the body of a GET_TOPIC_STATS_INFO answer."""
    value = parse(body).value
    table = value.get("offsetTable") if isinstance(value, Mapping) else None
    bounds = {}
    for key, row in (table if isinstance(table, Mapping) else {}).items():
        queue = parse(str(key).encode()).value
        if isinstance(queue, Mapping) and isinstance(row, Mapping):
            bounds[int(queue["queueId"])] = int(row["minOffset"]), int(row["maxOffset"])
    return bounds


async def _drop_lost_queues(broker: Broker, topic: str) -> None:
    """Forget the queues whose leader in this broker's mapping is no longer their leader."""
    mapping = broker.static_topics.mappings[topic]
    leaders_here = {number: ranges[-1].broker for number, ranges in mapping.queues.items() if ranges}
    lost_queues = {number: leader for number, leader in leaders_here.items() if leader != mapping.broker}
    if not lost_queues:
        return
    leaders = await broker.leaders_of(topic)
    mappings: dict[str, TopicMapping | None] = {}
    for name in {leaders[number] for number in lost_queues if number in leaders}:
        fields = {"topic": topic, "bname": name, "lo": "true"}
        answer = await broker.ask_broker(name, Command(RequestCode.GET_TOPIC_CONFIG, fields))
        body = parse(bytes(answer.body)).value if answer.code == ResponseCode.SUCCESS else None
        mappings[name] = read_mapping(body.get("mappingDetail")) if isinstance(body, Mapping) else None
    dropped = set()
    for number, leader_here in lost_queues.items():
        leader = leaders.get(number, "")
        remote = mappings.get(leader)
        if (
            remote is not None
            and (remote.total_queues, remote.epoch) == (mapping.total_queues, mapping.epoch)
            and remote.queues.get(number)
            and remote.queues[number][-1].broker == leader != leader_here
        ):
            dropped.add(number)
    if dropped and broker.static_topics.mappings.get(topic) is mapping:
        remaining = {number: ranges for number, ranges in mapping.queues.items() if number not in dropped}
        broker.static_topics.replace_queues(topic, remaining)
