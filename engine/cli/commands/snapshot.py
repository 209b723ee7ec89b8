"""``snapshot``: a byte-exact copy of a store beside its manifest of hashes: the first thing to do with a damaged
store.
"""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_store, common_options, open_to_write
from engine.cli.output import Output, Progress, size_text
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.copy_out import copy_out, plan_copy
from engine.sentences import sentence


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "snapshot",
        "Copy a store byte for byte, with a manifest of hashes (writes DST)",
        "snapshot ~/store /backup/store",
        "snapshot ~/store /tmp/incident --recovery-set",
        parents=[common_options()],
    )
    add_store(parser, "SRC")
    parser.add_argument("to", metavar="DST", help="a new or empty folder")
    parser.add_argument("--recovery-set", action="store_true", help="copy only the files that recovery reads")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_to_write(args, out) as store:
        elsewhere = store.folders.followed if store.folders is not None else ()
    if elsewhere:
        folders = ", ".join(folder.path for folder in elsewhere)
        raise UsageError(
            sentence(
                ("a snapshot contains only the store's own folder, but the log is in {folders}: copy that, too"),
                folders=folders,
            )
        )
    plan = plan_copy(args.store, args.to, recovery_set=args.recovery_set)
    with Progress("snapshot", plan.bytes, out.quiet) as progress:
        done = copy_out(plan, progress.at)
    record = {
        "type": "snapshot",
        "source": str(plan.source),
        "destination": str(plan.destination),
        "files": done.files,
        "bytes": done.bytes,
        "changed": done.changed,
        "manifest": str(done.manifest),
    }
    out.record(record)
    out.line(
        f"{number_of(done.files, 'file', 'files')}, {size_text(done.bytes)} copied to "
        f"{plan.destination}; manifest {done.manifest.name}"
    )
    for name in plan.loops:
        out.say(f"{name} links to a folder that contains it: it is not in the snapshot")
    for name in done.changed:
        out.say(f"{name} changed while it was copied: the broker is writing; the manifest marks it")
    return 0
