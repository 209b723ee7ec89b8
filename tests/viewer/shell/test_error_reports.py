"""Errors that nothing caught: each is noted and shown once, whatever thread raised it, without a message's text."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from viewer.runtime.jobs import Jobs
from viewer.shell.crash_notes import SIGNS
from viewer.shell.error_reports import MAX_REPEATS, ErrorReports, report_text

SECRET = "card 4111 1111 1111 1111"


class Window(QWidget):
    """A fake window with the parts that reports use."""

    def __init__(self, folder: Any) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.settings = SimpleNamespace(folder=folder)
        self.messages: list[str] = []
        self.say = self.messages.append


@pytest.fixture
def reports(themed_app: object, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ErrorReports]:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    window = Window(tmp_path)
    window.show()
    reports = ErrorReports(window, io.StringIO(), shows_box=True)  # type: ignore[arg-type]
    reports.install()
    yield reports
    if reports.box is not None:
        reports.box.close()
    window.deleteLater()


def raised(text: str = SECRET) -> ValueError:
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(text) from cause
    except ValueError as error:
        return error


def from_excepthook(_reports: ErrorReports) -> None:
    error = raised()
    sys.excepthook(type(error), error, error.__traceback__)


def from_thread(_reports: ErrorReports) -> None:
    def fail() -> None:
        raise raised()

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


def from_loop(reports: ErrorReports) -> None:
    async def fail_in_a_callback() -> None:
        loop = asyncio.get_running_loop()
        reports.watch(loop)
        loop.call_soon(from_job, reports)
        loop.call_exception_handler({"message": "a task", "exception": raised()})

    asyncio.run(fail_in_a_callback())


def from_job(reports: ErrorReports) -> None:
    reports._window.jobs.failed.emit(raised())


@pytest.mark.parametrize("raise_error", [from_excepthook, from_thread, from_loop, from_job])
def test_an_error_opens_a_box_whose_report_has_no_text_of_a_message(
    reports: ErrorReports, qtbot: Any, capsys: pytest.CaptureFixture[str], raise_error: Callable[[ErrorReports], None]
) -> None:
    """Errors of threads and of the loop were lines on standard error, which nobody sees who starts from a menu."""
    raise_error(reports)
    qtbot.waitUntil(lambda: reports.box is not None and reports.box.isVisible())
    assert reports.box is not None
    copy = reports.box.findChild(QWidget, "errorReport.copy")
    copy.click()  # type: ignore[attr-defined]
    copied = QGuiApplication.clipboard().text()
    assert "ValueError" in copied
    assert "KeyError" in copied
    assert "test_error_reports.py" in copied
    assert SECRET not in copied
    assert reports._window.messages[-1] == f"ValueError: {SECRET}"
    assert reports._window.isVisible()
    assert SECRET in capsys.readouterr().err


def test_an_error_of_every_frame_is_noted_a_few_times_and_opens_one_box(
    reports: ErrorReports, qtbot: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error in a paint event came back with every frame and wrote millions of lines."""
    for _ in range(1_000):
        reports.take(raised())
    assert reports.box is not None
    assert capsys.readouterr().err.count(f"ValueError: {SECRET}") == MAX_REPEATS
    assert reports.box.text.toPlainText().count("\nValueError\n") == 1
    reports.box.close()
    qtbot.waitUntil(lambda: reports.box is None)
    reports.take(raised())
    assert reports.box is None


def test_a_fault_of_a_store_is_no_error_of_the_program(reports: ErrorReports) -> None:
    reports._window.jobs.failed.emit(StoreError("expected a unit, found zeros"))
    reports._window.jobs.failed.emit(OSError(5, "Input/output error"))
    assert reports.box is None
    notes = reports._crash_notes.getvalue()  # type: ignore[union-attr]
    assert "Input/output error" in notes
    assert not any(sign in notes for sign in SIGNS)


def test_what_was_shown_is_not_offered_again_at_the_next_start(reports: ErrorReports) -> None:
    reports.take(raised())
    notes = reports._crash_notes.getvalue()  # type: ignore[union-attr]
    assert notes.startswith("shown at ")
    assert SECRET not in notes
    assert not any(sign in notes for sign in SIGNS)
    unseen = ErrorReports(reports._window, io.StringIO(), shows_box=False)
    unseen.take(raised())
    assert unseen.box is None
    assert any(sign in unseen._crash_notes.getvalue() for sign in SIGNS)  # type: ignore[union-attr]


def test_an_interrupt_closes_the_window_and_is_no_error(
    reports: ErrorReports, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert not reports._window.isVisible()
    assert (reports._window.messages, capsys.readouterr().err) == ([], "")


def test_a_report_of_errors_that_cause_each_other_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert report_text(first).count("ValueError") == 2
