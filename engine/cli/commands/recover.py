"""``recover --plan``: what the next start of a broker would do with a store. ``recover --apply`` does exactly that."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from engine.cli import consent
from engine.cli.keeping import keeping
from engine.cli.options import common, open_given
from engine.cli.output import Column, Output, plain, size_text
from engine.cli.undoing import undo
from engine.errors import StoreError, UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.recovery import plan
from engine.store.recovery_plan import RecoveryPlan

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
    parser.add_argument("--like", choices=("4.9", "5.3"), default="5.3", help="the release that would start")
    consent.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.plan + args.apply + (args.undo is not None) != 1:
        needs = "either --plan (shows it and changes nothing), --apply (does it) or --undo FOLDER (takes it back)"
        raise UsageError(f"recover needs {needs}")
    if args.undo is not None:
        return undo(args, out)
    return _apply(args, out) if args.apply else _plan(args, out)


def _plan(args: argparse.Namespace, out: Output) -> int:
    with open_given(args) as store:
        found = plan(store, args.like)
    _show(found, out)
    return 0 if found.will_start else 1


def _apply(args: argparse.Namespace, out: Output) -> int:
    with open_given(args) as store:
        shown = plan(store, args.like, heal=True)
        broker = plan(store, args.like) if shown.will_start else shown
        path = store.path
        config = derived_config(store) if shown.will_start else None
    consent.refuse_empty(args, shown.empty_log)
    if config is None:
        _show(shown, out)
        blocker = shown.blockers[0]
        raise StoreError(f"nothing was changed: a broker would not start here: {blocker.message}", file=blocker.file)
    if not consent.given(args, _deeds(shown, broker, str(path)), "Change the store so?", empty_log=shown.empty_log):
        return 2
    from engine.message_store import MessageStore

    with keeping(args, path, config) as kept:
        opened = MessageStore(
            path, config, disk=kept.store_disk, like=args.like, services=False, empty_log=args.empty_log
        )
        with opened:
            done = opened.recovery_plan
    _show(done, out, kept=kept.record)
    kept.say(out)
    if (done.end_offset, done.queues) != (shown.end_offset, shown.queues):
        raise StoreError("the store had changed since it was looked at: what was done is not what was shown")
    return 0


def _deeds(found: RecoveryPlan, broker: RecoveryPlan, path: str) -> Iterator[str]:
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


def _show(found: RecoveryPlan, out: Output, **more: Any) -> None:
    record = {**found.record(), **more}
    out.record(record)
    if not out.as_json:
        _for_people(found, record, out)


def _for_people(found: RecoveryPlan, record: dict[str, Any], out: Output) -> None:
    if found.empty_log is not None:
        out.line(f"{plain(found.empty_log.folder)}: {found.empty_log.message}")
    out.fields(
        (
            ("A broker would start", "yes" if found.will_start else "no"),
            ("Exit before", found.exit),
            ("Start file", f"{found.start_file}: {found.why}"),
            ("End of the log", f"{found.end_offset:,}: {found.end_reason}"),
            ("Units kept", f"{found.units_kept:,}"),
            ("Units dropped", f"{found.units_dropped:,}, {size_text(found.bytes_dropped)}"),
            ("Dispatched again", f"{found.units:,} from {found.dispatch_from:,}"),
            ("Files deleted", f"{len(found.files_deleted)}"),
            ("Bytes to read", size_text(found.bytes_to_read)),
        )
    )
    for blocker in found.blockers:
        out.line(f"It would not start: {plain(blocker.message)}")
        out.line(f"  the broker's log: {plain(blocker.broker_log)}")
    for name in found.files_deleted:
        out.line(f"Deleted: {plain(name)}")
    for cut in found.ext_cuts:
        out.line(
            f"Cut: the ext files of {plain(cut.topic)}/{cut.queue_id} at {cut.end_offset:,}, "
            f"{size_text(cut.bytes_dropped)} dropped"
        )
    for beyond in found.groups_beyond:
        out.line(
            f"{plain(beyond.group)} reads {plain(beyond.topic)}/{beyond.queue_id} at {beyond.offset:,}, "
            f"beyond the new end {beyond.max_offset:,}: queue offsets are used again"
        )
    for note in found.notes:
        out.line(f"Note: {plain(note)}")
    out.line()
    for queue in record["queues"]:
        out.record(queue, _QUEUES)
