"""Delivery of delayed messages: a message of a delay level goes to its topic when it is due
(docs/protocol/behaviour.md#delays; docs/formats/delays.md#delivery, #delivered-message).

Java: ``ScheduleMessageService``. Where each level stands is a table of the store (``delayOffset.json``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.broker.stats import DELAY
from engine.codec import properties
from engine.codec.encode import HOST_BITS, Message
from engine.codec.message import Unit
from engine.store.queue_entry import unit_at
from engine.system_names import HALF_TOPIC, SCHEDULE_TOPIC

if TYPE_CHECKING:
    from engine.broker.broker import Broker


PAUSE = 0.1
"""Seconds from one look at the levels to the next."""
READER = "SCHEDULE_CONSUMER"
"""The group that RocketMQ counts as the reader of delayed messages."""
MAX_PER_STEP = 256
"""Messages of one level in one step: clients are answered in between."""
_DELAYS = (properties.DELAY, properties.TIMER_DELIVER_MS, properties.TIMER_DELAY_SEC)


def deliver_due(broker: Broker) -> None:
    """Deliver the due messages of every level, in order."""
    delivered = 0
    for level, delay in enumerate(broker.store.config.delay_levels(), 1):
        delivered += _deliver_level(broker, level, delay)
    if delivered:
        broker.dispatched()


def _deliver_level(broker: Broker, level: int, delay: int) -> int:
    """Return how many messages were delivered; one that could not be put is tried again by the next step."""
    store, tables = broker.store, broker.store.tables
    queue = store.parts.queues.queue(SCHEDULE_TOPIC, level - 1)
    if queue is None:
        return 0
    stored_offset = tables.delay_offset(level)
    offset = min(max(stored_offset, queue.min_offset), queue.max_offset)
    now, delivered, end = broker.now(), 0, offset + MAX_PER_STEP
    while offset < min(queue.max_offset, end):
        entry = unit_at(queue, offset)
        if entry is None or entry.state != "entry":
            break
        due = entry.real_tags_code
        unit = store.look_message_by_offset(entry.physical_offset)
        if due is None:  # its ext unit cannot be read: computed from the store time
            due = now if unit is None else unit.store_timestamp + delay
        if now < due <= now + delay:  # further ahead than that only where the clock has moved: now
            break
        message = None if unit is None else delivered_message(unit)
        if message is not None:
            result = store.put_message(message)
            if not result.ok:
                break
            if result.append is not None:
                _count(broker, message.topic, result.append.size)
            delivered += 1
        offset += 1
    if offset != stored_offset:
        tables.set_delay_offset(level, offset)
    return delivered


def _count(broker: Broker, topic: str, size: int) -> None:
    stats = broker.stats
    stats.got[READER, SCHEDULE_TOPIC, None].add(1, size)
    stats.put[topic, DELAY].add(1, size)
    stats.sizes[topic, DELAY].add(size)


def delivered_message(unit: Unit) -> Message | None:
    """Return a delayed message as its topic gets it: the property text still names the delay, but it is not delayed
    again. None for a half message, and for a unit that names no topic.
    """
    unit_properties = unit.properties
    topic, queue_id = unit_properties.get(properties.REAL_TOPIC), unit_properties.get(properties.REAL_QUEUE_ID, "")
    if not topic or topic == HALF_TOPIC or not queue_id.isascii() or not queue_id.isdigit():
        return None
    rules = {name: value for name, value in unit_properties.items() if name not in _DELAYS}
    rules[properties.WAIT] = "false"
    return Message(
        topic,
        unit.body,
        int(queue_id),
        rules,
        unit.properties_raw,
        flag=unit.flag,
        sys_flag=unit.sys_flag & ~HOST_BITS,
        born_timestamp=unit.born_timestamp,
        born_host=unit.born_host,
        store_host=unit.store_host,
        reconsume_times=unit.reconsume_times,
    )
