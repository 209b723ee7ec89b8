"""What stands around log, queues and index: checkpoint, abort, tables (spec 5, 14)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.codec import config_tables, tables
from engine.codec.checkpoint import CHECKPOINT_SIZE, Checkpoint
from engine.codec.words import when
from engine.errors import CannotRead, CorruptUnit
from engine.inspection import recovery
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import Finding, Severity
from engine.store import recovery_blockers

MOST = 20
FAR_BEHIND_MS = 10 * 60_000
FAR_BEHIND_FILES = 2
_FIELDS = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")


def abort(store: StoreSnapshot) -> Iterator[Finding]:
    """AB01: the store is open, or was not closed."""
    if not store.abort or store.paths is None:
        return
    path = str(store.paths.abort)
    if store.lock_state == "held":
        text = "The abort file is there and a process holds the lock: a broker is running on the store"
        yield catalogue.AB01.found(text, path, None, {"lock": "held"}, "chat")
    else:
        text = "The abort file is there and nobody holds the lock: the store was not closed, the next start recovers it"
        yield catalogue.AB01.found(text, path, None, {"lock": store.lock_state})


def start(store: StoreSnapshot) -> Iterator[Finding]:
    """CQ11, TM04: what else stops a 5.x broker before it looks at a single unit."""
    if store.paths is None:
        return
    for blocker in recovery_blockers.load(recovery.source_of(store), "5.3").blockers:
        if blocker.finding in ("CQ11", "TM04"):
            evidence = {"brokerLog": blocker.broker_log}
            yield catalogue.RULES[blocker.finding].found(blocker.message, blocker.file, None, evidence)


def empty_log(store: StoreSnapshot) -> Iterator[Finding]:
    """CL12: the log is gone, or a folder of it."""
    found = recovery.without_log(store)
    if found is not None and not found.dledger:
        text = found.message[0].upper() + found.message[1:]
        yield catalogue.CL12.found(text, found.folder, None, found.record())


def checkpoint(store: StoreSnapshot, newest_time: int, log_end: int) -> Iterator[Finding]:
    """CK01–CK05 against the newest unit's store time (ms) and the end of the log (bytes)."""
    if store.paths is None:
        return
    path = store.paths.checkpoint
    try:
        data = store.small_file(path)
        found = store.checkpoint()
    except CorruptUnit as error:
        yield catalogue.CK05.found(f"The checkpoint cannot be read: {error.what}", str(path), 0, {"found": error.what})
        return
    if data is None or found is None:
        if newest_time:
            text = "There is no checkpoint: an abnormal start would begin at the first file"
            severity: Severity = "warn" if store.abort else "note"
            yield catalogue.CK05.found(text, str(path), None, {"expected": CHECKPOINT_SIZE, "found": None}, severity)
        return
    if len(data) != CHECKPOINT_SIZE:
        text = f"The checkpoint has {len(data):,} bytes, expected {CHECKPOINT_SIZE:,}"
        yield catalogue.CK05.found(text, str(path), 0, {"expected": CHECKPOINT_SIZE, "found": len(data)})
    if newest_time:
        yield from _times(store, found, str(path), newest_time)
    if found.confirm_phy_offset is not None and found.confirm_phy_offset > log_end:
        text = f"confirmPhyOffset is {found.confirm_phy_offset:,}, the log ends at {log_end:,}"
        evidence = {"expected": log_end, "found": found.confirm_phy_offset}
        yield catalogue.CK04.found(text, str(path), 32, evidence)


def _times(store: StoreSnapshot, found: Checkpoint, path: str, newest: int) -> Iterator[Finding]:
    times = (found.physic_msg_timestamp, found.logics_msg_timestamp, found.index_msg_timestamp)
    ahead = [number for number, time in enumerate(times) if time > newest]
    if ahead:
        first = ahead[0]
        names = ", ".join(_FIELDS[number] for number in ahead)
        text = f"{names} ahead of the newest unit ({when(newest)}) by {max(times) - newest:,} ms"
        evidence = {"expected": newest, "found": dict(zip(_FIELDS, times, strict=True))}
        yield catalogue.CK02.found(text, path, 8 * first, evidence)
    zero = [number for number, time in enumerate(times[:2]) if time == 0]
    if zero:
        names = " and ".join(_FIELDS[number] for number in zero)
        text = f"{names} zero: an abnormal start would begin at the first file of the log"
        evidence = {"found": dict(zip(_FIELDS, times, strict=True))}
        crashed = store.abort and store.lock_state != "held" and len(store.log.files) > FAR_BEHIND_FILES
        yield catalogue.CK01.found(text, path, 8 * zero[0], evidence, "warn" if crashed else None)
    elif newest - min(times[:2]) > FAR_BEHIND_MS and len(store.log.files) > FAR_BEHIND_FILES and not ahead:
        behind = newest - min(times[:2])
        text = f"The checkpoint is {behind / 60_000:,.0f} minutes behind the newest unit"
        yield catalogue.CK03.found(text, path, 0, {"behindMs": behind})


# -- tables


def config(store: StoreSnapshot) -> Iterator[Finding]:
    """CF01, CF02, CF04: tables that a broker could not load, and offsets beyond their queues."""
    if store.paths is None:
        return
    folder = store.paths.config
    for name in tables.TABLES:
        table = tables.load_table(name, lambda file: _read(store, folder / file))
        if table.main.state in ("bad", "unreadable"):
            yield _bad_table(table, str(folder / name))
        if name in ("consumerOffset.json", "lmqConsumerOffset.json") and table.used in ("main", "bak"):
            used = folder / (table.file or name)
            yield from _offsets(store, table, str(used))


def _read(store: StoreSnapshot, path: Path) -> bytes | None:
    try:
        return store.small_file(path)
    except (CannotRead, CorruptUnit) as error:
        raise OSError(5, error.what) from error


def _bad_table(table: tables.Table, path: str) -> Finding:
    parsed = table.main.parsed
    tail = parsed.tail if parsed is not None and parsed.fault is None else None
    if tail is not None:
        text = f"{table.name}: {tail.length:,} characters behind the closing brace, {tail.place.words}"
        evidence: dict[str, object] = {"expected": "end of the file", "found": tail.text, "used": table.used}
        return catalogue.CF04.found(text, path, tail.place.offset, evidence)
    at = parsed.fault.place.offset if parsed is not None and parsed.fault is not None else 0
    evidence = {"found": table.main.complaint, "used": table.used, "bak": table.bak.state if table.bak else None}
    return catalogue.CF01.found(f"{table.name}: {table.why}", path, at, evidence)


def _offsets(store: StoreSnapshot, table: tables.Table, path: str) -> Iterator[Finding]:
    shown = 0
    for row in config_tables.consumer_offsets(table.value).rows:
        for queue_id, offset in sorted(row.offsets.items()):
            queue = store.queue(row.topic, queue_id)
            if queue is None or shown >= MOST:
                continue
            # a table is written after the queue it speaks of, so a copy of a running store may be ahead
            last = max(queue.max_offset, queue.raw_end // queue.unit_size if queue.kind == "simple" else 0)
            if offset > last:
                shown += 1
                text = f"Group {row.group} will ask {row.topic}/{queue_id} for offset {offset:,}, it ends at {last:,}"
                evidence = {"expected": last, "found": offset, "group": row.group, "topic": row.topic}
                yield catalogue.CF02.found(
                    text, path, None, {**evidence, "queueId": queue_id}, "note" if store.abort else None
                )
