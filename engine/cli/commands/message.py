"""``message``: one unit by offset message id, unique key, key or physical offset, taken apart; what the index does not
know is looked for as ``where`` does.
"""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, open_given
from engine.cli.output import Output, Progress, iso, plain, size_text
from engine.codec.batch import Member, MemberDamage, members
from engine.codec.compression import KINDS, find_packed_stream, unpack
from engine.codec.flipped_bits import explain
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, sys_flag_words
from engine.codec.unit_scan import Damage
from engine.codec.words import words
from engine.inspection import records
from engine.inspection.copy_out import copy_one
from engine.inspection.lookup import find_message
from engine.inspection.lost_units import LostUnit, lost_at, was
from engine.inspection.snapshot import StoreSnapshot

_SHOWN = 2000
_TIMES = ("bornTimestamp", "storeTimestamp")


def register(commands: Any) -> None:
    parser = commands.add_parser("message", parents=[common()], help="one message by its id, key or offset")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("id", metavar="ID", help="offset id, unique key, key, or topic/queue/offset")
    parser.add_argument("--body", action="store_true", help="with --json: the stored body in base64")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_given(args, out) as store:
        found = find_message(store, args.id) or _searched(store, args.id, out)
        if isinstance(found, tuple):
            _show_lost(store, found, out, args.body)
            return 1
        if found is None:
            out.say_nothing(f"no unit has the id, unique key or offset {args.id}")
            return 1
        show(found, store.log.file_name(found.offset), out, args.body)
        if store.kind == "store":
            out.line(f"copy it out: {copy_one(str(store.path), found.offset, readable=True)}")
    return 0


def _searched(store: StoreSnapshot, text: str, out: Output) -> Unit | tuple[Damage, list[LostUnit]] | None:
    """What ``where`` finds by the bytes of the log and by queue entries: a unit that no index knows, or the unreadable
    stretch in which it stood.
    """
    from engine.inspection.where.evidence import where

    store.settle_log_end()
    with Progress("message", store.log.sequence.total_size, out.quiet) as progress:
        place = next(where(store, text, progress=progress.at)).physical_offset
    if place is None:
        return None
    unit = store.log.seen_at(place)
    return unit if isinstance(unit, Unit) else lost_at(store, place)


def _show_lost(store: StoreSnapshot, told: tuple[Damage, list[LostUnit]], out: Output, body: bool) -> None:
    """What can be told of a message that cannot be read: which one it was, what is wrong, its body."""
    item, found = told
    out.record(records.damage(item, store.log.file_name(item.offset), found, body=body))
    if out.as_json:
        return
    out.line(f"no unit can be read at {item.offset:,}: {plain(item.reason)}")
    for lost in found:
        out.line(f"it was {plain(was(lost))}, {lost.size:,} bytes at {lost.offset:,}")
        for one in lost.wrong:
            out.line(f"- {one.words}")
        if lost.salvage is not None:
            _show_body(lost.salvage.unit, out)
            out.line(f"copy it out: {copy_one(str(store.path), lost.offset, readable=False)}")


def show(unit: Unit, file: str | None, out: Output, body: bool = False) -> None:
    """One unit as a record, or field by field for people: what it is in words, its batch members, its body unpacked."""
    said = [word.text for word in words(unit)]
    record = records.unit(unit, file, body=body) | {"words": said}
    inner = members(unit.body) if unit.sys_flag & INNER_BATCH else []
    if inner:
        record["members"] = [_member(unit, one) for one in inner]
    if unit.sys_flag & COMPRESSED:
        twice = find_packed_stream(unpack(unit.body, unit.sys_flag).data)
        if twice is not None:
            record["packedTwice"] = twice
    if unit.crc == "bad":
        record["crcExplained"] = explain(unit.body, unit.body_crc).words
    out.record(record)
    if out.as_json:
        return
    skipped = ("type", "properties", "words", "members", "crcExplained", "packedTwice")
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
    twice = find_packed_stream(unpacked.data) if unit.sys_flag & COMPRESSED else None
    if twice is not None:
        out.line(f"- the unpacked body is still a {twice} stream: the client packed it twice")
        number = next(number for number, name in KINDS.items() if name == twice)
        unpacked = unpack(unpacked.data, COMPRESSED | number << 8)
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
