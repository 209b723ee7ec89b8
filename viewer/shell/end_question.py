"""The question before a window closes on something that runs, or that is kept nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from viewer.look.assets import tr
from viewer.widgets.basics import Label

QUESTION = "window.end"
Running = Callable[[], Sequence[str]]
"""Gives a sentence for each thing that would end."""


def ask_end(
    window: QWidget, running: Sequence[str], agreed: Callable[[], object], title: str = "", deed: str = ""
) -> bool:
    """Where something would end, ask before ``agreed`` is called; whether that was asked."""
    if not running:
        return False
    from viewer.lab.confirmations import Confirmation  # the lab's words are not loaded before the first rows

    if window.findChild(Confirmation, QUESTION) is not None:
        return True
    box = Confirmation(window, QUESTION, title or tr("Stop what runs and close?"), "", deed or tr("Stop and close"))
    for line in running:
        box.box.addWidget(Label(line, 13, "text", wrap=True))
    box.finish()
    box.agreed.connect(agreed)
    box.open()
    return True


class EndQuestion(QObject):
    """One a window. The cross of the window's frame asks too; ``window.close()`` from code does not."""

    def __init__(self, window: QWidget, running: Running) -> None:
        super().__init__(window)
        self._window, self._running = window, running
        window.installEventFilter(self)

    def ask(self, agreed: Callable[[], object]) -> bool:
        """Where something would end, ask before ``agreed`` is called; whether that was asked."""
        return ask_end(self._window, self._running(), agreed)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """A person who closes the window is asked first."""
        if event.type() == QEvent.Type.Close and event.spontaneous() and self.ask(self._window.close):
            event.ignore()
            return True
        return False
