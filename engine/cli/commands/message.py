"""``message``: one unit by offset message id, unique key or physical offset, taken apart."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli import records
from engine.cli.commands.units import file_name
from engine.cli.options import common, open_given
from engine.cli.output import Output, iso, plain, size_text
from engine.codec.batch import Member, MemberDamage, members
from engine.codec.compression import unpack
from engine.codec.flips import explain
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, sys_flag_words
from engine.codec.words import words
from engine.inspection.lookup import find_message

_SHOWN = 2000
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
            out.say_nothing(f"no unit has the id, unique key or offset {args.id}")
            return 1
        show(unit, file_name(store, unit.offset), out, args.body)
    return 0


def show(unit: Unit, file: str | None, out: Output, body: bool = False) -> None:
    """One unit as a record, or field by field for people: what it is in words, its batch members, its body unpacked."""
    said = [word.text for word in words(unit)]
    record = records.unit(unit, file, body=body) | {"words": said}
    inner = members(unit.body) if unit.sys_flag & INNER_BATCH else []
    if inner:
        record["members"] = [_member(unit, one) for one in inner]
    if unit.crc == "bad":
        record["crcExplained"] = explain(unit.body, unit.body_crc).words
    out.record(record)
    if out.as_json:
        return
    skipped = ("type", "properties", "words", "members", "crcExplained")
    out.fields((name, _value(name, value)) for name, value in record.items() if name not in skipped)
    out.fields((f"properties.{name}", plain(value)) for name, value in unit.properties.items())
    for sentence in said:
        out.line(f"- {plain(sentence)}")
    if "crcExplained" in record:
        out.line(f"- the body's CRC is wrong: {record['crcExplained']}")
    for one in record.get("members", ()):
        out.line(f"member {one['queueOffset']:,}: {plain(str(one.get('reason') or one.get('properties')))}")
    _show_body(unit, out)


def _show_body(unit: Unit, out: Output) -> None:
    unpacked = unpack(unit.body, unit.sys_flag)
    text = unpacked.data[:_SHOWN].decode("utf-8", "replace")
    packed = f", unpacked from {size_text(len(unit.body))}" if unit.sys_flag & COMPRESSED else ""
    out.line(
        f"body ({size_text(len(unpacked.data))}{packed}): {plain(text)}{' …' if len(unpacked.data) > _SHOWN else ''}"
    )
    if unpacked.note:
        out.line(f"body: {plain(unpacked.note)}")


def _member(unit: Unit, one: Member | MemberDamage) -> dict[str, Any]:
    place = {"queueOffset": unit.queue_offset + one.index, "position": one.position, "size": one.size}
    if isinstance(one, MemberDamage):
        return place | {"reason": one.reason}
    return place | {"flag": one.flag, "properties": one.properties, "bodyLength": len(one.body)}


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
