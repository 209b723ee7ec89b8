"""``positions``: every position that files tell, and for each that they cannot tell, why."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Column, Output
from engine.inspection import records
from engine.inspection.positions import positions

_COLUMNS = (
    Column("Position", "name"),
    Column("Offset", "offset", "number"),
    Column("Time", "timestamp", "time"),
    Column("How, or why not", "said", "prose"),
)


def register(commands: Any) -> None:
    parser = commands.add_parser("positions", parents=[common()], help="how far everything came")
    parser.add_argument("store", metavar="STORE")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_given(args) as store:
        record = records.positions(positions(store))
    if out.as_json:
        out.record(record)
        return 0
    rows = {name: value for name, value in record.items() if name not in ("type", "checkpoint")}
    rows |= {f"checkpoint {name}": value for name, value in record["checkpoint"].items()}
    for name, value in rows.items():
        out.record({"name": name, **value, "said": value.get("how") or value.get("why")}, _COLUMNS)
    return 0
