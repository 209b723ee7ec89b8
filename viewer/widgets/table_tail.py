"""Keep the end of a growing table in view until the user scrolls up or chooses a row. New rows glow."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent

from viewer.widgets.record_view import RecordView

UPWARDS = (Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home)
DOWNWARDS = (Qt.Key.Key_Down, Qt.Key.Key_PageDown, Qt.Key.Key_End)


def at_end_of(view: RecordView) -> bool:
    """Return whether the last row that the table holds is on the screen, and still belongs to its source."""
    rows, source = view.table.rows, view.source
    if not rows:
        return True
    on_screen = view.verticalScrollBar().value() + view.visible_rows() >= len(rows)
    return on_screen and source.behind(rows[-1]) >= source.start


def shows_last_row(view: RecordView) -> bool:
    """Return whether the newest row of the source is on the screen."""
    rows = view.table.rows
    return at_end_of(view) and (not rows or view.source.behind(rows[-1]) >= view.source.end)


class TableTail(QObject):
    """Keeps the end of one table in view. ``following()`` returns whether the user wants that. ``on_left()`` is
    called once when the user scrolls up or chooses a row, ``on_reached()`` when the user scrolls to the end
    again.
    """

    def __init__(
        self,
        view: RecordView,
        following: Callable[[], bool],
        on_left: Callable[[], None],
        on_reached: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(view)
        self._view, self._following, self._left, self._reached = view, following, on_left, on_reached
        self._end: int | None = None
        self._glowing = False
        self.flooded = False
        """Most rows on the screen are newer than the last look."""
        view.filled.connect(self._filled)
        view.bar.positionChosen.connect(lambda _position: self._placed())
        view.bar.stepped.connect(lambda _kind, sign: self._moved() if sign < 0 else self._went_down())
        view.installEventFilter(self)
        view.viewport().installEventFilter(self)

    def forget(self) -> None:
        """Forget the old end, because other rows are shown."""
        self._end = None

    def take(self, *, reread: bool = True) -> None:
        """Show new rows after the source has grown, if its end is on the screen. Without ``reread`` the caller reads
        them.
        """
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
        """Stop following when the user scrolls up or chooses a row, which new rows would push away."""
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
        """Check after the scroll whether the end is on the screen again."""
        if not self._following():
            QTimer.singleShot(0, self, lambda: self._reached() if shows_last_row(self._view) else None)

    def _moved(self) -> None:
        """Stop following if there are rows above the screen."""
        if self._following() and len(self._view.table.rows) > self._view.visible_rows():
            self._left()

    def _filled(self) -> None:
        """Let new rows glow. While following, keep the last row in view and clear the choice of a row that is no
        longer held: the details would describe a row that is gone.
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
        source, previous_end = view.source, self._end
        rows = view.table.rows
        if rows:
            self._end = max(previous_end or 0, min(source.behind(rows[-1]), source.end))
        if previous_end is None:
            return
        new_positions = [position for row in rows if previous_end <= (position := source.position(row)) < source.end]
        self.flooded = len(new_positions) > view.visible_rows() // 2
        if not self.flooded:
            for position in new_positions:
                view.glow.add(position)
