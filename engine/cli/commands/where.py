"""``where``: where is this message, or why is it not there: a verdict with its evidence."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

from engine.cli.options import add_command, add_release, add_store, common_options, open_named_store, report_read_side
from engine.cli.output import Output, Progress, escape_controls, iso_time
from engine.english import number_of
from engine.inspection import records
from engine.inspection.copy_out import copy_found
from engine.rules import where as rules

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.where.evidence import WhereResult
    from engine.rules.where import HistoryStep

_VERDICT_WORDS = {
    "found": "the message is intact, and its queue leads to it",
    "expired": "retention deleted its file",
    "truncated": "it is after the end of the log: a start cuts it off, or has cut it off",
    "damaged": "its bytes are damaged",
    "notInQueue": "the log has it, but no queue entry leads to it: nobody can consume it",
    "notInIndex": "it can be consumed, but a query by this key does not find it",
    "half": "its transaction is open: consumers do not see it until the producer commits",
    "rolledBack": "its transaction was rolled back: it must not be delivered",
    "delayed": "it waits for its delivery time",
    "passedOver": "it was due, and the timer has read on without delivering it",
    "replaced": "a later message with the same key has replaced it for the consumers of this compacted topic",
    "retried": "a delivery failed: it waits for its next delivery, or was delivered again",
    "deadLetter": "the group gave it up after its last delivery",
    "hiddenByTag": "the group's filter skips it",
    "notYetDispatched": "the log has it, but dispatch has not reached it yet",
    "consumed": "the group has read past it",
    "notConsumed": "the group has not reached it yet",
    "beyondQueue": "the group's offset is beyond the end of the queue, so the group has not read it",
    "neverSeen": "this store has no trace of it",
    "unknown": "the files do not show it",
}
_ROUTE_WORDS = {
    "found": "leads to it",
    "notInIndex": "in the log, not reachable by this key",
    "notInQueue": "in the log, not in its queue",
    "notYetDispatched": "not dispatched yet",
    "hiddenByTag": "its entry has another tag",
    "consumed": "has read past it",
    "notConsumed": "has not reached it yet",
    "beyondQueue": "is beyond the end of the queue",
    "half": "no queue lists a half message",
    "rolledBack": "no queue lists what was rolled back",
    "truncated": "after the end of the log",
    "expired": "deleted by retention",
    "neverSeen": "nothing there",
    "unknown": "unknown",
}
_LIFE = {
    "givenUp": "given up",
    "retryWaiting": "waits for a retry",
    "retry": "delivered again",
    "dead": "dead letter",
    "timer": "in the timer wheel",
    "dispatched": "in its queue",
    "indexed": "in the index",
    "consumed": "read past",
}
_NOT_FOUND = ("neverSeen", "unknown", "expired", "truncated")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "where",
        "where ~/store O-1042 --topic Orders --group billing",
        "where ~/store Orders/0/100",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "id", metavar="ID", help="offset message id, unique key, key, physical offset, or TOPIC/QUEUE/OFFSET"
    )
    parser.add_argument(
        "--tag",
        action="store_true",
        help="ID is a tag: find each message that the index lists for it (RocketMQ 5.4 and later)",
    )
    parser.add_argument("--topic", metavar="T", help="only messages of this topic")
    parser.add_argument("--group", metavar="G", help="the consumer group that did not get the message")
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.where.evidence import where, where_tagged

    look_for = where_tagged if args.tag else where
    missing = True
    with open_named_store(args, out) as store:
        report_read_side(store, out)
        store.commit_log.settle_end()
        with Progress("where", store.log.sequence.total_size, out.quiet) as progress:
            for result in look_for(store, args.id, args.topic, args.group, progress.update):
                missing &= result.verdict in _NOT_FOUND
                _show(result, store, out)
        if args.tag:
            _say_where_tags_are_looked_for(store, args.id, out, missing=missing)
    return 1 if missing else 0


def _say_where_tags_are_looked_for(store: StoreSnapshot, tags: str, out: Output, *, missing: bool) -> None:
    files = len(store.index_files())
    outcome = "no entry for these tags" if missing else "found by their entries"
    filter_text = f"tags == {json.dumps(tags, ensure_ascii=False)}"
    out.say(
        f"{outcome} in {number_of(files, 'index file', 'index files')}; RocketMQ before 5.4 indexes no "
        "tags. All units of the log with them: "
        f"storescope units {shlex.quote(str(store.path))} --where {shlex.quote(filter_text)}"
    )


def _verdict_words(result: WhereResult) -> str:
    if result.verdict == "neverSeen" and result.physical_offset is not None:
        return "no unit begins at this offset"
    if any(evidence.holds == rules.NO_FILE_AT_OFFSET for evidence in result.evidence):
        return "its log file is missing"
    return _VERDICT_WORDS[result.verdict]


def _show(result: WhereResult, store: StoreSnapshot, out: Output) -> None:
    out.record(records.where_result(result))
    place = f" at {result.physical_offset:,}" if result.physical_offset is not None else ""
    if result.topic is not None:
        place += f", {result.topic}/{result.queue_id}/{result.queue_offset}"
    out.line(f"{result.verdict}{place}: {_verdict_words(result)}")
    out.line(f"  next: {result.next_step}")
    if result.life:
        out.line(f"  history: {' → '.join(map(_step, result.life))}")
    for route in result.routes:
        way = "unique key" if route.by == "uniqueKey" else route.by
        refused = ", and the broker refuses it to the group" if route.barred else ""
        words = _ROUTE_WORDS.get(route.verdict, route.verdict)
        out.line(f"  by {way} {escape_controls(route.value)}: {words}{refused}")
    for evidence in result.evidence:
        pieces = [evidence.file or "", f"{evidence.offset:,}" if evidence.offset is not None else ""]
        seen_at = " @ ".join(piece for piece in pieces if piece)
        stored = f", stored {iso_time(evidence.timestamp)}" if evidence.timestamp is not None else ""
        out.line(f"  {evidence.what}: {evidence.holds}{stored}" + (f" [{seen_at}]" if seen_at else ""))
    command = copy_found(store, result)
    if command:
        out.line(f"  copy it out: {command}")


def _step(step: HistoryStep) -> str:
    when = f" {iso_time(step.timestamp)}" if step.timestamp is not None else ""
    return f"{_LIFE.get(step.step, step.step)}{when}{' by ' + ', '.join(step.who) if step.who else ''}"
