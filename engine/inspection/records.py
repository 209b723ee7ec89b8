"""Records as JSON objects: field names are RocketMQ's own spelling, times ms since the epoch, absent values null."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from engine.codec import index as index_codec
from engine.codec.checkpoint import Checkpoint
from engine.codec.lite_topics import split_lite_queue
from engine.codec.message import Unit
from engine.codec.unit_fields import BY_NAME, INSTEAD, OF_RECORDS
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.inspection.key_trace import TraceEnd, TraceFile, TraceStep

if TYPE_CHECKING:
    import numpy as np

    from engine.codec.consume_queue import State
    from engine.decoding.bodies import DecodedBody
    from engine.inspection.get_message import GetResult
    from engine.inspection.info import StoreInfo, TieredInfo
    from engine.inspection.lite_topics import LiteGroup, LiteTopic
    from engine.inspection.lost_units import LostUnit
    from engine.inspection.moved_entries import MovedEntry
    from engine.inspection.positions import Position, Positions
    from engine.inspection.queue_reader import CqEntry
    from engine.inspection.queue_sides import BothSides, QueueOnBothSides
    from engine.inspection.rocksdb_rows import MessageRow
    from engine.inspection.salvage.salvage_search import Salvaged
    from engine.inspection.waiting import ServiceProgress, WaitingMessage
    from engine.inspection.where.lost import WhereResult
    from engine.store.put_message import PutMessageResult

Json = dict[str, Any]
_UNIT: Json = dict.fromkeys(["type", *(field.name for field in OF_RECORDS if field.always)])
"""A record of a unit: its fields in order."""
UNIT_NAMES = tuple(_UNIT)
"""The fields that every unit's record has, in order."""
_FIELD_NAMES = tuple(field.name for field in OF_RECORDS if field.always and field.attribute)
_VALUES = attrgetter(*(BY_NAME[name].attribute for name in _FIELD_NAMES))
"""Returns the values of a unit for the fields :data:`_FIELD_NAMES`."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Records of units as lines of JSON, each with its line end."""

    text: str
    units: int


def unit(item: Unit, file: str | None, kind: str = "unit", body: bool = False) -> Json:
    """A unit; ``file`` is the name of the file that holds it; with ``body`` the stored bytes in base64."""
    record = _UNIT.copy()
    record.update(zip(_FIELD_NAMES, _VALUES(item), strict=False))
    record["type"], record["file"], record["bodySha256"] = kind, file, hashlib.sha256(item.body).hexdigest()
    if item.stale:
        record["physicalOffsetField"] = item.physical_offset
    if body:
        record["body"] = base64.b64encode(item.body).decode()
    return record


def decoded(body: DecodedBody) -> Json:
    """Return the fields that a decoded body adds to its unit; without a rule all are null."""
    return {"decoded": body.value, "decoder": body.decoder or None, "decodeError": body.error or None}


def message_row(row: MessageRow, file: str | None) -> Json:
    """A message that a broker keeps in a RocksDB; ``file`` holds its unit."""
    return {
        "type": "row",
        "subject": row.subject,
        "state": row.state,
        "verdict": row.verdict,
        "topic": row.topic,
        "queueId": row.queue_id,
        "queueOffset": row.queue_offset,
        "consumerGroup": row.group if row.subject == "pop" else None,
        "producerGroup": row.group if row.subject == "transactions" else None,
        "uniqueKey": row.unique_key,
        "key": row.key_text,
        "time": row.time,
        "count": row.count,
        "physicalOffset": row.physical_offset,
        "size": row.size,
        "file": file,
        "isInFiles": row.is_in_files,
    }


def blank(item: Blank, file: str | None) -> Json:
    """A blank; ``file`` holds it."""
    return {"type": "blank", "physicalOffset": item.offset, "size": item.size, "file": file}


def damage(item: Damage, file: str | None, lost: Sequence[LostUnit] = (), *, body: bool = False) -> Json:
    """A span of damage; ``file`` holds its first byte, ``lost`` are the units that were there.

    ``salvage`` has the recovered fields of the first unit, with ``body`` also its stored bytes in base64; ``further``
    those of the others.
    """
    record: Json = {
        "type": "damage",
        "physicalOffset": item.offset,
        "size": item.size,
        "reason": item.reason,
        "file": file,
    }
    if lost:
        record["salvage"] = salvaged(lost[0])
        if body and lost[0].salvage is not None:
            record["salvage"]["body"] = base64.b64encode(lost[0].salvage.unit.body).decode()
        if len(lost) > 1:
            record["further"] = [salvaged(lost_unit) for lost_unit in lost[1:]]
    return record


def salvage_row(row: Salvaged) -> Json:
    """A unit or fragment that ``salvage`` found; ``pieces`` are the places of its bytes, the first one is ``file``."""
    first = row.places[0] if row.places else None
    return {
        "type": "salvaged",
        "verdict": row.verdict,
        "physicalOffset": row.physical_offset,
        "size": row.size,
        "topic": row.topic,
        "queueId": row.queue_id,
        "queueOffset": row.queue_offset,
        "keys": row.keys,
        "uniqueKey": row.unique_key,
        "storeTimestamp": row.store_timestamp,
        "storeHost": row.store_host,
        "file": first.file if first is not None else None,
        "fileOffset": first.offset if first is not None else None,
        "pieces": [place._asdict() for place in row.places] if len(row.places) > 1 else [],
        "copies": [place._asdict() for place in row.copies],
        "evidence": list(row.evidence),
        "doubts": list(row.doubts),
        "rank": row.rank,
        "rivals": row.rivals,
    }


def salvaged(lost: LostUnit) -> Json:
    """The recovered fields of an unreadable unit, and the fields that contradict the rest."""
    place = {
        "physicalOffset": lost.offset,
        "topic": lost.topic,
        "queueId": lost.queue_id,
        "queueOffset": lost.queue_offset,
    }
    wrong = [{"field": field.field, "says": field.stored, "wouldBe": field.likely} for field in lost.wrong]
    if lost.salvage is None:
        return place | {"size": lost.size, "wrong": wrong}
    left_out = {INSTEAD.get(field.field, field.field) for field in lost.wrong} | {"type", "file"}
    fields = {name: value for name, value in unit(lost.salvage.unit, None).items() if name not in left_out}
    return fields | place | {"wrong": wrong}


def where_result(result: WhereResult) -> Json:
    """A message's location: the verdict, every way to it, and the evidence."""
    return {
        "type": "whereResult",
        "verdict": result.verdict,
        "physicalOffset": result.physical_offset,
        "topic": result.topic,
        "queueId": result.queue_id,
        "queueOffset": result.queue_offset,
        "routes": [
            {"by": r.by, "value": r.value, "verdict": r.verdict, "why": r.why, "barred": r.barred or None}
            for r in result.routes
        ],
        "evidence": [
            {"what": e.what, "file": e.file, "offset": e.offset, "holds": e.holds, "storeTimestamp": e.timestamp}
            for e in result.evidence
        ],
        "nextStep": result.next_step,
        "life": [
            {"step": s.step, "timestamp": s.timestamp, "physicalOffset": s.offset, "groups": list(s.who)}
            for s in result.life
        ],
    }


def end(item: Stop, units: int, complete: bool) -> Json:
    """The end of a listing of units."""
    return {
        "type": "end",
        "physicalOffset": item.offset,
        "reason": item.reason,
        "units": units,
        "complete": complete,
    }


def both_sides(both: BothSides) -> Json:
    """Which of the queues in files and in a RocksDB a broker uses, and what a start does with the others."""
    return {
        "type": "bothSides",
        "folder": both.folder,
        "counting": both.counting,
        "why": both.why,
        "nextStart": both.next_start,
    }


def queue_on_both_sides(queue: QueueOnBothSides) -> Json:
    """A queue in files and in a RocksDB."""
    files, rocksdb = queue.files or (None, None), queue.rocksdb or (None, None)
    return {
        "type": "queueSides",
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "filesMinOffset": files[0],
        "filesMaxOffset": files[1],
        "rocksdbMinOffset": rocksdb[0],
        "rocksdbMaxOffset": rocksdb[1],
        "firstDifference": queue.first_difference,
    }


def cq(entry: CqEntry, verdict: str | None = None) -> Json:
    """A queue entry; ``verdict`` if it was resolved."""
    record: Json = {
        "type": "cq",
        "queueOffset": entry.queue_offset,
        "physicalOffset": entry.physical_offset,
        "size": entry.size,
        "tagsCode": entry.tags_code,
        "ext": None,
        "state": entry.state,
    }
    if entry.ext is not None:
        record["ext"] = {
            "address": entry.ext.address,
            "size": entry.ext.size,
            "tagsCode": entry.ext.tags_code,
            "storeTimestamp": entry.ext.store_timestamp,
            "bitMap": entry.ext.bit_map.hex(),
        }
    if entry.batch_size is not None:
        record["batchSize"] = entry.batch_size
        record["storeTimestamp"] = entry.store_timestamp
    if verdict is not None:
        record["verdict"] = verdict
    return record


def cq_rows(queue_offsets: np.ndarray, entries: np.ndarray, state: State) -> Json:
    """The fields of many entries of a simple queue that have no ext unit, as :func:`cq` has those of one: arrays, and
    values that all of them have.
    """
    return {
        "type": "cq",
        "queueOffset": queue_offsets,
        "physicalOffset": entries["physical_offset"].astype("i8"),
        "size": entries["size"].astype("i8"),
        "tagsCode": entries["tags_code"].astype("i8"),
        "ext": None,
        "state": state,
    }


def lite_group(group: LiteGroup) -> Json:
    """A group that reads the lite topics of a topic, with its settings about them."""
    return {"type": "liteGroup", "group": group.name, "topic": group.topic, "settings": dict(group.attributes)}


def lite_topic(lite: LiteTopic) -> Json:
    """A lite topic: its light queue, when a broker deletes it, and how far groups with an offset are behind."""
    return {
        "type": "liteTopic",
        "topic": lite.topic,
        "liteTopic": lite.name,
        "queue": lite.queue,
        "minOffset": lite.min_offset,
        "maxOffset": lite.max_offset,
        "lastUpdateTimestamp": lite.last_timestamp,
        "expirationTimestamp": lite.expires_at,
        "groups": [{"group": group, "behind": count} for group, count in lite.behind],
    }


def logical_offset(place: tuple[int, int] | None) -> Json:
    """Fields of a message of a static topic: its logical queue and logical offset."""
    queue_id, offset = place if place is not None else (None, None)
    return {"logicalQueueId": queue_id, "logicalOffset": offset}


def moved_entry(moved: MovedEntry, verdict: str | None = None) -> Json:
    """A queue entry whose message is only in tiered storage, with its place there."""
    tiered = moved.tiered
    own_entry = moved.entry if moved.entry is not None and moved.entry.state == "entry" else None
    known_entry = tiered or own_entry
    record: Json = {
        "type": "cq",
        "queueOffset": moved.queue_offset,
        "physicalOffset": own_entry.physical_offset if own_entry is not None else None,
        "size": known_entry.size if known_entry is not None else None,
        "tagsCode": known_entry.tags_code if known_entry is not None else None,
        "ext": None,
        "state": "moved",
        "tieredFile": tiered.file if tiered is not None else None,
        "tieredPosition": tiered.position if tiered is not None else None,
        "tieredOffset": tiered.offset if tiered is not None else None,
    }
    return record if verdict is None else record | {"verdict": verdict}


def index_header(name: str, header: index_codec.IndexHeader) -> Json:
    """The header fields of an index file, without a type."""
    return {
        "name": name,
        "beginTimestamp": header.begin_timestamp,
        "endTimestamp": header.end_timestamp,
        "beginPhyOffset": header.begin_phy_offset,
        "endPhyOffset": header.end_phy_offset,
        "hashSlotCount": header.hash_slot_count,
        "indexCount": header.index_count,
    }


def index_entry(
    file: str, number: int, slots: int, header: index_codec.IndexHeader, entry: index_codec.IndexEntry
) -> Json:
    """An index entry with its slot and its store time."""
    return {
        "type": "indexEntry",
        "file": file,
        "entry": number,
        "slot": entry.key_hash % slots if entry.key_hash >= 0 else None,
        "keyHash": entry.key_hash,
        "phyOffset": entry.phy_offset,
        "timeDiff": entry.time_diff,
        "storeTimestamp": index_codec.entry_time(header, entry),
        "prev": entry.prev,
    }


def trace_file(item: TraceFile) -> Json:
    """An index file that a trace chose or passed over."""
    return {
        "type": "traceFile",
        "file": item.file,
        "chosen": item.chosen,
        "why": item.why,
        "damaged": item.damaged,
        "beginTimestamp": item.begin_timestamp,
        "endTimestamp": item.end_timestamp,
    }


def trace_step(item: TraceStep) -> Json:
    """A slot or entry that a trace looked at."""
    record = {
        "type": "traceStep",
        "file": item.file,
        "kind": item.kind,
        "slot": item.slot,
        "entry": item.entry,
        "keyHash": item.key_hash,
        "phyOffset": item.phy_offset,
        "storeTimestamp": item.store_timestamp,
        "prev": item.prev,
        "verdict": item.verdict,
    }
    if item.key is not None:
        record["key"] = item.key
    if item.why is not None:
        record["why"] = item.why
    return record


def trace_end(item: TraceEnd) -> Json:
    """The end of a trace."""
    return {"type": "traceEnd", "matches": item.matches, "steps": item.steps, "complete": item.complete}


def get_result(item: GetResult) -> Json:
    """A broker's answer, without the units."""
    return {
        "type": "getResult",
        "status": item.status,
        "nextBeginOffset": item.next_begin_offset,
        "minOffset": item.min_offset,
        "maxOffset": item.max_offset,
        "count": item.count,
    }


def checkpoint(page: Checkpoint) -> Json:
    """The fields of the checkpoint page; fields that only later releases write appear if they are set."""
    record = {
        "physicMsgTimestamp": page.physic_msg_timestamp,
        "logicsMsgTimestamp": page.logics_msg_timestamp,
        "indexMsgTimestamp": page.index_msg_timestamp,
    }
    if page.master_flushed_offset:
        record["masterFlushedOffset"] = page.master_flushed_offset
    if page.confirm_phy_offset:
        record["confirmPhyOffset"] = page.confirm_phy_offset
    if page.logics_physical_offset:
        record["logicsPhysicalOffset"] = page.logics_physical_offset
    return record


def _tiered(info: TieredInfo) -> dict[str, Any]:
    names = ("topic", "queueId", "minOffset", "maxOffset", "bytes")
    queues = [dict(zip(names, queue, strict=True)) for queue in info.queues]
    return {"folder": info.folder, "bytes": info.size, "queues": queues}


def _lite_topic(name: str) -> dict[str, str]:
    """Return the names of a lite topic and of its topic, for one of its light queues."""
    parts = split_lite_queue(name)
    return {} if parts is None else {"parentTopic": parts[0], "liteTopic": parts[1]}


def store(info: StoreInfo) -> Json:
    """The account of a whole store."""
    unknown_queues = bool({"log", "queues"} & info.unknown.keys())
    return {
        "type": "store",
        "path": info.path,
        "kind": info.kind,
        "flavour": info.flavour,
        "minOffset": None if "log" in info.unknown else info.min_offset,
        "maxOffset": None if "log" in info.unknown else info.max_offset,
        "files": {
            "commitlog": [{"name": name, "size": size} for name, size in info.log_files],
            "consumequeue": None if unknown_queues else info.consume_queue_files,
            "index": info.index_files,
        },
        "topics": None
        if unknown_queues
        else [
            {
                "topic": topic,
                "queues": [
                    {"queueId": q.queue_id, "minOffset": q.min_offset, "maxOffset": q.max_offset} for q in queues
                ],
                **_lite_topic(topic),
            }
            for topic, queues in info.topics.items()
        ],
        "index": [index_header(name, header) for name, header in info.index],
        "checkpoint": checkpoint(info.checkpoint) if info.checkpoint else None,
        "abort": info.abort,
        "lock": None if info.lock == "unknown" else info.lock,
        "bytes": info.bytes,
        "sizes": info.sizes,
        "notes": info.notes,
        "undecoded": [
            {
                "folder": part.folder,
                "format": part.format,
                "holds": sorted(part.subjects),
                "bytes": part.size,
                "holdsData": part.holds_data,
            }
            for part in info.undecoded
        ],
        "epochs": info.epochs.record() if info.epochs is not None else None,
        "tiered": _tiered(info.tiered) if info.tiered is not None else None,
        "liteTopics": [
            {"topic": lite.topic, "liteTopics": lite.count, "expirationMinutes": lite.expiration_minutes}
            for lite in info.lite_topics
        ],
        "timerWheels": [
            {"file": wheel.name, "position": wheel.position, "messages": wheel.messages, "isTaken": wheel.is_taken}
            for wheel in info.timer_wheels
        ],
        "dledger": info.dledger.record() if info.dledger is not None else None,
        "unknown": dict(info.unknown),
        "compacted": [
            {
                "topic": queue.topic,
                "queueId": queue.queue_id,
                "messages": queue.messages,
                "minOffset": queue.min_offset,
                "maxOffset": queue.max_offset,
                "bytes": queue.size,
            }
            for queue in info.compacted
        ],
    }


def position(item: Position) -> Json:
    """A position: its offset and how it is known, or why it is not."""
    record: Json = {"offset": item.offset}
    if item.source is not None:
        record["how"] = item.source
    if item.why is not None:
        record["why"] = item.why
    if item.timestamp is not None:
        record["timestamp"] = item.timestamp
    return record


def positions(item: Positions) -> Json:
    """All positions."""
    tiered = {} if item.tiered is None else {"tiered": position(item.tiered)}
    return {
        "type": "positions",
        "min": position(item.min),
        "wrote": position(item.wrote),
        "committed": position(item.committed),
        "flushed": position(item.flushed),
        "confirm": position(item.confirm),
        "dispatched": position(item.dispatched),
        "queueMax": position(item.queue_max),
        "indexEnd": position(item.index_end),
        **tiered,
        "epochs": {name: position(epoch_position) for name, epoch_position in item.epochs.items()},
        "checkpoint": {name: position(checkpoint_position) for name, checkpoint_position in item.checkpoint.items()},
    }


def put(result: PutMessageResult) -> Json:
    """The result of a put; offsets are null if the message is not in the log."""
    stored = result.append if result.ok else None
    return {
        "type": "put",
        "status": result.status.name,
        "physicalOffset": stored and stored.physical_offset,
        "queueOffset": stored and stored.queue_offset,
        "msgId": stored and stored.msg_id,
        "size": stored and stored.size,
        "storeTimestamp": stored and stored.store_timestamp,
    }


def copied(units: int, size: int, max_offset: int) -> Json:
    """The contents of a copy: ``size`` bytes of units."""
    return {"type": "copied", "units": units, "bytes": size, "maxOffset": max_offset}


def waiting_message(message: WaitingMessage) -> dict[str, Any]:
    """Return the JSON record ``waiting``."""
    return {
        "type": "waiting",
        "kind": message.kind,
        "state": message.state,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "uniqueKey": message.unique_key,
        "keys": list(message.keys),
        "forTopic": message.for_topic,
        "group": message.group,
        "since": message.since,
        "due": message.due,
        "overdueMs": message.overdue_ms,
        "tries": message.tries,
        "why": message.why or None,
    }


def waiting_service(service: ServiceProgress) -> dict[str, Any]:
    """Return what a service has reached, in the record ``waitingSummary``."""
    return {
        "service": service.service,
        "topic": service.topic,
        "queueId": service.queue_id,
        "nextOffset": service.next_offset,
        "endOffset": service.end_offset,
        "readTo": service.read_to,
        "standsStill": service.stalled or None,
    }
