"""Edits of single numbers of a store: a group's offset, a delay level's offset, a value of the checkpoint. Each becomes
a patch; nothing is written here. Commands and the window share this.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from engine.codec.checkpoint import CHECKPOINT_SIZE, PARTS, Checkpoint, decode
from engine.codec.config_tables import Table, load_table
from engine.errors import StoreError, Undecoded, UsageError
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table
from engine.inspection.written_release import release_of
from engine.patching.patches import Patch, WriteBytes
from engine.patching.table_edits import set_number
from engine.sentences import sentence
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC

CONSUMER_OFFSETS, LIGHT_OFFSETS, DELAY_OFFSETS = "consumerOffset.json", "lmqConsumerOffset.json", "delayOffset.json"


@dataclass(frozen=True, slots=True)
class ValueEdit:
    """The change of a number from ``current`` (None: there is none) to ``new``; no ``patches`` if it is so already.

    ``bounds`` are the minimum and maximum offset of the queue that an offset belongs to.
    """

    current: int | None
    new: int
    patches: tuple[Patch, ...]
    bounds: tuple[int, int] = (0, 0)


def edit_consumer_offset(store: StoreSnapshot, group: str, topic: str, queue_id: int, offset: int) -> ValueEdit:
    """Return the change of the offset at which a group goes on in a queue.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    is_light = group.startswith(LMQ_PREFIX) and read_table(store, LIGHT_OFFSETS) is not None
    name = LIGHT_OFFSETS if is_light else CONSUMER_OFFSETS
    if "@" in group or "@" in topic:
        raise UsageError(sentence("expected a topic and a group without '@'"))
    bounds = _bounds(store, topic, queue_id)
    _check_offset(offset, bounds, f"{topic}/{queue_id}")
    table, old = _json_table(store, name)
    key = f"{topic}@{group}"
    row, number_key = (("lmqOffsetTable", key), None) if is_light else (("offsetTable", key), queue_id)
    current = _number_in(table, row, number_key)
    if current == offset:
        return ValueEdit(current, offset, (), bounds)
    why = sentence(
        "group {group} goes on at offset {offset:,} of queue {queue} of topic {topic}",
        group=group,
        offset=offset,
        queue=queue_id,
        topic=topic,
    )
    return ValueEdit(current, offset, (set_number(table, old, row, number_key, offset, _now(), why),), bounds)


def edit_delay_offset(store: StoreSnapshot, level: int, offset: int) -> ValueEdit:
    """Return the change of the offset at which the broker goes on delivering a delay level, from 1.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    if level < 1:
        raise UsageError(sentence("expected a delay level from 1 on, found {level}", level=level))
    bounds = _bounds(store, SCHEDULE_TOPIC, level - 1)
    _check_offset(offset, bounds, f"{SCHEDULE_TOPIC}/{level - 1}")
    table, old = _json_table(store, DELAY_OFFSETS)
    current = _number_in(table, ("offsetTable",), level)
    if current == offset:
        return ValueEdit(current, offset, (), bounds)
    why = sentence("delay level {level} goes on at offset {offset:,}", level=level, offset=offset)
    return ValueEdit(current, offset, (set_number(table, old, ("offsetTable",), level, offset, _now(), why),), bounds)


def edit_checkpoint(store: StoreSnapshot, field: str, number: int) -> ValueEdit:
    """Return the change of a number of the checkpoint, named as in :data:`engine.codec.checkpoint.PARTS`.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    assert store.paths is not None
    raw = store.small_file(store.paths.checkpoint)
    if raw is None:
        text = sentence("there is no checkpoint: a broker makes one at its next start")
        raise StoreError(text, file=str(store.paths.checkpoint))
    part = next((part for part in PARTS if part.name == field), None)
    if part is None:
        names = ", ".join(part.name for part in PARTS)
        raise UsageError(sentence("expected one of {names}, found {name}", names=names, name=field))
    old = raw[part.position : part.position + part.length]
    if len(old) < part.length:
        text = sentence("the file ends before {field}", field=part.name)
        raise StoreError(text, file=str(store.paths.checkpoint), offset=len(raw))
    if not -(1 << 63) <= number < 1 << 63:
        raise UsageError(sentence("expected a number of 64 bits, found {number}", number=number))
    new = number.to_bytes(8, "big", signed=True)
    changed = raw[: part.position] + new + raw[part.position + part.length :]
    _refuse_impossible(decode(changed.ljust(CHECKPOINT_SIZE, b"\0")), part.name)
    current = int.from_bytes(old, "big", signed=True)
    if current == number:
        return ValueEdit(current, number, ())
    why = sentence("{field} of the checkpoint becomes {number}", field=part.name, number=number)
    return ValueEdit(current, number, (WriteBytes(file="checkpoint", offset=part.position, old=old, new=new, why=why),))


def _refuse_impossible(checkpoint: Checkpoint, name: str) -> None:
    if name in checkpoint.impossible:
        text = sentence(
            "{field}: no broker writes {number}: expected a time in ms since 1970 or an offset in the log",
            field=name,
            number=checkpoint.impossible[name],
        )
        raise UsageError(text)


def _bounds(store: StoreSnapshot, topic: str, queue_id: int) -> tuple[int, int]:
    """The minimum and maximum offset of a queue. Raises :class:`StoreError` if the store does not have it."""
    queue = store.queues.find(topic, queue_id)
    if queue is None:
        raise StoreError(
            sentence("the store has no queue {queue} of topic {topic}", queue=queue_id, topic=topic),
            file=str(store.path),
        )
    return queue.min_offset, queue.max_offset


def _check_offset(offset: int, bounds: tuple[int, int], queue: str) -> None:
    if not 0 <= offset <= bounds[1]:
        raise UsageError(
            sentence(
                "queue {queue}: expected an offset from 0 to {maximum:,}, found {offset:,}",
                queue=queue,
                maximum=bounds[1],
                offset=offset,
            )
        )


def _json_table(store: StoreSnapshot, name: str) -> tuple[Table, bytes | None]:
    """The table as a broker loads it, and the bytes of its file. Raises :class:`StoreError` if it cannot be changed."""
    assert store.paths is not None
    table = read_table(store, name)
    if table is None:
        table = load_table(name, lambda _: None, release_of(store))
    if table.used == "rocksdb":
        raise Undecoded(
            sentence("nothing was changed: this table is in a RocksDB, and Storescope writes tables in JSON files"),
            file=str(store.path / table.folder),
        )
    if not table.will_load:
        raise StoreError(
            sentence("nothing was changed: a broker cannot load this table: {why}", why=table.why),
            file=str(store.paths.config / name),
        )
    return table, store.small_file(store.paths.config / name)


def _number_in(table: Table, row: tuple[str, ...], key: int | None) -> int | None:
    """Return a number of the table, named as for :func:`set_number`; None if it is not there."""
    value: Any = table.value
    for name in row:
        value = value.get(name) if isinstance(value, dict) else None
    if key is not None:
        value = value.get(key, value.get(str(key))) if isinstance(value, dict) else None
    return value if isinstance(value, int) else None


def _now() -> int:
    return time.time_ns() // 1_000_000
