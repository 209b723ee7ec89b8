"""``capsule``: one file with everything of a store but the bodies, to attach to a problem report."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from engine.cli.options import add_command, add_store, common_options, open_whole
from engine.cli.output import Output, Progress, size_text
from engine.english import number_of
from engine.inspection.capsule_making import check_target, make_capsule
from engine.inspection.capsule_masking import PARTS, CapsuleMasking


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "capsule",
        "capsule ~/store -o incident.capsule",
        "capsule ~/store -o incident.capsule --mask keys,hosts,tables",
        parents=[common_options()],
    )
    add_store(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write, outside the store")
    parser.add_argument(
        "--mask",
        type=CapsuleMasking.of,
        default=CapsuleMasking(),
        dest="masking",
        metavar="PARTS",
        help=f"hide any of: {', '.join(PARTS)} (separated by commas); answers that need them are reported as unread",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    parser.add_argument(
        "--leave-out-unread", action="store_true", help="leave out what cannot be read, instead of writing nothing"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the capsule and say what is in it. Return 0."""
    target = Path(args.output)
    with open_whole(args, out) as store:
        check_target(store, target, overwrite=args.overwrite, masking=args.masking)
        with Progress("capsule", 1, out.quiet) as progress:
            now_ms = time.time_ns() // 10**6
            summary = make_capsule(
                store,
                target,
                now_ms,
                progress.update,
                leave_out_unread=args.leave_out_unread,
                masking=args.masking,
            )
    out.record(
        {
            "type": "capsule",
            "path": str(target),
            "files": summary.files,
            "units": summary.units,
            "storeBytes": summary.store_bytes,
            "bytes": summary.capsule_bytes,
            "damageBytes": summary.damage_bytes,
            "leftOutBytes": summary.left_out_bytes,
        }
    )
    out.line(
        f"{target}: {size_text(summary.capsule_bytes)} for {number_of(summary.files, 'file', 'files')} with "
        f"{number_of(summary.units, 'unit', 'units')}, {size_text(summary.store_bytes)}"
    )
    if summary.damage_bytes:
        out.say(
            f"{size_text(summary.damage_bytes)} of damaged log are in the capsule as they are; they may contain pieces "
            "of bodies"
        )
    if summary.left_out_bytes:
        out.say(
            f"{size_text(summary.left_out_bytes)} are left out: they are masked, could not be read, or are damage "
            "beyond the limit; the capsule says so where they are needed"
        )
    return 0
