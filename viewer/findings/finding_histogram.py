"""Findings over store time: the strip of the time histogram with bars by severity.

A finding has no time of its own. It gets that of the bar of the log that holds its place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from PySide6.QtGui import QColor

from engine.rules.findings import SEVERITIES, Finding
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, moment
from viewer.look.theme import C
from viewer.pane.finding_facts import log_offset
from viewer.pane.finding_rows import COUNTS
from viewer.pane.histogram_model import Bar, HistogramModel
from viewer.pane.time_histogram import TimeHistogram
from viewer.runtime.histogram_work import HistogramData, Range

HEIGHT = 66
WORST_FIRST = tuple(reversed(SEVERITIES))
ROLES = {"error": "error", "warn": "warn", "note": "note", "chat": "text3"}


class FindingHistogramModel(HistogramModel):
    """A histogram whose topics are severities. ``take`` gets the bars of the log, which give the findings a time."""

    log: HistogramData = HistogramData()
    findings: Sequence[Finding] = ()
    without_time = 0
    """Findings without a place in the log."""

    def clear(self, words: str = "") -> None:
        """Forget the log; the findings stay."""
        self.log = HistogramData()
        super().clear(words)

    def take(self, data: HistogramData) -> None:
        """Take the bars of the log. The whole time stays shown while the log grows."""
        was_whole = not self.is_zoomed
        self.log = data
        super().take(self._count())
        if was_whole:
            self.show_all()

    def set_findings(self, findings: Sequence[Finding]) -> None:
        """Set the findings."""
        self.findings = findings
        super().take(self._count())

    def times(self, findings: Sequence[Finding]) -> list[tuple[int, int] | None]:
        """Return for each finding the [begin, end) ms of the bar of the log that holds its place; None without one."""
        log = self.log
        order = sorted(range(len(log.starts)), key=lambda place: log.first[place])
        firsts = [log.first[place] for place in order]
        times: list[tuple[int, int] | None] = []
        for finding in findings:
            offset = log_offset(finding)
            if offset is None or not order:
                times.append(None)
            else:  # in front of the first message: the time of that message
                start = log.starts[order[max(bisect_right(firsts, offset) - 1, 0)]]
                times.append((start, start + log.width))
        return times

    def _count(self) -> HistogramData:
        by_start: dict[int, dict[str, int]] = {}
        first: dict[int, int] = {}
        self.without_time = 0
        for finding, time in zip(self.findings, self.times(self.findings), strict=True):
            if time is None:
                self.without_time += 1
                continue
            counts = by_start.setdefault(time[0], dict.fromkeys(WORST_FIRST, 0))
            counts[finding.severity] += 1
            offset = log_offset(finding)
            assert offset is not None
            first[time[0]] = min(first.get(time[0], offset), offset)
        starts = sorted(by_start)
        severities: list[str] = [name for name in WORST_FIRST if any(by_start[start][name] for start in starts)]
        numbers = [[by_start[start][name] for start in starts] for name in severities]
        offsets, none = [first[start] for start in starts], [-1] * len(starts)
        return HistogramData(self.log.width, starts, severities, numbers, numbers, offsets, offsets, none, none)

    @property
    def whole(self) -> tuple[int, int]:
        """The time of the log, so that the bars are where those of the log are."""
        starts = self.log.starts
        return (starts[0], starts[-1] + self.log.width) if starts else (0, 0)

    def missing_part(self) -> Range | None:
        """Return None: a finding has no closer time than its bar."""
        return None

    def bar_words(self, bar: Bar) -> str:
        """Describe a bar: its time, and its findings by severity."""
        counts = [tr_plural(*COUNTS[severity], n=count) for severity, count, _ in bar.parts]
        return "\n".join((f"{moment(bar.begin)} – {clock(bar.end)}", *counts))

    def head_words(self) -> str:
        """Say what the bars are."""
        return tr("Findings over time")

    def notes(self) -> list[str]:
        """Say how many findings the bars leave out."""
        if not self.without_time or not self.log.starts:
            return []
        return [
            tr_plural(
                "{n:,} finding has no place in the log",
                "{n:,} findings have no place in the log",
                n=self.without_time,
            )
        ]

    def summary(self) -> str:
        """Describe the picture for a screen reader."""
        bar = self.bar_at(self.framed) if self.framed is not None else None
        counts = [
            tr_plural(*COUNTS[severity], n=sum(numbers))
            for severity, numbers in zip(self.overview.topics, self.overview.messages, strict=True)
        ]
        parts = [self.bar_words(bar).replace("\n", ", ")] if bar is not None else []
        return ". ".join((*parts, ", ".join(counts) or self.words, *self.notes()))


class FindingHistogram(TimeHistogram):
    """Draws a :class:`FindingHistogramModel`."""

    first_words = words("Go to its first finding")
    filter_words = words("Only findings of this time")
    has_bytes = False

    def __init__(self, name: str) -> None:
        super().__init__(name, FindingHistogramModel(), HEIGHT)
        self.setAccessibleName(tr("Findings over time"))

    @property
    def finding_model(self) -> FindingHistogramModel:
        """The model, with the findings."""
        assert isinstance(self.model, FindingHistogramModel)
        return self.model

    def color_of(self, topic: str) -> QColor:
        """The colour of a severity."""
        return C(ROLES[topic])

    def name_of(self, topic: str) -> str:
        """The name of a severity."""
        return tr_plural(*COUNTS[topic], n=sum(self.model.overview.messages[self.model.overview.topics.index(topic)]))
