"""Bytes and files that a user changes by hand, as patches; nothing is written here.

A message whose bytes change may get its CRCs put right. A queue entry is rewritten from the message that it shall lead
to. No entry is emptied: a broker that meets an entry without a message skips the messages behind it, and a start ends
the queue there. Instead its message is removed: an empty one takes its place, in the log and in the queue.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from engine.codec import consume_queue, filler, rocksdb_queue_rows
from engine.codec import properties as props
from engine.codec.crc import crc31
from engine.codec.message import COMMIT, DEFAULT_DELAY_LEVELS, Unit, list_fields, tags_code_of
from engine.codec.properties import with_right_crc
from engine.errors import StoreError, UsageError
from engine.inspection.lost_units import entries_into
from engine.inspection.queue_reader import QueueReader
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import MoveFile, Patch, RemoveFile, WriteFile, is_inside
from engine.repair.log_damage import passed_over
from engine.repair.queue_entries import differences
from engine.repair.repair import sample_of
from engine.rocksdb.added_rows import added_log
from engine.sentences import sentence

MAX_EDIT_BYTES = 1 << 20
MAX_ZEROED_BYTES = 1 << 20
"""Bytes behind the place of a cut that are zeroed: recovery stops at the first one in any case."""
_CRC_POSITION = 8
_TAGS_CODE_POSITION = 12
_MAX_ENTRIES = 64
_PLACE_PROPERTIES = (
    props.INNER_BASE,
    props.INNER_NUM,
    props.INNER_MULTI_DISPATCH,
    props.INNER_MULTI_QUEUE_OFFSET,
)
"""Properties by which a message says its place in batch queues and light queues."""


def edit_log_bytes(
    store: StoreSnapshot, offset: int, new: bytes, *, unit_offset: int | None = None, why: str = ""
) -> list[Patch]:
    """Return the patches that write ``new`` at ``offset`` of the commit log.

    With ``unit_offset`` the CRCs of the message there, which holds the bytes, are put right. Raises
    :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    if not new or len(new) > MAX_EDIT_BYTES:
        raise UsageError(sentence("expected 1 to {most:,} bytes, found {count:,}", most=MAX_EDIT_BYTES, count=len(new)))
    start, old = offset, store.log.read(offset, len(new))
    if len(old) < len(new):
        raise UsageError(sentence("the file ends before byte {offset:,} of the log", offset=offset + len(new)))
    if unit_offset is not None:
        start, old, new = unit_offset, *_unit_with_right_crcs(store, unit_offset, offset, new)
    path, position = _log_place(store, start)
    return _written(path, position, old, new, why or sentence("changed by hand"))


def _unit_with_right_crcs(store: StoreSnapshot, unit_offset: int, offset: int, new: bytes) -> tuple[bytes, bytes]:
    """Return the bytes of a message before and after ``new`` was written at ``offset``, with right CRCs."""
    (size,) = struct.unpack(">i", store.log.read(unit_offset, 4).ljust(4, b"\0"))
    inside = offset - unit_offset
    if not 0 <= inside <= inside + len(new) <= size <= consume_queue.PREFILLED_SIZE:
        raise UsageError(sentence("the bytes are not in the message at {offset:,}", offset=unit_offset))
    old = store.log.read(unit_offset, size)
    changed = old[:inside] + new + old[inside + len(new) :]
    body = next((part for part in list_fields(changed) if part.name == "body"), None)
    if body is None:
        raise UsageError(sentence("these bytes are no message any more: its CRC cannot be put right"))
    crc = crc31(changed[body.position : body.position + body.length]).to_bytes(4, "big")
    changed = changed[:_CRC_POSITION] + crc + changed[_CRC_POSITION + 4 :]
    return old, with_right_crc(changed)


def edit_queue_entry(
    store: StoreSnapshot, topic: str, queue_id: int, queue_offset: int, physical_offset: int
) -> list[Patch]:
    """Return the patches after which an entry of a queue leads to the message at ``physical_offset`` of the log.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    queue = store.queues.find(topic, queue_id)
    if not isinstance(queue, QueueReader) or queue.kind != "simple":
        raise UsageError(sentence("{topic}/{queue} has no entries of 20 bytes in files", topic=topic, queue=queue_id))
    unit = store.log.unit_at(physical_offset)
    if not isinstance(unit, Unit):
        raise UsageError(sentence("no message begins at {offset:,} of the log", offset=physical_offset))
    file = queue.sequence.find(queue_offset * queue.unit_size)
    if file is None:
        raise UsageError(sentence("no file holds entry {number:,}", number=queue_offset))
    levels = DEFAULT_DELAY_LEVELS if store.config is None else store.config.delay_levels()
    tags_code = tags_code_of(unit.topic, unit.properties, unit.store_timestamp, levels)
    position = queue_offset * queue.unit_size - file.start_offset
    old = file.read(position, queue.unit_size)
    new = consume_queue.encode(consume_queue.CqUnit(physical_offset, unit.size, tags_code))
    why = sentence(
        "entry {entry} leads to the message at {offset:,}",
        entry=f"{topic}/{queue_id}/{queue_offset}",
        offset=physical_offset,
    )
    return _written(_name_of(store, Path(file.path)), position, old, new, why)


def remove_message(store: StoreSnapshot, physical_offset: int) -> list[Patch]:
    """Return the patches after which a placeholder stands in the place of the message at ``physical_offset``.

    All others keep their offsets, also when the queues are built again. The tag codes of its entries become 0.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    unit = store.log.unit_at(physical_offset)
    if not isinstance(unit, Unit) or unit.transaction_type not in (0, COMMIT) or unit.stale:
        raise UsageError(sentence("no message of a queue begins at {offset:,} of the log", offset=physical_offset))
    kept = {name: unit.properties[name] for name in _PLACE_PROPERTIES if name in unit.properties}
    properties = {**passed_over(unit.topic, unit.queue_id), **kept}
    sealed = props.CRC32 in unit.properties
    new = filler.placeholder(
        unit.size,
        physical_offset=unit.offset,
        topic=unit.topic,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        store_timestamp=unit.store_timestamp,
        properties=properties,
        property_crc=sealed,
    )
    if new is None:
        least = filler.shortest_placeholder(unit.topic, properties, property_crc=sealed)
        text = sentence(
            "the message has {n:,} bytes, an empty one in its place needs {least:,}", n=unit.size, least=least
        )
        raise UsageError(text)
    path, position = _log_place(store, unit.offset)
    name = f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
    why = sentence("an empty message takes the place of {name}", name=name)
    costs = sentence("the message {name} is lost", name=name)
    old = store.log.read(unit.offset, unit.size)
    patches = [replace(patch, costs=costs) for patch in _written(path, position, old, new, why)]
    rows: list[tuple[bytes, bytes | None]] = []
    for entry in entries_into(store, unit.offset, unit.offset + 1, _MAX_ENTRIES):
        queue = store.queues.find(entry.topic, entry.queue_id)
        if isinstance(queue, RocksQueueReader):
            row = queue.row(entry.number)
            if row is not None and row.tags_code:
                key = rocksdb_queue_rows.entry_key(entry.topic, entry.queue_id, entry.number)
                rows.append((key, rocksdb_queue_rows.encode_entry(replace(row, tags_code=0))))
        elif isinstance(queue, QueueReader) and queue.kind == "simple":
            file = queue.sequence.find(entry.number * queue.unit_size)
            assert file is not None
            place = entry.number * queue.unit_size - file.start_offset + _TAGS_CODE_POSITION
            patches += _written(_name_of(store, Path(file.path)), place, file.read(place, 8), bytes(8), why)
    queues = store.queues.rocksdb
    if rows and queues is not None:
        log = added_log(queues.database(), store.reading, {rocksdb_queue_rows.ENTRY_FAMILY: rows})
        if log is not None:
            file_name = f"{_name_of(store, queues.folder)}/{log.name}"
            patches.append(WriteFile(file=file_name, old=None, new=log.content, why=why))
    return patches


def cut_log(store: StoreSnapshot, offset: int) -> list[Patch]:
    """Return the patches after which the commit log ends at ``offset``, where a message begins; files behind go.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.StoreError`.
    """
    if not isinstance(store.log.unit_at(offset, crc=False), Unit):
        raise UsageError(sentence("no message begins at {offset:,} of the log", offset=offset))
    path, position = _log_place(store, offset)
    file = store.log.sequence.find(offset)
    assert file is not None
    old = file.read(position, min(file.size - position, MAX_ZEROED_BYTES))
    why = sentence("the log ends at {offset:,}", offset=offset)
    costs = sentence("the messages from there on are lost")
    patches = [replace(patch, costs=costs) for patch in _written(path, position, old, bytes(len(old)), why)]
    for later in store.log.files:
        if later.start_offset > file.start_offset:
            patches.append(remove_file(store, _name_of(store, Path(later.path)), why))
    return patches


def remove_file(store: StoreSnapshot, name: str, why: str = "") -> RemoveFile:
    """Return the patch that removes a file, named below the store's folder with ``/``.

    Raises :class:`engine.errors.UsageError`, :class:`engine.errors.CannotRead`.
    """
    size, sample = _sample(store, name)
    return RemoveFile(file=name, size=size, sample=sample, why=why or sentence("removed by hand"))


def move_file(store: StoreSnapshot, name: str, target: str) -> MoveFile:
    """Return the patch that gives a file another name below the store's folder. Raises as :func:`remove_file`."""
    size, sample = _sample(store, name)
    if not is_inside(target) or store.reading.exists(store.path.joinpath(*target.split("/"))):
        raise UsageError(sentence("expected a new name below the store's folder, found {name}", name=target))
    return MoveFile(file=name, target=target, size=size, sample=sample, why=sentence("moved by hand"))


def _written(path: str, position: int, old: bytes, new: bytes, why: str) -> list[Patch]:
    """Return a patch for each place at which ``new`` differs from ``old``, which begins at ``position`` of a file."""
    return [replace(patch, offset=patch.offset + position) for patch in differences(path, old, new, why, "")]


def _log_place(store: StoreSnapshot, offset: int) -> tuple[str, int]:
    """Return the name of the log file that holds ``offset``, and the position in it."""
    file = store.log.sequence.find(offset)
    if file is None:
        raise UsageError(sentence("no file of the log holds byte {offset:,}", offset=offset))
    return _name_of(store, Path(file.path)), offset - file.start_offset


def _name_of(store: StoreSnapshot, path: Path) -> str:
    if not path.is_relative_to(store.path):
        raise StoreError(sentence("patches are for files below the store's own folder"), file=str(path))
    return path.relative_to(store.path).as_posix()


def _sample(store: StoreSnapshot, name: str) -> tuple[int, str]:
    if not is_inside(name) or not store.reading.exists(store.path.joinpath(*name.split("/"))):
        raise UsageError(sentence("the store has no file {name}", name=name))
    return sample_of(store, store.path.joinpath(*name.split("/")))
