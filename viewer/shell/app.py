"""The window as a program: application object, event loop, crash notes, and the modes that exit by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from engine import system
from engine.config import MessageStoreConfig
from viewer.look import assets
from viewer.look.theme import desktop_contrast, theme
from viewer.runtime.file_saver import CLOSE_TIMEOUT_S, file_saver
from viewer.runtime.garbage import LoopGarbage
from viewer.runtime.settings import Settings
from viewer.shell.command_handlers import show_choices
from viewer.shell.crash_notes import take_crash_notes
from viewer.shell.error_reports import ErrorReports
from viewer.shell.main_window import MainWindow
from viewer.shell.single_instance import SecondStart, SecondStartListener, answer, hand_over
from viewer.shell.system_libraries import explained_instead_of_aborted
from viewer.shell.tab_window import put_into_tabs
from viewer.shell.windows import all_closed, close_all, open_tab

QUIET_TIMEOUT_S = 15.0
"""Maximum seconds that ``--screenshot`` waits for short reads after the first rows."""
SWITCH_INTERVAL_S = 0.0001
"""Switch interval of the interpreter: how long a thread that reads or decodes may keep the window's thread waiting."""
MAX_CRASH_NOTES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Start:
    """The options of one start, from the command line."""

    store: Path | None = None
    further: tuple[Path, ...] = ()
    """Stores for further tabs."""
    at: str | None = None
    """Place to show in the first store, in the form of the go-to field."""
    screenshot: Path | None = None
    drive: Path | None = None
    theme: str | None = None
    language: str | None = None
    size: tuple[int, int] | None = None
    config_dir: Path | None = None
    config: MessageStoreConfig | None = None
    new_window: bool = False

    @property
    def may_use_running_window(self) -> bool:
        """True if a window that runs already may open this store instead of a new process.

        A start that exits by itself or sets a theme, language, size or configuration needs its own process.
        """
        own_options = (self.screenshot, self.drive, self.theme, self.language, self.size, self.config)
        return not self.new_window and all(value is None for value in own_options)


def choose_platform(*, picture: bool = False) -> None:
    """Let Qt draw into memory if there is no display or only a picture is requested, which needs fewer libraries."""
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if system.IS_LINUX and (picture or not display):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def main(start: Start) -> int:
    """Run the viewer until its window closes. Return the exit code."""
    choose_platform(picture=start.screenshot is not None)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with explained_instead_of_aborted(picture=start.screenshot is not None):
        app = make_application()
    garbage = LoopGarbage()
    settings = Settings(start.config_dir)
    if start.may_use_running_window and hand_over(settings.folder, SecondStart(start.store, start.at, start.further)):
        return 0
    apply_settings(app, settings, start)
    previous_crash_notes = take_crash_notes(settings.folder)
    crash_notes = open_crash_notes(settings.folder)
    window = MainWindow(settings)
    window.remembers = start.screenshot is None and start.drive is None
    if window.remembers or start.further:
        put_into_tabs(window)
    window.layouts.first_size(start.size)
    if settings.newer is not None:
        sys.stderr.write(f"storescope: {settings.newer}\n")
        window.say(str(settings.newer))
    show_choices()
    if previous_crash_notes and window.remembers:
        window.workspace.offer_crash_notes(previous_crash_notes)
    reports = ErrorReports(window, crash_notes, shows_box=window.remembers)
    reports.install()
    import qasync

    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    reports.watch(loop)
    code: int = 0
    try:
        code = loop.run_until_complete(run(window, start))
    finally:
        window.window().close()
        window.close()
        with contextlib.suppress(RuntimeError):
            loop.run_until_complete(close_all())
            loop.run_until_complete(window.jobs.drain())
            loop.close()
        finish_saving()
        garbage.end()
        if crash_notes is not None:
            faulthandler.disable()
            crash_notes.close()
    return code


def finish_saving() -> None:
    """Wait until marks and bookmarks are saved. Print a line if the disk does not answer in time."""
    try:
        file_saver().wait(CLOSE_TIMEOUT_S)
    except TimeoutError:
        sys.stderr.write("storescope: marks and bookmarks are still being written: the disk does not answer\n")


def make_application() -> QApplication:
    """Create the only QApplication, named for the desktop."""
    QCoreApplication.setApplicationName("storescope")
    QCoreApplication.setOrganizationName("storescope")
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["storescope"])
    app.setApplicationDisplayName("Storescope")
    app.setDesktopFileName("storescope")
    app.setQuitOnLastWindowClosed(False)
    return app


def apply_settings(app: QApplication, settings: Settings, start: Start) -> None:
    """Set language, colours and zoom before anything is shown."""
    language = start.language or settings.language
    assets.set_language(assets.system_language() if language == "system" else language)
    assets.translate_qt_dialogs()
    theme.zoom = settings.zoom
    theme.contrast_follows = settings.contrast is None
    theme.contrast = desktop_contrast() if settings.contrast is None else settings.contrast
    theme.motion = settings.motion
    theme.scheme = start.theme or settings.theme
    theme.apply(app)


async def run(window: MainWindow, start: Start) -> int:
    """Show the window and do what the command line asks. Return the exit code."""
    closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    top = window.window()
    close_watcher = _CloseWatcher(top, closed)
    top.installEventFilter(close_watcher)
    store = start.store or (window.workspace.last() if window.remembers else None)
    tabs = [(path, False) for path in start.further]
    if start.store is None and store is not None:
        tabs += window.workspace.last_tabs()
    if store is None:
        window.show_welcome()
    top.show()
    second_start_listener = SecondStartListener(window.settings.folder) if window.remembers else None
    if second_start_listener is not None:
        second_start_listener.startReceived.connect(lambda request: answer(window, request))
    with _interruptible(window):
        if store is None and start.at:
            opened = await window.go_to_text(start.at)
        else:
            opened = await window.open(store, start.at, start.config) if store is not None else True
        for path, in_front in tabs:
            if not window.window().isVisible() or open_tab(window, path, front=in_front) is None:
                break
        if start.screenshot is not None:
            return await take_picture(window, start.screenshot, opened, start.at)
        if start.drive is not None:
            return await drive(window, start.drive)
        code = await closed
        if second_start_listener is not None:
            second_start_listener.close()
        await all_closed()
        return code


async def take_picture(window: MainWindow, target: Path, opened: bool, at: str | None = None) -> int:
    """Save a picture of the window once everything quick is loaded.

    Returns 3 if the store could not be opened, if there is no place ``at``, or if a part of the store could not be
    read.
    """
    await window.settled()
    await window.settled(QUIET_TIMEOUT_S if opened else 1.0, quiet=True)
    if not window.window().grab().save(str(target)):
        sys.stderr.write(f"storescope: {target}: the picture cannot be written\n")
        return 3
    if at and window.top.goto.fault:
        sys.stderr.write(f"storescope: --at {at}: {window.top.goto.fault}\n")
        return 3
    if not opened:
        words = window.error_words or f"--at {at}: expected STORE, found none"
        sys.stderr.write(f"storescope: {words}\n")
        return 3
    for job in window.jobs.list:
        progress = f" ({job.part:.1%} done)" if job.part is not None else ""
        sys.stderr.write(f"storescope: the picture did not wait for: {job.title}{progress}\n")
    unread = window.session.unread.unreadable if window.session is not None else ()
    for entry in unread:
        sys.stderr.write(f"storescope: {entry.words}\n")
    return 3 if unread else 0


async def drive(window: MainWindow, file: Path) -> int:
    """Await the file's ``drive(window)``. Return 1 and print the exception's line if it raises."""
    await window.stages.ready()
    space: dict[str, Any] = {"__name__": "drive", "__file__": str(file)}
    try:
        text = await asyncio.to_thread(file.read_text, "utf-8")
        exec(compile(text, str(file), "exec"), space)  # noqa: S102 (the user passed this file to be run)
        if "drive" not in space:
            sys.stderr.write(f"storescope: {file}: expected 'async def drive(window)', found no such function\n")
            return 1
        work: Coroutine[Any, Any, object] = space["drive"](window)
        await work
    except Exception as error:  # noqa: BLE001 (the file may raise anything; it is printed)
        words = traceback.format_exception_only(error)[-1].strip()
        sys.stderr.write(f"storescope: {file}: {words}\n")
        return 1
    return 0


class _CloseWatcher(QObject):
    """Ends the run when the window is closed."""

    def __init__(self, window: QWidget, closed: asyncio.Future[int]) -> None:
        super().__init__(window)
        self._closed = closed

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Watch for the close event only."""
        if event.type() == QEvent.Type.Close:
            QTimer.singleShot(0, self._end)
        return False

    def _end(self) -> None:
        if not self._closed.done():
            self._closed.set_result(0)


@contextlib.contextmanager
def _interruptible(window: MainWindow) -> Any:
    """Let Ctrl+C in the terminal close the window. A timer wakes Python, so that it sees the signal."""
    top = window.window()
    old_handler = signal.signal(signal.SIGINT, lambda *_: top.close())
    wake_timer = QTimer(window)
    wake_timer.setTimerType(Qt.TimerType.VeryCoarseTimer)
    wake_timer.timeout.connect(lambda: None)
    wake_timer.start(1000)
    try:
        yield
    finally:
        wake_timer.stop()
        signal.signal(signal.SIGINT, old_handler)


def open_crash_notes(folder: Path) -> TextIO | None:
    """Open the file to which a crash writes its traceback. Return None if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "last-words.txt"
        if path.exists() and path.stat().st_size > MAX_CRASH_NOTES_BYTES:
            path.replace(folder / "last-words.old.txt")
        stream = path.open("a", encoding="utf-8")
    except OSError:
        return None
    faulthandler.enable(stream)
    return stream
