"""``conversation``: everything that the log has of the messages of one name, from top to bottom."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_command, add_release, add_store, common_options, open_named_store, report_read_side
from engine.cli.output import Column, Output, Progress, escape_controls
from engine.english import number_of
from engine.inspection import records
from engine.rules import where as rules
from engine.times import duration_text

if TYPE_CHECKING:
    from engine.inspection.conversation import Conversation, ConversationStep, PropertyChange
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.timeline.events import TimelineEvent

_COLUMNS = (
    Column("Time", "time", "time"),
    Column("After", "after", "plain"),
    Column("Message", "message", "number", spare=2),
    Column("Physical offset", "physicalOffset", "number", spare=1),
    Column("Place", "place"),
    Column("Step", "step", "prose"),
)
_MAX_VALUE_LETTERS = 60
_MISSING = ("neverSeen", "unknown", "expired", "truncated")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "conversation",
        "conversation ~/store O-1042",
        "conversation ~/store O-1042 --topic Orders --events --json",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "id", metavar="ID", help="offset message id, unique key, key, physical offset, or TOPIC/QUEUE/OFFSET"
    )
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument(
        "--events",
        action="store_true",
        help="include what happened to the store meanwhile (crashes, starts, stalls, clock steps): reads the whole log",
    )
    add_release(parser, "the release of RocketMQ that wrote the store (default: what the store shows)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.conversation import read_conversation
    from engine.inspection.timeline.timeline import find_timeline

    with open_named_store(args, out) as store:
        report_read_side(store, out)
        store.commit_log.settle_end()
        log_size = store.log.sequence.total_size
        events: tuple[TimelineEvent, ...] = ()
        if args.events:
            with Progress("timeline", log_size, out.quiet) as progress:
                events = tuple(find_timeline(store, progress.update).events)
        with Progress("conversation", log_size, out.quiet) as progress:
            conversation = read_conversation(store, args.id, args.topic, progress.update, events)
        if not out.as_json:
            _print_summary(conversation, out)
        for step in conversation.steps:
            record = _step_record(step, store)
            out.record(record if out.as_json else _row(step, record), _COLUMNS)
        if out.as_json:
            out.record(_summary_record(conversation))
    return 0 if conversation.steps else 1


def _summary_record(conversation: Conversation) -> dict[str, Any]:
    return {
        "type": "conversationSummary",
        "messages": [records.where_result(result) for result in conversation.messages],
        "units": conversation.unit_count,
        "durationMs": conversation.duration_ms,
        "complete": not conversation.is_truncated and not conversation.has_unread,
    }


def _print_summary(conversation: Conversation, out: Output) -> None:
    count = number_of(len(conversation.messages), "message", "messages")
    cut = " (the newest ones; name a topic to see others)" if conversation.is_truncated else ""
    units = number_of(conversation.unit_count, "unit", "units")
    out.line(f"-- {count}{cut}, {units} in {duration_text(conversation.duration_ms)}")
    if conversation.has_unread:
        out.line("-- parts of the store could not be read: other steps may be in them")
    for number, result in enumerate(conversation.messages, 1):
        place = "" if result.topic is None else f", {result.topic}/{result.queue_id}/{result.queue_offset}"
        out.line(f"-- message {number:,}{place}: {result.verdict}. {result.next_step}")


def _step_record(step: ConversationStep, store: StoreSnapshot) -> dict[str, Any]:
    record: dict[str, Any] = {
        "type": "conversationStep",
        "step": step.kind,
        "message": step.message or None,
        "time": step.time,
        "afterMs": step.gap_ms,
        "physicalOffset": step.offset,
        "statement": step.statement,
        "changes": [
            {"property": change.name, "before": change.before, "after": change.after} for change in step.changes
        ],
        "event": None if step.event is None else step.event.record(),
        "unit": None,
    }
    if step.unit is not None:
        file = store.log.sequence.find(step.unit.offset)
        record["unit"] = records.unit(step.unit, file.name if file is not None else None)
    return record


def _row(step: ConversationStep, record: dict[str, Any]) -> dict[str, Any]:
    unit = step.unit
    after = "" if step.gap_ms is None else f"+{step.gap_ms:,} ms" if step.gap_ms >= 0 else f"{step.gap_ms:,} ms"
    return record | {
        "after": after,
        "place": "" if unit is None else f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}",
        "step": _step_text(step),
    }


def _step_text(step: ConversationStep) -> str:
    words = str(rules.ROLE_WORDS[step.kind]) if step.kind in rules.ROLE_WORDS else step.statement
    changes = "; ".join(map(_change_text, step.changes))
    return f"{words} ({changes})" if changes else words


def _change_text(change: PropertyChange) -> str:
    if change.after is None:
        return f"{change.name} removed"
    return f"{change.name} = {_short(change.after)}"


def _short(value: str) -> str:
    text = escape_controls(value)
    return text if len(text) <= _MAX_VALUE_LETTERS else f"{text[: _MAX_VALUE_LETTERS - 1]}…"
