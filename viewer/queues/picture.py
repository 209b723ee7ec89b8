"""Picture of one queue: a line with the groups' positions, and cells for the entries around the selected one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.formats import number
from viewer.queues.entry_cells import EntryCells
from viewer.queues.facts import QueueFacts, QueueKey, units_of, verdicts_of
from viewer.queues.queue_line import QueueFlag, QueueLine, QueueSpan, choose_flags
from viewer.queues.rows import QueueRow, QueueSource
from viewer.queues.side import group_role
from viewer.queues.verdict_work import Verdicts
from viewer.runtime.places import Place
from viewer.runtime.store_session import StoreSession
from viewer.widgets.drawn_marks import Unit

MAX_FLAGS = 5
MAX_PINS = 200
MAX_KNOWN_VERDICTS = 100_000
"""Maximum number of verdicts that are remembered for the cells of one queue."""


class QueuePicture(QWidget):
    """Line and cells of one queue.

    Emits ``entryChosen(queue offset)`` on a click, ``statusText(sentence)`` if the entries cannot be read.
    """

    entryChosen = Signal(object)
    statusText = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.line, self.cells = QueueLine(), EntryCells()
        self._session: StoreSession | None = None
        self._source: QueueSource | None = None
        self._facts: QueueFacts | None = None
        self._verdicts: dict[QueueKey, dict[int, str | None]] = {}
        self._units: dict[QueueKey, dict[int, Unit]] = {}
        self.line.entry_chosen.connect(self.entryChosen)
        self.cells.entry_chosen.connect(self.entryChosen)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(self.line)
        box.addWidget(self.cells)

    def set_source(self, session: StoreSession | None, source: QueueSource | None) -> None:
        """Show other queues, or none; drops everything about the old ones."""
        self._session, self._source, self._facts = session, source, None
        self._verdicts, self._units = {}, {}
        self.line.show_span(None)
        self.line.show_window(0, 0)
        self.cells.show_entries({}, (0, 0))
        self.cells.choose(None)

    def show_queue(self, facts: QueueFacts, counts: Verdicts | None) -> None:
        """Draw a queue with the problems found so far."""
        self._facts = facts
        groups = [
            QueueFlag(
                group.group,
                group.offset,
                group_role(group),
                tr("{n:,} behind", n=group.behind) if group.behind else "",
                group.group,
                Place("groups", name=group.group),
            )
            for group in facts.groups
        ]
        minimum = QueueFlag("min", facts.minimum, "posMin", number(facts.minimum))
        pins = tuple((offset, "error") for offset, _ in (counts.problems[:MAX_PINS] if counts else ()))
        flags = (minimum, *choose_flags(groups, MAX_FLAGS))
        end = max(facts.maximum, facts.raw_end)
        span = QueueSpan(facts.files, facts.minimum, end, flags, pins, facts.topic, facts.queue_id, facts.moved)
        self.line.show_span(span, facts.topic)
        marks: dict[int, tuple[str, str]] = {}
        for group in facts.groups:
            names = marks.get(group.offset)
            marks[group.offset] = (f"{names[0]} · {group.group}" if names else group.group, group_role(group))
        known_verdicts = self._verdicts.setdefault((facts.topic, facts.queue_id), {})
        units = self._units.setdefault((facts.topic, facts.queue_id), {})
        self.cells.show_entries(known_verdicts, (facts.first, end), marks, (facts.topic, facts.queue_id), units)

    def show_window(self, first_row: int, end_row: int) -> None:
        """Frame on the line the table rows [first_row, end_row). The position is an estimate where rows are batches:
        it takes all batches of the queue as equally long.
        """
        facts = self._facts
        part = self._source.part_of(facts.topic, facts.queue_id) if facts is not None and self._source else None
        if facts is None or part is None:
            return
        start, count = part
        offsets_per_row = (facts.raw_end - facts.first) / count if count else 1.0
        start_offset = facts.first + int(max(0, first_row - start) * offsets_per_row)
        end_offset = facts.first + int(min(max(0, end_row - start), count) * offsets_per_row)
        self.line.show_window(start_offset, max(start_offset + 1, end_offset))

    def choose(self, offset: int) -> None:
        """Frame an entry's cell, and read missing verdicts of the cells around it."""
        self.cells.choose(offset)
        facts, source, session = self._facts, self._source, self._session
        if facts is None or source is None or session is None:
            return
        key = (facts.topic, facts.queue_id)
        verdicts, units = self._verdicts[key], self._units[key]
        start_offset, end_offset = self.cells.drawn_offsets()
        end_offset = min(end_offset, facts.raw_end)
        if all(n in verdicts for n in range(start_offset, end_offset)):
            return

        def done(rows: list[QueueRow]) -> None:
            if source is self._source:
                if len(verdicts) > MAX_KNOWN_VERDICTS:
                    verdicts.clear()
                    units.clear()
                verdicts.update(verdicts_of(rows, key))
                units.update(units_of(rows, key))
                self.cells.update()

        session.jobs.read(
            _reader(source, key, start_offset, end_offset), done, lambda error: self.statusText.emit(str(error))
        )


def _reader(source: QueueSource, key: QueueKey, start_offset: int, end_offset: int) -> Callable[[], list[QueueRow]]:
    def work() -> list[QueueRow]:
        place = source.place_of(*key, start_offset)
        return source.read(place, 0, end_offset - start_offset).rows if place is not None else []

    return work
