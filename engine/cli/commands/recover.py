"""``recover --plan``: what the next start of a broker would do with a store. ``recover --apply`` does exactly that."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.cli.keeping import add_consent, consented, keeping, refuse_empty
from engine.cli.options import add_release, common, open_given, open_to_write, stated_release
from engine.cli.output import Column, Output, Progress, iso, plain, size_text
from engine.counted import counted
from engine.errors import NotAStore, StoreError, UsageError
from engine.inspection.foreign import guess
from engine.inspection.left_behind import Look
from engine.inspection.opening import recognise
from engine.inspection.recovery import plan
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped import undo as backup_undo
from engine.mapped.backup import BackupJournal, read
from engine.mapped.store_lock import StoreLock, holder_of
from engine.releases import Release, compared_with, of
from engine.store.recovery.plan import (
    Loss,
    RecoveryPlan,
    blocker_text,
    file_limit_words,
    group_blockers,
    recovery_record,
    undispatched_words,
)
from engine.store_folders import lock_beside

MOST_FILES = 20

_QUEUES = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Min offset", "minOffset", "number"),
    Column("Max offset", "maxOffset", "number"),
)


def register(commands: Any) -> None:
    parser = commands.add_parser("recover", parents=[common()], help="what the next start of a broker would do")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("--plan", action="store_true", help="show it and change nothing")
    parser.add_argument("--apply", action="store_true", help="do it, after asking; writes into the store")
    text = "bring back every byte that a command changed, from the folder where it kept them"
    parser.add_argument("--undo", metavar="FOLDER", help=text)
    add_release(parser, "the release that would start (default: the one that wrote the store, it seems)")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.plan + args.apply + (args.undo is not None) != 1:
        needs = "either --plan (shows it and changes nothing), --apply (does it) or --undo FOLDER (takes it back)"
        raise UsageError(f"recover needs {needs}")
    if args.undo is not None:
        return undo(args, out)
    return _apply(args, out) if args.apply else _plan(args, out)


def _plan(args: argparse.Namespace, out: Output) -> int:
    with open_given(args, out) as store:
        release = stated_release(args, store)
        found = _looked_through(store, release, out)
        others = [] if args.release else [_looked_through(store, compared_with(release), out, losses=False)]
        written = guess(store)
    _show(found, out, others, written=written)
    return int(not found.will_start)


def _looked_through(
    store: StoreSnapshot, like: Release, out: Output, *, heal: bool = False, losses: bool = True
) -> RecoveryPlan:
    """The plan, with progress while the log is walked, and looked through for what is lost."""
    with Progress("recover", 1, out.quiet) as progress:
        return plan(store, like, heal=heal, losses=losses, look=Look(progress.at))


def _apply(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.derived_config import derived_config

    with open_to_write(args, out) as store:
        like = stated_release(args, store)
        shown = _looked_through(store, like, out, heal=True)
        broker = _looked_through(store, like, out, losses=False) if shown.will_start else shown
        path = store.path
        config = derived_config(store) if shown.will_start else None
        written = guess(store)
    refuse_empty(args, shown.empty_log)
    if config is None:
        _show(shown, out, written=written)
        blocker = shown.blockers[0]
        raise StoreError(f"nothing was changed: a broker would not start here: {blocker.message}", file=blocker.file)
    if not consented(args, _planned(shown, broker, str(path)), "Change the store so?", empty_log=shown.empty_log):
        return 2
    from engine.message_store import MessageStore

    begin = shown.dispatch_from
    with keeping(args, path, config) as kept:
        with Progress("dispatch", shown.end_offset - begin, out.quiet) as progress:
            opened = MessageStore(
                path,
                config,
                disk=kept.store_disk,
                release=like,
                services=False,
                empty_log=args.empty_log,
                progress=lambda place: progress.at(max(place - begin, 0)),
            )
        with opened:
            done = replace(opened.recovery_plan, undispatched=shown.undispatched, dropped=shown.dropped)
    _show(done, out, written=written, kept=kept.record)
    kept.say(out)
    if (done.end_offset, done.queues) != (shown.end_offset, shown.queues):
        raise StoreError("the store had changed since it was looked at: what was done is not what was shown")
    return 0


def _planned(found: RecoveryPlan, broker: RecoveryPlan, path: str) -> Iterator[str]:
    """What applying the plan does, in numbers; ``broker`` is what a broker would do."""
    yield f"Advice first: storescope snapshot {shlex.quote(path)} COPY --recovery-set keeps what this changes."
    before = "a crash" if found.exit == "abnormal" else "an orderly end"
    yield f"Recovery of {path} as RocketMQ {found.like} starts after {before}:"
    gone = f"{found.units_dropped:,} units and {found.bytes_dropped:,} bytes behind it go"
    yield f"  the log ends at {found.end_offset:,}; {gone}"
    dropped = sum(queue.entries_dropped for queue in found.queues)
    added = sum(queue.entries_added for queue in found.queues)
    yield f"  {dropped:,} queue entries go, {found.units:,} units are dispatched again, {added:,} entries come"
    for blocker in broker.blockers:
        yield f"  a broker would not start here, this mends it: {blocker.message}"
    yield f"  {len(found.files_deleted):,} files and {len(found.index_deleted):,} index files are deleted"


def _show(
    found: RecoveryPlan,
    out: Output,
    others: Sequence[RecoveryPlan] = (),
    written: tuple[Release, str] | None = None,
    **more: Any,
) -> None:
    record = {**recovery_record(found, others, written), **more}
    out.record(record)
    if not out.as_json:
        _for_people(found, others, written, record, out)


def _for_people(
    found: RecoveryPlan,
    others: Sequence[RecoveryPlan],
    written: tuple[Release, str] | None,
    record: dict[str, Any],
    out: Output,
) -> None:
    if found.empty_log is not None:
        out.line(f"{plain(found.empty_log.folder)}: {found.empty_log.message}")
    for one in (found, *others):
        out.line(f"RocketMQ {one.like} would start: {_verdict(one)}")
    if written is not None:
        out.line(f"Written by RocketMQ {of(written[0]).covers}, it seems: {written[1]}.")
    out.line()
    if found.blockers:
        out.line(f"What follows is what {found.like} would do if that were mended.")
    elif others:
        out.line(f"What follows is what {found.like} does (--release {others[0].like} for the other).")
    if found.queues_known:
        again = f"{found.units:,} from {found.dispatch_from:,}"
    else:
        again = "cannot be told: the queues are in files that are not read here"
    out.fields(
        (
            ("Exit before", found.exit),
            ("Start file", f"{found.start_file}: {found.why}" if found.start_file else found.why),
            ("End of the log", f"{found.end_offset:,}: {found.end_reason}"),
            ("Units kept", f"{found.units_kept:,}"),
            ("Units dropped", f"{found.units_dropped:,}, {size_text(found.bytes_dropped)}"),
            ("Dispatched again", again),
            ("Files deleted", f"{len(found.files_deleted)}"),
            (
                "Index files deleted",
                f"{len(found.index_deleted)} of {len(found.index_deleted) + len(found.index_kept)}",
            ),
            ("Bytes to read", size_text(found.bytes_to_read)),
        )
    )
    for line in _in_detail(found):
        out.line(line)
    out.line()
    for queue in record["queues"]:
        out.record(queue, _QUEUES)


def _verdict(found: RecoveryPlan) -> str:
    """Yes, or no with each reason once: the file, or how many and the first, and the line in the broker's log."""
    if not found.blockers:
        return "yes"
    reasons = []
    for same in group_blockers(found.blockers):
        first = same[0]
        names = [str(blocker.file) for blocker in same if blocker.file]
        message = plain(blocker_text(first)[1] if len(same) > 1 else first.message)
        reasons.append(f"\n  {message} [{first.finding}]")
        if len(same) > 1:
            more = f" and {len(names) - MOST_FILES:,} more" if len(names) > MOST_FILES else ""
            reasons.append(f"\n  {len(same):,} files: {', '.join(map(plain, names[:MOST_FILES]))}{more}")
        reasons += [f"\n    the broker's log: {plain(line)}" for line in first.broker_log.splitlines()]
    return f"no{''.join(reasons)}"


def _in_detail(found: RecoveryPlan) -> Iterator[str]:
    """What goes, and what is lost of it."""
    yield from (f"Deleted: {plain(name)}" for name in found.files_deleted)
    yield from (f"Deleted: index file {plain(line)}" for line in _index_lines(found))
    for cut in found.ext_cuts:
        dropped = size_text(cut.bytes_dropped)
        yield f"Cut: the ext files of {plain(cut.topic)}/{cut.queue_id} at {cut.end_offset:,}, {dropped} dropped"
    if found.misnumbered:
        queues = [f"{queue.topic}/{queue.queue_id} {queue.shifted:,}" for queue in found.queues if queue.shifted]
        more = f" and {len(queues) - MOST_FILES:,} more queues" if len(queues) > MOST_FILES else ""
        yield f"Wrong numbers: {found.misnumbered:,} units are put elsewhere than at their own queue offsets: " + (
            ", ".join(map(plain, queues[:MOST_FILES])) + more
        )
    if found.undispatched is not None and found.undispatched.messages:
        yield undispatched_words(found.undispatched)
        if found.file_limit is not None:
            yield f"{file_limit_words(found)}. Or build the queues again before the start: storescope dispatch STORE"
        yield from _losses(found.undispatched)
    if found.dropped is not None and found.dropped.messages:
        yield f"{counted(found.dropped.messages, 'messages')} behind the new end of the log would be lost:"
        yield from _losses(found.dropped)
    for beyond in found.groups_beyond:
        yield (
            f"{plain(beyond.group)} reads {plain(beyond.topic)}/{beyond.queue_id} at {beyond.offset:,}, "
            f"beyond the new end {beyond.max_offset:,}: queue offsets are used again"
        )
    yield from (f"Note: {plain(note)}" for note in found.notes)


def _index_lines(found: RecoveryPlan) -> Iterator[str]:
    for index in found.index_deleted:
        span = f"units {index.begin_phy_offset:,} to {index.end_phy_offset:,}"
        yield f"{index.name}: {index.entries:,} entries, {span}"


def _losses(loss: Loss) -> Iterator[str]:
    """A line for each queue."""
    for row in loss.queues:
        times = f", stored {iso(row.first_time)} to {iso(row.last_time)}" if row.first_time > 0 else ""
        offsets = f"queue offsets {row.first:,} to {row.last:,}"
        yield f"  {plain(row.topic)}/{row.queue_id}: {row.messages:,}, {offsets}{times}"


def undo(args: argparse.Namespace, out: Output) -> int:
    """Put back what is kept in ``args.undo``. Raises :class:`engine.mapped.undo.CannotUndo` before anything is
    changed, :class:`engine.errors.StoreLocked` where somebody has the store open.
    """
    kept = read(Path(args.undo))
    root = _store_of_kept(args.store, kept)
    files, size = kept.amount
    record: dict[str, Any] = {
        "type": "undone",
        "path": str(root),
        "folder": str(kept.folder),
        "command": kept.command,
        "files": files,
        "bytes": size,
        "filesRemoved": len(kept.made),
    }
    if not kept.undone and not kept.is_empty:
        if holder_of(root / "lock") is not None:
            StoreLock(root / "lock").release()  # raises, and names the holder
        backup_undo.check(kept, root)
        if not consented(args, _planned_undo(kept, root), "Put it back?", empty_log=None):
            return 2
        with ExitStack() as locks:
            for path in (root / "lock", *_locks_elsewhere(kept)):
                locks.enter_context(StoreLock(path))
            backup_undo.check(kept, root)
            backup_undo.undo(kept, root)
        backup_undo.finish(kept, root)
    out.record({**record, "already": kept.undone})
    if not out.as_json:
        done = "was put back before" if kept.undone else "is as it was"
        out.line(f"{root} {done}: {files:,} files, {size_text(size)}. What is kept stays in {kept.folder}")
    return 0


def _locks_elsewhere(kept: BackupJournal) -> list[Path]:
    """The locks of the folders outside of the store that an undo writes: what lies there is named absolutely."""
    names = (*kept.files, *kept.made)
    return sorted({lock_beside(Path(name).parent) for name in names if Path(name).is_absolute()})


def _store_of_kept(given: str, kept: BackupJournal) -> Path:
    """The store that ``given`` names; one that its command left without a sign of a store, too."""
    place = Path(given)
    if str(place.resolve()) == kept.store:
        return place
    try:
        return recognise(given).path
    except NotAStore:
        if place.is_dir():
            return place
        raise


def _planned_undo(kept: BackupJournal, root: Path) -> Iterator[str]:
    """What it does, in numbers."""
    files, size = kept.amount
    yield f"{root} gets back what {kept.command} changed, as it is kept in {kept.folder}:"
    yield f"  {files:,} files ({size_text(size)}) are as they were; {len(kept.made):,} that were made since go"
    for name, inode in kept.trees.items():
        what = "gets its place back" if inode is not None else "goes: there was none"
        yield f"  the folder {name} {what}"
    if kept.begun:
        yield "  an undo was begun before and not ended: this ends it"
    elif kept.stamps_after is None:
        yield "  the command was stopped on the way: the store is half changed now"
