"""``salvage``: messages in damaged files, free space and images of disks that the store does not have any more."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from engine.cli.options import (
    add_command,
    add_release,
    add_store,
    common_options,
    open_named_store,
    open_to_write,
    stated_release,
)
from engine.cli.output import Column, Output, Progress, size_text
from engine.cli.writing import check_new_path
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection import records
from engine.inspection.derived_config import derived_config, quiet
from engine.inspection.salvage.salvage_search import COMPLETE, EVIDENCE_WORDS, WORDS, Salvaged, SalvageSearch
from engine.inspection.salvage.searched_files import open_images
from engine.sentences import sentence

_COLUMNS = (
    Column("Verdict", "verdict"),
    Column("Phys. offset", "physicalOffset", "number"),
    Column("Size", "size", "number"),
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Offset", "queueOffset", "number"),
    Column("Keys", "keys", spare=2),
    Column("File", "file", "path"),
    Column("At", "fileOffset", "number"),
    Column("Why", "why", "prose", spare=1),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "salvage",
        "salvage ~/store",
        "salvage ~/store --image /mnt/rescue/sdb1.img --json",
        "salvage ~/store --image ~/replica/commitlog/00000000001073741824 --to ~/salvaged",
        parents=[common_options()],
    )
    add_store(parser)
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="also search this file or block device: the image of a disk or partition, a log file or the folder of a "
        "replica; may be repeated",
    )
    parser.add_argument(
        "--to", metavar="NEW", help="write the whole messages into a new store in this folder; STORE is only read"
    )
    add_release(parser, "write NEW as this RocketMQ release does (default: the one that probably wrote STORE)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print a row for each unit and fragment; with ``--to`` write the whole ones."""
    with ExitStack() as stack:
        open_source = open_named_store if args.to is None else open_to_write
        store = stack.enter_context(open_source(args, out))
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one"), file=args.store)
        target = check_new_path(args.to, store.path) if args.to is not None else None
        images = stack.enter_context(open_images(args.image))
        search = SalvageSearch(store, images)
        with Progress("salvage", search.bytes_to_read, out.quiet) as progress:
            search.run(progress.update)
        for row in search.rows():
            record = records.salvage_row(row)
            out.record(record if out.as_json else record | {"why": _why(row)}, _COLUMNS)
        out.flush()
        summary: dict[str, Any] = {
            "type": "salvageSummary",
            "counts": dict(sorted(search.counts.items())),
            "bytesRead": search.bytes_to_read,
            "liveLeftOut": search.live_count,
            "written": None,
            "ambiguous": [],
        }
        if target is not None:
            from engine.cli.copying import target_config
            from engine.cli.salvaged_store import write_salvaged

            config = quiet(target_config(derived_config(store), None))
            whole = (row for row in search.rows() if row.verdict in COMPLETE)
            written = write_salvaged(store, target, config, whole, stated_release(args, store))
            summary |= {"written": written.units, "ambiguous": written.ambiguous}
    out.record(summary)
    if not out.as_json:
        for line in _lines(summary, search):
            out.line(line)
        if target is not None:
            messages, size = number_of(written.units, "message", "messages"), size_text(written.size)
            out.line(f"{messages}, {size}, written to {shlex.quote(str(target))}; queue offsets begin at 0 there")
            if written.ambiguous:
                out.line(
                    f"not written, because several contents are equally likely: the units at "
                    f"{', '.join(f'{offset:,}' for offset in written.ambiguous[:20])}"
                )
    return 0


def _why(row: Salvaged) -> str:
    """Name the signs that show more than a magic code does, then what speaks against them."""
    signs = [sign for sign in row.evidence if sign not in ("magic", "lengths")]
    words = ", ".join(EVIDENCE_WORDS.get(sign, sign) for sign in signs)
    doubts = ", ".join(EVIDENCE_WORDS.get(doubt, doubt.replace(":", " ")) for doubt in row.doubts)
    return "; but ".join(part for part in (words, doubts) if part)


def _lines(summary: dict[str, Any], search: SalvageSearch) -> Iterator[str]:
    counts = search.counts
    whole = sum(counts[verdict] for verdict in COMPLETE)
    yield (
        f"{number_of(whole, 'message', 'messages')} can be had whole ({counts['reassembled']:,} put together from "
        f"several places); searched: {size_text(summary['bytesRead'])}"
    )
    for verdict, words in WORDS.items():
        if verdict not in COMPLETE and counts[verdict]:
            yield f"  {verdict}: {counts[verdict]:,} ({words})"
    if search.live_count:
        yield f"left out, because the store has them: {number_of(search.live_count, 'message', 'messages')}"
