"""The program around the window: command line handover, modes that end by themselves, and crash notes."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from engine.config import MessageStoreConfig
from engine.mapped.reading import Unread
from viewer.look import assets
from viewer.look.theme import theme
from viewer.runtime.settings import Settings
from viewer.shell import app as module
from viewer.shell.app import (
    Start,
    _CloseWatcher,
    _interruptible,
    apply_settings,
    choose_platform,
    drive,
    finish_saving,
    make_application,
    open_crash_notes,
    take_picture,
)


class Jobs(QObject):
    """A fake list of running jobs."""

    failed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.list: list[Any] = []


class Window(QWidget):
    """A fake window with the parts that the program uses."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.session: Any = None
        self.error_words = "expected a store, found nothing"
        self.messages: list[str] = []
        self.waited: list[bool] = []
        self.stages = self
        self.say = self.messages.append
        self.resize(60, 40)

    async def ready(self) -> None:
        self.messages.append("ready")

    async def settled(self, _seconds: float = 0.0, *, quiet: bool = False) -> bool:
        self.waited.append(quiet)
        return True


@pytest.fixture
def fake_window(themed_app: object) -> Iterator[Window]:
    window = Window()
    yield window
    window.deleteLater()


# ---- a start ---------------------------------------------------------------------------------------------------------


def test_starts_with_their_own_mode_or_look_are_not_handed_over() -> None:
    assert Start(store=Path("store")).may_use_running_window
    assert Start(at="log:5").may_use_running_window
    assert Start(config_dir=Path("elsewhere")).may_use_running_window
    for start in (
        Start(new_window=True),
        Start(screenshot=Path("a.png")),
        Start(drive=Path("a.py")),
        Start(theme="dark"),
        Start(language="en"),
        Start(size=(800, 600)),
        Start(config=MessageStoreConfig()),
    ):
        assert not start.may_use_running_window


@pytest.mark.parametrize(
    ("environment", "picture", "chosen"),
    [
        ({}, False, "offscreen"),
        ({"DISPLAY": ":0"}, False, None),
        ({"WAYLAND_DISPLAY": "wayland-0"}, False, None),
        ({"DISPLAY": ":0"}, True, "offscreen"),
        ({"QT_QPA_PLATFORM": "xcb"}, True, "xcb"),
    ],
)
def test_without_a_display_and_for_a_picture_it_draws_into_memory(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], picture: bool, chosen: str | None
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    choose_platform(picture=picture)
    assert os.environ.get("QT_QPA_PLATFORM") == chosen
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)


def test_there_is_one_application_and_its_last_window_does_not_end_it(qapp: QApplication) -> None:
    assert make_application() is qapp
    assert not qapp.quitOnLastWindowClosed()
    assert qapp.applicationDisplayName() == "Storescope"


def test_looks_of_the_command_line_override_the_settings(themed_app: QApplication, settings: Settings) -> None:
    settings.language, settings.theme, settings.zoom = "zh_CN", "light", 100
    apply_settings(themed_app, settings, Start())
    assert (assets.language(), theme.scheme) == ("zh_CN", "light")
    apply_settings(themed_app, settings, Start(language="en", theme="dark"))
    assert (assets.language(), theme.scheme) == ("en", "dark")
    assert (settings.language, settings.theme) == ("zh_CN", "light"), "they are for this run"


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_a_picture_of_a_store_exits_with_0_when_all_quick_parts_are_shown(
    fake_window: Window, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_window.session = SimpleNamespace(unread=SimpleNamespace(list=(), unreadable=()))
    assert asyncio.run(take_picture(fake_window, tmp_path / "a.png", opened=True)) == 0  # type: ignore[arg-type]
    assert not QImage(str(tmp_path / "a.png")).isNull()
    assert fake_window.waited == [False, True]
    assert capsys.readouterr().err == ""


def test_a_picture_that_cannot_be_written_is_one_line(
    fake_window: Window, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no folder" / "a.png"
    assert asyncio.run(take_picture(fake_window, target, opened=True)) == 3  # type: ignore[arg-type]
    assert capsys.readouterr().err == f"storescope: {target}: the picture cannot be written\n"


def test_a_picture_of_an_error_is_made_and_exits_with_3(
    fake_window: Window, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(take_picture(fake_window, tmp_path / "a.png", opened=False)) == 3  # type: ignore[arg-type]
    assert (tmp_path / "a.png").exists()
    assert capsys.readouterr().err == "storescope: expected a store, found nothing\n"


def test_a_picture_reports_running_work_and_unreadable_files(
    fake_window: Window, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_window.jobs.list = [SimpleNamespace(title="Counting", part=0.25), SimpleNamespace(title="Checking", part=None)]
    unread = Unread("/store/commitlog/0", "Permission denied", "open")
    fake_window.session = SimpleNamespace(unread=SimpleNamespace(list=(unread,), unreadable=(unread,)))
    assert asyncio.run(take_picture(fake_window, tmp_path / "a.png", opened=True)) == 3  # type: ignore[arg-type]
    first_line, second_line, third_line = capsys.readouterr().err.splitlines()
    assert first_line == "storescope: the picture did not wait for: Counting (25.0% done)"
    assert second_line == "storescope: the picture did not wait for: Checking"
    assert "/store/commitlog/0" in third_line


# ---- driven runs -----------------------------------------------------------------------------------------------------


def exit_code_of_drive(window: Window, tmp_path: Path, text: str | None) -> int:
    file = tmp_path / "drive.py"
    if text is not None:
        file.write_text(text)
    return asyncio.run(drive(window, file))  # type: ignore[arg-type]


def test_a_file_drives_the_window_once_it_is_ready(fake_window: Window, tmp_path: Path) -> None:
    assert exit_code_of_drive(fake_window, tmp_path, "async def drive(window):\n    window.say(__name__)\n") == 0
    assert fake_window.messages == ["ready", "drive"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "async def drive(window):\n    raise ValueError('the third row differs')\n",
            "ValueError: the third row differs",
        ),
        ("def drive(:\n", "SyntaxError: "),
        ("raise OSError('gone')\n", "OSError: gone"),
        (None, "FileNotFoundError: "),
        ("async def driven(window): ...\n", "expected 'async def drive(window)', found no such function"),
    ],
    ids=["raises", "no Python", "raises at once", "no file", "no such function"],
)
def test_an_error_in_a_drive_file_is_one_line_with_its_name(
    fake_window: Window, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    """A file without ``drive`` failed with the message "KeyError: 'drive'"."""
    assert exit_code_of_drive(fake_window, tmp_path, text) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"storescope: {tmp_path / 'drive.py'}: ")
    assert words in line


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_a_window_that_was_closed_ends_the_run_once(fake_window: Window, qtbot: Any) -> None:
    loop = asyncio.new_event_loop()
    closed: asyncio.Future[int] = loop.create_future()
    close_watcher = _CloseWatcher(fake_window, closed)  # type: ignore[arg-type]
    fake_window.installEventFilter(close_watcher)
    fake_window.show()
    fake_window.close()
    fake_window.close()
    qtbot.waitUntil(closed.done, timeout=60_000)
    assert closed.result() == 0
    loop.close()


def test_ctrl_c_closes_the_window_and_its_handler_is_restored(fake_window: Window) -> None:
    handler_before = signal.getsignal(signal.SIGINT)
    fake_window.show()
    with _interruptible(fake_window):  # type: ignore[arg-type]
        assert fake_window.isVisible()
        signal.raise_signal(signal.SIGINT)
        assert not fake_window.isVisible()
    assert signal.getsignal(signal.SIGINT) is handler_before


@pytest.mark.parametrize("slow", [False, True])
def test_a_disk_that_does_not_answer_is_named_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], slow: bool
) -> None:
    def wait(_seconds: float) -> None:
        if slow:
            raise TimeoutError

    monkeypatch.setattr(module, "file_saver", lambda: SimpleNamespace(wait=wait))
    finish_saving()
    assert ("the disk does not answer" in capsys.readouterr().err) is slow


# ---- crash notes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def own_faults() -> Iterator[None]:
    """Restore this process's fault handler after the test."""
    was = faulthandler.is_enabled()
    yield
    faulthandler.disable()
    if was:
        faulthandler.enable()


def test_crash_notes_are_appended_up_to_a_limit(
    tmp_path: Path, own_faults: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CRASH_NOTES_BYTES", 100)
    folder = tmp_path / "settings"
    for text in ("one\n", "two\n" * 50, "three\n"):
        stream = open_crash_notes(folder)
        assert stream is not None
        stream.write(text)
        faulthandler.disable()
        stream.close()
    assert (folder / "last-words.txt").read_text() == "three\n"
    assert (folder / "last-words.old.txt").read_text() == "one\n" + "two\n" * 50


def test_the_program_starts_even_if_crash_notes_cannot_be_written(tmp_path: Path, own_faults: None) -> None:
    (tmp_path / "settings").write_text("a file")
    assert open_crash_notes(tmp_path / "settings") is None
