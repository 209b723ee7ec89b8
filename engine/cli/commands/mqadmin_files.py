"""mqadmin's commands that read files without a broker, under its names and options: tables of a RocksDB, and a file of
a compacted log.

mqadmin opens the file of a compacted log for writing. Here nothing is opened for writing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.cli.commands.units import print_other, print_unit
from engine.cli.options import add_command, common_options
from engine.cli.output import Output, escape_controls
from engine.codec.message import Unit
from engine.codec.rocksdb_tables import GROUPS, OFFSETS, TOPICS
from engine.codec.unit_scan import Stop
from engine.errors import StoreError, UsageError
from engine.inspection.rocksdb_tables import read_config_folder
from engine.inspection.snapshot import open_store
from engine.mapped.reading import Reading
from engine.sentences import sentence

_TABLES = {"topics": TOPICS, "subscriptionGroups": GROUPS, "consumerOffsets": OFFSETS}
_ROWS = {
    TOPICS: ("dataVersion", "topicConfigTable"),
    GROUPS: ("dataVersion", "subscriptionGroupTable", "forbiddenTable"),
    OFFSETS: ("offsetTable",),
}
"""Parts of each table that mqadmin prints, and what groups may not consume."""
_OPTIONAL = "dataVersion", "forbiddenTable"


def register(commands: Any) -> None:
    """Add the commands."""
    parser = add_command(
        commands,
        "rocksDBConfigToJson",
        "rocksDBConfigToJson -p ~/store/config -t topics",
        parents=[common_options(store=False)],
    )
    _add_folder(parser, "--configPath", tuple(_TABLES))
    _add_form(parser, "true")
    parser.set_defaults(run=_print_table)
    parser = add_command(
        commands,
        "exportMetadataInRocksDB",
        "exportMetadataInRocksDB -p ~/store/config -t topics",
        parents=[common_options(store=False)],
    )
    _add_folder(parser, "--path", ("topics", "subscriptionGroups"))
    _add_form(parser, "false")
    parser.set_defaults(run=_export_metadata)
    parser = add_command(
        commands,
        "dumpCompactionLog",
        "dumpCompactionLog -f ~/store/compaction/compactionLog/Prices/0/00000000000000000000",
        parents=[common_options(store=False)],
    )
    parser.add_argument("-f", "--file", required=True, metavar="FILE", help="the file below compaction/compactionLog/")
    parser.set_defaults(run=_dump_compaction_log)


def _add_folder(parser: argparse.ArgumentParser, option: str, tables: tuple[str, ...]) -> None:
    text = "the folder with the broker's tables: STORE/config"
    parser.add_argument("-p", option, dest="folder", required=True, metavar="FOLDER", help=text)
    text = f"the table: {', '.join(tables)}"
    parser.add_argument("-t", "--configType", dest="table", choices=tables, required=True, metavar="TABLE", help=text)


def _add_form(parser: argparse.ArgumentParser, default: str) -> None:
    text = "true: print one JSON object; false: print a line for each row (default: %(default)s)"
    parser.add_argument(
        "-j", "--jsonEnable", dest="form", choices=("true", "false"), default=default, metavar="FORM", help=text
    )


def _print_table(args: argparse.Namespace, out: Output) -> int:
    name = _TABLES[args.table]
    folder, value = _read(args, out)
    parts = {part: value[part] for part in _ROWS[name] if value.get(part) or part not in _OPTIONAL}
    return _print(args, out, folder, parts)


def _export_metadata(args: argparse.Namespace, out: Output) -> int:
    folder, value = _read(args, out)
    rows = _ROWS[_TABLES[args.table]][1]
    return _print(args, out, folder, {rows: value[rows]})


def _read(args: argparse.Namespace, out: Output) -> tuple[str, dict[str | int, Any]]:
    """Return the database's folder and the value of the table."""
    reading = Reading()
    tables = read_config_folder(Path(args.folder), _TABLES[args.table], reading)
    if not tables:
        raise StoreError(
            sentence("expected the table {table} in a RocksDB, found none: is this STORE/config?", table=args.table),
            file=args.folder,
        )
    (folder, value), *further_tables = tables.items()
    for further_folder, _ in further_tables:
        out.say(sentence("{folder} has this table, too; mqadmin does not read it", folder=further_folder))
    return folder, value


def _print(args: argparse.Namespace, out: Output, folder: str, parts: dict[str, Any]) -> int:
    out.record({"type": "config", "table": args.table, "file": folder, "used": "rocksdb", "why": None, "value": parts})
    if not out.as_json and args.form == "true":
        out.line(json.dumps(parts, ensure_ascii=False, indent=2), is_data=True)
        return 0
    for line in _row_lines(parts):
        out.line(line, is_data=True)
    return 0


def _row_lines(parts: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each row, numbered through all parts."""
    number = 0
    for part, rows in parts.items():
        if len(parts) > 1:
            yield f"type: {part}"
        for key, row in rows.items():
            number += 1
            text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
            yield f"{number}, Key: {escape_controls(str(key))}, Value: {escape_controls(text)}"


def _dump_compaction_log(args: argparse.Namespace, out: Output) -> int:
    with open_store(args.file) as store:
        if store.kind != "file":
            raise UsageError(sentence("expected a file, found a folder: {file}", file=args.file))
        for item in store.units():
            if isinstance(item, Unit):
                print_unit(store, item, out)
            elif not isinstance(item, Stop):
                print_other(store, item, out)
    return 0
