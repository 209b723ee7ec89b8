"""``units``: every unit, blank and span of damage of the commit log, as it stands there."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from engine.cli.decoding import add_decoding, decoded_text, decoding
from engine.cli.options import add_command, add_masking, add_store, common_options, count, number, open_named_store
from engine.cli.output import Column, Output, Progress
from engine.codec.message import Unit
from engine.codec.priority import counting_priority
from engine.codec.unit_scan import Blank, Damage, Item, Stop
from engine.english import number_of
from engine.inspection import records
from engine.inspection.lost_units import lost_units, was
from engine.inspection.matching import listed, matching_units
from engine.inspection.snapshot import StoreSnapshot
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.decoding.bodies import BodyDecoders
    from engine.inspection.queue_reader import CqEntry
    from engine.query import Filter

COLUMNS = (
    Column("Physical offset", "physicalOffset", "number"),
    Column("Size", "size", "number"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Queue offset", "queueOffset", "number"),
    Column("Stored", "storeTimestamp", "time"),
    Column("Tags", "tags", spare=2),
    Column("Keys", "keys", spare=3),
    Column("CRC", "crc", spare=1),
)


PRIORITY_COLUMNS = (*COLUMNS[:-1], Column("Priority", "priority", "number"), COLUMNS[-1])
"""Columns for a store with a topic of type PRIORITY."""
DECODED_COLUMNS = (*COLUMNS[:5], Column("Tags", "tags", spare=1), Column("Decoded", "decoded"))
"""Columns with decoded bodies."""


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "units",
        "units ~/store --topic Orders --limit 20",
        """units ~/store --where 'keys = "O-1042"' --json --body""",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "--from", dest="start", type=number, metavar="N", help="start at this physical offset, in bytes"
    )
    parser.add_argument(
        "--to", dest="stop", type=number, metavar="N", help="stop before this physical offset, in bytes"
    )
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument("--queue", type=number, metavar="Q", help="only messages of this queue id")
    parser.add_argument(
        "--where", metavar="FILTER", help="only units that match this filter, for example 'size > 4KiB'"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="stop after N units (default: no limit)")
    parser.add_argument("--no-crc", action="store_true", help="do not check body CRCs (faster)")
    parser.add_argument("--body", action="store_true", help="with --json: add the stored body in base64")
    add_decoding(parser)
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    unit_filter = unit_filter_of(args)  # a mistake in the filter is reported before anything is opened
    with open_named_store(args, out) as store, decoding(args, store, out, unit_filter) as decoders:
        if unit_filter is not None and unit_filter.reads_bodies:
            store.require_bodies()
        start = args.start if args.start is None else store.log.align(args.start)
        begin = store.log.min_offset if start is None else start
        total = (store.log.end_offset if args.stop is None else args.stop) - begin
        units, stop = 0, Stop(max(begin, 0), "end", sentence("the commit log has no files"))
        with Progress("units", total, out.quiet or not out.as_json) as progress:
            for item in _items(
                store, unit_filter, decoders, start, args, out, lambda offset: progress.update(offset - begin)
            ):
                if isinstance(item, Stop):
                    stop = item
                    break
                if isinstance(item, records.Lines):
                    units += item.units
                    out.json_lines(item.text)
                    continue
                if not isinstance(item, Unit):
                    print_other(store, item, out)
                    continue
                if args.limit is not None and units >= args.limit:
                    out.record(
                        records.end(
                            Stop(
                                item.offset,
                                "limit",
                                f"the limit of {number_of(args.limit, 'unit', 'units')}",
                            ),
                            units,
                            False,
                        )
                    )
                    out.line(
                        f"-- stopped after {number_of(units, 'unit', 'units')}; continue with --from {item.offset}"
                    )
                    return 0
                units += 1
                print_unit(store, item, out, body=args.body, decoders=decoders)
        is_read_whole = stop.kind in ("end", "zero", "cut", "damage") or (
            stop.kind == "limit" and args.stop is not None
        )
        is_undecoded = store.undecoded_part("log") is not None
        complete = is_read_whole and not store.unread and not is_undecoded
        out.record(records.end(stop, units, complete))
        if units or not is_undecoded:
            out.line(f"-- {number_of(units, 'unit', 'units')}; the log was read to {stop.offset:,}: {stop.reason}")
    return 0


def unit_filter_of(args: argparse.Namespace) -> Filter | None:
    """The filter that the options ask for, None if everything is wanted."""
    if args.topic is None and args.queue is None and args.where is None:
        return None
    from engine.query.filter import scope_filter

    return scope_filter(args.topic, args.queue, args.where)


def _items(
    store: StoreSnapshot,
    unit_filter: Filter | None,
    decoders: BodyDecoders | None,
    start: int | None,
    args: argparse.Namespace,
    out: Output,
    on_progress: Callable[[int], None],
) -> Iterator[Item | records.Lines | Stop]:
    """Yield the items of the log that the arguments ask for; without a filter also what is no unit."""
    stop, crc = args.stop, not args.no_crc
    if out.as_json and out.mask is None and out.has_bodies and args.limit is None:
        yield from listed(
            store.log, unit_filter, start, stop, crc=crc, body=args.body, decoders=decoders, on_progress=on_progress
        )
    elif unit_filter is not None:
        yield from matching_units(store.log, unit_filter, start, stop, crc=crc, on_progress=on_progress)
    else:
        for item in store.units(start, stop, crc=crc):
            if not isinstance(item, Stop):
                on_progress(item.offset)
            yield item


def print_unit(
    store: StoreSnapshot,
    unit: Unit,
    out: Output,
    kind: str = "unit",
    body: bool = False,
    decoders: BodyDecoders | None = None,
) -> None:
    """Write one unit as a record or a row."""
    record = records.unit(unit, store.log.file_name(unit.offset), kind, body)
    if store.priority_topics and not out.as_json:
        record["priority"] = counting_priority(unit.properties)
    if decoders is not None:
        decoded_body = decoders.decode_unit(unit)
        record |= records.decoded(decoded_body)
        if not out.as_json:
            record["decoded"] = decoded_text(decoded_body)
    out.record(record, DECODED_COLUMNS if decoders is not None else unit_columns(store))


def unit_columns(store: StoreSnapshot) -> tuple[Column, ...]:
    """Return the columns of a table of units."""
    return PRIORITY_COLUMNS if store.priority_topics else COLUMNS


def unit_of(store: StoreSnapshot, entry: CqEntry) -> Unit | None:
    """Return the unit that begins where an entry points, or None."""
    item = store.log.seen_at(entry.physical_offset) if entry.state == "entry" else None
    return item if isinstance(item, Unit) else None


def print_other(store: StoreSnapshot, item: Blank | Damage, out: Output) -> None:
    """Write a blank or damage as a record or a row."""
    file = store.log.file_name(item.offset)
    if isinstance(item, Blank):
        out.record(records.blank(item, file), unit_columns(store) if not out.as_json else None)
        return
    lost = lost_units(store, item.offset, item.size) if not item.unread else []
    if out.as_json:
        out.record(records.damage(item, file, lost))
        return
    further = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
    description = "".join(f"was {was(lost_unit)}{further}: " for lost_unit in lost[:1])
    description = f"DAMAGE: {description}{item.reason}"
    out.record({"physicalOffset": item.offset, "size": item.size, "topic": description}, unit_columns(store))
