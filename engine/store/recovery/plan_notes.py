"""Notes of a plan: what an operator should know besides, and what would surprise them."""

from __future__ import annotations

from engine.mapped.read_only import ReadOnlyFile
from engine.rules.unit_check import Rules
from engine.sentences import sentence
from engine.store.recovery.dispatch import QueueTable
from engine.store.recovery.source import RecoverySource
from engine.store.recovery.walk import NO_SUCH_ARRAY, WalkResult, asked_for

_LARGE_HEAP_BYTES = 64 << 20
_MAX_GROUP_UNITS = 256
"""Units that the dispatch to a RocksDB puts together at most."""


def stopped_dispatch_notes(source: RecoverySource, table: QueueTable) -> tuple[str, ...]:
    """Note on the unit at which the dispatch to queues in a RocksDB stops. Dispatch repeats the group of units that it
    takes together (``RocksGroupCommitService``), which may begin before it.
    """
    if source.rocksdb is None or source.heal or table.failed is None:
        return ()
    note = sentence(
        "The broker starts, and dispatch stops at the message {place} at {at:,}, because it names {name}, which is no "
        "light queue, before a light queue: no message behind it gets an entry, nor do up to {n} before it. With "
        "enableLmq=false it does not stop",
        place=table.failed.place,
        at=table.failed.offset,
        name=table.failed.queue_name or '""',
        n=_MAX_GROUP_UNITS - 1,
    )
    return (note,)


def lost_tail_notes(known_end: int, data_end: int) -> tuple[str, ...]:
    """Note on the lost tail of the log. A crash loses the tail that was not flushed; where files are gone more is
    missing.
    """
    if known_end <= data_end:
        return ()
    note = sentence(
        "The queues know the log up to {known:,}, but its bytes end at {end:,}: the part in between is lost. A crash "
        "loses what was not flushed; if more is missing, look for a missing file or disk",
        known=known_end,
        end=data_end,
    )
    return (note,)


def heap_bytes_asked(files: list[ReadOnlyFile], first_number: int, walked: WalkResult, rules: Rules) -> int:
    """Bytes of heap that the check asks for where the walk ended, 0 for none."""
    for file in files[first_number:]:
        if file.start_offset <= walked.end_offset < file.end_offset:
            return asked_for(file, walked.end_offset - file.start_offset, rules)
    return 0


def heap_notes(heap_bytes: int, walked: WalkResult) -> tuple[str, ...]:
    """Note on the heap that 4.9 needs for its check."""
    if not _LARGE_HEAP_BYTES <= heap_bytes < NO_SUCH_ARRAY:
        return ()
    note = sentence(
        "RocketMQ 4.9 asks for {n:,} bytes of heap at {at:,}: with less than that (-Xmx) its start dies of an "
        "OutOfMemoryError",
        n=heap_bytes,
        at=walked.end_offset,
    )
    return (note,)


def odd_end_notes(walked: WalkResult, end: int) -> tuple[str, ...]:
    """Note on a log that goes on at another place than behind its last unit."""
    if end == walked.end_offset:
        return ()
    note = sentence(
        "The name of the last log file is no multiple of its length: a broker goes on at {at:,}, {n:,} bytes before "
        "the end of the last unit, and writes over it",
        at=end,
        n=walked.end_offset - end,
    )
    return (note,)


def _checkpoint_notes(source: RecoverySource) -> tuple[str, ...]:
    """Note on numbers in the checkpoint that no broker writes."""
    impossible = source.checkpoint.impossible
    if not impossible:
        return ()
    numbers = ", ".join(f"{name} {number:,}" for name, number in impossible.items())
    return (sentence("The checkpoint holds numbers that no broker writes: {numbers}", numbers=numbers),)


def confirm_notes(source: RecoverySource, walked: WalkResult) -> tuple[str, ...]:
    """Note on a confirm offset behind the end of the log."""
    confirm = source.checkpoint.confirm_phy_offset or 0
    if confirm <= walked.end_offset or source.config.duplication_enable or source.checkpoint.impossible:
        return ()
    note = sentence(
        "The checkpoint's confirm offset {confirm:,} is after the end of the log: a start sets it to {last:,} and "
        "dispatches as usual, because it does not use the confirm offset",
        confirm=confirm,
        last=max(walked.last_unit, 0),
    )
    return (note,)


def store_notes(source: RecoverySource) -> tuple[str, ...]:
    """Notes on the store: what its reader noted, doubled files, the checkpoint, the configuration."""
    notes = list(source.notes)
    for read_file, other_file in source.log.doubles:
        notes.append(
            sentence(
                "{read} and {other} begin at the same offset: a broker would write to one of the two and "
                "read from the other, and every message that it acknowledges would be lost. Move one of them "
                "away first.",
                read=read_file.path,
                other=other_file.path,
            )
        )
    notes += _checkpoint_notes(source)
    if source.config.duplication_enable:
        notes.append(sentence("duplicationEnable is on: a confirm offset in memory may hold dispatch back"))
    return tuple(notes)
