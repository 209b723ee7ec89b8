"""``set-offset``, ``set-delay-offset``, ``set-checkpoint``: change one number of a store that no broker has open.

Each shows what the change means before it asks, checks what is there, and keeps the old bytes for ``recover --undo``.
"""

from __future__ import annotations

import argparse
import shlex
import time
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
from engine.codec.checkpoint import CHECKPOINT_SIZE, PARTS, Checkpoint, decode
from engine.codec.config_tables import Table, load_table
from engine.english import number_of
from engine.errors import StoreError, Undecoded, UsageError
from engine.inspection.derived_config import derived_config
from engine.inspection.recovery import plan, without_log
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.tables import read_table
from engine.inspection.written_release import release_of
from engine.mapped.disk import RealDisk
from engine.mapped.store_lock import StoreLock
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList, WriteBytes
from engine.patching.table_edits import set_number
from engine.sentences import sentence
from engine.services.opening import refuse_undecoded
from engine.store.recovery.plan import RecoveryPlan
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC

CONSUMER_OFFSETS, LIGHT_OFFSETS, DELAY_OFFSETS = "consumerOffset.json", "lmqConsumerOffset.json", "delayOffset.json"
Change = Callable[[argparse.Namespace, StoreSnapshot], tuple[PatchList, list[str]]]


def register(commands: Any) -> None:
    offset = _add(
        commands,
        "set-offset",
        "Set the offset at which a consumer group goes on in a queue (writes)",
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
        "Set the offset at which the broker goes on delivering a delay level (writes)",
        ("set-delay-offset ~/store 3 250 --plan",),
        _delay_offset,
    )
    delay.add_argument("level", metavar="LEVEL", type=number, help="delay level, from 1")
    delay.add_argument("number", metavar="N", type=number, help="queue offset of the message that is delivered next")
    checkpoint = _add(
        commands,
        "set-checkpoint",
        "Set one number of the checkpoint, and show what the next start makes of it (writes)",
        ("set-checkpoint ~/store logicsMsgTimestamp 1764409000000 --plan",),
        _checkpoint,
    )
    names = [part.name for part in PARTS]
    checkpoint.add_argument("field", metavar="FIELD", choices=names, help=f"one of: {', '.join(names)}")
    checkpoint.add_argument("number", metavar="N", type=number, help="time in ms since 1970, or offset in the log")
    add_release(checkpoint, "show the start of this RocketMQ release (default: the one that probably wrote the store)")


def _add(commands: Any, name: str, summary: str, examples: tuple[str, ...], change: Change) -> Parser:
    parser = add_command(commands, name, summary, *examples, parents=[common_options()])
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
        refuse_undecoded(path)
        if not ask_consent(args, lines, "Change it?", empty_log=without_log(store)):
            return 2
        config = derived_config(store)
    with backed_up(args, path, config) as backup, backup.lock():
        apply_patches(path, patches, backup.store_disk or RealDisk())
    out.record({"type": "patched", "patches": len(patches), "kept": backup.record})
    out.line(f"{shlex.quote(str(path))} was changed: {number_of(len(patches), 'file', 'files')}.")
    backup.say(out)
    return 0


def _consumer_offset(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    is_light = args.group.startswith(LMQ_PREFIX) and read_table(store, LIGHT_OFFSETS) is not None
    name = LIGHT_OFFSETS if is_light else CONSUMER_OFFSETS
    if "@" in args.group or "@" in args.topic:
        raise UsageError(sentence("expected a topic and a group without '@'"))
    bounds = _bounds(store, args.topic, args.queue)
    _check_offset(args.number, bounds, f"{args.topic}/{args.queue}")
    table, old = _json_table(store, name)
    key = f"{args.topic}@{args.group}"
    row, number_key = (("lmqOffsetTable", key), None) if is_light else (("offsetTable", key), args.queue)
    current = _number_in(table, row, number_key)
    lines = [f"Group {args.group} in queue {args.queue} of topic {args.topic}:"]
    lines += _move_lines(current, args.number, bounds, "read", "the group's offset")
    if current == args.number:
        return PatchList(), lines
    why = sentence(
        "group {group} goes on at offset {offset:,} of queue {queue} of topic {topic}",
        group=args.group,
        offset=args.number,
        queue=args.queue,
        topic=args.topic,
    )
    return PatchList([set_number(table, old, row, number_key, args.number, _now(), why)]), lines


def _delay_offset(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    if args.level < 1:
        raise UsageError(sentence("expected a delay level from 1 on, found {level}", level=args.level))
    bounds = _bounds(store, SCHEDULE_TOPIC, args.level - 1)
    _check_offset(args.number, bounds, f"{SCHEDULE_TOPIC}/{args.level - 1}")
    table, old = _json_table(store, DELAY_OFFSETS)
    current = _number_in(table, ("offsetTable",), args.level)
    lines = [f"Delay level {args.level} (queue {args.level - 1} of topic {SCHEDULE_TOPIC}):"]
    lines += _move_lines(current, args.number, bounds, "delivered", "the level's offset")
    if current == args.number:
        return PatchList(), lines
    why = sentence("delay level {level} goes on at offset {offset:,}", level=args.level, offset=args.number)
    return PatchList([set_number(table, old, ("offsetTable",), args.level, args.number, _now(), why)]), lines


def _checkpoint(args: argparse.Namespace, store: StoreSnapshot) -> tuple[PatchList, list[str]]:
    assert store.paths is not None
    raw = store.small_file(store.paths.checkpoint)
    if raw is None:
        text = sentence("there is no checkpoint: a broker makes one at its next start")
        raise StoreError(text, file=str(store.paths.checkpoint))
    part = next(part for part in PARTS if part.name == args.field)
    old = raw[part.position : part.position + part.length]
    if len(old) < part.length:
        text = sentence("the file ends before {field}", field=part.name)
        raise StoreError(text, file=str(store.paths.checkpoint), offset=len(raw))
    new = args.number.to_bytes(8, "big", signed=True)
    changed = raw[: part.position] + new + raw[part.position + part.length :]
    _refuse_impossible(decode(changed.ljust(CHECKPOINT_SIZE, b"\0")), part.name)
    current = int.from_bytes(old, "big", signed=True)
    lines = [f"checkpoint: {part.name} {current:,} → {args.number:,}"]
    if current == args.number:
        return PatchList(), [*lines, "  Nothing changes."]
    why = sentence("{field} of the checkpoint becomes {number}", field=part.name, number=args.number)
    patches = PatchList([WriteBytes(file="checkpoint", offset=part.position, old=old, new=new, why=why)])
    release = stated_release(args, store)
    with open_store(store.path, read_config(args), patches) as patched:
        lines += _start_lines(plan(store, release), plan(patched, release))
    return patches, lines


def _refuse_impossible(checkpoint: Checkpoint, name: str) -> None:
    if name in checkpoint.impossible:
        number_ = checkpoint.impossible[name]
        text = sentence(
            "{field}: no broker writes {number}: expected a time in ms since 1970 or an offset in the log",
            field=name,
            number=number_,
        )
        raise UsageError(text)


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


def _bounds(store: StoreSnapshot, topic: str, queue_id: int) -> tuple[int, int]:
    """The minimum and maximum offset of a queue. Raises :class:`StoreError` if the store does not have it."""
    queue = store.find_queue(topic, queue_id)
    if queue is None:
        raise StoreError(
            sentence("the store has no queue {queue} of topic {topic}", queue=queue_id, topic=topic),
            file=str(store.path),
        )
    return queue.min_offset, queue.max_offset


def _check_offset(offset: int, bounds: tuple[int, int], queue: str) -> None:
    if not 0 <= offset <= bounds[1]:
        raise UsageError(
            sentence(
                "queue {queue}: expected an offset from 0 to {maximum:,}, found {offset:,}",
                queue=queue,
                maximum=bounds[1],
                offset=offset,
            )
        )


def _json_table(store: StoreSnapshot, name: str) -> tuple[Table, bytes | None]:
    """The table as a broker loads it, and the bytes of its file. Raises :class:`StoreError` if it cannot be changed."""
    assert store.paths is not None
    table = read_table(store, name)
    if table is None:
        table = load_table(name, lambda _: None, release_of(store))
    if table.used == "rocksdb":
        raise Undecoded(
            sentence("nothing was changed: this table is in a RocksDB, and Storescope writes tables in JSON files"),
            file=str(store.path / table.folder),
        )
    if not table.will_load:
        raise StoreError(
            sentence("nothing was changed: a broker cannot load this table: {why}", why=table.why),
            file=str(store.paths.config / name),
        )
    return table, store.small_file(store.paths.config / name)


def _number_in(table: Table, row: tuple[str, ...], key: int | None) -> int | None:
    """Return a number of the table, named as for :func:`set_number`; None if it is not there."""
    value: Any = table.value
    for name in row:
        value = value.get(name) if isinstance(value, dict) else None
    if key is not None:
        value = value.get(key, value.get(str(key))) if isinstance(value, dict) else None
    return value if isinstance(value, int) else None


def _move_lines(current: int | None, new: int, bounds: tuple[int, int], verb: str, what: str) -> Iterator[str]:
    """Say which entries come again and which never come if an offset moves from ``current`` to ``new``."""
    min_offset, max_offset = bounds
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


def _now() -> int:
    return time.time_ns() // 1_000_000
