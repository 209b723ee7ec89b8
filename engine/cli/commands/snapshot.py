"""``snapshot``: copy a store byte for byte, with a manifest of hashes: the first step on a damaged store."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_store, common_options, open_to_write
from engine.cli.output import Output, Progress, size_text
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.copy_out import MANIFEST, copy_out, plan_copy
from engine.sentences import sentence


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "snapshot",
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
        outside_folders = store.folders.followed if store.folders is not None else ()
    if outside_folders:
        folders = ", ".join(folder.path for folder in outside_folders)
        raise UsageError(
            sentence(
                ("a snapshot contains only the store's own folder, but the log is in {folders}: copy that, too"),
                folders=folders,
            )
        )
    plan = plan_copy(args.store, args.to, recovery_set=args.recovery_set)
    with Progress("snapshot", plan.bytes, out.quiet) as progress:
        copied = copy_out(plan, progress.update)
    record = {
        "type": "snapshot",
        "source": str(plan.source),
        "destination": str(plan.destination),
        "files": copied.files,
        "bytes": copied.bytes,
        "changed": copied.changed,
        "manifest": str(copied.manifest),
    }
    out.record(record)
    out.line(
        f"{number_of(copied.files, 'file', 'files')}, {size_text(copied.bytes)} copied to "
        f"{plan.destination}; manifest {MANIFEST}"
    )
    if copied.shared:
        out.line(
            f"{size_text(copied.shared)} of them share their blocks with the store: they take no room until written"
        )
    for name in plan.loops:
        out.say(f"{name} links to a folder that contains it: it is not in the snapshot")
    for name in copied.changed:
        out.say(f"{name} changed while it was copied: the broker is writing; the manifest marks it")
    return 0
