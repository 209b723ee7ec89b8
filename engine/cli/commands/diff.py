"""``diff``: what differs between two stores, such as a master and its slave, or a store and its backup."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from engine.cli.options import add_command, add_store, common_options, count, open_named_store
from engine.cli.output import Column, Output, Progress, iso_time, size_text
from engine.codec.message import Unit
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.difference_rows import Differences, MissingEnd, Row, Side
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.store_differences import compare
from engine.sentences import sentence

_COLUMNS = (
    Column("Difference", "kind", "plain"),
    Column("Part", "part", "plain"),
    Column("What", "subject"),
    Column("Count", "count", "number"),
    Column("Fields", "fields"),
    Column("In A", "a"),
    Column("In B", "b"),
)
_ALIGNED = {
    "offsets": "at the same offsets",
    "messages": "message by message (other physical offsets)",
    "both": "at the same offsets up to {offset:,}, from there message by message",
}
_MAX_QUEUES = 20
_SIDES = {"here": "onlyInA", "there": "onlyInB", "differs": "differs"}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "diff",
        "diff ~/store ~/backup",
        "diff ~/master ~/slave --limit 20",
        "diff ~/store --patched repair.patches",
        parents=[common_options()],
    )
    add_store(parser, "A", can_be_patched=True)
    text = "the other store; can be left out with --patched: A is then compared with A as the patches would leave it"
    parser.add_argument("other", metavar="B", nargs="?", help=text)
    parser.add_argument(
        "--limit", type=count, default=100, metavar="N", help="show at most N differences (default: 100)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the differences, then what was compared. Return 1 if the stores differ."""
    if args.other is None and args.patched is None:
        raise UsageError(sentence("diff needs a second store, or --patched"))
    with ExitStack() as stack:
        if args.other is None:
            other_store = stack.enter_context(open_named_store(args, out))
            store = stack.enter_context(open_store(args.store, other_store.config))
        else:
            store = stack.enter_context(open_named_store(args, out))
            other_store = stack.enter_context(open_store(args.other, store.config))
        differences = Differences()
        with Progress("compare", 1, out.quiet) as progress:
            compare(_Control(progress), store, other_store, differences)
        for row in differences.rows[: args.limit]:
            out.record(_record(row), _COLUMNS)
        _summarize(differences, args.limit, store, other_store, out)
    return int(differences.total > 0)


class _Control:
    """Shows the progress of the part that is compared; a command is stopped by its signal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def check(self) -> None:
        """Do nothing."""

    def report(self, done: float, total: float | None = None) -> None:
        """Show the progress."""
        self._progress.update(int(done), int(total) if total is not None else None)


def _record(row: Row) -> dict[str, Any]:
    """Return the JSON record ``difference``."""
    topic, queue_id, queue_offset = row.queue or (None, None, None)
    return {
        "type": "difference",
        "kind": _SIDES[row.side],
        "part": row.kind,
        "subject": row.subject,
        "count": row.count,
        "bytes": row.size,
        "fields": row.fields,
        "a": row.text_here,
        "b": row.text_there,
        "physicalOffset": row.offset,
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": queue_offset,
        "otherPhysicalOffset": row.offset_there,
    }


def _unit_of(store: StoreSnapshot, row: Row, side: Side) -> dict[str, Any] | None:
    """Return the unit that a store has for a difference, or None where it has none."""
    if row.offset is None or (row.side not in {side, "differs"} and row.is_beyond):
        return None
    offset = row.offset_there if side == "there" and row.offset_there is not None else row.offset
    unit = store.log.unit_at(offset, crc=False)
    if not isinstance(unit, Unit):
        return None
    return {
        "physicalOffset": unit.offset,
        "size": unit.size,
        "topic": unit.topic,
        "queueId": unit.queue_id,
        "queueOffset": unit.queue_offset,
        "uniqueKey": unit.unique_key,
        "storeTimestamp": unit.store_timestamp,
    }


def _first_difference(
    differences: Differences, store: StoreSnapshot, other_store: StoreSnapshot
) -> dict[str, Any] | None:
    row = differences.first_row
    if row is None:
        return None
    units = _unit_of(store, row, "here"), _unit_of(other_store, row, "there")
    return {"kind": _SIDES[row.side], "physicalOffset": row.offset, "fields": row.fields, "a": units[0], "b": units[1]}


def _queue_totals(differences: Differences) -> list[dict[str, Any]]:
    """Return the units that differ by topic and queue: numbers and ranges of queue offsets."""
    return [
        {
            "topic": topic,
            "queueId": queue_id,
            **{
                _SIDES[side]: {"count": units.count, "first": units.min_offset, "last": units.max_offset}
                for side, units in sides.items()
            },
        }
        for (topic, queue_id), sides in sorted(differences.queues.items())
    ]


def _summarize(
    differences: Differences, limit: int, store: StoreSnapshot, other_store: StoreSnapshot, out: Output
) -> None:
    """Print how much was compared and how much differs; nothing is called equal that was not read."""
    counts: dict[str, dict[str, int]] = {}
    for (part, side), number in differences.counts.items():
        counts.setdefault(part, {})[_SIDES[side]] = number
    complete = not store.unread and not other_store.unread
    first, totals = _first_difference(differences, store, other_store), _queue_totals(differences)
    out.record(
        {
            "type": "compared",
            "equal": not differences.total and complete,
            "complete": complete,
            "differences": differences.total,
            "counts": counts,
            "bytes": differences.compared_bytes,
            "alignment": differences.alignment,
            "alignedUntil": differences.shared_until,
            "firstDifference": first,
            "ends": [
                {
                    "kind": _SIDES[missing.side],
                    "end": missing.end,
                    "physicalOffset": missing.offset,
                    "count": missing.units,
                    "bytes": missing.size,
                }
                for missing in differences.ends.values()
            ],
            "queues": totals,
        }
    )
    if out.as_json:
        return
    compared = f"{size_text(differences.compared_bytes)} of log compared {_ALIGNED[differences.alignment]}"
    if differences.alignment == "both":
        compared = compared.format(offset=differences.shared_until)
    if not differences.total:
        out.line(f"-- {'no difference' if complete else 'no difference in what can be read'}; {compared}")
        return
    if first is not None:
        _print_first(first, out)
    for missing in differences.ends.values():
        out.line(f"-- {_end_text(missing)}")
    for total in totals[:_MAX_QUEUES]:
        out.line(f"-- {total['topic']}/{total['queueId']}: " + ", ".join(_range_texts(total)))
    if len(totals) > _MAX_QUEUES:
        out.line(f"-- {number_of(len(totals) - _MAX_QUEUES, 'further queue', 'further queues')} (--json lists all)")
    for name, sides in counts.items():
        out.line(f"-- {name}: " + ", ".join(_count_text(number, side) for side, number in sides.items()))
    rows = len(differences.rows)
    limit_words = (
        f"; the first {limit:,} of {number_of(rows, 'row', 'rows')} are listed (--limit)" if rows > limit else ""
    )
    out.line(f"-- {number_of(differences.total, 'difference', 'differences')}{limit_words}; {compared}")


def _print_first(first: dict[str, Any], out: Output) -> None:
    fields = f": {first['fields']}" if first["fields"] else ""
    out.line(f"-- first difference in the log: offset {first['physicalOffset']:,}{fields}")
    for name, unit in (("A", first["a"]), ("B", first["b"])):
        if unit is None:
            out.line(f"--   {name}: no unit")
            continue
        place = f"{unit['topic']}/{unit['queueId']}/{unit['queueOffset']:,}"
        text = f"{unit['physicalOffset']:,} + {unit['size']:,}  {place}  {unit['uniqueKey'] or ''}"
        out.line(f"--   {name}: {text}  {iso_time(unit['storeTimestamp'])}")


def _end_text(missing: MissingEnd) -> str:
    """Say plainly that one store ends earlier or begins later."""
    name, other_name = ("A", "B") if missing.side == "here" else ("B", "A")
    units = number_of(missing.units, f"unit of {name}", f"units of {name}")
    verb = "is" if missing.units == 1 else "are"
    offset = missing.offset
    if missing.end == "tail":
        cause = f"{other_name} lags, was copied earlier, or lost its end"
        if offset is None:
            return f"queues of {other_name} end earlier: {units} {verb} behind their ends ({cause})"
        return f"{other_name} ends at {offset:,}: {units} {verb} behind its end ({cause})"
    cause = f"{other_name} deleted them, or began later"
    if offset is None:
        return f"queues of {other_name} begin later: {units} {verb} before their first message ({cause})"
    return f"{other_name} begins at {offset:,}: {units} {verb} before its beginning ({cause})"


def _range_texts(total: dict[str, Any]) -> list[str]:
    texts = []
    for side in ("onlyInA", "onlyInB", "differs"):
        units = total.get(side)
        if units is not None:
            first, last = units["first"], units["last"]
            offsets = f"{first:,}" if first == last else f"{first:,} … {last:,}"
            texts.append(f"{_count_text(units['count'], side)} ({offsets})")
    return texts


def _count_text(number: int, side: str) -> str:
    words = {"onlyInA": "only in A", "onlyInB": "only in B"}.get(side, "differs" if number == 1 else "differ")
    return f"{number:,} {words}"
