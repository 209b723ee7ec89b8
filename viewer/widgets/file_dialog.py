"""Qt's own dialog for files in the colours of the theme: its style draws black arrows, and its choices have none."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QComboBox, QFileDialog, QToolButton, QWidget

from viewer.look.theme import C
from viewer.widgets.choices import draw_chevron

_ARROWS = {"backButton", "forwardButton", "toParentButton"}
"""Qt's names of the buttons with black icons; those of the others have colours of their own."""


def theme_file_dialog(dialog: QFileDialog) -> None:
    """Draw the arrows of the dialog's buttons in the theme's colours, and an arrow in each of its choices.

    Does nothing for a dialog of the system, which has no such parts.
    """
    for button in dialog.findChildren(QToolButton):
        if button.objectName() in _ARROWS:
            button.setIcon(_in_theme(button))
    for choice in dialog.findChildren(QComboBox):
        if not choice.findChildren(_Chevron):
            _Chevron(choice)


def _in_theme(button: QToolButton) -> QIcon:
    picture = button.icon().pixmap(button.iconSize(), button.devicePixelRatioF(), QIcon.Mode.Normal)
    icon = QIcon(_filled(picture, "text2"))
    icon.addPixmap(_filled(picture, "disabled"), QIcon.Mode.Disabled)
    return icon


def _filled(picture: QPixmap, role: str) -> QPixmap:
    """Return the shape of ``picture`` in the colour of ``role``."""
    shape = QPixmap(picture)
    painter = QPainter(shape)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(shape.rect(), C(role))
    painter.end()
    return shape


class _Chevron(QWidget):
    """The arrow of a choice that paints none, over its right edge. It lets every click through."""

    def __init__(self, choice: QComboBox) -> None:
        super().__init__(choice)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setGeometry(choice.rect())
        choice.installEventFilter(self)
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the choice."""
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        return False

    def paintEvent(self, _event: object) -> None:
        draw_chevron(self)
