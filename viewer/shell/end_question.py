"""The question before a window closes on work that runs or on data that is stored nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr
from viewer.widgets.basics import Label

QUESTION = "window.end"
Running = Callable[[], Sequence[str]]
"""Returns a sentence for each thing that would end."""


def ask_end(
    window: QWidget, running: Sequence[str], on_agreed: Callable[[], object], title: str = "", button_text: str = ""
) -> bool:
    """Ask before calling ``on_agreed`` if anything would end. Return True if the question was asked."""
    if not running:
        return False
    from viewer.pane.confirmation import Confirmation  # not loaded before the first rows

    if QWidget.findChild(window, Confirmation, QUESTION) is not None:
        return True
    box = Confirmation(
        window, QUESTION, title or tr("Stop what runs and close?"), "", button_text or tr("Stop and close")
    )
    for sentence in running:
        box.box.addWidget(Label(sentence, 13, "text", wrap=True))
    box.finish()
    box.confirmed.connect(on_agreed)
    box.open()
    return True


class CloseQuestion(QObject):
    """The question of one window, asked when the user closes it. ``window.close()`` from code does not ask."""

    def __init__(self, window: QWidget, running: Running) -> None:
        super().__init__(window)
        self._window, self._running = window, running
        window.installEventFilter(self)

    def ask(self, on_agreed: Callable[[], object]) -> bool:
        """Ask before calling ``on_agreed`` if anything would end. Return True if the question was asked."""
        return ask_end(self._window, self._running(), on_agreed)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Ask first when the user closes the window."""
        if event.type() == QEvent.Type.Close and event.spontaneous() and self.ask(self._window.close):
            event.ignore()
            return True
        return False
