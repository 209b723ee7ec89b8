"""``set-offset``, ``set-delay-offset``, ``set-checkpoint``: change one number of a store that no broker has open.

Each shows what the change means before it asks, checks what is there, and keeps the old bytes for ``recover --undo``.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from engine.cli.backup import add_consent, ask_consent, backed_up
from engine.cli.finding_text import losses_text
from engine.cli.options import (
    Parser,
    add_command,
    add_release,
    add_store,
    common_options,
    number,
    open_to_write,
    read_config,
    stated_release,
)
from engine.cli.output import Output
from engine.codec.checkpoint import PARTS
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.recovery import plan, without_log
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.mapped.store_lock import StoreLock
from engine.patching.patches import PatchList
from engine.repair.value_edits import ValueEdit, edit_checkpoint, edit_consumer_offset, edit_delay_offset
from engine.sentences import sentence
from engine.services.opening import refuse_undecoded
from engine.store.recovery.plan import RecoveryPlan
from engine.system_names import SCHEDULE_TOPIC

Change = Callable[[argparse.Namespace, StoreSnapshot], tuple[PatchList, list[str]]]


def register(commands: Any) -> None:
    offset = _add(
        commands,
        "set-offset",
        ("set-offset ~/store billing orders 2 1000 --plan", "set-offset ~/store billing orders 2 1000"),
        _consumer_offset,
    )
    offset.add_argument("group", metavar="GROUP", help="consumer group")
    offset.add_argument("topic", metavar="TOPIC")
    offset.add_argument("queue", metavar="QUEUE", type=number, help="queue id, from 0")
    offset.add_argument("number", metavar="N", type=number, help="queue offset of the message that is read next")
    delay = _add(
        commands,
        "set-delay-offset",
        ("set-delay-offset ~/store 3 250 --plan",),
        _delay_offset,
    )
    delay.add_argument("level", metavar="LEVEL", type=number, help="delay level, from 1")
    delay.add_argument("number", metavar="N", type=number, help="queue offset of the message that is delivered next")
    checkpoint = _add(
        commands,
        "set-checkpoint",
        ("set-checkpoint ~/store logicsMsgTimestamp 1764409000000 --plan",),
        _checkpoint,
    )
    names = [part.name for part in PARTS]
    checkpoint.add_argument("field", metavar="FIELD", choices=names, help=f"one of: {', '.join(names)}")
    checkpoint.add_argument("number", metavar="N", type=number, help="time in ms since 1970, or offset in the log")
    add_release(checkpoint, "show the start of this RocketMQ release (default: the one that probably wrote the store)")


def _add(commands: Any, name: str, examples: tuple[str, ...], change: Change) -> Parser:
    parser = add_command(commands, name, *examples, parents=[common_options()])
    add_store(parser)
    parser.add_argument("--plan", action="store_true", help="show the change and what it means; change nothing")
    add_consent(parser)
    parser.set_defaults(run=run, change=change)
    return parser


def run(args: argparse.Namespace, out: Output) -> int:
    """Show the change; without ``--plan`` ask, and make it."""
    change: Change = args.change
    with open_to_write(args, out) as store:
        if store.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one"), file=args.store)
        patches, lines = change(args, store)
        path = store.path
        for patch_number, patch in enumerate(patches, 1):
            out.record(patch.record(patch_number))
        if args.plan or not patches:
            for line in lines:
                out.line(line)
            return 0
        if store.lock_state == "held":
            StoreLock(path / "lock").release()  # raises, and names the holder
        refuse_undecoded(path, in_place=True)
        if not ask_consent(args, lines, "Change it?", empty_log=without_log(store)):
            return 2
        config = derived_config(store)
    with backed_up(args, path, config, in_place=True) as backup:
        backup.apply(patches)
    out.record({"type": "patched", "patches": len(patches), "kept": backup.record})
    out.line(f"{shlex.quote(str(path))} was changed: {number_of(len(patches), 'file', 'files')}.")
    backup.say(out)
    return 0


def _consumer_offset(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    edit = edit_consumer_offset(store, args.group, args.topic, args.queue, args.number)
    lines = [f"Group {args.group} in queue {args.queue} of topic {args.topic}:"]
    lines += _move_lines(edit, "read", "the group's offset")
    return PatchList(edit.patches), lines


def _delay_offset(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    edit = edit_delay_offset(store, args.level, args.number)
    lines = [f"Delay level {args.level} (queue {args.level - 1} of topic {SCHEDULE_TOPIC}):"]
    lines += _move_lines(edit, "delivered", "the level's offset")
    return PatchList(edit.patches), lines


def _checkpoint(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    edit = edit_checkpoint(store, args.field, args.number)
    lines = [f"checkpoint: {args.field} {edit.current:,} → {edit.new:,}"]
    if not edit.patches:
        return PatchList(), [*lines, "  Nothing changes."]
    release = stated_release(args, store)
    with open_store(store.path, read_config(args), edit.patches) as patched:
        lines += _start_lines(plan(store, release), plan(patched, release))
    return PatchList(edit.patches), lines


def _start_lines(today: RecoveryPlan, patched: RecoveryPlan) -> Iterator[str]:
    """Compare the next start of today's store with that of the changed one."""
    yield f"  The next start of RocketMQ {today.release}, today → after the change:"
    for words, today_text, changed_text in (
        ("it starts", _yes(today.will_start), _yes(patched.will_start)),
        ("it begins at file", today.start_file or "none", patched.start_file or "none"),
        ("the log ends at", f"{today.end_offset:,}", f"{patched.end_offset:,}"),
        ("lost", _lost(today), _lost(patched)),
        ("units dispatched again", f"{today.units:,}", f"{patched.units:,}"),
    ):
        yield (
            f"    {words}: {today_text} → {changed_text}"
            if today_text != changed_text
            else f"    {words}: {today_text}, as today"
        )


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _lost(start: RecoveryPlan) -> str:
    messages = sum(loss.messages for loss in (start.undispatched, start.dropped) if loss is not None)
    return losses_text(messages, start.misnumbered, loses_new_messages=start.loses_new_messages)


def _move_lines(edit: ValueEdit, verb: str, what: str) -> Iterator[str]:
    """Say which entries come again and which never come if an offset moves as ``edit`` says."""
    current, new = edit.current, edit.new
    min_offset, max_offset = edit.bounds
    old = "none" if current is None else f"{current:,}"
    yield (
        f"  {what}: {old} → {new:,} (the queue has offsets {min_offset:,} to {max_offset - 1:,})"
        if max_offset > min_offset
        else (f"  {what}: {old} → {new:,} (the queue is empty)")
    )
    if current == new:
        yield "  Nothing changes."
    elif current is None:
        entries = number_of(max_offset - max(new, min_offset), "entry is", "entries are")
        yield f"  There was no offset: {entries} {verb} from there on."
    elif new < current:
        start, stop = max(new, min_offset), min(current, max_offset)
        yield f"  {number_of(max(stop - start, 0), 'entry is', 'entries are')} {verb} again{_span(start, stop)}."
    else:
        start, stop = max(current, min_offset), min(new, max_offset)
        yield f"  {number_of(max(stop - start, 0), 'entry is', 'entries are')} never {verb}{_span(start, stop)}."
    if new < min_offset:
        yield f"  Entries before offset {min_offset:,} are gone: it goes on there."


def _span(start: int, stop: int) -> str:
    if stop - start < 1:
        return ""
    return f": offset {start:,}" if stop - start == 1 else f": offsets {start:,} to {stop - 1:,}"
