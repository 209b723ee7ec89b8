"""Two lab stores under the same load, compared figure by figure. No Qt.

Each side sums up its samples; a row has both figures and says which is better, and by how much.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewer.lab.power_loss_words import MEANINGS
from viewer.look.assets import tr, words
from viewer.look.formats import number, short_ms, size
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, gutter, text_column

if TYPE_CHECKING:
    from engine.lab.power_loss_report import PowerLossReport
    from engine.lab.samples import LoadCounts, PositionSample

MAX_FLUSHES = 20_000
ALIKE_RATIO = 1.1
"""Figures that differ by less than a tenth count as equal."""


@dataclass(slots=True)
class Side:
    """Totals of one store since the load began."""

    name: str
    first_ms: int = 0
    last_ms: int = 0
    messages: int = 0
    bytes: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    median_ms: float = 0.0
    p99_ms: float = 0.0
    longest_ms: float = 0.0
    unflushed: int = 0
    max_unflushed: int = 0
    behind: int = 0
    max_behind: int = 0
    flush_bytes: int = 0
    waiters: int = 0
    flushes: list[float] = field(default_factory=list)
    lost: int | None = None
    lost_bytes: int = 0
    allowed: bool = True
    recovered_units: int = 0
    recovered_ms: float = 0.0

    def add(self, sample: PositionSample) -> None:
        """Add a sample of the store."""
        if not self.first_ms:
            self.first_ms = sample.at_ms
        self.last_ms = sample.at_ms
        positions = sample.positions
        self.unflushed, self.behind = positions.unflushed, positions.behind
        self.max_unflushed = max(self.max_unflushed, positions.unflushed)
        self.max_behind = max(self.max_behind, positions.behind)
        for mark in sample.flushes:
            self.flush_bytes += mark.bytes
            self.waiters += mark.waiters
            if len(self.flushes) < MAX_FLUSHES:
                insort(self.flushes, mark.took_ms)

    def count(self, counts: LoadCounts) -> None:
        """Set the load's results so far."""
        self.messages, self.bytes, self.statuses = counts.messages, counts.bytes, counts.statuses
        self.median_ms = counts.latency.quantile(0.5) / 1e6
        self.p99_ms = counts.latency.quantile(0.99) / 1e6
        self.longest_ms = counts.latency.quantile(1.0) / 1e6

    def take_report(self, report: PowerLossReport) -> None:
        """Set what a power loss took and how long recovery was."""
        self.lost, self.allowed = report.loss.messages, report.loss.allowed
        self.recovered_ms = report.recovered_ms
        if report.state_after is not None:
            self.lost_bytes = max(0, report.state_before.end_offset - report.state_after.end_offset)
            self.recovered_units = report.state_after.units

    @property
    def seconds(self) -> float:
        """Observed duration of the load."""
        return max(0.0, (self.last_ms - self.first_ms) / 1000)

    @property
    def rate(self) -> float:
        """Average number of PUT_OK a second."""
        return self.statuses.get("PUT_OK", 0) / self.seconds if self.seconds >= 0.5 else 0.0

    @property
    def flush_ms(self) -> float:
        """Median duration of a flush."""
        return self.flushes[len(self.flushes) // 2] if self.flushes else 0.0


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure of both sides; ``mark`` and ``verdict`` say which is better."""

    what: str
    text_a: str
    text_b: str
    mark: str = ""
    verdict: str = ""


def rows(side_a: Side, side_b: Side) -> list[FigureRow]:
    """Return every figure, those of the load first."""
    figures = [
        _row(tr("answered a second"), side_a.rate, side_b.rate, lambda value: f"{value:,.0f} /s", more_is_better=True)
    ]
    for status in sorted({*side_a.statuses, *side_b.statuses}, key=lambda name: (name != "PUT_OK", name)):
        count_a, count_b = side_a.statuses.get(status, 0), side_b.statuses.get(status, 0)
        remark = (
            ""
            if status == "PUT_OK" or count_a == count_b
            else tr("{side} has more of them", side="AB"[count_b > count_a])
        )
        if remark and status in MEANINGS:
            remark += f" · {tr(MEANINGS[status])}"
        figures.append(FigureRow(status, number(count_a), number(count_b), "warn" if remark else "", remark))
    figures += [
        _row(tr("median of a put"), side_a.median_ms, side_b.median_ms, _ms),
        _row(tr("p99 of a put"), side_a.p99_ms, side_b.p99_ms, _ms),
        _row(tr("longest put, at most"), side_a.longest_ms, side_b.longest_ms, _ms),
        _row(
            tr("flushes"),
            float(len(side_a.flushes)),
            float(len(side_b.flushes)),
            lambda value: f"{value:,.0f}",
            no_verdict=True,
        ),
        _row(tr("a flush takes"), side_a.flush_ms, side_b.flush_ms, _ms),
        _row(tr("not flushed, now"), float(side_a.unflushed), float(side_b.unflushed), size),
        _row(tr("not flushed, at most"), float(side_a.max_unflushed), float(side_b.max_unflushed), size),
        _row(tr("dispatch behind, at most"), float(side_a.max_behind), float(side_b.max_behind), size),
    ]
    if side_a.lost is not None or side_b.lost is not None:
        figures += _losses(side_a, side_b)
    return figures


def _losses(side_a: Side, side_b: Side) -> list[FigureRow]:
    lost_texts = [number(side.lost) if side.lost is not None else tr("power not cut") for side in (side_a, side_b)]
    lost_a, lost_b = side_a.lost or 0, side_b.lost or 0
    if lost_a == lost_b:
        mark, verdict = (
            ("ok", tr("nothing that was answered is lost")) if not lost_a else ("warn", tr("both lose as many"))
        )
    else:
        mark, verdict = "warn", tr("{side} loses more of what was answered PUT_OK", side="AB"[lost_b > lost_a])
    if not (side_a.allowed and side_b.allowed):
        mark, verdict = "error", tr("acknowledged messages are lost: this must not happen")
    return [
        FigureRow(tr("lost at the power cut"), lost_texts[0], lost_texts[1], mark, verdict),
        FigureRow(tr("bytes gone"), size(side_a.lost_bytes), size(side_b.lost_bytes)),
        FigureRow(tr("messages after recovery"), number(side_a.recovered_units), number(side_b.recovered_units)),
        _row(tr("recovery took"), side_a.recovered_ms, side_b.recovered_ms, _ms),
    ]


def summary(side_a: Side, side_b: Side) -> str:
    """Summarize the main figures in a line: rate, late puts, losses; empty while nothing differs."""
    figure_names = (tr("answered a second"), tr("p99 of a put"), tr("lost at the power cut"))
    verdicts = {row.what: row.verdict for row in rows(side_a, side_b)}
    return " · ".join(f"{figure}: {verdicts[figure]}" for figure in figure_names if verdicts.get(figure))


def markdown(side_a: Side, side_b: Side, configurations: Sequence[str], load: str) -> str:
    """Return the comparison as Markdown: both configurations, the load, and every figure."""
    lines = [
        f"- **{side.name}**: {_cell(configuration)}"
        for side, configuration in zip((side_a, side_b), configurations, strict=True)
    ]
    lines += [f"- {tr('Load')}: {_cell(load)}", ""] if load else [""]
    lines += [f"| {tr('Figure')} | A | B | {tr('Verdict')} |", "|---|---:|---:|---|"]
    lines += [
        f"| {_cell(row.what)} | {row.text_a} | {row.text_b} | {_cell(row.verdict)} |" for row in rows(side_a, side_b)
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _ms(value: float) -> str:
    return short_ms(value) if value else "–"


def _row(
    figure: str,
    value_a: float,
    value_b: float,
    format_value: object,
    *,
    more_is_better: bool = False,
    no_verdict: bool = False,
) -> FigureRow:
    assert callable(format_value)
    mark = verdict = ""
    smaller, larger = sorted((value_a, value_b))
    if not no_verdict and larger > 0 and not (more_is_better and smaller <= 0):
        if smaller and larger / smaller < ALIKE_RATIO:
            verdict = tr("alike")
        else:
            better = "AB"[(value_b > value_a) == more_is_better]
            factor = f"{larger / smaller:,.1f} ×" if smaller else ""
            mark = "ok"
            verdict = tr("{side} is better {times}", side=better, times=factor).strip()
    return FigureRow(figure, format_value(value_a), format_value(value_b), mark, verdict)


def comparison_kind() -> RecordKind:
    """Return the table of both sides."""
    return RecordKind(
        "twoWays",
        (
            gutter(12),
            Column("what", words("Figure"), 190, lambda row: row.what, lambda row: row.what),
            Column("one", "A", 150, lambda row: row.text_a, lambda row: row.text_a, right=True, mono=True),
            Column("two", "B", 150, lambda row: row.text_b, lambda row: row.text_b, right=True, mono=True),
            chip_column("mark", "", 28, lambda row: Chip(row.mark) if row.mark else None),
            text_column("verdict", words("Verdict"), 360),
        ),
        verdict=lambda row: row.verdict,
        record=lambda row: {"what": row.what, "a": row.text_a, "b": row.text_b, "verdict": row.verdict},
    )
