"""``message``: one unit by offset message id, unique key, key or physical offset, taken apart; what the index does not
know is looked for as ``where`` does.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.cli.decoding import add_decoding, decoded_text, decoding
from engine.cli.options import add_command, add_store, common_options, open_named_store
from engine.cli.output import Output, Progress, escape_controls, iso_time, size_text
from engine.codec.batch import Member, MemberDamage, members
from engine.codec.compression import KINDS, find_packed_stream, unpack
from engine.codec.flipped_bits import explain
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, sys_flag_words
from engine.codec.unit_scan import Damage
from engine.codec.words import words
from engine.english import number_of
from engine.inspection import records
from engine.inspection.copy_out import copy_one
from engine.inspection.lookup import find_message
from engine.inspection.lost_units import LostUnit, lost_at, was
from engine.inspection.snapshot import StoreSnapshot

if TYPE_CHECKING:
    from engine.decoding.bodies import BodyDecoders

_SHOWN_BODY_BYTES = 2000
_DECODED = ("decoded", "decoder", "decodeError")
_TIMES = ("bornTimestamp", "storeTimestamp")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "message",
        "message ~/store Orders/0/100",
        "message ~/store 8193 --json --body",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "id", metavar="ID", help="offset message id, unique key, key, physical offset, or TOPIC/QUEUE/OFFSET"
    )
    parser.add_argument("--body", action="store_true", help="with --json: add the stored body in base64")
    add_decoding(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store, decoding(args, store, out) as decoders:
        result = find_message(store, args.id) or _search(store, args.id, out)
        if isinstance(result, tuple):
            _show_lost(store, result, out, args.body)
            return 1
        if result is None:
            out.say_nothing(f"no message has the id, unique key or offset {args.id}")
            return 1
        show(result, store.log.file_name(result.offset), out, args.body, decoders)
        if store.kind == "store" and store.capsule is None:
            out.line(f"copy it out: {copy_one(str(store.path), result.offset, readable=True)}")
    return 0


def _search(store: StoreSnapshot, text: str, out: Output) -> Unit | tuple[Damage, list[LostUnit]] | None:
    """Search as ``where`` does, by the bytes of the log and by queue entries: for a unit that no index knows, or the
    unreadable range in which it stood.
    """
    from engine.inspection.where.evidence import where

    store.commit_log.settle_end()
    with Progress("message", store.log.sequence.total_size, out.quiet) as progress:
        place = next(where(store, text, progress=progress.update)).physical_offset
    if place is None:
        return None
    unit = store.log.seen_at(place)
    return unit if isinstance(unit, Unit) else lost_at(store, place)


def _show_lost(store: StoreSnapshot, loss: tuple[Damage, list[LostUnit]], out: Output, body: bool) -> None:
    """Show what is known of a message that cannot be read: which one it was, what is wrong, its body."""
    item, lost_units = loss
    out.record(records.damage(item, store.log.file_name(item.offset), lost_units, body=body))
    if out.as_json:
        return
    out.line(f"no unit can be read at {item.offset:,}: {escape_controls(item.reason)}")
    for lost in lost_units:
        out.line(f"it was {escape_controls(was(lost))}, {number_of(lost.size, 'byte', 'bytes')} at {lost.offset:,}")
        for fault in lost.wrong:
            out.line(f"- {fault.words}")
        if lost.salvage is not None:
            _show_body(lost.salvage.unit, out)
            out.line(f"copy it out: {copy_one(str(store.path), lost.offset, readable=False)}")


def show(unit: Unit, file: str | None, out: Output, body: bool = False, decoders: BodyDecoders | None = None) -> None:
    """Show one unit as a record, or field by field for people: its description, its batch members, its body
    unpacked.
    """
    sentences = [word.text for word in words(unit)]
    record = records.unit(unit, file, body=body) | {"words": sentences}
    inner = members(unit.body) if unit.sys_flag & INNER_BATCH else []
    if inner:
        record["members"] = [_member(unit, member) for member in inner]
    if unit.sys_flag & COMPRESSED and out.has_bodies:
        inner_format = find_packed_stream(unpack(unit.body, unit.sys_flag).data)
        if inner_format is not None:
            record["packedTwice"] = inner_format
    if unit.crc == "bad":
        record["crcExplained"] = explain(unit.body, unit.body_crc).words
    if decoders is not None:
        record |= records.decoded(decoders.decode_unit(unit))
    out.record(record)
    if out.as_json:
        return
    skipped = ("type", "properties", "words", "members", "crcExplained", "packedTwice", *_DECODED)
    fields = ((name, _value(name, value)) for name, value in record.items() if name not in skipped)
    out.fields(fields, are_data=True)
    properties = ((f"properties.{name}", escape_controls(value)) for name, value in unit.properties.items())
    out.fields(properties, are_data=True)
    for sentence in sentences:
        out.line(f"- {escape_controls(sentence)}")
    if "crcExplained" in record:
        out.line(f"- the body's CRC is wrong: {record['crcExplained']}")
    for member in record.get("members", ()):
        out.line(
            f"member {member['queueOffset']:,}: "
            f"{escape_controls(str(member.get('reason') or member.get('properties')))}",
            is_data=True,
        )
    _show_body(unit, out)
    if decoders is not None:
        decoded_body = decoders.decode_unit(unit)
        text = decoded_text(decoded_body)
        out.line(f"decoded ({decoded_body.decoder or 'no rule'}): {escape_controls(text or '')}", is_data=True)


def _show_body(unit: Unit, out: Output) -> None:
    if not out.has_bodies:
        out.line(f"body ({size_text(len(unit.body))}): not in the capsule")
        return
    unpacked = unpack(unit.body, unit.sys_flag)
    inner_format = find_packed_stream(unpacked.data) if unit.sys_flag & COMPRESSED else None
    if inner_format is not None:
        out.line(f"- the unpacked body is still a {inner_format} stream: the client packed it twice")
        number = next(number for number, name in KINDS.items() if name == inner_format)
        unpacked = unpack(unpacked.data, COMPRESSED | number << 8)
    text = unpacked.data[:_SHOWN_BODY_BYTES].decode("utf-8", "replace")
    packed = f", unpacked from {size_text(len(unit.body))}" if unit.sys_flag & COMPRESSED else ""
    out.line(
        f"body ({size_text(len(unpacked.data))}{packed}): {escape_controls(text)}"
        f"{' …' if len(unpacked.data) > _SHOWN_BODY_BYTES else ''}",
        is_data=True,
    )
    if unpacked.note:
        out.line(f"body: {escape_controls(unpacked.note)}")


def _member(unit: Unit, member: Member | MemberDamage) -> dict[str, Any]:
    place = {"queueOffset": unit.queue_offset + member.index, "position": member.position, "size": member.size}
    if isinstance(member, MemberDamage):
        return place | {"reason": member.reason}
    return place | {"flag": member.flag, "properties": member.properties, "bodyLength": len(member.body)}


def _value(name: str, value: Any) -> str:
    if name in _TIMES:
        return f"{value}  {iso_time(value)}"
    if name == "sysFlag":
        words = ", ".join(sys_flag_words(value))
        return f"0x{value & 0xFFFFFFFF:X}  {words}".rstrip()
    if name == "bodyCRC":
        return f"0x{value & 0xFFFFFFFF:08X}"
    if isinstance(value, list):
        return escape_controls(" ".join(value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else escape_controls(str(value))
