"""``diff``: what differs between two stores, such as a master and its slave, or a store and its backup."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_store, common_options, count, open_named_store
from engine.cli.output import Column, Output, Progress, size_text
from engine.english import number_of
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.store_differences import Differences, Row, compare

_COLUMNS = (
    Column("Difference", "kind", "plain"),
    Column("Part", "part", "plain"),
    Column("What", "subject"),
    Column("Count", "count", "number"),
    Column("Fields", "fields"),
    Column("In A", "a"),
    Column("In B", "b"),
)
_SIDES = {"here": "onlyInA", "there": "onlyInB", "differs": "differs"}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "diff",
        "Compare two stores: units, queue entries, index, tables, checkpoint",
        "diff ~/store ~/backup",
        "diff ~/master ~/slave --limit 20",
        parents=[common_options()],
    )
    add_store(parser, "A", can_be_patched=True)
    parser.add_argument("other", metavar="B", help="the other store")
    parser.add_argument(
        "--limit", type=count, default=100, metavar="N", help="show at most N differences (default: 100)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the differences, then what was compared. Return 1 if the stores differ."""
    with open_named_store(args, out) as store, open_store(args.other, store.config) as other_store:
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
        "a": row.here,
        "b": row.there,
        "physicalOffset": row.offset,
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": queue_offset,
    }


def _summarize(
    differences: Differences, limit: int, store: StoreSnapshot, other_store: StoreSnapshot, out: Output
) -> None:
    """Print how much was compared and how much differs; nothing is called equal that was not read."""
    counts: dict[str, dict[str, int]] = {}
    for (part, side), number in differences.counts.items():
        counts.setdefault(part, {})[_SIDES[side]] = number
    complete = not store.unread and not other_store.unread
    out.record(
        {
            "type": "compared",
            "equal": not differences.total and complete,
            "complete": complete,
            "differences": differences.total,
            "counts": counts,
            "bytes": differences.compared_bytes,
        }
    )
    if out.as_json:
        return
    compared = f"{size_text(differences.compared_bytes)} of log compared at the same offsets"
    if not differences.total:
        out.line(f"-- {'no difference' if complete else 'no difference in what can be read'}; {compared}")
        return
    for name, sides in counts.items():
        out.line(f"-- {name}: " + ", ".join(_count_text(number, side) for side, number in sides.items()))
    rows = len(differences.rows)
    limit_words = (
        f"; the first {limit:,} of {number_of(rows, 'row', 'rows')} are listed (--limit)" if rows > limit else ""
    )
    out.line(f"-- {number_of(differences.total, 'difference', 'differences')}{limit_words}; {compared}")


def _count_text(number: int, side: str) -> str:
    words = {"onlyInA": "only in A", "onlyInB": "only in B"}.get(side, "differs" if number == 1 else "differ")
    return f"{number:,} {words}"
