"""Two lab stores under the same load, compared figure by figure; no Qt.

Each side gathers what its samples tell; a row names both and says which way is better, and by how much.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewer.lab.words import MEANINGS
from viewer.look.assets import tr, words
from viewer.look.formats import number, short_ms, size
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, gutter, text_column

if TYPE_CHECKING:
    from engine.lab.plug import PlugReport
    from engine.lab.samples import LoadCounts, PositionSample

MOST_FLUSHES = 20_000
ALIKE = 1.1
"""Figures that differ by less than a tenth count as alike."""


@dataclass(slots=True)
class Side:
    """What one store did since the load began."""

    name: str
    begun_ms: int = 0
    last_ms: int = 0
    messages: int = 0
    bytes: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    median_ms: float = 0.0
    late_ms: float = 0.0
    longest_ms: float = 0.0
    unflushed: int = 0
    most_unflushed: int = 0
    behind: int = 0
    most_behind: int = 0
    flush_bytes: int = 0
    waiters: int = 0
    flushes: list[float] = field(default_factory=list)
    lost: int | None = None
    lost_bytes: int = 0
    allowed: bool = True
    kept: int = 0
    recovered_ms: float = 0.0

    def add(self, sample: PositionSample) -> None:
        """One more look at the store."""
        if not self.begun_ms:
            self.begun_ms = sample.at_ms
        self.last_ms = sample.at_ms
        found = sample.positions
        self.unflushed, self.behind = found.unflushed, found.behind
        self.most_unflushed = max(self.most_unflushed, found.unflushed)
        self.most_behind = max(self.most_behind, found.behind)
        for mark in sample.flushes:
            self.flush_bytes += mark.bytes
            self.waiters += mark.waiters
            if len(self.flushes) < MOST_FLUSHES:
                insort(self.flushes, mark.took_ms)

    def count(self, counts: LoadCounts) -> None:
        """What the load has done so far."""
        self.messages, self.bytes, self.statuses = counts.messages, counts.bytes, counts.statuses
        self.median_ms = counts.latency.quantile(0.5) / 1e6
        self.late_ms = counts.latency.quantile(0.99) / 1e6
        self.longest_ms = counts.latency.quantile(1.0) / 1e6

    def take_report(self, report: PlugReport) -> None:
        """What a pulled plug took, and how long recovery was."""
        self.lost, self.allowed = report.loss.messages, report.loss.allowed
        self.recovered_ms = report.recovered_ms
        if report.after is not None:
            self.lost_bytes = max(0, report.before.end_offset - report.after.end_offset)
            self.kept = report.after.units

    @property
    def seconds(self) -> float:
        """How long the load has been watched."""
        return max(0.0, (self.last_ms - self.begun_ms) / 1000)

    @property
    def rate(self) -> float:
        """Answered PUT_OK, a second, on average."""
        return self.statuses.get("PUT_OK", 0) / self.seconds if self.seconds >= 0.5 else 0.0

    @property
    def flush_ms(self) -> float:
        """How long the middle one of the flushes took."""
        return self.flushes[len(self.flushes) // 2] if self.flushes else 0.0


@dataclass(frozen=True, slots=True)
class TwoRow:
    """One figure of both sides; ``mark`` and ``verdict`` say which is better."""

    what: str
    one: str
    two: str
    mark: str = ""
    verdict: str = ""


def rows(one: Side, two: Side) -> list[TwoRow]:
    """Every figure, the load's first."""
    found = [_row(tr("answered a second"), one.rate, two.rate, lambda value: f"{value:,.0f} /s", more=True)]
    for status in sorted({*one.statuses, *two.statuses}, key=lambda name: (name != "PUT_OK", name)):
        a, b = one.statuses.get(status, 0), two.statuses.get(status, 0)
        worse = "" if status == "PUT_OK" or a == b else tr("{side} has more of them", side="AB"[b > a])
        if worse and status in MEANINGS:
            worse += f" · {tr(MEANINGS[status])}"
        found.append(TwoRow(status, number(a), number(b), "warn" if worse else "", worse))
    found += [
        _row(tr("median of a put"), one.median_ms, two.median_ms, _ms),
        _row(tr("p99 of a put"), one.late_ms, two.late_ms, _ms),
        _row(tr("longest put, at most"), one.longest_ms, two.longest_ms, _ms),
        _row(
            tr("flushes"), float(len(one.flushes)), float(len(two.flushes)), lambda value: f"{value:,.0f}", plain=True
        ),
        _row(tr("a flush takes"), one.flush_ms, two.flush_ms, _ms),
        _row(tr("not flushed, now"), float(one.unflushed), float(two.unflushed), size),
        _row(tr("not flushed, at most"), float(one.most_unflushed), float(two.most_unflushed), size),
        _row(tr("dispatch behind, at most"), float(one.most_behind), float(two.most_behind), size),
    ]
    if one.lost is not None or two.lost is not None:
        found += _losses(one, two)
    return found


def _losses(one: Side, two: Side) -> list[TwoRow]:
    lost = [number(side.lost) if side.lost is not None else tr("plug not pulled") for side in (one, two)]
    a, b = one.lost or 0, two.lost or 0
    if a == b:
        mark, said = ("ok", tr("nothing that was answered is lost")) if not a else ("warn", tr("both lose as many"))
    else:
        mark, said = "warn", tr("{side} loses more of what was answered PUT_OK", side="AB"[b > a])
    if not (one.allowed and two.allowed):
        mark, said = "error", tr("messages answered as safe are gone: that must not be")
    return [
        TwoRow(tr("lost at the pulled plug"), lost[0], lost[1], mark, said),
        TwoRow(tr("bytes gone"), size(one.lost_bytes), size(two.lost_bytes)),
        TwoRow(tr("messages after recovery"), number(one.kept), number(two.kept)),
        _row(tr("recovery took"), one.recovered_ms, two.recovered_ms, _ms),
    ]


def summary(one: Side, two: Side) -> str:
    """What matters most, in a line: rate, late puts, losses; empty while nothing differs."""
    wanted = (tr("answered a second"), tr("p99 of a put"), tr("lost at the pulled plug"))
    found = {row.what: row.verdict for row in rows(one, two)}
    return " · ".join(f"{what}: {found[what]}" for what in wanted if found.get(what))


def markdown(one: Side, two: Side, ways: Sequence[str], load: str) -> str:
    """The comparison for a text: how each store was made, the load, and every figure."""
    found = [f"- **{side.name}**: {_cell(way)}" for side, way in zip((one, two), ways, strict=True)]
    found += [f"- {tr('Load')}: {_cell(load)}", ""] if load else [""]
    found += [f"| {tr('Figure')} | A | B | {tr('Verdict')} |", "|---|---:|---:|---|"]
    found += [f"| {_cell(row.what)} | {row.one} | {row.two} | {_cell(row.verdict)} |" for row in rows(one, two)]
    return "\n".join(found) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _ms(value: float) -> str:
    return short_ms(value) if value else "–"


def _row(what: str, a: float, b: float, say: object, *, more: bool = False, plain: bool = False) -> TwoRow:
    assert callable(say)
    mark = said = ""
    low, high = sorted((a, b))
    if not plain and high > 0 and not (more and low <= 0):
        if low and high / low < ALIKE:
            said = tr("alike")
        else:
            better = "AB"[(b > a) == more]
            times = f"{high / low:,.1f} ×" if low else ""
            mark = "ok"
            said = tr("{side} is better {times}", side=better, times=times).strip()
    return TwoRow(what, say(a), say(b), mark, said)


def two_kind() -> RecordKind:
    """The table of both ways."""
    return RecordKind(
        "twoWays",
        (
            gutter(12),
            Column("what", words("Figure"), 190, lambda row: row.what, lambda row: row.what),
            Column("one", "A", 150, lambda row: row.one, lambda row: row.one, right=True, mono=True),
            Column("two", "B", 150, lambda row: row.two, lambda row: row.two, right=True, mono=True),
            chip_column("mark", "", 28, lambda row: Chip(row.mark) if row.mark else None),
            text_column("verdict", words("Verdict"), 360),
        ),
        verdict=lambda row: row.verdict,
        record=lambda row: {"what": row.what, "a": row.one, "b": row.two, "verdict": row.verdict},
    )
