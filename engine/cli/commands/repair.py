"""``repair``: what could be mended in a damaged store, a mended copy of it, or the mend in the store itself."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.cli.backup import add_consent, ask_consent, backed_up
from engine.cli.commands.recover import undo
from engine.cli.finding_text import losses_text
from engine.cli.options import (
    Parser,
    add_command,
    add_release,
    add_store,
    common_options,
    open_to_write,
    read_config,
    stated_release,
)
from engine.cli.output import Column, Output, Progress, escape_controls
from engine.cli.writing import check_new_path
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import UsageError
from engine.files.atomic_file import write_atomically
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.mapped.backup import end_unsaved_change
from engine.patching.apply import check_patches
from engine.patching.patches import MoveFile, Patch, PatchList, RemoveFile, ResizeFile, WriteBytes, loads
from engine.releases import Release
from engine.repair.mend_in_place import empty_log_behind, refuse_to_write
from engine.repair.mended_copy import copy_mended
from engine.repair.repair import Repair
from engine.repair.repair_plan import NAMES, RepairPlan, State, plan_repairs
from engine.rules import mendable
from engine.sentences import sentence
from engine.store.recovery.plan import EmptyLog, RecoveryPlan

MAX_SHOWN_PATCHES = 40
MAX_SHOWN_RULES = 8
_PATCHES = (
    Column("Patch", "n", "number"),
    Column("File", "file"),
    Column("Offset", "offset", "number"),
    Column("Bytes", "bytes", "number"),
    Column("What", "what", "plain"),
    Column("Why", "why"),
)


def register(commands: Any) -> None:
    parser: Parser = add_command(
        commands,
        "repair",
        "repair ~/store",
        "repair ~/store --plan --finding CL01",
        "repair ~/store --to ~/mended",
        "repair ~/store --from /mnt/replica/store --to ~/mended",
        "repair ~/store --apply",
        "repair ~/store --undo ~/store.kept-20261129-211117",
        parents=[common_options()],
    )
    add_store(parser)
    parser.add_argument("--plan", action="store_true", help="show every patch; change nothing")
    parser.add_argument(
        "--to", metavar="NEW", help="write a mended copy into this new folder; the store stays as it is"
    )
    parser.add_argument(
        "--apply", action="store_true", help="mend the store itself, after a question; keeps what changes"
    )
    parser.add_argument(
        "--undo", metavar="FOLDER", help="restore every byte that --apply changed, from its backup folder"
    )
    parser.add_argument(
        "--finding",
        action="append",
        default=[],
        metavar="ID",
        help=f"only what mends this finding of check, or this repair ({', '.join(NAMES)}); may be repeated",
    )
    parser.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="IMAGE_OR_REPLICA",
        help="fill holes of the log with the real messages from this replica, log file or disk image; may be repeated",
    )
    parser.add_argument("--patches", metavar="FILE", help="use the patches of this file, written with --save")
    parser.add_argument("--save", metavar="FILE", help="also write the patches to this file")
    add_release(parser, "show the start of this RocketMQ release (default: the one that probably wrote the store)")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the repairs; with ``--to`` or ``--apply`` do them."""
    if args.plan + args.apply + (args.to is not None) + (args.undo is not None) > 1:
        raise UsageError(sentence("--plan, --to, --apply and --undo exclude each other"))
    if args.undo is not None:
        return undo(args, out)
    names = {*NAMES, *mendable.ALL}
    for name in args.finding:
        if name not in names:
            raise UsageError(
                sentence("nothing mends {name}: expected one of {names}", name=name, names=", ".join(sorted(names)))
            )
    if args.apply:
        _refuse_to_write(args, out)
    planned = _plan(args, out)
    _show(planned, args, out)
    if args.save is not None:
        write_atomically(Path(args.save), PatchList(planned.patches).dumps())
    if args.to is not None:
        return _mend_copy(args, planned, out)
    if args.apply:
        return _mend(args, planned, out)
    return 0


def _refuse_to_write(args: argparse.Namespace, out: Output) -> None:
    """Raise the reason why the store itself may not be changed, before it is read for long."""
    with open_to_write(args, out) as store:
        refuse_to_write(store)


class _Planned:
    """The patches to be made, and what is known of them."""

    def __init__(
        self,
        path: Path,
        patches: Sequence[Patch],
        plan: RepairPlan | None,
        empty_log: EmptyLog | None,
        release: Release,
    ) -> None:
        self.path = path
        self.patches = tuple(patches)
        self.plan = plan
        self.empty_log = empty_log
        self.release = release


def _plan(args: argparse.Namespace, out: Output) -> _Planned:
    with open_to_write(args, out) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one"), file=args.store)
        path, release = store.path, stated_release(args, store)
    if args.to is not None:
        check_new_path(args.to, path)  # before the store is read for long
    config = read_config(args)
    if args.patches is not None:
        patches = loads(Path(args.patches).read_bytes())
        check_patches(path, patches)
        return _Planned(path, tuple(patches), None, empty_log_behind(path, config, patches), release)
    with Progress("check", 1, out.quiet) as progress:
        plan = plan_repairs(path, config, release, only=args.finding, sources=args.sources, progress=progress.update)
    return _Planned(path, plan.patches, plan, empty_log_behind(path, config, plan.patches), release)


def _show(planned: _Planned, args: argparse.Namespace, out: Output) -> None:
    plan = planned.plan
    for repair in plan.repairs if plan is not None else ():
        out.record(repair.record())
    if out.as_json:
        for number, patch in enumerate(planned.patches, 1):
            out.record(patch.record(number))
        if plan is not None:
            out.record(plan.record())
        return
    for line in _lines(planned):
        out.line(line)
    if not args.plan:
        return
    for number, patch in enumerate(planned.patches[:MAX_SHOWN_PATCHES], 1):
        out.record(_row(number, patch), _PATCHES)
    out.flush()
    if len(planned.patches) > MAX_SHOWN_PATCHES:
        out.line(
            f"and {number_of(len(planned.patches) - MAX_SHOWN_PATCHES, 'more patch', 'more patches')}: --json or --save"
        )


def _lines(planned: _Planned) -> Iterator[str]:
    """Say what would be mended, in numbers."""
    plan = planned.plan
    if plan is None:
        yield f"{number_of(len(planned.patches), 'patch fits', 'patches fit')} this store."
        return
    if not plan.repairs:
        if not plan.current.findings:
            yield "Nothing to mend: check finds nothing that is worse than a note."
        else:
            yield "Nothing that check finds here can be mended by changing bytes:"
            yield from _left_lines(plan)
        return
    for number, repair in enumerate(plan.repairs, 1):
        yield from _repair_lines(number, repair)
    yield "With all of it:"
    yield f"  Findings of check: {_rules(plan.current)} → {_rules(plan.mended)}"
    for today, mended in zip(plan.current.starts, plan.mended.starts, strict=True):
        yield f"  The next start of RocketMQ {today.release}:"
        yield f"    it starts: {_yes(today.will_start)} → {_yes(mended.will_start)}"
        yield f"    the log ends at: {today.end_offset:,} → {mended.end_offset:,}"
        yield f"    lost: {_lost(today)} → {_lost(mended)}"
    if plan.left:
        yield "Not mended:"
        yield from _left_lines(plan)


def _left_lines(plan: RepairPlan) -> Iterator[str]:
    for rule, why in plan.left.items():
        yield f"  {rule}: {escape_controls(why)}"


def _repair_lines(number: int, repair: Repair) -> Iterator[str]:
    yield f"{number}. {escape_controls(repair.title)} ({repair.name})"
    yield f"   Gains: {escape_controls(repair.gains)}"
    yield f"   Costs: {escape_controls(repair.costs) or 'nothing'}"
    doubt = "" if repair.certainty == "certain" else "; the new bytes are likely, not proven"
    yield f"   Changes: {number_of(len(repair.patches), 'place', 'places')}{doubt}"


def _rules(state: State) -> str:
    counts = Counter(finding.id for finding in state.findings)
    shown = [f"{rule} {count}×" if count > 1 else rule for rule, count in sorted(counts.items())[:MAX_SHOWN_RULES]]
    return ", ".join([*shown, *(["…"] if len(counts) > MAX_SHOWN_RULES else [])]) or "none"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _lost(start: RecoveryPlan) -> str:
    messages = sum(loss.messages for loss in (start.undispatched, start.dropped) if loss is not None)
    return losses_text(messages, start.misnumbered, loses_new_messages=start.loses_new_messages)


def _row(number: int, patch: Patch) -> dict[str, Any]:
    offset: int | None = None
    match patch:
        case WriteBytes():
            action, size, offset = "write", len(patch.new), patch.offset
        case RemoveFile():
            action, size = "remove", patch.size
        case MoveFile():
            action, size = f"rename to {patch.target}", patch.size
        case ResizeFile():
            action, size = f"make it {patch.new_size:,} bytes long", abs(patch.new_size - patch.size)
        case _:
            action, size = "write the file", len(getattr(patch, "new", b""))
    return {"n": number, "file": patch.file, "offset": offset, "bytes": size, "what": action, "why": patch.why}


def _mend_copy(args: argparse.Namespace, planned: _Planned, out: Output) -> int:
    if not planned.patches:
        out.line("No copy was written.")
        return 0
    with Progress("copy", 1, out.quiet) as progress:
        copy = copy_mended(planned.path, args.to, planned.patches, progress.update)
    out.record({"type": "patched", "path": str(copy), "patches": len(planned.patches), "kept": None})
    if not out.as_json:
        patches = number_of(len(planned.patches), "patch", "patches")
        out.line(f"The mended copy is in {shlex.quote(str(copy))} ({patches}); the store stays as it is.")
    return 0


def _mend(args: argparse.Namespace, planned: _Planned, out: Output) -> int:
    path = planned.path
    if not planned.patches:
        end_unsaved_change(path)
        return 0
    with open_store(path, read_config(args), planned.patches) as store:
        config: MessageStoreConfig = derived_config(store)
    question = f"{number_of(len(planned.patches), 'place', 'places')} of {path} will be changed."
    if not ask_consent(args, [question], "Change the store?", empty_log=planned.empty_log):
        return 2
    with backed_up(args, path, config, rewrites_log=True, in_place=True) as backup:
        backup.apply(PatchList(planned.patches))
    out.record({"type": "patched", "path": str(path), "patches": len(planned.patches), "kept": backup.record})
    if not out.as_json:
        out.line(f"{shlex.quote(str(path))} was mended: {number_of(len(planned.patches), 'patch', 'patches')}.")
    backup.say(out)
    return 0
