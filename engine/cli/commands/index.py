"""``index``: headers of the index files, and their entries on demand."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_masking, add_store, common_options, open_named_store
from engine.cli.output import Column, Output
from engine.errors import CannotRead, StoreError
from engine.inspection import records
from engine.inspection.index_reader import IndexReader
from engine.sentences import sentence

_HEADERS = (
    Column("Name", "name", "plain"),
    Column("Begin", "beginTimestamp", "time"),
    Column("End", "endTimestamp", "time", spare=4),
    Column("Begin offset", "beginPhyOffset", "number", spare=2),
    Column("End offset", "endPhyOffset", "number"),
    Column("Slots used", "hashSlotCount", "number", spare=3),
    Column("Index count", "indexCount", "number", spare=1),
)
_ENTRIES = (
    Column("File", "file", "plain"),
    Column("Entry", "entry", "number"),
    Column("Slot", "slot", "number", spare=1),
    Column("Key hash", "keyHash", "number"),
    Column("Physical offset", "phyOffset", "number"),
    Column("Time diff", "timeDiff", "number", spare=2),
    Column("Stored", "storeTimestamp", "time", spare=3),
    Column("Previous", "prev", "number"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "index",
        "index ~/store",
        "index ~/store --file 20261120094107250 --entries",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--file", metavar="NAME", help="read only this index file")
    parser.add_argument("--entries", action="store_true", help="list every entry too")
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        readers = [r for r in store.index_files() if args.file in (None, r.name)]
        if args.file is not None and not readers:
            raise StoreError(
                sentence("expected an index file {file}, found none of this name", file=args.file), file=str(store.path)
            )
        code = 0
        for reader in readers:
            try:
                out.record({"type": "indexFile", **records.index_header(reader.name, reader.header)}, _HEADERS)
                if args.entries:
                    _entries(reader, out)
            except CannotRead:
                continue  # the root of the command line names it
            except StoreError as error:
                out.say(str(error))
                code = 1
        if not readers:
            out.nothing("-- the store has no index files")
    return code


def _entries(reader: IndexReader, out: Output) -> None:
    header, slots = reader.header, reader.slots
    for number, entry in reader.entries():
        out.record(records.index_entry(reader.name, number, slots, header, entry), _ENTRIES)
