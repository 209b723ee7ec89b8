"""``message``: one unit by offset message id, unique key or physical offset, taken apart."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli import records
from engine.cli.commands.units import file_name
from engine.cli.options import common, open_given
from engine.cli.output import Output, iso, plain, size_text
from engine.codec.message import Unit, sys_flag_words
from engine.inspection.lookup import find_message

_TIMES = ("bornTimestamp", "storeTimestamp")


def register(commands: Any) -> None:
    parser = commands.add_parser("message", parents=[common()], help="one message by its id, unique key or offset")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("id", metavar="ID")
    parser.add_argument("--body", action="store_true", help="with --json: the stored body in base64")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_given(args) as store:
        unit = find_message(store, args.id)
        if unit is None:
            out.say(f"no unit has the id, unique key or offset {args.id}")
            return 1
        show(unit, file_name(store, unit.offset), out, args.body)
    return 0


def show(unit: Unit, file: str | None, out: Output, body: bool = False) -> None:
    """One unit as a record, or field by field for people."""
    record = records.unit(unit, file, body=body)
    out.record(record)
    out.fields((name, _value(name, value)) for name, value in record.items() if name not in ("type", "properties"))
    out.fields((f"properties.{name}", plain(value)) for name, value in unit.properties.items())
    if not out.as_json:
        text = unit.body[:2000].decode("utf-8", "replace")
        out.line(f"body ({size_text(len(unit.body))}): {plain(text)}{' …' if len(unit.body) > 2000 else ''}")


def _value(name: str, value: Any) -> str:
    if name in _TIMES:
        return f"{value}  {iso(value)}"
    if name == "sysFlag":
        words = ", ".join(sys_flag_words(value))
        return f"0x{value & 0xFFFFFFFF:X}  {words}".rstrip()
    if name == "bodyCRC":
        return f"0x{value & 0xFFFFFFFF:08X}"
    if isinstance(value, list):
        return plain(" ".join(value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else plain(str(value))
