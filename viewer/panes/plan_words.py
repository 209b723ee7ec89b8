"""A recovery plan in words: what a start would do, line by line, each with its reason; no Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.store.recovery_plan import RecoveryPlan
from viewer.assets import tr, words
from viewer.bridge import places
from viewer.models.columns import Chip, Column, RecordKind, chip_column, text_column
from viewer.models.formats import full_moment, number, size
from viewer.sayings import engine_words

MOST_LISTED = 200
WHYS = (
    (r"abnormal exit: the last file whose first unit was stored at or before (\d+) \((.*)\)",
     words("abnormal exit: the last file whose first unit was stored at or before {at} ({note})")),
    (r"abnormal exit: no file's first unit was stored at or before (\d+) \((.*)\): the first file",
     words("abnormal exit: no file's first unit was stored at or before {at} ({note}): the first file")),
    (r"normal exit: the last file that begins at or before ([\d,]+), the end of what the queues know",
     words("normal exit: the last file that begins at or before {at}, the end of what the queues know")),
    (r"normal exit: the queues know the log up to ([\d,]+), no later file begins at or before that",
     words("normal exit: the queues know the log up to {at}, no later file begins at or before that")),
)  # fmt: skip
"""Why recovery starts where it does: what the planner says, and the same with names in the place of values."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One line of the plan: its mark, what, how much, why; ``place`` where it leads."""

    mark: str
    what: str
    value: str
    why: str
    place: object = None


@dataclass(frozen=True, slots=True)
class FateRow:
    """What becomes of a file or of a kind of files."""

    name: str
    mark: str
    fate: str
    why: str


def release_name(plan: RecoveryPlan) -> str:
    """The release whose start is planned."""
    return "RocketMQ 4.9.8" if plan.like == "4.9" else "RocketMQ 5.3.3"


def time_row(plan: RecoveryPlan, took: float) -> PlanRow | None:
    """How long a start would read, from the rate at which the plan was read in ``took`` seconds; None where nothing is
    read.
    """
    if took <= 0 or plan.bytes_to_read <= 0:
        return None
    said = tr("about {seconds:,} s", seconds=round(took)) if took >= 1 else tr("less than 1 s")
    rate = size(round(plan.bytes_to_read / took))
    why = tr("estimate: {size} to read at {rate}/s, as this look took", size=size(plan.bytes_to_read), rate=rate)
    return PlanRow("ok", tr("Time to read"), said, why)


def plan_rows(plan: RecoveryPlan, took: float = 0.0) -> list[PlanRow]:
    """Every line of the plan, what stops a start first; with an estimate where working it out ``took`` seconds."""
    missed = plan.empty_log
    rows = [PlanRow("error", tr("Empty log"), "", engine_words(missed.message))] if missed is not None else []
    rows += [
        PlanRow("error", tr("Would not start"), b.finding, f"{engine_words(b.message)} · {b.broker_log}")
        for b in plan.blockers
    ]
    clean = plan.exit == "normal"
    exit_why = tr("no abort file: the last stop was clean") if clean else tr("abort is there: the store was not closed")
    rows.append(PlanRow("ok" if clean else "warn", tr("Last exit"), tr(plan.exit), exit_why))
    start, why = places.log(plan.start_offset), why_words(plan.why)
    rows.append(PlanRow("ok", tr("Start file"), plan.start_file or tr("none"), why, start))
    rows.append(_end_row(plan))
    rows.append(
        PlanRow(
            "ok", tr("Units read"), number(plan.units_kept), tr("kept, {size} to read", size=size(plan.bytes_to_read))
        )
    )
    rows += filter(None, (time_row(plan, took),))
    rows.append(_dropped_row(plan))
    why = tr("from {offset:,} on; queues skip what they have", offset=plan.dispatch_from)
    rows.append(PlanRow("ok", tr("Dispatched again"), number(plan.units), why if plan.units else tr("nothing")))
    rows += _queue_rows(plan)
    rows += [
        PlanRow(
            "warn",
            tr("Group ahead of it"),
            group.group,
            tr(
                "{queue} at {offset:,}, new end {end:,}: misses up to {n:,} messages",
                queue=f"{group.topic}/{group.queue_id}",
                offset=group.offset,
                end=group.max_offset,
                n=group.offset - group.max_offset,
            ),
            places.queue(group.topic, group.queue_id, group.max_offset),
        )
        for group in plan.groups_beyond[:MOST_LISTED]
    ]
    for index in plan.index_deleted[:MOST_LISTED]:
        why = tr(
            "{n:,} entries; ends {time}, after the checkpoint's index time",
            n=index.entries,
            time=full_moment(index.end_timestamp),
        )
        rows.append(PlanRow("error", tr("Index file deleted"), index.name, why, places.index(index.name)))
    rows += [PlanRow("note", tr("Note"), "", engine_words(note)) for note in plan.notes]
    return rows


def _end_row(plan: RecoveryPlan) -> PlanRow:
    further = plan.log_max - plan.end_offset
    why = engine_words(plan.end_reason)
    if further > 0:
        why += " · " + tr("today's end is {n:,} bytes further", n=further)
    return PlanRow(
        "warn" if further > 0 else "ok", tr("End of log"), number(plan.end_offset), why, places.log(plan.end_offset)
    )


def _dropped_row(plan: RecoveryPlan) -> PlanRow:
    if not plan.units_dropped and not plan.bytes_dropped:
        return PlanRow("ok", tr("Units dropped"), "0", tr("nothing is lost"))
    why = tr("{size} behind the new end of the log", size=size(plan.bytes_dropped))
    return PlanRow("error" if plan.units_dropped else "warn", tr("Units dropped"), number(plan.units_dropped), why)


def _queue_rows(plan: RecoveryPlan) -> list[PlanRow]:
    cut = [queue for queue in plan.queues if queue.entries_dropped]
    made = [queue for queue in plan.queues if queue.created]
    rows = []
    if cut:
        first = cut[0]
        why = tr(
            "1 entry; {queue} ends at {end:,}"
            if sum(q.entries_dropped for q in cut) == 1
            else "{n:,} entries; {queue} ends at {end:,}",
            n=sum(queue.entries_dropped for queue in cut),
            queue=f"{first.topic}/{first.queue_id}",
            end=first.max_offset,
        )
        of = tr("{n:,} of {all:,}", n=len(cut), all=len(plan.queues))
        rows.append(
            PlanRow("warn", tr("Queues cut"), of, why, places.queue(first.topic, first.queue_id, first.max_offset))
        )
    added = sum(queue.entries_added for queue in plan.queues)
    if added:
        rows.append(
            PlanRow(
                "ok",
                tr("Entries added"),
                number(added),
                tr("in {n:,} queues", n=sum(bool(q.entries_added) for q in plan.queues)),
            )
        )
    if made:
        rows.append(
            PlanRow(
                "note",
                tr("Queues made anew"),
                number(len(made)),
                ", ".join(f"{q.topic}/{q.queue_id}" for q in made[:6]),
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


def fates(plan: RecoveryPlan, log_files: int) -> list[FateRow]:
    """What stays and what goes, by kind of file."""
    stays, deleted = tr("stays"), tr("deleted")
    gone = set(plan.files_deleted)
    rows = [
        FateRow(
            "commitlog", "ok", stays, tr("{n:,} files, written on from {offset:,}", n=log_files, offset=plan.end_offset)
        )
    ]
    rows += [FateRow(_tail(file), "error", deleted, _deleted_words(file)) for file in plan.files_deleted[:MOST_LISTED]]
    cut = sum(bool(queue.entries_dropped) for queue in plan.queues)
    rows.append(FateRow("consumequeue", "ok", stays, tr("{n:,} queues, {cut:,} cut", n=len(plan.queues), cut=cut)))
    for queue in plan.queues:
        rows += [
            FateRow(_tail(file), "error", deleted, f"{queue.topic}/{queue.queue_id}")
            for file in queue.files_deleted
            if file not in gone
        ]
    if plan.index_kept:
        entries = sum(index.entries for index in plan.index_kept)
        rows.append(
            FateRow(tr("index, {n:,} files", n=len(plan.index_kept)), "ok", stays, tr("{n:,} entries", n=entries))
        )
    rows += [
        FateRow(index.name, "error", deleted, tr("ends after indexMsgTimestamp"))
        for index in plan.index_deleted[:MOST_LISTED]
    ]
    rows.append(FateRow("checkpoint", "note", tr("written"), tr("when the start is done")))
    if plan.exit == "abnormal":
        rows.append(FateRow("abort", "out", stays, tr("until the next clean stop")))
    rows.append(FateRow("config/*.json", "ok", stays, tr("not touched by recovery")))
    return rows


def plan_kind() -> RecordKind:
    """The table of the plan's lines: only trouble has a colour."""
    columns = (
        chip_column("mark", "", 28, lambda row: Chip(row.mark), filterable=False),
        text_column("what", "", 150),
        text_column("value", "", 172, mono=True, jump=lambda row: row.place, elide="middle"),
        Column(
            "why", tr("Why"), 300, lambda row: row.why, lambda row: row.why, tone=_why_tone, tip=lambda row: row.why
        ),
    )
    return RecordKind("recoveryPlan", columns, verdict=lambda row: row.what)


def fate_kind() -> RecordKind:
    """The table of what stays and what goes."""
    columns = (
        text_column("name", tr("What stays, what goes"), 176, mono=True, elide="middle", tone=_fate_tone),
        chip_column("mark", "", 28, lambda row: Chip(row.mark), filterable=False),
        text_column("fate", "", 72, tone=_fate_tone),
        text_column("why", "", 200, tone=lambda _: "text2"),
    )
    return RecordKind("file", columns, verdict=lambda row: row.fate)


def _fate_tone(row: FateRow) -> str:
    return "error" if row.mark == "error" else "text"


def _why_tone(row: PlanRow) -> str:
    return "error" if row.mark == "error" else "text2"


def _deleted_words(path: str) -> str:
    return tr("its entries lie behind the new end") if "consumequeue" in path else tr("it lies behind the new end")


def _tail(path: str) -> str:
    parts = path.rstrip("/").split("/")
    return "/".join(parts[-3:] if "consumequeue" in path else parts[-2:])


def headline(plan: RecoveryPlan) -> list[tuple[str, str]]:
    """(shape, words) of what matters most."""
    if plan.empty_log is not None:
        return [("error", tr("the log is empty: is its disk mounted?"))]
    if not plan.will_start:
        return [("error", tr("a broker would not start"))]
    chips = []
    if plan.units_dropped:
        chips.append(("error", tr("{n:,} units would go", n=plan.units_dropped)))
    elif plan.bytes_dropped:
        chips.append(("warn", tr("{size} would go", size=size(plan.bytes_dropped))))
    if plan.exit == "abnormal":
        chips.append(("warn", tr("abnormal exit")))
    return chips or [("ok", tr("nothing would be lost"))]


def why_words(text: str) -> str:
    """The planner's reason for its start file, in the language of the window."""
    for pattern, said in WHYS:
        found = re.fullmatch(pattern, text)
        if found is not None:
            at, *note = found.groups()
            return tr(said, at=at, note=engine_words(note[0]) if note else "")
    return engine_words(text)
