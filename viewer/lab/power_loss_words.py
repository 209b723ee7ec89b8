"""A power loss in words: three lines, and the rows of the comparison with their verdicts. No Qt.

The three lines have one scale, so that an offset is at the same place in each. The safe part is shortened so that
the part at risk is visible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, number, size, span
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, text_column
from viewer.widgets.recovery_line import LineFlag, Part

if TYPE_CHECKING:
    from engine.lab.power_loss_report import PowerLossReport, StoreState


MAX_QUEUES = 12
FREE_SHARE = 0.08
"""Share of the line behind the end of the log."""
MIN_SHARE = 0.07
"""Minimum share of a range that is not empty."""
MAX_DISK_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class PowerLossLine:
    """A line of the picture: its note, its parts, its flags."""

    note: str = ""
    parts: tuple[Part, ...] = ()
    flags: tuple[LineFlag, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareRow:
    """A figure before the power loss, on the disk, and after recovery; ``mark`` and ``verdict`` judge it."""

    what: str
    before: str
    kept: str
    after: str
    mark: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class PowerLossView:
    """Content of the panel; ``empty_text`` is the table's text while there are no rows."""

    lines: tuple[PowerLossLine, PowerLossLine, PowerLossLine]
    rows: tuple[CompareRow, ...] = ()
    empty_text: str = ""


def waiting_view() -> PowerLossView:
    """Return the view before any power loss."""
    line = PowerLossLine(tr("nothing yet"), (Part(1.0, "zero"),))
    placeholder = tr("After a power cut this compares three states: before, kept by the disk, and after recovery.")
    return PowerLossView((line, line, line), (), placeholder)


def power_loss_view(report: PowerLossReport) -> PowerLossView:
    """Return the view of a report."""
    x = _scale(report)
    return PowerLossView((_before_line(report, x), _kept_line(report, x), _after_line(report, x)), tuple(_rows(report)))


# ---- the lines -------------------------------------------------------------------------------------------------------

OffsetToPlace = Callable[[int], float]


def _scale(report: PowerLossReport) -> OffsetToPlace:
    """Return the function from offset to place on the line (0 to 1), the same for all three lines."""
    state_before, kept_state, plan = report.state_before, report.state_on_disk, report.plan
    min_offset = max(min(state_before.min_offset, kept_state.min_offset), 0)
    end = max(state_before.end_offset, kept_state.end_offset, min_offset + 1)
    flushed = min(max(state_before.flushed, min_offset), end)
    marks = {
        min_offset,
        flushed,
        max(state_before.committed, flushed),
        kept_state.end_offset,
        end,
        plan.end_offset,
        plan.start_offset,
        plan.dispatch_from,
    }
    points = sorted(mark for mark in marks if min_offset <= mark <= end)
    lengths = [end_point - start for start, end_point in pairwise(points)]
    safe_shares = [
        min(1.0, length / max(flushed - min_offset, 1)) if point < flushed else 0.0
        for point, length in zip(points, lengths, strict=False)
    ]
    risk_shares = [
        length / max(end - flushed, 1) if point >= flushed else 0.0
        for point, length in zip(points, lengths, strict=False)
    ]
    disk_share = MAX_DISK_SHARE if any(risk_shares) and any(safe_shares) else 1.0
    widths = [
        max(MIN_SHARE, safe_share * disk_share)
        if safe_share
        else max(MIN_SHARE, risk_share * (1 - disk_share if any(safe_shares) else 1.0))
        for safe_share, risk_share in zip(safe_shares, risk_shares, strict=True)
    ]
    total = sum(widths) or 1.0
    places = [0.0]
    for width in widths:
        places.append(places[-1] + width / total * (1 - FREE_SHARE))

    def x(offset: int) -> float:
        if offset <= points[0] or len(points) == 1:
            return 0.0
        for number_, point in enumerate(points[1:], 1):
            if offset <= point:
                start, left_place, right_place = points[number_ - 1], places[number_ - 1], places[number_]
                return left_place + (right_place - left_place) * (offset - start) / (point - start)
        return places[-1]

    return x


def _range_part(x: OffsetToPlace, start: int, end: int, kind: str, label: str = "") -> Part:
    label = f"{label} {size(end - start)}".strip() if end > start else ""
    return Part(max(0.0, x(end) - x(start)), kind, label, start, max(start, end))


def _before_line(report: PowerLossReport, x: OffsetToPlace) -> PowerLossLine:
    state = report.state_before
    min_offset = max(state.min_offset, 0)
    flushed = max(state.flushed, min_offset)
    committed = max(state.committed, flushed)
    parts = (
        _range_part(x, min_offset, flushed, "disk", tr("on disk")),
        _range_part(x, flushed, committed, "cache", tr("page cache")),
        _range_part(x, committed, state.end_offset, "pool", tr("transient pool")),
        Part(1 - x(state.end_offset), "zero"),
    )
    flags = [LineFlag(x(flushed), tr("flushed"), "posLog3", flushed)]
    if committed < state.end_offset:
        flags.append(LineFlag(x(committed), tr("committed"), "posLog", committed))
    if flushed < state.end_offset:
        flags.append(LineFlag(x(state.end_offset), tr("wrote"), "posLog2", state.end_offset))
    return PowerLossLine(tr("{time}, in memory", time=clock(state.at_ms)), parts, tuple(flags))


def _kept_line(report: PowerLossReport, x: OffsetToPlace) -> PowerLossLine:
    state_before, kept_state = report.state_before, report.state_on_disk
    min_offset = max(kept_state.min_offset, 0)
    flushed = max(min(state_before.flushed, kept_state.end_offset), min_offset)
    end = max(state_before.end_offset, kept_state.end_offset)
    torn_offset = min(max(report.plan.end_offset, flushed), kept_state.end_offset)
    parts = (
        _range_part(x, min_offset, flushed, "disk"),
        _range_part(x, flushed, torn_offset, "cache", tr("kept by chance")),
        _range_part(x, torn_offset, kept_state.end_offset, "drop", tr("torn, cut:")),
        Part(
            x(end) - x(kept_state.end_offset),
            "gone",
            _gone_text(end - kept_state.end_offset),
            kept_state.end_offset,
            end,
        ),
        Part(1 - x(end), "zero"),
    )
    flags = (LineFlag(x(torn_offset), tr("torn unit"), "error", torn_offset),) if kept_state.torn else ()
    return PowerLossLine(tr("power cut, {time}", time=clock(kept_state.at_ms)), parts, flags)


def _gone_text(count: int) -> str:
    return tr("{size} gone", size=size(count)) if count > 0 else ""


def _after_line(report: PowerLossReport, x: OffsetToPlace) -> PowerLossLine:
    plan, state_after = report.plan, report.state_after
    end = state_after.end_offset if state_after is not None else plan.end_offset
    min_offset = max((state_after or report.state_on_disk).min_offset, 0)
    start = min(max(plan.start_offset, min_offset), end)
    dispatch_offset = min(max(plan.dispatch_from, start), end) if plan.units else end
    free_label = tr("ready for the next append")
    parts = (
        _range_part(x, min_offset, start, "unread", tr("not read,")),
        _range_part(x, start, dispatch_offset, "keep", tr("read again,")),
        _range_part(x, dispatch_offset, end, "again", tr("dispatched again,")),
        Part(1 - x(end), "zero", free_label),
    )
    flags = []
    if plan.start_file:
        flags.append(LineFlag(x(start), tr("start file {name}", name=plan.start_file), "posTime", start))
    flags.append(LineFlag(x(end), tr("end of log"), "posLog", end))
    duration = tr("took {span}", span=span(round(report.recovered_ms)))
    return PowerLossLine(duration if state_after is not None else tr("the plan; not done yet"), parts, tuple(flags))


# ---- the table -------------------------------------------------------------------------------------------------------


def _rows(report: PowerLossReport) -> list[CompareRow]:
    state_before, kept_state, state_after = report.state_before, report.state_on_disk, report.state_after
    checkpoint = CompareRow(
        tr("checkpoint"),
        _checkpoint_time(state_before),
        _checkpoint_time(kept_state),
        _checkpoint_time(state_after),
        "note",
        _checkpoint_age(report),
    )
    rows = [_end_row(report), _units_row(report), _index_row(report), checkpoint, _plan_row(report)]
    return [*rows, *_repetition_rows(report), _pages_row(report), *_queue_rows(report)]


def _checkpoint_time(state: StoreState | None) -> str:
    if state is None:
        return ""
    timestamp_ms = state.checkpoint.physic_msg_timestamp if state.checkpoint is not None else 0
    return clock(timestamp_ms)[:10] if timestamp_ms > 0 else tr("none")


def _checkpoint_age(report: PowerLossReport) -> str:
    checkpoint = report.state_on_disk.checkpoint
    if checkpoint is None or checkpoint.physic_msg_timestamp <= 0:
        return tr("recovery reads from the first file")
    return tr(
        "{span} old at the power cut", span=span(max(0, report.state_before.at_ms - checkpoint.physic_msg_timestamp))
    )


def _end_row(report: PowerLossReport) -> CompareRow:
    plan, state_after = report.plan, report.state_after
    figures = number(report.state_before.end_offset), number(report.state_on_disk.end_offset)
    if state_after is None:
        return CompareRow(
            tr("end of log"), *figures, "", "note", tr("recovery will cut at {offset:,}", offset=plan.end_offset)
        )
    mark, verdict = (
        ("ok", tr("cut at a unit boundary")) if not state_after.torn else ("error", tr("invalid bytes follow"))
    )
    return CompareRow(tr("end of log"), *figures, number(state_after.end_offset), mark, verdict)


def _units_row(report: PowerLossReport) -> CompareRow:
    state_before, kept_state, state_after, loss = (
        report.state_before,
        report.state_on_disk,
        report.state_after,
        report.loss,
    )
    torn = tr("{n:,} + 1 torn", n=kept_state.units) if kept_state.torn else number(kept_state.units)
    if not loss.messages:
        mark, verdict = "ok", tr("nothing that was answered PUT_OK is lost")
    elif loss.allowed:
        mark, verdict = (
            "warn",
            tr("{n:,} lost · they had been answered PUT_OK, as {mode} allows", n=loss.messages, mode=report.flush_mode),
        )
    else:
        mark, verdict = (
            "error",
            tr(
                "{n:,} lost that {mode} had promised, {below:,} of them below the flushed offset",
                n=loss.messages,
                mode=report.flush_mode,
                below=loss.below_flushed,
            ),
        )
    if not loss.exact and loss.messages:
        verdict = f"{verdict} · {tr('about')}"
    return CompareRow(
        tr("units"), number(state_before.units), torn, number(state_after.units) if state_after else "", mark, verdict
    )


def _queue_rows(report: PowerLossReport) -> list[CompareRow]:
    ends_before, kept_ends, state_after = report.state_before.queues, report.state_on_disk.queues, report.state_after
    ends = state_after.queues if state_after is not None else {}
    rows = []
    names = sorted({*ends_before, *kept_ends, *ends}, key=lambda queue: (-ends_before.get(queue, 0), queue))
    for queue in names[:MAX_QUEUES]:
        end_before, kept_end, end_after = ends_before.get(queue, 0), kept_ends.get(queue, 0), ends.get(queue, 0)
        if state_after is None:
            mark, verdict = "", ""
        elif kept_end > end_after:
            mark, verdict = (
                "ok",
                tr_plural(
                    "{n:,} entry pointed after the end of the log",
                    "{n:,} entries pointed after the end of the log",
                    n=kept_end - end_after,
                ),
            )
        elif end_after > kept_end:
            mark, verdict = (
                "ok",
                tr_plural(
                    "{n:,} entry made again from the log",
                    "{n:,} entries made again from the log",
                    n=end_after - kept_end,
                ),
            )
        else:
            mark, verdict = "ok", tr("as the disk kept it")
        if state_after is not None and end_after < end_before:
            verdict += " · " + tr_plural(
                "{n:,} message fewer than before", "{n:,} messages fewer than before", n=end_before - end_after
            )
        rows.append(
            CompareRow(
                f"{queue[0]} / {queue[1]}",
                number(end_before),
                number(kept_end),
                number(end_after) if state_after is not None else "",
                mark,
                verdict,
            )
        )
    if len(names) > MAX_QUEUES:
        rows.append(
            CompareRow(
                tr_plural("and {n:,} more queue", "and {n:,} more queues", n=len(names) - MAX_QUEUES), "", "", ""
            )
        )
    return rows


def _index_row(report: PowerLossReport) -> CompareRow:
    state_before, kept_state, state_after, plan = (
        report.state_before,
        report.state_on_disk,
        report.state_after,
        report.plan,
    )
    deleted = plan.index_deleted
    if deleted:
        verdict = tr_plural(
            "{n:,} file deleted, built again from {offset:,} on",
            "{n:,} files deleted, built again from {offset:,} on",
            n=len(deleted),
            offset=plan.dispatch_from,
        )
        mark = "warn"
    elif state_after is not None and state_after.index_entries != kept_state.index_entries:
        mark, verdict = "ok", tr("built again from what the log still has")
    else:
        mark, verdict = ("ok", tr("as the disk kept it")) if state_after is not None else ("", "")
    return CompareRow(
        tr("index entries"),
        number(state_before.index_entries),
        number(kept_state.index_entries),
        number(state_after.index_entries) if state_after else "",
        mark,
        verdict,
    )


def _pages_row(report: PowerLossReport) -> CompareRow:
    verdict = tr_plural(
        "{kept:,} of them on the disk by chance, {torn:,} in part; {n:,} name not yet known to it",
        "{kept:,} of them on the disk by chance, {torn:,} in part; {n:,} names not yet known to it",
        kept=report.kept_pages,
        torn=report.torn_pages,
        n=report.lost_names,
    )
    return CompareRow(tr("pages not flushed"), number(report.dirty_pages), number(report.kept_pages), "", "", verdict)


def _plan_row(report: PowerLossReport) -> CompareRow:
    if report.state_after is None:
        return CompareRow(tr("plan and result"), "", "", "", "", tr("known when the store was recovered"))
    differing = [figure for figure in report.figures if not figure.equal]
    if differing:
        figures = ", ".join(
            f"{difference.name} {difference.planned:,} ≠ {difference.done:,}" for difference in differing[:4]
        )
        return CompareRow(tr("plan and result"), "", "", "", "error", tr("differs: {figures}", figures=figures))
    return CompareRow(
        tr("plan and result"),
        "",
        "",
        "",
        "ok",
        tr_plural("equal in all {n} figure", "equal in all {n} figures", n=len(report.figures)),
    )


def _repetition_rows(report: PowerLossReport) -> list[CompareRow]:
    """Return a row that says whether recovering the same disk again gave the same store; none if it was not done."""
    repetition = report.repeated_recovery
    if repetition is None:
        return []
    duration = tr("took {span}", span=span(round(repetition.took_ms)))
    differing = [figure for figure in repetition.figures if not figure.equal]
    if differing:
        verdict = ", ".join(
            f"{difference.name} {difference.planned:,} ≠ {difference.done:,}" for difference in differing[:4]
        )
        mark, verdict = "error", tr("the same disk gave another store: {figures}", figures=verdict)
    else:
        mark, verdict = (
            "ok",
            tr_plural(
                "the same disk gives the same store: equal in all {n} figure",
                "the same disk gives the same store: equal in all {n} figures",
                n=len(repetition.figures),
            ),
        )
    end = next(figure.done for figure in repetition.figures if figure.name == "endOffset")
    verdict = f"{verdict} · {tr('round {n}', n=repetition.round)} · {duration}"
    return [CompareRow(tr("recovered again"), "", number(report.state_on_disk.end_offset), number(end), mark, verdict)]


def compare_kind() -> RecordKind:
    """Return the table that compares."""
    return RecordKind(
        "plug",
        (
            Column("what", words("Figure"), 168, lambda row: row.what, lambda row: row.what, elide="middle"),
            _figure_column("before", words("Before")),
            _figure_column("kept", words("What the disk kept")),
            _figure_column("after", words("After recovery")),
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


def _figure_column(key: str, title: str) -> Column:
    return Column(
        key, title, 150, lambda row: str(getattr(row, key)), lambda row: getattr(row, key), right=True, mono=True
    )


MEANINGS = {
    "PUT_OK": words("stored as it should be"),
    "FLUSH_DISK_TIMEOUT": words("stored, but the wait for the flush ended too early"),
    "SERVICE_NOT_AVAILABLE": words("not stored: the store does not accept messages now"),
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
"""Meaning of each PutMessageStatus."""
