"""Qt's own dialog for files: its arrows and choices in the theme's colours."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QImage
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QToolButton

from viewer.look.theme import C, theme
from viewer.widgets.file_dialog import theme_file_dialog


def _lightest(image: QImage) -> int:
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return max((pixel.lightness() for pixel in pixels if pixel.alpha() > 200), default=0)


def test_the_dialogs_arrows_are_visible_in_the_dark_theme(themed_app: QApplication, qtbot) -> None:
    theme.set_scheme("dark")
    dialog = QFileDialog()
    qtbot.addWidget(dialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    theme_file_dialog(dialog)
    for name in ("backButton", "forwardButton", "toParentButton"):
        icon = dialog.findChild(QToolButton, name).icon()
        assert _lightest(icon.pixmap(QSize(16, 16)).toImage()) == C("text2").lightness()
        grey = icon.pixmap(QSize(16, 16), QIcon.Mode.Disabled).toImage()
        assert _lightest(grey) == C("disabled").lightness()


def test_the_dialogs_choices_have_an_arrow_of_their_size(themed_app: QApplication, qtbot) -> None:
    dialog = QFileDialog()
    qtbot.addWidget(dialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    theme_file_dialog(dialog)
    theme_file_dialog(dialog)
    choice = dialog.findChild(QComboBox, "fileTypeCombo")
    (arrow,) = [child for child in choice.children() if type(child).__name__ == "_Chevron"]
    dialog.show()
    choice.resize(300, 40)
    assert arrow.size() == choice.size()
