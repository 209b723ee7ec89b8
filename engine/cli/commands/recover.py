"""``recover --plan``: what the next start of a broker would do with a store. ``recover --apply`` does exactly that."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.cli.backup import add_consent, ask_consent, backed_up, refuse_empty
from engine.cli.finding_text import losses_text, offsets_text, times_text
from engine.cli.options import (
    add_command,
    add_release,
    add_store,
    common_options,
    open_named_store,
    open_to_write,
    report_read_side,
    stated_release,
)
from engine.cli.output import Column, Output, Progress, escape_controls, size_text
from engine.english import number_of
from engine.errors import NotAStore, StoreError, Undecoded, UsageError
from engine.inspection.dledger_members import FollowPlan, plan_following
from engine.inspection.opening import recognise
from engine.inspection.recovery import plan
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.start_losses import WalkOptions
from engine.inspection.written_release import guess
from engine.mapped import undo as backup_undo
from engine.mapped.backup import BackupJournal, read
from engine.mapped.store_lock import StoreLock, holder_of
from engine.releases import Release, compared_with, rules_of
from engine.sentences import sentence
from engine.store.recovery.plan import (
    Loss,
    RecoveryPlan,
    blocker_text,
    dledger_cut_words,
    file_limit_words,
    group_blockers,
    recovery_record,
    undispatched_words,
)

MAX_SHOWN_FILES = 20

_QUEUES = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("Min offset", "minOffset", "number"),
    Column("Max offset", "maxOffset", "number"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "recover",
        "recover ~/store --plan",
        "recover ~/store --apply",
        "recover ~/n1/store --plan --leader ~/n2/store",
        "recover ~/store --undo ~/store.kept-20261128-094107",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument("--plan", action="store_true", help="show the plan; change nothing")
    parser.add_argument(
        "--apply", action="store_true", help="do what the plan says, after a question; changes the store"
    )
    text = "with --plan: also show what a member of a DLedger group gets from this store, if it leads"
    parser.add_argument("--leader", metavar="STORE", help=text)
    text = "restore every byte that an earlier command changed, from its backup folder"
    parser.add_argument("--undo", metavar="FOLDER", help=text)
    add_release(parser, "plan for the start of this RocketMQ release (default: the one that probably wrote the store)")
    add_consent(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.plan + args.apply + (args.undo is not None) != 1:
        options = "--plan (show the plan, change nothing), --apply (do it) or --undo FOLDER (restore a backup)"
        raise UsageError(sentence("recover needs exactly one of {options}", options=options))
    for option in ("leader", "patched"):
        if getattr(args, option) is not None and not args.plan:
            raise UsageError(sentence("--{option} needs --plan", option=option))
    if args.undo is not None:
        return undo(args, out)
    return _apply(args, out) if args.apply else _plan(args, out)


def _plan(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        report_read_side(store, out)
        release = stated_release(args, store)
        recovery = _plan_with_progress(store, release, out)
        other_release = compared_with(release)
        is_compared = args.release is None and (
            not (store.queues.begins_rocksdb or store.queues.rocksdb is not None)
            or rules_of(other_release).recovers_rocksdb_queues
        )
        other_recoveries = [_plan_with_progress(store, other_release, out, losses=False)] if is_compared else []
        written = guess(store)
        following = _plan_following(store, args.leader) if args.leader is not None else None
    _show(recovery, out, other_recoveries, written=written)
    if following is not None:
        _show_following(following, out)
    return int(not recovery.will_start)


def _plan_following(store: StoreSnapshot, leader_path: str) -> FollowPlan:
    with open_store(leader_path) as leader:
        return plan_following(store, leader)


def _show_following(following: FollowPlan, out: Output) -> None:
    out.record(following.record())
    if out.as_json:
        return
    out.line()
    name = escape_controls(following.leader)
    shared = (
        f"both logs are equal up to entry {following.common_index:,}, which ends at {following.common_end:,}"
        if following.common_index >= 0
        else "the logs share no entry"
    )
    out.line(f"If {name} leads: {shared}")
    entries = number_of(following.replaced_entries, "entry", "entries")
    out.line(f"  {entries} of this member behind it {'is' if following.replaced_entries == 1 else 'are'} replaced")
    for (topic, queue_id), count in sorted(following.replaced.items()):
        out.line(f"    {escape_controls(topic)}/{queue_id}: {number_of(count, 'message', 'messages')}")
    copied = number_of(following.copied, "entry comes", "entries come")
    out.line(f"  {copied} from the leader; the log then ends at {following.end_offset:,}")
    if following.committed_lost:
        lost = number_of(following.committed_lost, "entry", "entries")
        out.line(f"  {lost} that this member calls committed will be lost: let this member lead")
    if not following.can_lead:
        out.line("  this member does not vote for that one, because its own newest entry is newer")


def _plan_with_progress(
    store: StoreSnapshot, release: Release, out: Output, *, heal: bool = False, losses: bool = True
) -> RecoveryPlan:
    """Return the plan, with a progress bar while the log is read and lost messages are counted."""
    with Progress("recover", 1, out.quiet) as progress:
        return plan(store, release, heal=heal, losses=losses, look=WalkOptions(progress.update))


def _apply(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.derived_config import derived_config

    with open_to_write(args, out) as store:
        if store.commit_log.dledger is not None:
            raise Undecoded(store.writing_refusal, file=str(store.path))
        release = stated_release(args, store)
        planned = _plan_with_progress(store, release, out, heal=True)
        broker = _plan_with_progress(store, release, out, losses=False) if planned.will_start else planned
        path = store.path
        written = guess(store)
        if store.queues.rocksdb is not None:
            _show(planned, out, written=written)
            raise _rocksdb_refusal(planned, str(store.queues.rocksdb.folder))
        config = derived_config(store) if planned.will_start else None
    refuse_empty(args, planned.empty_log)
    if config is None:
        _show(planned, out, written=written)
        blocker = planned.blockers[0]
        raise StoreError(
            sentence("nothing was changed: a broker would not start here: {message}", message=blocker.message),
            file=blocker.file,
        )
    if not ask_consent(
        args, _consent_lines(planned, broker, str(path)), "Change the store?", empty_log=planned.empty_log
    ):
        return 2
    from engine.message_store import MessageStore

    begin = planned.dispatch_from
    with backed_up(args, path, config) as backup:
        with Progress("dispatch", planned.end_offset - begin, out.quiet) as progress:
            recovered_store = MessageStore(
                path,
                config,
                disk=backup.store_disk,
                release=release,
                services=False,
                empty_log=args.empty_log,
                progress=lambda place: progress.update(max(place - begin, 0)),
            )
        with recovered_store:
            applied = replace(recovered_store.recovery_plan, undispatched=planned.undispatched, dropped=planned.dropped)
    _show(applied, out, written=written, kept=backup.record)
    backup.say(out)
    if (applied.end_offset, applied.queues) != (planned.end_offset, planned.queues):
        raise StoreError(sentence("the store changed while it was recovered: the result differs from the plan"))
    return 0


def _rocksdb_refusal(planned: RecoveryPlan, folder: str) -> StoreError:
    """Return the error that queues in a RocksDB are not changed, and what a broker would do."""
    message = sentence("nothing was changed: Storescope does not write into queues in a RocksDB.")
    if planned.will_start and planned.loses_nothing:
        message += " " + sentence("Start a broker: it does what this plan says")
    elif planned.will_start:
        message += " " + sentence(
            "A broker would do what this plan says, and lose messages: check names what to do first"
        )
    else:
        message += " " + sentence("A broker would not start")
    return StoreError(message, file=folder)


def _consent_lines(recovery: RecoveryPlan, broker: RecoveryPlan, path: str) -> Iterator[str]:
    """Yield lines on what applying the plan does, in numbers; ``broker`` is the plan of a broker's start."""
    yield f"Before you go on: storescope snapshot {shlex.quote(path)} COPY --recovery-set saves what this changes."
    exit_words = "a crash" if recovery.exit == "abnormal" else "a clean stop"
    yield f"Recovery of {path} as RocketMQ {recovery.release} starts after {exit_words}:"
    dropped_words = (
        f"{number_of(recovery.units_dropped, 'unit', 'units')} and "
        f"{number_of(recovery.bytes_dropped, 'byte', 'bytes')} after it are removed"
    )
    yield f"  the log will end at {recovery.end_offset:,}; {dropped_words}"
    dropped = sum(queue.entries_dropped for queue in recovery.queues)
    added = sum(queue.entries_added for queue in recovery.queues)
    yield (
        f"  {number_of(dropped, 'queue entry is', 'queue entries are')} removed, "
        f"{number_of(recovery.units, 'unit is', 'units are')} dispatched again, {added:,} are added"
    )
    for blocker in broker.blockers:
        yield f"  a broker would not start here; this repairs it: {blocker.message}"
    yield (
        f"  {number_of(len(recovery.files_deleted), 'file', 'files')} and "
        f"{number_of(len(recovery.index_deleted), 'index file is', 'index files are')} deleted"
    )


def _show(
    recovery: RecoveryPlan,
    out: Output,
    other_recoveries: Sequence[RecoveryPlan] = (),
    written: tuple[Release, str] | None = None,
    **extra_fields: Any,
) -> None:
    record = {**recovery_record(recovery, other_recoveries, written), **extra_fields}
    out.record(record)
    if not out.as_json:
        _print_plan(recovery, other_recoveries, written, record, out)


def _print_plan(
    recovery: RecoveryPlan,
    other_recoveries: Sequence[RecoveryPlan],
    written: tuple[Release, str] | None,
    record: dict[str, Any],
    out: Output,
) -> None:
    if recovery.empty_log is not None:
        out.line(f"{escape_controls(recovery.empty_log.folder)}: {recovery.empty_log.message}")
    for start in (recovery, *other_recoveries):
        out.line(f"RocketMQ {start.release} would start: {_verdict(start)}")
    if written is not None:
        out.line(f"Probably written by RocketMQ {rules_of(written[0]).covers}: {written[1]}.")
    losses = [loss.messages for loss in (recovery.undispatched, recovery.dropped) if loss is not None]
    if recovery.will_start and losses and recovery.dispatch_stops_at is None:
        lost = losses_text(sum(losses), recovery.misnumbered, loses_new_messages=recovery.loses_new_messages)
        out.line(f"Lost by this start of RocketMQ {recovery.release}: {lost}{', listed below' if sum(losses) else ''}")
    elif recovery.will_start and recovery.empty_log is not None and recovery.start_file is None:
        out.line(
            f"Lost by this start of RocketMQ {recovery.release}: every message that the queues know; it deletes the "
            f"queues"
        )
    out.line()
    if recovery.blockers:
        out.line(f"The plan below shows what RocketMQ {recovery.release} would do after this is fixed.")
    elif other_recoveries:
        out.line(
            f"The plan below is for RocketMQ {recovery.release}; for {other_recoveries[0].release} use --release "
            f"{other_recoveries[0].release}."
        )
    if recovery.queues_known:
        dispatched_words = f"{number_of(recovery.units, 'unit', 'units')} from offset {recovery.dispatch_from:,}"
    else:
        dispatched_words = "unknown: the queues are in files that Storescope does not read"
    out.fields(
        (
            ("Last exit", recovery.exit),
            ("Start file", f"{recovery.start_file}: {recovery.why}" if recovery.start_file else recovery.why),
            ("End of the log", f"{recovery.end_offset:,}: {recovery.end_reason}"),
            *(
                [("DLedger", f"entries up to {recovery.dledger.last_index:,} of term {recovery.dledger.last_term:,}")]
                if recovery.dledger is not None
                else []
            ),
            ("Units kept", f"{recovery.units_kept:,}"),
            ("Units dropped", f"{recovery.units_dropped:,}, {size_text(recovery.bytes_dropped)}"),
            ("Dispatched again", dispatched_words),
            ("Files deleted", f"{len(recovery.files_deleted)}"),
            (
                "Index files deleted",
                f"{len(recovery.index_deleted)} of {len(recovery.index_deleted) + len(recovery.index_kept)}",
            ),
            ("Bytes to read", size_text(recovery.bytes_to_read)),
        )
    )
    for line in _detail_lines(recovery):
        out.line(line)
    out.line()
    for queue in record["queues"]:
        out.record(queue, _QUEUES)


def _verdict(recovery: RecoveryPlan) -> str:
    """Return "yes", or "no" with each reason once: the file, or the number of files and the first, and the line in
    the broker's log.
    """
    if not recovery.blockers:
        return "yes"
    reasons = []
    for alike in group_blockers(recovery.blockers):
        first_blocker = alike[0]
        names = [str(blocker.file) for blocker in alike if blocker.file]
        message = escape_controls(blocker_text(first_blocker)[1] if len(alike) > 1 else first_blocker.message)
        reasons.append(f"\n  {message} [{first_blocker.finding}]")
        if len(alike) > 1:
            further_files = f" and {len(names) - MAX_SHOWN_FILES:,} more" if len(names) > MAX_SHOWN_FILES else ""
            reasons.append(
                f"\n  {number_of(len(alike), 'file', 'files')}: "
                f"{', '.join(map(escape_controls, names[:MAX_SHOWN_FILES]))}{further_files}"
            )
        reasons += [
            f"\n    the broker's log: {escape_controls(line.expandtabs(1))}"
            for line in first_blocker.broker_log.splitlines()
        ]
    return f"no{''.join(reasons)}"


def _detail_lines(recovery: RecoveryPlan) -> Iterator[str]:
    """Yield lines on what is deleted, and what is lost by that."""
    if dledger_cut_words(recovery):
        yield dledger_cut_words(recovery)
    yield from (f"Deleted: {escape_controls(name)}" for name in recovery.files_deleted)
    yield from (f"Deleted: index file {escape_controls(line)}" for line in _index_lines(recovery))
    for cut in recovery.ext_cuts:
        dropped = size_text(cut.bytes_dropped)
        topic = escape_controls(cut.topic)
        yield f"Cut: the ext files of {topic}/{cut.queue_id} at {cut.end_offset:,}, {dropped} dropped"
    if recovery.misnumbered:
        queues = [f"{queue.topic}/{queue.queue_id} {queue.shifted:,}" for queue in recovery.queues if queue.shifted]
        further_queues = (
            f" and {number_of(len(queues) - MAX_SHOWN_FILES, 'more queue', 'more queues')}"
            if len(queues) > MAX_SHOWN_FILES
            else ""
        )
        yield (
            f"Wrong queue offsets: {number_of(recovery.misnumbered, 'unit does', 'units do')} not get "
            "their own queue offset: " + (", ".join(map(escape_controls, queues[:MAX_SHOWN_FILES])) + further_queues)
        )
    if recovery.undispatched is not None and recovery.undispatched.messages:
        yield undispatched_words(recovery.undispatched)
        if recovery.file_limit is not None:
            yield f"{file_limit_words(recovery)}. Or rebuild the queues before the start: storescope dispatch STORE"
        yield from _loss_lines(recovery.undispatched)
    if recovery.dropped is not None and recovery.dropped.messages:
        yield (
            f"{number_of(recovery.dropped.messages, 'message', 'messages')} after the new end of the log would be lost:"
        )
        yield from _loss_lines(recovery.dropped)
    for beyond in recovery.groups_beyond:
        yield (
            f"Group {escape_controls(beyond.group)} is at {beyond.offset:,} in {escape_controls(beyond.topic)}/"
            f"{beyond.queue_id}, beyond the new end {beyond.max_offset:,}: "
            "new messages get queue offsets that it has read already"
        )
    yield from (f"Note: {escape_controls(note)}" for note in recovery.notes)


def _index_lines(recovery: RecoveryPlan) -> Iterator[str]:
    for index in recovery.index_deleted:
        span = f"units {index.begin_phy_offset:,} to {index.end_phy_offset:,}"
        yield f"{index.name}: {number_of(index.entries, 'entry', 'entries')}, {span}"


def _loss_lines(loss: Loss) -> Iterator[str]:
    """Yield a line for each queue that loses messages."""
    for row in loss.queues:
        times = f", stored {times_text(row.first_time, row.last_time)}" if row.first_time > 0 else ""
        offsets = offsets_text(row.first_offset, row.last_offset)
        yield f"  {escape_controls(row.topic)}/{row.queue_id}: {row.messages:,}, {offsets}{times}"


def undo(args: argparse.Namespace, out: Output) -> int:
    """Restore the backup in ``args.undo``. Raises :class:`engine.mapped.undo.CannotUndo` before anything is
    changed, :class:`engine.errors.StoreLocked` where another process has the store open.
    """
    backup = read(Path(args.undo))
    root = _store_of_backup(args.store, backup)
    backup_undo.refuse_other_store(backup, root)
    files, size = backup.amount
    record: dict[str, Any] = {
        "type": "undone",
        "path": str(root),
        "folder": str(backup.folder),
        "command": backup.command,
        "files": files,
        "bytes": size,
        "filesRemoved": len(backup.made),
    }
    if not backup.undone and not backup.is_empty:
        if holder_of(root / "lock") is not None:
            StoreLock(root / "lock").release()  # raises, and names the holder
        backup_undo.check(backup, root)
        if not ask_consent(args, _undo_lines(backup, root), "Restore the backup?", empty_log=None):
            return 2
        backup_undo.restore(backup, root)
    out.record({**record, "already": backup.undone})
    if not out.as_json:
        done = "was restored before" if backup.undone else "is restored"
        out.line(
            f"{root} {done}: {number_of(files, 'file', 'files')}, {size_text(size)}. The backup stays in "
            f"{backup.folder}"
        )
    return 0


def _store_of_backup(store_path: str, backup: BackupJournal) -> Path:
    """Return the store that ``store_path`` names, even if the command left nothing there that shows a store."""
    place = Path(store_path)
    if str(place.resolve()) == backup.store:
        return place
    try:
        return recognise(store_path).path
    except NotAStore:
        if place.is_dir():
            return place
        raise


def _undo_lines(backup: BackupJournal, root: Path) -> Iterator[str]:
    """Yield lines on what the undo does, in numbers."""
    files, size = backup.amount
    yield f"{root} gets back what {backup.command} changed, from the backup in {backup.folder}:"
    yield (
        f"  {number_of(files, 'file', 'files')} ({size_text(size)}) are as they were; {len(backup.made):,} "
        "that were made since are removed"
    )
    for name, inode in backup.trees.items():
        fate = "is moved back to its place" if inode is not None else "is removed: there was none"
        yield f"  the folder {name} {fate}"
    if backup.begun:
        yield "  an earlier undo was interrupted: this completes it"
    elif backup.stamps_after is None:
        yield "  the command was interrupted: the store is partly changed now"
