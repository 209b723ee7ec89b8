"""``rows``: messages that a broker keeps in a RocksDB: waiting timers, open transactions, popped messages."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_masking, add_store, common_options, open_named_store
from engine.cli.output import Column, Output
from engine.errors import CannotRead
from engine.inspection import records
from engine.inspection.rocksdb_rows import FAMILIES, SUBJECTS, MessageRow
from engine.inspection.snapshot import StoreSnapshot
from engine.sentences import plural

COLUMNS = (
    Column("Of", "subject", "plain"),
    Column("State", "state", "plain"),
    Column("Time", "time", "time"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "number"),
    Column("Queue offset", "queueOffset", "number", spare=3),
    Column("Group", "consumerGroup", spare=1),
    Column("Producer group", "producerGroup", spare=2),
    Column("Key", "key", spare=6),
    Column("Unique key", "uniqueKey", spare=5),
    Column("Count", "count", "number", spare=4),
    Column("Physical offset", "physicalOffset", "number"),
    Column("Verdict", "verdict", "plain"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "rows",
        "rows ~/store",
        "rows ~/store --of pop --verdict missing",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--of", choices=FAMILIES, help="list only these rows; those of the index are only listed so")
    parser.add_argument(
        "--verdict",
        choices=("match", "deleted", "missing", "other", "unknown"),
        help="list only rows whose message is in the log (match), is deleted, is missing, is another one, or unknown",
    )
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        row_count = unflushed_count = 0
        for subject in SUBJECTS if args.of is None else (args.of,):
            try:
                for row in store.rocksdb_rows.rows(subject):
                    if args.verdict in {None, row.verdict}:
                        row_count += 1
                        unflushed_count += not row.is_in_files
                        out.record(_record(store, row), COLUMNS)
            except CannotRead:
                continue  # the root of the command line names it
        if row_count:
            out.line(plural("-- {n:,} row", "-- {n:,} rows", n=row_count))
            if unflushed_count:
                out.line(
                    plural(
                        "-- {n:,} is not in the files yet: only the broker's memory has it; it is made from the log",
                        "-- {n:,} are not in the files yet: only the broker's memory has them; they are made from the "
                        "log",
                        n=unflushed_count,
                    )
                )
        else:
            out.nothing("-- the store has no such rows in a RocksDB")
    return 0


def _record(store: StoreSnapshot, row: MessageRow) -> dict[str, Any]:
    file = (
        store.log.file_name(row.physical_offset) if row.unit is not None and row.physical_offset is not None else None
    )
    return records.message_row(row, file)
