"""``config``: every configuration table of a store, parsed."""

from __future__ import annotations

import argparse
import json
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Output, plain
from engine.inspection.tables import read_tables


def register(commands: Any) -> None:  # noqa: ANN401 - argparse's subparsers have no public type
    parser = commands.add_parser("config", parents=[common()], help="the tables below config/")
    parser.add_argument("store", metavar="STORE")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    code = 0
    with open_given(args) as store:
        for table in read_tables(store):
            record = {
                "type": "config",
                "table": table.name,
                "file": table.file,
                "value": table.value,
                "problem": table.problem,
            }
            out.record(record)
            out.line(f"{table.name}  ({table.file})")
            if table.problem:
                out.line(f"  {plain(table.problem)}")
                code = 1
            if table.value is not None and not out.as_json:
                out.line(json.dumps(table.value, ensure_ascii=False, indent=2))
    return code
