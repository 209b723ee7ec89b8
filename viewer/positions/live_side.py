"""Beside the live plots: what would be lost now, the values at the cursor, and the marks as a list."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from engine.files.atomic_file import write_atomically
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, moment, size, span
from viewer.look.theme import px
from viewer.runtime.live_history import LiveHistory, Mark
from viewer.runtime.position_reading import KEYS, PositionReading, gaps_of
from viewer.runtime.store_session import in_store
from viewer.widgets.basics import Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column
from viewer.widgets.columns import Chip, Column, RecordKind
from viewer.widgets.facts import Fact, Facts
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from viewer.pane import Pane
    from viewer.positions.live import LivePositions
    from viewer.runtime.live_history import Floats, LiveHistory
    from viewer.runtime.peak_series import PeakSeries


MAX_SHOWN = 200
TEXT_INTERVAL_S = 0.25
"""Seconds between two changes of the words while everything moves."""


def mark_kind() -> RecordKind:
    """The list of marks."""
    columns = (
        Column(
            "at",
            words("Time"),
            92,
            lambda mark: clock(mark.time_ms)[:10],
            lambda mark: mark.time_ms,
            mono=True,
            filterable=False,
            tip=lambda mark: moment(mark.time_ms),
        ),
        Column(
            "shape",
            "",
            24,
            lambda _: "",
            lambda mark: mark.shape,
            paint="chip",
            filterable=False,
            chip=lambda mark: Chip(mark.shape),
        ),
        Column("name", words("Mark"), 116, lambda mark: mark.words()[0], lambda mark: mark.name, filterable=False),
        Column(
            "what",
            words("What"),
            130,
            lambda mark: mark.words()[1],
            lambda mark: mark.words()[1],
            filterable=False,
            tone=lambda _: "text2",
        ),
    )
    return RecordKind("mark", columns, verdict=lambda mark: " ".join(mark.words()), record=_mark_record)


def _mark_record(mark: Mark) -> dict[str, object]:
    name, details = mark.words()
    return {"at": mark.time_ms, "mark": name, "what": details}


class LiveSide(QWidget):
    """Losses, cursor, marks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.losses = Facts(92, notes_below=False)
        self.losses.setAccessibleName(tr("What would be lost now"))
        self.died = Label(tr("If the process died now"), 13, "text", 600)
        self.power = Label(tr("If the power failed now"), 13, "text", 600)
        self.power_facts = Facts(92)
        self.recovery = Label("", 12, "text2", wrap=True, select=True)
        self.recovery.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.recovery.setObjectName("positions.losses")
        self.there_head = PaneHead(tr("At the cursor"))
        self.there = Facts(92)
        self.marks_head = PaneHead(tr("Marks"))
        self.marks = RecordView("positions.marks", mark_kind())
        self.marks.setAccessibleName(tr("Marks"))
        self.marks.setFixedHeight(px(26 + 24 * 7 + 8))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        side = ThemedPanel()
        inner = QVBoxLayout(side)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(0)
        for part in (
            column(self.died, self.losses, self.power, self.power_facts, self.recovery, gap=5, margins=(14, 8, 14, 10)),
            Hairline(),
            self.there_head,
            column(self.there, margins=(14, 8, 14, 10)),
            Hairline(),
            self.marks_head,
            self.marks,
            self.marks.strip,
            Hairline(),
        ):
            inner.addWidget(part)
        box.addWidget(side)
        self._listed: tuple[int, int] = (-1, 0)
        self._said = 0.0

    def show_reading(self, reading: PositionReading, live: LivePositions) -> None:
        """Describe ``reading`` and the values at the cursor, at most a few times a second."""
        now = time.monotonic()
        if live.at_end and live.cursor is None and now - self._said < TEXT_INTERVAL_S:
            return
        self._said = now
        history = live.shown
        died, failed, recovery_text = losses(reading, history)
        self.losses.show_facts(died)
        self.power_facts.show_facts(failed)
        self.recovery.setText(recovery_text)
        shown_reading = reading if live.cursor is None else history.reading_at(round(live.cursor * 1000)) or reading
        self.there_head.set_note(clock(shown_reading.time_ms)[:10])
        self.there.show_facts(list(cursor_facts(shown_reading, history)))
        self._show_marks(history)

    def _show_marks(self, history: LiveHistory) -> None:
        marks = history.marks
        state = (marks[-1].number if marks else 0, len(marks))
        if state == self._listed and self.marks.total_rows():
            return
        last_listed, self._listed = self._listed[0], state
        listed = list(marks)[-MAX_SHOWN:][::-1]
        self.marks.set_rows(listed)
        self.marks.set_state(None if listed else State("hint", tr("Nothing has happened yet.")))
        for number, mark in enumerate(listed[:8]):
            if mark.number > last_listed >= 0:
                self.marks.glow.add(number)
        minute = sum(1 for mark in marks if mark.time_ms > (history.span[1] - 60_000))
        self.marks_head.set_note(tr("{n:,} in this minute", n=minute))


def losses(reading: PositionReading, history: LiveHistory) -> tuple[list[Fact], list[Fact], str]:
    """Return what the end of the process, and a power loss, would take; and where recovery would begin."""
    gaps, each = gaps_of(reading), history.unit_size()
    if not reading.lab:
        died = [Fact(tr("in the pool"), tr("unknown"), tr("no file shows a transient pool"), code=False)]
        if not reading.live:
            died = [Fact(tr("in the pool"), size(0), tr("no process has the store open"), "ok")]
        if gaps.flush is None:
            failed = [Fact(tr("not flushed"), tr("unknown"), tr("no file shows what has reached the disk"), code=False)]
        else:
            failed = [
                Fact(tr("at most"), size(gaps.flush), _messages(gaps.flush, each), "warn" if gaps.flush else "ok")
            ]
        point = reading.position("checkpoint")
        recovery_text = (
            tr(
                "Files do not show what has reached the disk; the checkpoint confirms everything up to {time}.",
                time=clock(point.timestamp)[:8],
            )
            if point.timestamp
            else tr("Files do not show what has reached the disk, and there is no checkpoint that confirms any of it.")
        )
        return died, failed, recovery_text
    pool = gaps.commit or 0
    lost = pool + (gaps.flush or 0)
    died = [Fact(tr("in the pool"), size(pool), _messages(pool, each), "error" if pool else "ok")]
    failed = [Fact(tr("not flushed"), size(lost), _messages(lost, each), "error" if lost else "ok")]
    return died, failed, _recovery_words(reading)


def _messages(lost: int, each: float | None) -> str:
    if not lost:
        return tr("nothing lost")
    return (
        tr_plural("about {n:,} message lost", "about {n:,} messages lost", n=max(1, round(lost / each))) if each else ""
    )


def _recovery_words(reading: PositionReading) -> str:
    point = reading.position("checkpoint")
    start = next(
        (name for start_offset, end_offset, name in reading.files if start_offset <= (point.offset or 0) < end_offset),
        "",
    )
    if not start or not point.timestamp:
        return tr("Recovery would read the log from its first file on: no checkpoint confirms any of it.")
    start_offset = next(start_offset for start_offset, _, name in reading.files if name == start)
    return tr(
        "Recovery would start in {file}, at {time} − 3 s, and read up to {size}.",
        file=start,
        time=clock(point.timestamp)[:8],
        size=size((reading.offset("wrote") or 0) - start_offset),
    )


def cursor_facts(reading: PositionReading, history: LiveHistory) -> Iterator[Fact]:
    """Values of one moment: wrote, the gaps, the last flush before it."""
    base = history.base or 0
    speed = history.rate("wrote", reading)
    note = "" if speed is None else f"+{size(max(0, speed))}/s"
    yield Fact(tr("wrote"), size((reading.offset("wrote") or 0) - base), note)
    gaps = gaps_of(reading)
    for name, value in (
        (tr("to commit"), gaps.commit),
        (tr("to flush"), gaps.flush),
        (tr("to dispatch"), gaps.dispatch),
    ):
        if value is None:
            yield Fact(name, tr("unknown"), code=False)
        else:
            yield Fact(name, size(value))
    flush_ms, group = history.flush_ms.at(reading.time_ms / 1000), history.flush_bytes.at(reading.time_ms / 1000)
    if flush_ms is not None and group is not None:
        times = history.flush_ms.times
        number = max(0, int(times.searchsorted(reading.time_ms / 1000, "right")) - 1)
        time_before = span(reading.time_ms - round(float(times[number]) * 1000))
        yield Fact(
            tr("last flush"), f"{flush_ms:,.1f} ms", tr("{size}, {span} before", size=size(group), span=time_before)
        )
    rate = history.put_rate.at(reading.time_ms / 1000)
    if rate is not None:
        name = tr("put") if reading.lab else tr("dispatched")
        yield Fact(name, tr("{n:,.0f} messages/s", n=rate), code=False)


# ---- commands --------------------------------------------------------------------------------------------------------


def live_commands(pane: Pane, live: LivePositions, fit: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """Return the commands of the live positions in ``pane``; ``fit()`` shows all that ruler and plots have."""
    return {
        "live.pause": live.pause,
        "live.fit": fit,
        "live.now": live.go_live,
        "live.play": live.play,
        "live.record": live.record,
        "live.load": live.ask_recording,
        "live.export": lambda: ask_samples(pane, live),
    }


def ask_samples(pane: Pane, live: LivePositions) -> None:
    """Ask for a file and write every sample that is held to it."""
    dialog = QFileDialog(pane, tr("Export the samples"), str(Path.home() / "positions.csv"))
    dialog.setObjectName("positions.exportDialog")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setNameFilters([tr("CSV (*.csv)"), tr("JSON lines (*.jsonl)")])
    dialog.fileSelected.connect(lambda path: export_samples(pane, live, Path(path)))
    dialog.open()


def export_samples(pane: Pane, live: LivePositions, path: Path) -> None:
    """Write the samples as CSV, or as JSON lines where the name ends so; off the loop, never into the store."""
    session, history = pane.session, live.shown
    if session is None or in_store(session.path, path):
        pane.statusMessage.emit(tr("A recording cannot be written into the open store."))
        return
    samples = copy_of(history)

    def done(count: int) -> None:
        pane.statusMessage.emit(
            tr_plural("{n:,} sample written to {path}", "{n:,} samples written to {path}", n=count, path=str(path))
        )

    session.jobs.read(lambda: write_samples(path, samples), done, lambda error: pane.statusMessage.emit(str(error)))


def write_samples(path: Path, samples: HistoryCopy) -> int:
    """Each reading as a record of :data:`viewer.positions.live_side.FIELDS`; gives their number."""
    text, count = io.StringIO(), 0
    lines = path.suffix.lower() in (".jsonl", ".json")
    writer = csv.DictWriter(text, FIELDS)
    if not lines:
        writer.writeheader()
    for count, record in enumerate(sample_records(samples), 1):  # noqa: B007 (the number of the last one)
        if lines:
            text.write(json.dumps(record) + "\n")
        else:
            writer.writerow(record)
    write_atomically(path, text.getvalue())
    return count


GAP_FIELDS = (("commit", "to_commit"), ("flush", "to_flush"), ("dispatch", "to_dispatch"))
FIELDS = (
    "at",
    "messages",
    *KEYS,
    *(name for _, name in GAP_FIELDS),
    "write_rate",
    "put_rate",
    "flushes",
    "flush_bytes",
    "flush_ms",
)
"""``at`` is ms since 1970; positions, gaps and ``flush_bytes`` are bytes, ``write_rate`` bytes and ``put_rate``
messages a second; ``flush_ms`` is the longest of the flushes since the reading before. None (empty) is not known.
"""


@dataclass(frozen=True, slots=True)
class HistoryCopy:
    """Copies of all that is needed: rows of integers, and series as (times in s, values)."""

    rows: npt.NDArray[np.int64]
    unknown: int
    series: dict[str, tuple[Floats, Floats]]
    flush_ms: tuple[Floats, Floats]
    flush_bytes: tuple[Floats, Floats]


def copy_of(history: LiveHistory) -> HistoryCopy:
    """Return the present content of ``history``."""
    series = {name: _copy(history.gaps[key]) for key, name in GAP_FIELDS}
    series |= {"write_rate": _copy(history.write_rate), "put_rate": _copy(history.put_rate)}
    rows, unknown = history.held_rows()
    return HistoryCopy(rows, unknown, series, _copy(history.flush_ms), _copy(history.flush_bytes))


def _copy(series: PeakSeries) -> tuple[Floats, Floats]:
    return series.times.copy(), series.values.copy()


def sample_records(samples: HistoryCopy) -> Iterator[dict[str, int | float | None]]:
    """A record of :data:`FIELDS` for each reading, oldest first."""
    seconds = samples.rows[:, 0] / 1000
    values = {name: _at(times, series_values, seconds) for name, (times, series_values) in samples.series.items()}
    edges = np.searchsorted(samples.flush_ms[0], seconds, "right")
    previous_edge = 0
    for number, row in enumerate(samples.rows.tolist()):
        record: dict[str, int | float | None] = {
            name: None if value == samples.unknown else value
            for name, value in zip(FIELDS[: len(row)], row, strict=True)
        }
        for name, series_values in values.items():
            value = float(series_values[number])
            record[name] = None if np.isnan(value) else round(value, 1) if name.endswith("rate") else int(value)
        edge = int(edges[number])
        record["flushes"] = edge - previous_edge
        record["flush_bytes"] = int(samples.flush_bytes[1][previous_edge:edge].sum())
        record["flush_ms"] = (
            round(float(samples.flush_ms[1][previous_edge:edge].max()), 3) if edge > previous_edge else None
        )
        previous_edge = edge
        yield record


def _at(times: Floats, values: Floats, sample_times: Floats) -> Floats:
    """Return the values at the ``sample_times``; NaN before the first."""
    if not len(times):
        return np.full(len(sample_times), np.nan)
    numbers = np.searchsorted(times, sample_times, "right") - 1
    result: Floats = np.where(numbers < 0, np.nan, values[np.maximum(numbers, 0)])
    return result
