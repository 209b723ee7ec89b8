"""The bench of repairs as a panel of the window: the list of patches stays in sight beside every view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDockWidget, QWidget

from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.widgets.basics import Hairline

if TYPE_CHECKING:
    from viewer.findings.repair_box import RepairBox
    from viewer.shell.main_window import MainWindow

HEIGHT = 300
"""Px at 100 % that it has at first."""


class RepairDock(QDockWidget):
    """Holds the bench below the views."""

    ended = Signal()
    """The panel is closed."""

    def __init__(self, window: MainWindow, box: RepairBox) -> None:
        super().__init__(tr("What can be mended"), window)
        self.setObjectName("repair.dock")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAllowedAreas(Qt.DockWidgetArea.BottomDockWidgetArea)
        self.setTitleBarWidget(Hairline())  # the bench has heads of its own
        self.box: RepairBox | None = box
        box.finished.connect(self._on_finished)
        box.setWindowFlags(Qt.WindowType.Widget)
        box.set_docked(True)
        self.setWidget(box)
        window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, self)
        window.resizeDocks([self], [px(HEIGHT)], Qt.Orientation.Vertical)
        self.show()
        box.show()

    def release(self, owner: QWidget) -> RepairBox | None:
        """Give the bench back as a window of its own over ``owner``, and close the panel."""
        box, self.box = self.box, None
        if box is not None:
            box.finished.disconnect(self._on_finished)
            box.setParent(owner, Qt.WindowType.Dialog)
            box.set_docked(False)
            box.show()
        self.close()
        return box

    def _on_finished(self) -> None:
        self.box = None
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """End the bench with its panel."""
        box, self.box = self.box, None
        if box is not None:
            box.finished.disconnect(self._on_finished)
            box.reject()
        super().closeEvent(event)
        self.ended.emit()


class RepairPlace:
    """The place of the repair bench: a window of its own, or a panel."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._dock: RepairDock | None = None

    def put(self, box: RepairBox, owner: QWidget, *, is_docked: bool) -> None:
        """Put the bench into the panel of the window, or back into a window of its own over ``owner``."""
        self._window.settings.repair_docked = is_docked
        if is_docked and self._dock is None:
            self._dock = RepairDock(self._window, box)
            self._dock.ended.connect(self._forget)
        elif not is_docked and self._dock is not None:
            dock, self._dock = self._dock, None
            dock.ended.disconnect(self._forget)
            dock.release(owner)

    def close(self) -> None:
        """Close the panel, because all words are made again."""
        if self._dock is not None:
            self._dock.close()

    def _forget(self) -> None:
        self._dock = None
