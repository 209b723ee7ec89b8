"""What a pulled plug left, in words: three lines and the rows of the comparison with their verdicts; no Qt.

The three lines have one scale, so that a place is above itself; what is safe is shortened, what was at stake is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.look.formats import clock, number, size, span
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, text_column
from viewer.widgets.recovery_line import LineFlag, Part

if TYPE_CHECKING:
    from engine.lab.plug import PlugReport, StoreState


MOST_QUEUES = 12
REST = 0.08
"""Share of the line behind the end of the log."""
LEAST = 0.07
"""Share of a stretch that has anything at all."""
DISK_MOST = 0.5


@dataclass(frozen=True, slots=True)
class PlugLine:
    """One of the three lines: its note, its parts, its flags."""

    note: str = ""
    parts: tuple[Part, ...] = ()
    flags: tuple[LineFlag, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One figure before, as the disk kept it, and after recovery; ``mark`` and ``verdict`` judge it."""

    what: str
    before: str
    kept: str
    after: str
    mark: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class PlugView:
    """All that the panel shows; ``said`` stands in the table while there are no rows."""

    lines: tuple[PlugLine, PlugLine, PlugLine]
    rows: tuple[CompareRow, ...] = ()
    said: str = ""


def waiting_view() -> PlugView:
    """Before anything was pulled."""
    line = PlugLine(tr("nothing yet"), (Part(1.0, "zero"),))
    said = tr("Before, kept and after are compared here when the plug was pulled.")
    return PlugView((line, line, line), (), said)


def plug_view(report: PlugReport) -> PlugView:
    """What ``report`` says."""
    x = _scale(report)
    return PlugView((_before(report, x), _kept(report, x), _after(report, x)), tuple(_rows(report)))


# ---- the lines -------------------------------------------------------------------------------------------------------

X = Callable[[int], float]


def _scale(report: PlugReport) -> X:
    """Offset → place on the line, 0 to 1; the same for all three."""
    before, kept, plan = report.before, report.kept, report.plan
    low = max(min(before.min_offset, kept.min_offset), 0)
    end = max(before.end_offset, kept.end_offset, low + 1)
    flushed = min(max(before.flushed, low), end)
    marks = {
        low,
        flushed,
        max(before.committed, flushed),
        kept.end_offset,
        end,
        plan.end_offset,
        plan.start_offset,
        plan.dispatch_from,
    }
    points = sorted(mark for mark in marks if low <= mark <= end)
    lengths = [end_ - start for start, end_ in pairwise(points)]
    safe = [
        min(1.0, length / max(flushed - low, 1)) if point < flushed else 0.0
        for point, length in zip(points, lengths, strict=False)
    ]
    risk = [
        length / max(end - flushed, 1) if point >= flushed else 0.0
        for point, length in zip(points, lengths, strict=False)
    ]
    room = DISK_MOST if any(risk) and any(safe) else 1.0
    wide = [
        max(LEAST, s * room) if s else max(LEAST, r * (1 - room if any(safe) else 1.0))
        for s, r in zip(safe, risk, strict=True)
    ]
    total = sum(wide) or 1.0
    places = [0.0]
    for one in wide:
        places.append(places[-1] + one / total * (1 - REST))

    def x(offset: int) -> float:
        if offset <= points[0] or len(points) == 1:
            return 0.0
        for number_, point in enumerate(points[1:], 1):
            if offset <= point:
                start, left, right = points[number_ - 1], places[number_ - 1], places[number_]
                return left + (right - left) * (offset - start) / (point - start)
        return places[-1]

    return x


def _stretch(x: X, start: int, end: int, kind: str, said: str = "") -> Part:
    said = f"{said} {size(end - start)}".strip() if end > start else ""
    return Part(max(0.0, x(end) - x(start)), kind, said, start, max(start, end))


def _before(report: PlugReport, x: X) -> PlugLine:
    state = report.before
    low = max(state.min_offset, 0)
    flushed = max(state.flushed, low)
    committed = max(state.committed, flushed)
    parts = (
        _stretch(x, low, flushed, "disk", tr("on disk")),
        _stretch(x, flushed, committed, "cache", tr("page cache")),
        _stretch(x, committed, state.end_offset, "pool", tr("transient pool")),
        Part(1 - x(state.end_offset), "zero"),
    )
    flags = [LineFlag(x(flushed), tr("flushed"), "posLog3", flushed)]
    if committed < state.end_offset:
        flags.append(LineFlag(x(committed), tr("committed"), "posLog", committed))
    if flushed < state.end_offset:
        flags.append(LineFlag(x(state.end_offset), tr("wrote"), "posLog2", state.end_offset))
    return PlugLine(tr("{time}, in memory", time=clock(state.at_ms)), parts, tuple(flags))


def _kept(report: PlugReport, x: X) -> PlugLine:
    before, kept = report.before, report.kept
    low = max(kept.min_offset, 0)
    flushed = max(min(before.flushed, kept.end_offset), low)
    end = max(before.end_offset, kept.end_offset)
    whole = min(max(report.plan.end_offset, flushed), kept.end_offset)
    parts = (
        _stretch(x, low, flushed, "disk"),
        _stretch(x, flushed, whole, "cache", tr("kept by chance")),
        _stretch(x, whole, kept.end_offset, "drop", tr("torn, cut:")),
        Part(x(end) - x(kept.end_offset), "gone", _gone(end - kept.end_offset), kept.end_offset, end),
        Part(1 - x(end), "zero"),
    )
    flags = (LineFlag(x(whole), tr("torn unit"), "error", whole),) if kept.torn else ()
    return PlugLine(tr("plug pulled, {time}", time=clock(kept.at_ms)), parts, flags)


def _gone(count: int) -> str:
    return tr("{size} gone", size=size(count)) if count > 0 else ""


def _after(report: PlugReport, x: X) -> PlugLine:
    plan, after = report.plan, report.after
    end = after.end_offset if after is not None else plan.end_offset
    low = max((after or report.kept).min_offset, 0)
    start = min(max(plan.start_offset, low), end)
    again = min(max(plan.dispatch_from, start), end) if plan.units else end
    ready = tr("ready for the next append")
    parts = (
        _stretch(x, low, start, "unread", tr("not read,")),
        _stretch(x, start, again, "keep", tr("read again,")),
        _stretch(x, again, end, "again", tr("dispatched again,")),
        Part(1 - x(end), "zero", ready),
    )
    flags = []
    if plan.start_file:
        flags.append(LineFlag(x(start), tr("start file {name}", name=plan.start_file), "posTime", start))
    flags.append(LineFlag(x(end), tr("end of log"), "posLog", end))
    took = tr("took {span}", span=span(round(report.recovered_ms)))
    return PlugLine(took if after is not None else tr("the plan; not done yet"), parts, tuple(flags))


# ---- the table -------------------------------------------------------------------------------------------------------


def _rows(report: PlugReport) -> list[CompareRow]:
    before, kept, after = report.before, report.kept, report.after
    checkpoint = CompareRow(tr("checkpoint"), _time(before), _time(kept), _time(after), "note", _age(report))
    rows = [_end_row(report), _units_row(report), _index_row(report), checkpoint, _plan_row(report)]
    return [*rows, *_again_row(report), _pages_row(report), *_queue_rows(report)]


def _time(state: StoreState | None) -> str:
    if state is None:
        return ""
    at = state.checkpoint.physic_msg_timestamp if state.checkpoint is not None else 0
    return clock(at)[:10] if at > 0 else tr("none")


def _age(report: PlugReport) -> str:
    found = report.kept.checkpoint
    if found is None or found.physic_msg_timestamp <= 0:
        return tr("recovery reads from the first file")
    return tr(
        "{span} old when the plug was pulled", span=span(max(0, report.before.at_ms - found.physic_msg_timestamp))
    )


def _end_row(report: PlugReport) -> CompareRow:
    plan, after = report.plan, report.after
    figures = number(report.before.end_offset), number(report.kept.end_offset)
    if after is None:
        return CompareRow(
            tr("end of log"), *figures, "", "note", tr("recovery will cut at {offset:,}", offset=plan.end_offset)
        )
    mark, said = (
        ("ok", tr("cut at a unit boundary")) if not after.torn else ("error", tr("bytes follow that are no unit"))
    )
    return CompareRow(tr("end of log"), *figures, number(after.end_offset), mark, said)


def _units_row(report: PlugReport) -> CompareRow:
    before, kept, after, loss = report.before, report.kept, report.after, report.loss
    torn = tr("{n:,} + 1 torn", n=kept.units) if kept.torn else number(kept.units)
    if not loss.messages:
        mark, said = "ok", tr("nothing that was answered PUT_OK is lost")
    elif loss.allowed:
        mark, said = (
            "warn",
            tr("{n:,} lost · they had been answered PUT_OK, as {mode} allows", n=loss.messages, mode=report.flush_mode),
        )
    else:
        mark, said = (
            "error",
            tr(
                "{n:,} lost that {mode} had promised, {below:,} of them below the flushed offset",
                n=loss.messages,
                mode=report.flush_mode,
                below=loss.below_flushed,
            ),
        )
    if not loss.exact and loss.messages:
        said = f"{said} · {tr('about')}"
    return CompareRow(tr("units"), number(before.units), torn, number(after.units) if after else "", mark, said)


def _queue_rows(report: PlugReport) -> list[CompareRow]:
    before, kept, after = report.before.queues, report.kept.queues, report.after
    ends = after.queues if after is not None else {}
    rows = []
    names = sorted({*before, *kept, *ends}, key=lambda queue: (-before.get(queue, 0), queue))
    for queue in names[:MOST_QUEUES]:
        was, stayed, now = before.get(queue, 0), kept.get(queue, 0), ends.get(queue, 0)
        if after is None:
            mark, said = "", ""
        elif stayed > now:
            mark, said = "ok", tr("{n:,} entries pointed behind the log", n=stayed - now)
        elif now > stayed:
            mark, said = "ok", tr("{n:,} entries made again from the log", n=now - stayed)
        else:
            mark, said = "ok", tr("as the disk kept it")
        if after is not None and now < was:
            said += " · " + tr("{n:,} messages fewer than before", n=was - now)
        rows.append(
            CompareRow(
                f"{queue[0]} / {queue[1]}",
                number(was),
                number(stayed),
                number(now) if after is not None else "",
                mark,
                said,
            )
        )
    if len(names) > MOST_QUEUES:
        rows.append(CompareRow(tr("and {n:,} more queues", n=len(names) - MOST_QUEUES), "", "", ""))
    return rows


def _index_row(report: PlugReport) -> CompareRow:
    before, kept, after, plan = report.before, report.kept, report.after, report.plan
    deleted = plan.index_deleted
    if deleted:
        many = tr("{n:,} files deleted, built again from {offset:,} on", n=len(deleted), offset=plan.dispatch_from)
        one = tr("1 file deleted, built again from {offset:,} on", offset=plan.dispatch_from)
        said = one if len(deleted) == 1 else many
        mark = "warn"
    elif after is not None and after.index_entries != kept.index_entries:
        mark, said = "ok", tr("built again from what the log still has")
    else:
        mark, said = ("ok", tr("as the disk kept it")) if after is not None else ("", "")
    return CompareRow(
        tr("index entries"),
        number(before.index_entries),
        number(kept.index_entries),
        number(after.index_entries) if after else "",
        mark,
        said,
    )


def _pages_row(report: PlugReport) -> CompareRow:
    said = tr(
        "{kept:,} of them on the disk by chance, {torn:,} in part; {names:,} names not yet known to it",
        kept=report.kept_pages,
        torn=report.torn_pages,
        names=report.lost_names,
    )
    return CompareRow(tr("pages not flushed"), number(report.dirty_pages), number(report.kept_pages), "", "", said)


def _plan_row(report: PlugReport) -> CompareRow:
    if report.after is None:
        return CompareRow(tr("plan against deed"), "", "", "", "", tr("known when the store was recovered"))
    wrong = [figure for figure in report.figures if not figure.equal]
    if wrong:
        said = ", ".join(f"{one.name} {one.planned:,} ≠ {one.done:,}" for one in wrong[:4])
        return CompareRow(tr("plan against deed"), "", "", "", "error", tr("differs: {figures}", figures=said))
    return CompareRow(tr("plan against deed"), "", "", "", "ok", tr("equal in all {n} figures", n=len(report.figures)))


def _again_row(report: PlugReport) -> list[CompareRow]:
    """Whether recovering the same disk once more gave the same store."""
    found = report.again
    if found is None:
        return []
    took = tr("took {span}", span=span(round(found.took_ms)))
    wrong = [figure for figure in found.figures if not figure.equal]
    if wrong:
        said = ", ".join(f"{one.name} {one.planned:,} ≠ {one.done:,}" for one in wrong[:4])
        mark, said = "error", tr("the same disk gave another store: {figures}", figures=said)
    else:
        mark, said = "ok", tr("the same disk gives the same store: equal in all {n} figures", n=len(found.figures))
    end = next(figure.done for figure in found.figures if figure.name == "endOffset")
    said = f"{said} · {tr('round {n}', n=found.round)} · {took}"
    return [CompareRow(tr("recovered again"), "", number(report.kept.end_offset), number(end), mark, said)]


def compare_kind() -> RecordKind:
    """The table that compares."""
    return RecordKind(
        "plug",
        (
            Column("what", words("Figure"), 168, lambda row: row.what, lambda row: row.what, elide="middle"),
            _figure("before", words("Before")),
            _figure("kept", words("What the disk kept")),
            _figure("after", words("After recovery")),
            chip_column("mark", "", 28, lambda row: Chip(row.mark) if row.mark else None),
            text_column("verdict", words("Verdict"), 420),
        ),
        verdict=lambda row: row.verdict,
        record=lambda row: {
            "what": row.what,
            "before": row.before,
            "kept": row.kept,
            "after": row.after,
            "verdict": row.verdict,
        },
    )


def _figure(key: str, title: str) -> Column:
    return Column(
        key, title, 150, lambda row: str(getattr(row, key)), lambda row: getattr(row, key), right=True, mono=True
    )


MEANINGS = {
    "PUT_OK": words("stored as it should be"),
    "FLUSH_DISK_TIMEOUT": words("stored; the flush was not waited for to its end"),
    "SERVICE_NOT_AVAILABLE": words("not stored: the store takes none now"),
    "CREATE_MAPPED_FILE_FAILED": words("not stored: no next file, or no buffer of the pool is free"),
    "MESSAGE_ILLEGAL": words("not stored: the message breaks a rule"),
    "PROPERTIES_SIZE_EXCEEDED": words("not stored: its properties are too long"),
    "OS_PAGE_CACHE_BUSY": words("not stored: a put has held the log for too long"),
    "LMQ_CONSUME_QUEUE_NUM_EXCEEDED": words("not stored: too many light queues"),
    "WHEEL_TIMER_NOT_ENABLE": words("not stored: the timer wheel is off"),
    "WHEEL_TIMER_MSG_ILLEGAL": words("not stored: its delivery time is out of range"),
    "WHEEL_TIMER_FLOW_CONTROL": words("not stored: too many messages for that second"),
    "UNKNOWN_ERROR": words("not stored: an error"),
}
"""PutMessageStatus's name → in words."""
