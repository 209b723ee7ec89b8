"""A scroll bar over a 64-bit ruler.

Qt's scroll bars count in 32 bits. This one counts in shares of the whole, a hundred million of them, and
converts: its callers use 64-bit positions only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractSlider, QScrollBar, QWidget

STEPS = 100_000_000
MIN_HANDLE_SHARE = 0.02
_STEP_ACTIONS = {
    QAbstractSlider.SliderAction.SliderSingleStepAdd: ("line", 1),
    QAbstractSlider.SliderAction.SliderSingleStepSub: ("line", -1),
    QAbstractSlider.SliderAction.SliderPageStepAdd: ("page", 1),
    QAbstractSlider.SliderAction.SliderPageStepSub: ("page", -1),
    QAbstractSlider.SliderAction.SliderToMinimum: ("end", -1),
    QAbstractSlider.SliderAction.SliderToMaximum: ("end", 1),
}


class LongScrollBar(QScrollBar):
    """A vertical scroll bar from position ``start`` to ``end``.

    It emits ``positionChosen(position)`` when the user drags the handle, else ``stepped(kind, sign)``.

    ``kind`` is ``line``, ``page`` or ``end``. The owner moves and then calls :meth:`show_place`.
    """

    positionChosen = Signal(object)
    stepped = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self._start = 0
        self._room = 1
        self.setRange(0, STEPS)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.actionTriggered.connect(self._acted)

    def show_place(self, start: int, end: int, position: int, page: int, at_end: bool = False) -> None:
        """Show that the screen has ``page`` positions of the ruler ``start`` … ``end``, from ``position`` on; with
        ``at_end`` up to the very end.
        """
        self._start = start
        self._room = max(1, end - start - page)
        share = min(0.95, page / max(1, end - start))
        blocked = self.blockSignals(True)
        self.setPageStep(int(STEPS * max(MIN_HANDLE_SHARE, share / (1 - share))))
        self.setSingleStep(max(1, self.pageStep() // 20))
        if not self.isSliderDown():
            self.setValue(STEPS if at_end else max(0, min(STEPS, (position - start) * STEPS // self._room)))
        self.blockSignals(blocked)

    def place(self) -> int:
        """The position of the handle."""
        return self._start + self.sliderPosition() * self._room // STEPS

    def _acted(self, action: int) -> None:
        step = _STEP_ACTIONS.get(QAbstractSlider.SliderAction(action))
        if step is None:
            if QAbstractSlider.SliderAction(action) == QAbstractSlider.SliderAction.SliderMove:
                self.positionChosen.emit(self.place())
            return
        self.setSliderPosition(self.value())
        self.stepped.emit(*step)
