"""``queue``: the entries of one consume queue, resolved against their units on demand."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_store, common_options, number, open_named_store, report_read_side
from engine.cli.output import Column, Output
from engine.codec.consume_queue import MAX_EXT_ADDRESS
from engine.codec.priority import counting_priority
from engine.errors import CannotRead, StoreError, UsageError
from engine.inspection import moved_entries, records
from engine.inspection.entry_verdict import resolve
from engine.inspection.moved_entries import MovedEntry, MovedMessages, find_moved_messages
from engine.inspection.queue_sides import compare_sides, find_both_sides
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.static_topics import LogicalOffsets, find_logical_offsets
from engine.inspection.store_queues import AnyQueue
from engine.inspection.undecoded import in_dledger
from engine.sentences import plural, sentence
from engine.store.queue_entry import CqEntry

COLUMNS = (
    Column("Queue offset", "queueOffset", "number"),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Size", "size", "number"),
    Column("Tags code", "tagsCode", "number"),
    Column("State", "state"),
    Column("Batch", "batchSize", "number"),
    Column("Verdict", "verdict"),
)
LOGICAL_COLUMNS = (
    Column("Logical queue", "logicalQueueId", "plain"),
    Column("Logical offset", "logicalOffset", "number"),
)
TIERED_COLUMNS = (*COLUMNS, Column("Tiered offset", "tieredOffset", "number"))
BOTH_COLUMNS = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "number"),
    Column("Files from", "filesMinOffset", "number"),
    Column("to", "filesMaxOffset", "number"),
    Column("RocksDB from", "rocksdbMinOffset", "number"),
    Column("to", "rocksdbMaxOffset", "number"),
    Column("First difference", "firstDifference", "number"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "queue",
        "queue ~/store Orders 0 --from 100 --to 120 --resolve",
        "queue ~/store --both",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("topic", metavar="TOPIC", nargs="?")
    parser.add_argument("queue", metavar="QUEUE", type=number, nargs="?", help="queue id, from 0")
    parser.add_argument("--from", dest="start", type=number, metavar="N", help="start at this queue offset")
    parser.add_argument("--to", dest="stop", type=number, metavar="N", help="stop before this queue offset")
    parser.add_argument(
        "--resolve", action="store_true", help="also read the message of each entry and compare the two"
    )
    parser.add_argument(
        "--both",
        action="store_true",
        help="compare queues in files with those in a RocksDB of the same store; of all queues without TOPIC and QUEUE",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if not args.both and args.queue is None:
        raise UsageError(sentence("expected TOPIC and QUEUE, or --both"))
    with open_named_store(args, out) as store:
        if args.both:
            return _compare(args, store, out)
        report_read_side(store, out)
        unbounded = store.queues.find_beside_dledger(args.topic, args.queue)
        queue = unbounded or store.queues.find(args.topic, args.queue)
        moved = find_moved_messages(store, args.topic, args.queue) if unbounded is None else None
        if queue is None and moved is None:
            raise StoreError(
                sentence(
                    "expected a queue {topic}/{queue}, found no folder for it", topic=args.topic, queue=args.queue
                ),
                file=str(store.path),
            )
        columns = COLUMNS if moved is None else TIERED_COLUMNS
        logical = find_logical_offsets(store, args.topic).get(args.queue)
        has_priorities = args.resolve and args.topic in store.priority_topics
        if has_priorities:
            columns = (*columns, Column("Priority", "priority", "number"))
        if logical is not None:
            columns = (columns[0], *LOGICAL_COLUMNS, *columns[1:])
        if queue is not None and queue.kind == "simple" and moved is None and logical is None and not args.resolve:
            _list_plain(queue, args, out)
        else:
            for entry in moved_entries.entries(queue, moved, args.start, args.stop):
                if isinstance(entry, MovedEntry):
                    assert moved is not None
                    verdict = moved.resolve(entry).verdict if args.resolve else None
                    out.record(records.moved_entry(entry, verdict) | _logical(logical, entry), columns)
                    continue
                is_decoded = unbounded is None or not in_dledger(store, entry.physical_offset)
                resolved = resolve(store.log, args.topic, args.queue, entry) if args.resolve and is_decoded else None
                record = records.cq(entry, resolved.verdict if resolved is not None else None)
                record |= _logical(logical, entry)
                if has_priorities and resolved is not None and resolved.unit is not None:
                    record["priority"] = counting_priority(resolved.unit.properties)
                out.record(record, columns)
        out.line(f"-- {args.topic}/{args.queue}: {_span(store, queue, unbounded is not None, moved)}")
    return 0


def _list_plain(queue: AnyQueue, args: argparse.Namespace, out: Output) -> None:
    """List the entries of a simple queue that are compared with nothing, many at once."""
    from engine.codec.entry_states import runs_of_states  # numpy takes long, and other lists do without

    for offsets, rows in queue.blocks(args.start, args.stop):
        for start, end, state in runs_of_states(rows):
            part = rows[start:end]
            if queue.ext is not None and (part["tags_code"] <= MAX_EXT_ADDRESS).any():
                for entry in queue.entries(int(offsets[start]), int(offsets[end - 1]) + 1):
                    out.record(records.cq(entry), COLUMNS)
            else:
                out.rows(records.cq_rows(offsets[start:end], part, state), COLUMNS)


def _logical(logical: LogicalOffsets | None, entry: CqEntry | MovedEntry) -> dict[str, Any]:
    """Return the fields of an entry in a static topic."""
    return {} if logical is None else records.logical_offset(logical.find(entry.queue_offset))


def _span(store: StoreSnapshot, queue: AnyQueue | None, is_unbounded: bool, moved: MovedMessages | None) -> str:
    """Return the offsets of a queue as the last line of the list has them."""
    try:
        if is_unbounded:
            store.require("log")
        if moved is None:
            assert queue is not None
            return f"offsets {queue.min_offset:,} to {queue.max_offset:,}"
        tiered = moved.tiered
        min_offset, max_offset = tiered.min_offset, tiered.max_offset
        if queue is not None:
            min_offset, max_offset = min(min_offset, max(queue.min_offset, 0)), max(max_offset, queue.max_offset)
        place = tiered.store.folder or "its files are not here (--config FILE.conf with tieredStoreFilePath names them)"
        tiered_words = f"tiered storage has {tiered.min_offset:,} to {tiered.max_offset:,}: {place}"
        return f"offsets {min_offset:,} to {max_offset:,}; {tiered_words}"
    except CannotRead:
        return "which of the entries count is not known"


def _compare(args: argparse.Namespace, store: StoreSnapshot, out: Output) -> int:
    both_sides = find_both_sides(store)
    if both_sides is None:
        raise StoreError(
            sentence("expected queues in files and in a RocksDB, found only one of them"), file=str(store.path)
        )
    if out.as_json:
        out.record(records.both_sides(both_sides))
    differing = 0
    for queue in compare_sides(store):
        if args.topic in {None, queue.topic} and args.queue in {None, queue.queue_id}:
            differing += queue.first_difference is not None
            out.record(records.queue_on_both_sides(queue), BOTH_COLUMNS)
    out.line(
        plural("-- {n:,} queue differs", "-- {n:,} queues differ", n=differing)
        if differing
        else sentence("-- both hold the same")
    )
    counting = sentence("the file queues") if both_sides.counting == "files" else sentence("the queues in the RocksDB")
    out.line(sentence("-- {counting} count: {why}", counting=counting, why=both_sides.why))
    out.line(f"-- {both_sides.next_start}")
    return 0
