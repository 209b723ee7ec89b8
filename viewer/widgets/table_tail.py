"""The end of a table whose source grows: it stays in view until the user scrolls up or takes a row; new rows glow."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent

from viewer.widgets.record_view import RecordView

UPWARDS = (Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home)
DOWNWARDS = (Qt.Key.Key_Down, Qt.Key.Key_PageDown, Qt.Key.Key_End)


def at_end_of(view: RecordView) -> bool:
    """Whether the last row that the table holds, and that of its source, is on the screen."""
    rows, source = view.table.rows, view.source
    if not rows:
        return True
    seen = view.verticalScrollBar().value() + view.visible_rows() >= len(rows)
    return seen and source.behind(rows[-1]) >= source.start


def shows_last_row(view: RecordView) -> bool:
    """Whether the newest row of the source is on the screen."""
    rows = view.table.rows
    return at_end_of(view) and (not rows or view.source.behind(rows[-1]) >= view.source.end)


class TableTail(QObject):
    """Keeps the end of one table in view. ``following()`` says whether the user wants that; where the user scrolls up
    or takes a row, ``left()`` is called once; where the user scrolls down to the end again, ``reached()``.
    """

    def __init__(
        self,
        view: RecordView,
        following: Callable[[], bool],
        left: Callable[[], None],
        reached: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(view)
        self._view, self._following, self._left, self._reached = view, following, left, reached
        self._end: int | None = None
        self._glowing = False
        self.flooded = False
        """Whether most of what is on the screen is newer than the last look."""
        view.filled.connect(self._filled)
        view.bar.placed.connect(lambda _position: self._placed())
        view.bar.stepped.connect(lambda _kind, sign: self._moved() if sign < 0 else self._went_down())
        view.installEventFilter(self)
        view.viewport().installEventFilter(self)

    def forget(self) -> None:
        """Other rows are shown."""
        self._end = None

    def take(self, *, reread: bool = True) -> None:
        """The source has grown: show what is new where its end is looked at; without ``reread`` somebody does that."""
        view = self._view
        source = view.source
        self._end = source.end if self._end is None else self._end
        if self._following():
            self._glowing = True
            view.tail(alone=self.flooded)
        elif at_end_of(view):
            self._glowing = True
            if reread:
                view.reload()
        else:
            view.show_extent()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """The hand goes up or down, by the wheel or by a key, or takes a row, which the next ones would push away."""
        if (isinstance(event, QWheelEvent) and event.angleDelta().y() > 0) or (
            isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in UPWARDS
        ):
            self._moved()
        elif (isinstance(event, QWheelEvent) and event.angleDelta().y() < 0) or (
            isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and event.key() in DOWNWARDS
        ):
            self._went_down()
        elif (
            isinstance(event, QMouseEvent)
            and event.type() == QEvent.Type.MouseButtonPress
            and self._following()
            and self._view.indexAt(event.position().toPoint()).isValid()
        ):
            self._left()
        return False

    def _placed(self) -> None:
        self._moved()
        self._went_down()

    def _went_down(self) -> None:
        """The hand goes down: once that is done, the end may be in sight again."""
        if not self._following():
            QTimer.singleShot(0, self, lambda: self._reached() if shows_last_row(self._view) else None)

    def _moved(self) -> None:
        """A hand that goes up where there is something above leaves the end."""
        if self._following() and len(self._view.table.rows) > self._view.visible_rows():
            self._left()

    def _filled(self) -> None:
        """New rows are there: they glow. While following the last one is in sight, and a chosen row that the table
        does not hold any more is let go: detail and bytes would tell of what nobody can find there.
        """
        view = self._view
        if self._following():
            bar = view.verticalScrollBar()
            if bar.value() < bar.maximum():
                view.scrollToBottom()
            view.let_lost_choice_go()
        if not self._glowing:
            return
        self._glowing = False
        source, before = view.source, self._end
        rows = view.table.rows
        if rows:
            self._end = max(before or 0, min(source.behind(rows[-1]), source.end))
        if before is None:
            return
        new = [position for row in rows if before <= (position := source.position(row)) < source.end]
        self.flooded = len(new) > view.visible_rows() // 2
        if not self.flooded:
            for position in new:
                view.glow.add(position)
