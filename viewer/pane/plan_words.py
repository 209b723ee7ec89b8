"""A recovery plan in words: the actions of a start, line by line, each with its reason. No Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from engine.releases import Release, rules_of
from engine.store.recovery.plan import Blocker, Loss, QueuePlan, RecoveryPlan
from viewer.look.assets import tr, tr_in, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, number, size
from viewer.runtime import places
from viewer.runtime.store_work import OtherReleaseStart
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, text_column

MAX_LISTED = 200
MIN_TIMED_BYTES = 8 << 20
"""Smallest number of bytes from which a rate is estimated."""
MAX_QUEUES = 40
"""Largest number of queues whose losses are listed."""
LOCK_TAKEN = "MQ already started"
"""End of a broker's message if another process holds the store."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A line of the plan: mark, subject, amount, reason. ``place`` is the target of its link."""

    mark: str
    subject: str
    amount: str
    reason: str
    place: object = None


@dataclass(frozen=True, slots=True)
class FateRow:
    """The fate of a file or of a kind of files."""

    name: str
    mark: str
    fate: str
    reason: str


def release_name(plan: RecoveryPlan) -> str:
    """Return the release whose start is planned."""
    return rules_of(plan.release).title


def _nothing_more(plan: RecoveryPlan) -> str:
    return tr("the start of {release} loses nothing more", release=release_name(plan))


# ---- the most important fact


def headline(plan: RecoveryPlan, *, harmed: bool) -> list[tuple[str, str]]:
    """Return (shape, words) of the most important fact. ``harmed``: something is lost or wrong already."""
    if plan.empty_log is not None:
        return [("error", tr("the log is empty: is its disk mounted?"))]
    if not plan.will_start:
        return [("error", tr("a broker would not start"))]
    chips = []
    if plan.units_dropped:
        chips.append(
            ("error", tr_plural("{n:,} unit would be lost", "{n:,} units would be lost", n=plan.units_dropped))
        )
    elif plan.bytes_dropped:
        chips.append(("warn", tr("{size} would be lost", size=size(plan.bytes_dropped))))
    if plan.undispatched is not None and plan.undispatched.messages:
        chips.append(
            (
                "error",
                tr_plural(
                    "{n:,} message never dispatched", "{n:,} messages never dispatched", n=plan.undispatched.messages
                ),
            )
        )
    if plan.misnumbered:
        chips.append(
            (
                "error",
                tr_plural(
                    "{n:,} message gets a wrong queue offset",
                    "{n:,} messages get wrong queue offsets",
                    n=plan.misnumbered,
                ),
            )
        )
    if plan.loses_new_messages:
        chips.append(("error", tr("every new message would be lost")))
    if plan.exit == "abnormal":
        chips.append(("warn", tr("abnormal exit")))
    if chips:
        return chips
    return [("note", _nothing_more(plan))] if harmed else [("ok", tr("nothing would be lost"))]


def headline_tip(plan: RecoveryPlan) -> str:
    """Return the tool tip of the first headline, which explains why units and messages differ in number."""
    counts_units = plan.empty_log is None and plan.will_start and plan.units_dropped > 1
    return _units_and_messages() if counts_units else ""


def _units_and_messages() -> str:
    return tr("a batch is one unit, and some units hold no message")


# ---- the plan line by line


def start_rows(
    plan: RecoveryPlan, other_start: OtherReleaseStart | None, written: tuple[Release, str] | None, *, lab: bool = False
) -> list[PlanRow]:
    """Return which release would start and which would not, and why; and which one seems to have written the store.

    ``lab``: our own engine has the store open. Its lock prevents no start.
    """
    rows = []
    for start in (plan, other_start):
        if start is None:
            continue
        blockers = [blocker for blocker in start.blockers if not (lab and blocker.broker_log.endswith(LOCK_TAKEN))]
        verdict = tr("would not start") if blockers else tr("would start")
        why = " · ".join(part for part in _blocker_parts(blockers[0]).values() if part) if blockers else ""
        if len(blockers) > 1:
            why += " · " + tr("and {n:,} more", n=len(blockers) - 1)
        if written is not None and written[0] == start.release:
            writer_note = tr("it probably wrote this store: {why}", why=engine_words(written[1]))
            why = f"{why} · {writer_note}" if why else writer_note
        why = why or tr("nothing in the store keeps it from starting")
        rows.append(PlanRow("error" if blockers else "ok", rules_of(start.release).title, verdict, why))
    return rows


def time_row(plan: RecoveryPlan, read_seconds: float) -> PlanRow | None:
    """Estimate the reading time of a start from the rate at which the plan was read in ``read_seconds``.

    Returns None if too little was read to tell a rate.
    """
    if read_seconds <= 0 or plan.bytes_to_read < MIN_TIMED_BYTES:
        return None
    duration = tr("about {seconds:,} s", seconds=round(read_seconds)) if read_seconds >= 1 else tr("less than 1 s")
    rate = size(round(plan.bytes_to_read / read_seconds))
    why = tr("estimate: {size} to read at {rate}/s, as measured just now", size=size(plan.bytes_to_read), rate=rate)
    return PlanRow("ok", tr("Time to read"), duration, why)


def without_own_lock(plan: RecoveryPlan) -> RecoveryPlan:
    """Return the plan without our own engine's lock, which ends before any start."""
    blockers = tuple(blocker for blocker in plan.blockers if not blocker.broker_log.endswith(LOCK_TAKEN))
    return replace(plan, blockers=blockers, will_start=not blockers)


def plan_rows(plan: RecoveryPlan, read_seconds: float = 0.0, *, harmed: bool) -> list[PlanRow]:
    """Return every line of the plan, with blockers first.

    The plan was read in ``read_seconds``, which gives an estimate for a start. ``harmed``: something of the store
    is lost or wrong already.
    """
    empty_log = plan.empty_log
    rows = [PlanRow("error", tr("Empty log"), "", engine_words(empty_log.message))] if empty_log is not None else []
    rows += [
        PlanRow(
            "error",
            tr("Would not start"),
            parts["file"] or blocker.finding,
            " · ".join(part for part in (parts["reason"], blocker.finding, blocker.broker_log) if part),
        )
        for blocker in plan.blockers
        for parts in (_blocker_parts(blocker),)
    ]
    clean = plan.exit == "normal"
    exit_why = tr("no abort file: the last stop was clean") if clean else tr("abort is there: the store was not closed")
    rows.append(
        PlanRow("ok" if clean else "warn", tr("Last exit"), tr("normal") if clean else tr("abnormal"), exit_why)
    )
    start, why = places.log(plan.start_offset), engine_words(plan.why)
    rows.append(PlanRow("ok", tr("Start file"), plan.start_file or tr("none"), why, start))
    rows.append(_end_row(plan))
    rows.append(
        PlanRow(
            "ok", tr("Units read"), number(plan.units_kept), tr("kept, {size} to read", size=size(plan.bytes_to_read))
        )
    )
    rows += filter(None, (time_row(plan, read_seconds),))
    rows.append(_dropped_row(plan, harmed=harmed))
    rows += _loss_rows(tr("Lost messages"), tr("after the new end of the log"), plan.dropped, plan)
    rows.append(_again_row(plan))
    rows += _loss_rows(tr("Never dispatched"), tr("no start brings them into their queues"), plan.undispatched, plan)
    rows += _queue_rows(plan)
    rows += [
        PlanRow(
            "warn",
            tr("Group ahead of it"),
            group.group,
            tr_plural(
                "{queue} at {offset:,}, new end {end:,}: misses up to {n:,} message",
                "{queue} at {offset:,}, new end {end:,}: misses up to {n:,} messages",
                queue=f"{group.topic}/{group.queue_id}",
                offset=group.offset,
                end=group.max_offset,
                n=group.offset - group.max_offset,
            ),
            places.queue(group.topic, group.queue_id, group.max_offset),
        )
        for group in plan.groups_beyond[:MAX_LISTED]
    ]
    rows += _index_rows(plan)
    rows += [PlanRow("note", tr_in("remark", "Note"), "", engine_words(note)) for note in plan.notes]
    return rows


def _again_row(plan: RecoveryPlan) -> PlanRow:
    if not plan.queues_known:
        why = tr("the queues are in files that are not read here")
        return PlanRow("note", tr("Dispatched again"), tr("unknown"), why)
    why = tr("from {offset:,} on; queues skip what they have", offset=plan.dispatch_from)
    return PlanRow("ok", tr("Dispatched again"), number(plan.units), why if plan.units else tr("nothing"))


def _loss_rows(name: str, explanation: str, loss: Loss | None, plan: RecoveryPlan) -> list[PlanRow]:
    """Return the number of messages, then each queue with its offsets and times."""
    if loss is None or not loss.messages:
        return []
    if loss.examined_from > plan.log_min:
        explanation += " · " + tr("examined from {offset:,} on", offset=loss.examined_from)
    place = places.log(loss.first_unit) if loss.first_unit >= 0 else None
    rows = [PlanRow("error", name, messages_in_words(loss.messages), explanation, place)]
    for queue in loss.queues[:MAX_QUEUES]:
        why = f"{messages_in_words(queue.messages)} · " + tr(
            "queue offsets {first:,} to {last:,}", first=queue.first_offset, last=queue.last_offset
        )
        if queue.first_time > 0:
            times = full_moment(queue.first_time), full_moment(queue.last_time)
            why += " · " + tr("stored {first} to {last}", first=times[0], last=times[1])
        rows.append(
            PlanRow(
                "error",
                "",
                f"{queue.topic}/{queue.queue_id}",
                why,
                places.queue(queue.topic, queue.queue_id, queue.first_offset),
            )
        )
    if len(loss.queues) > MAX_QUEUES:
        rows.append(PlanRow("error", "", "", tr("and {n:,} more", n=len(loss.queues) - MAX_QUEUES)))
    return rows


def messages_in_words(count: int) -> str:
    """Return ``1 message`` or ``967,110 messages``."""
    return tr_plural("{n:,} message", "{n:,} messages", n=count)


def _index_rows(plan: RecoveryPlan) -> list[PlanRow]:
    """Return the index files that a start deletes, and whether their keys are indexed again."""
    deleted = plan.index_deleted
    if not deleted:
        return []
    start = plan.first_pass.start if plan.first_pass is not None else plan.end_offset
    first_offset = min((file.begin_phy_offset for file in deleted if file.entries), default=start)
    entries = sum(file.entries for file in deleted)
    why = tr_plural("{n:,} entry", "{n:,} entries", n=entries)
    if first_offset < start:
        why += " · " + tr("keys of units {first:,} to {start:,} will not be found", first=first_offset, start=start)
    elif entries:
        why += " · " + tr("their units are indexed again")
    amount = tr("{n:,} of {all:,}", n=len(deleted), all=len(deleted) + len(plan.index_kept))
    mark = "error" if first_offset < start and entries else "warn"
    return [PlanRow(mark, tr("Index files deleted"), amount, why, places.index(deleted[0].name))]


def _blocker_parts(blocker: Blocker) -> dict[str, str]:
    """Return ``reason``, and ``file`` as the end of its path if the message begins with that path."""
    message, path = engine_words(blocker.message), blocker.file or ""
    if not path or not message.startswith(path):
        return {"reason": message, "file": ""}
    return {"reason": message.removeprefix(path).lstrip(":：\t "), "file": _short(_tail(path))}


def _end_row(plan: RecoveryPlan) -> PlanRow:
    lost_bytes = plan.log_max - plan.end_offset
    why = engine_words(plan.end_reason)
    if lost_bytes > 0:
        why += " · " + tr_plural(
            "today's end is {n:,} byte further", "today's end is {n:,} bytes further", n=lost_bytes
        )
    return PlanRow(
        "warn" if lost_bytes > 0 else "ok", tr("End of log"), number(plan.end_offset), why, places.log(plan.end_offset)
    )


def _dropped_row(plan: RecoveryPlan, *, harmed: bool) -> PlanRow:
    if not plan.units_dropped and not plan.bytes_dropped:
        reason = _nothing_more(plan) if harmed else tr("nothing is lost")
        return PlanRow("note" if harmed else "ok", tr("Units dropped"), "0", reason)
    why = tr("{size} after the new end of the log", size=size(plan.bytes_dropped))
    if plan.units_dropped > 1:  # the incident card above counts messages: another number for the same loss
        why += f" · {_units_and_messages()}"
    return PlanRow("error" if plan.units_dropped else "warn", tr("Units dropped"), number(plan.units_dropped), why)


def cut_queues(plan: RecoveryPlan) -> list[tuple[QueuePlan, int]]:
    """Return the queues that will end before their files do, each with the number of dropped entries.

    Entries are dropped if they are behind the end of the log, or behind an entry at which a start stops reading
    the queue.
    """
    lost_entries = (
        {(lost_queue.topic, lost_queue.queue_id): lost_queue.messages for lost_queue in plan.undispatched.queues}
        if plan.undispatched
        else {}
    )
    return [
        (queue, queue.entries_dropped or lost_entries.get((queue.topic, queue.queue_id), 0))
        for queue in plan.queues
        if queue.entries_dropped or queue.files_deleted
    ]


def _queue_rows(plan: RecoveryPlan) -> list[PlanRow]:
    cut = cut_queues(plan)
    created = [queue for queue in plan.queues if queue.created]
    rows = []
    if cut:
        first_queue = cut[0][0]
        why = tr_plural(
            "{n:,} entry; {queue} ends at {end:,}",
            "{n:,} entries; {queue} ends at {end:,}",
            n=sum(entries for _, entries in cut),
            queue=f"{first_queue.topic}/{first_queue.queue_id}",
            end=first_queue.max_offset,
        )
        amount = tr("{n:,} of {all:,}", n=len(cut), all=len(plan.queues))
        rows.append(
            PlanRow(
                "warn",
                tr("Queues cut"),
                amount,
                why,
                places.queue(first_queue.topic, first_queue.queue_id, first_queue.max_offset),
            )
        )
    added = sum(queue.entries_added for queue in plan.queues)
    if added:
        rows.append(
            PlanRow(
                "ok",
                tr("Entries added"),
                number(added),
                tr_plural("in {n:,} queue", "in {n:,} queues", n=sum(bool(q.entries_added) for q in plan.queues)),
            )
        )
    if created:
        rows.append(
            PlanRow(
                "note",
                tr("New queues"),
                number(len(created)),
                ", ".join(f"{q.topic}/{q.queue_id}" for q in created[:6]),
            )
        )
    shifted = [queue for queue in plan.queues if queue.shifted]
    if shifted:
        names = ", ".join(f"{q.topic}/{q.queue_id}" for q in shifted[:6])
        rows.append(
            PlanRow(
                "error",
                tr("Entries shifted"),
                number(sum(q.shifted for q in shifted)),
                tr("not at their own offset: {queues}", queues=names),
            )
        )
    return rows


# ---- the files


def fates(plan: RecoveryPlan, log_files: int) -> list[FateRow]:
    """Return which files stay and which are deleted, by kind of file."""
    stays, deleted = tr("kept"), tr("deleted")
    deleted_files = set(plan.files_deleted)
    rows = [
        FateRow(
            "commitlog",
            "ok",
            stays,
            tr_plural(
                "{n:,} file, continued from {offset:,}",
                "{n:,} files, continued from {offset:,}",
                n=log_files,
                offset=plan.end_offset,
            ),
        )
    ]
    rows += [FateRow(_tail(file), "error", deleted, _deleted_words(file)) for file in plan.files_deleted[:MAX_LISTED]]
    cut = len(cut_queues(plan))
    rows.append(
        FateRow(
            "consumequeue",
            "ok",
            stays,
            tr_plural("{n:,} queue, {cut:,} cut", "{n:,} queues, {cut:,} cut", n=len(plan.queues), cut=cut),
        )
    )
    for queue in plan.queues:
        rows += [
            FateRow(_tail(file), "error", deleted, f"{queue.topic}/{queue.queue_id}")
            for file in queue.files_deleted
            if file not in deleted_files
        ]
    if plan.index_kept:
        entries = sum(index.entries for index in plan.index_kept)
        rows.append(
            FateRow(
                tr_plural("index, {n:,} file", "index, {n:,} files", n=len(plan.index_kept)),
                "ok",
                stays,
                tr_plural("{n:,} entry", "{n:,} entries", n=entries),
            )
        )
    rows += [
        FateRow(index.name, "error", deleted, tr("ends after indexMsgTimestamp"))
        for index in plan.index_deleted[:MAX_LISTED]
    ]
    rows.append(FateRow("checkpoint", "note", tr("written"), tr("when the start is done")))
    if plan.exit == "abnormal":
        rows.append(FateRow("abort", "out", stays, tr("until the next clean stop")))
    rows.append(FateRow("config/*.json", "ok", stays, tr("not touched by recovery")))
    return rows


# ---- tables


def plan_kind() -> RecordKind:
    """Return the table of the plan's lines. Only problems are coloured."""
    columns = (
        chip_column("mark", "", 28, lambda row: Chip(row.mark), filterable=False),
        text_column("subject", "", 150),
        text_column("amount", "", 172, mono=True, jump=lambda row: row.place, elide="middle"),
        Column(
            "reason",
            tr("Why"),
            300,
            lambda row: row.reason,
            lambda row: row.reason,
            tone=_reason_tone,
            tip=lambda row: row.reason,
        ),
    )
    return RecordKind("recoveryPlan", columns, verdict=lambda row: row.subject)


def fate_kind() -> RecordKind:
    """Return the table of files that stay or are deleted."""
    columns = (
        Column(
            "name",
            tr("Kept and lost"),
            150,
            lambda row: _short(row.name),
            lambda row: row.name,
            mono=True,
            elide="middle",
            tone=_fate_tone,
            tip=lambda row: row.name,
        ),
        chip_column("mark", "", 28, lambda row: Chip(row.mark), filterable=False),
        text_column("fate", "", 72, tone=_fate_tone),
        text_column("reason", "", 200, tone=lambda _: "text2"),
    )
    return RecordKind("file", columns, verdict=lambda row: row.fate)


def _fate_tone(row: FateRow) -> str:
    return "error" if row.mark == "error" else "text"


def _reason_tone(row: PlanRow) -> str:
    return "error" if row.mark == "error" else "text2"


def _deleted_words(path: str) -> str:
    return tr("its entries are after the new end") if "consumequeue" in path else tr("it is after the new end")


def _short(name: str) -> str:
    """Remove the leading zeros of a file name, as nearly every name has them."""
    return re.sub(r"(^|/)0{9,}(?=\d)", r"\1…", name)


def _tail(path: str) -> str:
    parts = path.rstrip("/").split("/")
    return "/".join(parts[-3:] if "consumequeue" in path else parts[-2:])
