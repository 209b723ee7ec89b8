"""Running work and unsaved recordings are confirmed before they end."""

from __future__ import annotations

from types import SimpleNamespace

from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QLabel, QWidget

from viewer.pane.confirmation import Confirmation
from viewer.shell.end_question import QUESTION, CloseQuestion
from viewer.shell.lab_stores import running_in_words


class FrameCloseEvent(QCloseEvent):
    """A close event of the window's frame."""

    def spontaneous(self) -> bool:
        return True


def test_one_question_names_all_that_would_end(qtbot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    running: list[str] = []
    closed: list[bool] = []
    ending = CloseQuestion(window, lambda: running)
    assert not ending.ask(lambda: closed.append(True)), "nothing runs: nobody is asked"
    running += ["The lab's load runs.", "verify: 58 of 108 tasks"]
    assert ending.ask(lambda: closed.append(True))
    assert ending.ask(lambda: closed.append(True)), "it stands there already"
    (box,) = window.findChildren(Confirmation, QUESTION)
    assert set(running) <= {label.text() for label in box.findChildren(QLabel)}
    box.agree.click()
    assert closed == [True]


def test_the_cross_of_the_window_asks_first(qtbot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    ending = CloseQuestion(window, lambda: ["The lab's load runs."])
    event = FrameCloseEvent()
    assert ending.eventFilter(window, event), "nobody else hears of it"
    assert not event.isAccepted()
    assert not ending.eventFilter(window, QCloseEvent()), "code that closes a window has asked"


def test_quitting_with_a_serving_lab_and_a_recording_asks(run, window) -> None:
    """Ctrl+Q ended a lab with two clients and 17 MiB of recorded requests without a question."""

    async def quit_it() -> None:
        window.show_view("requests")
        watch = window.workspace.requests
        watch.source_status.kind = "ended"
        watch.log = SimpleNamespace(stored_count=17 << 20, stored_rows=lambda: [None] * 1214)
        window.lab.session.serving = SimpleNamespace(broker="127.0.0.1:10911", connections=2)
        window.actions_by_id["app.quit"].trigger()
        assert not window.closed
        (box,) = window.findChildren(Confirmation, QUESTION)
        text = " ".join(label.text() for label in box.findChildren(QLabel))
        assert "127.0.0.1:10911: 2 connections" in text
        assert "1,214 requests were recorded and are in no file yet" in text
        box.reject()
        window.lab.session.serving = None
        watch._saved = True
        assert window.workspace.what_would_end() == []

    run(quit_it())


def test_replacing_a_serving_lab_asks(run, window) -> None:
    """Creating a lab store closed the one that served clients."""

    async def ask() -> None:
        lab = window.lab.session
        assert running_in_words(lab) == []
        remaining: list[bool] = []
        window.lab.ask_leave(lambda: remaining.append(True))
        assert remaining == [True]
        lab.serving = SimpleNamespace(broker="127.0.0.1:10911", connections=2)
        window.lab.ask_leave(lambda: remaining.append(True))
        assert remaining == [True]
        window.findChild(Confirmation, QUESTION).agree.click()
        assert remaining == [True, True]
        lab.serving = None

    run(ask())
