"""The window's part of the lab: enabled commands, messages, and what is closed together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow

from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.lab.lab_store import LabStore
from engine.lab.load_settings import LoadSettings
from viewer.runtime.jobs import Jobs
from viewer.shell import lab_stores as module
from viewer.shell.lab_stores import WindowLab, free_name, lab_of_folder

SMALL = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)
LOAD = LoadSettings(rate=100)


class FakeLabDesk(QObject):
    """A lab desk with a fake engine."""

    changed = Signal()
    sampled = Signal(object)
    died = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.client: Any = None
        self.folder: Path | None = None
        self.store: Path | None = None
        self.config: Any = None
        self.serving: Any = None
        self.load: LoadSettings | None = None
        self.load_paused = False
        self.busy = ""
        self.without_power = self.again_possible = False
        self.done: list[object] = []
        self.requests: list[Any] = []
        self.begun: list[Any] = []
        self.error: Exception | None = None

    @property
    def there(self) -> bool:
        return self.store is not None

    @property
    def open_here(self) -> bool:
        return self.there

    @property
    def alive(self) -> bool:
        return self.there and not self.busy

    @property
    def can_cut_power(self) -> bool:
        return self.alive and self.folder is not None

    def begin(self, work: Any) -> None:
        self.begun.append(work)

    async def open(self, folder: Path, config: Any, release: str) -> None:
        self.requests.append(("open", folder, config, release))
        if self.error is not None:
            raise self.error
        self.folder, self.store = folder, folder / "store"

    async def open_store(self, path: Path, config: Any) -> None:
        self.requests.append(("open_store", path, config))
        if self.error is not None:
            raise self.error
        self.store = path
        self.client = SimpleNamespace(opened=SimpleNamespace(kept=path.with_name("store.kept-1")))

    async def close(self) -> None:
        self.requests.append("close")
        self.store = self.folder = None

    async def set_load(self, settings: LoadSettings | None) -> None:
        self.load = settings

    async def pause_load(self, on: bool) -> None:
        self.load_paused = on

    async def cut_power(self, seed: int) -> None:
        self.requests.append(("plug", seed))

    async def recover(self) -> None:
        self.requests.append("recover")


class Window(QMainWindow):
    """A fake window with the parts that the lab uses."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.settings = SimpleNamespace(lab_folder=folder)
        self.session: Any = None
        self.closed = False
        self.view = "lab"
        self.messages: list[str] = []
        self.errors: list[tuple[Path, str]] = []
        self.opened: list[tuple[Path, str]] = []
        self.opens = True
        self.written: list[tuple[bool, bool]] = []
        self.promised: list[bool] = []
        self.window_lab: WindowLab | None = None
        self.strip = SimpleNamespace(set_writing=lambda on, users_store: self.written.append((on, users_store)))
        self.top = SimpleNamespace(show_writing=self.promised.append)
        self.say = self.messages.append

    def enable(self) -> None:
        """Record that the enabled commands changed."""

    def close_store(self) -> None:
        assert self.window_lab is not None
        self.window_lab.close_in_background()
        self.session = None

    def show_error(self, path: Path, words: str) -> None:
        self.errors.append((path, words))

    async def open(self, store: Path, place: str, config: Any = None) -> bool:
        self.close_store()
        self.opened.append((store, place))
        followed: list[bool] = []
        if self.opens:
            self.session = SimpleNamespace(path=store, config=config, follow=followed.append, followed=followed)
        return self.opens


@pytest.fixture
def fake_window(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Window]:
    monkeypatch.setattr(module, "LabSession", FakeLabDesk)
    window = Window(tmp_path)
    yield window
    window.jobs.close()
    run(window.jobs.drain())
    window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


@pytest.fixture
def window_lab(fake_window: Window) -> WindowLab:
    fake_window.window_lab = WindowLab(fake_window)  # type: ignore[arg-type]
    return fake_window.window_lab


@pytest.fixture
def desk(window_lab: WindowLab) -> Any:
    return window_lab.session


# ---- folders ---------------------------------------------------------------------------------------------------------


def test_the_first_free_name_is_offered(tmp_path: Path) -> None:
    assert free_name(tmp_path) == "lab-1"
    for name in ("lab-1", "lab-2", "lab-4"):
        (tmp_path / name).mkdir()
    assert free_name(tmp_path) == "lab-3"


@pytest.mark.parametrize("name", ["mine", "store"])
def test_a_lab_store_is_found_by_its_folder_and_by_its_store(tmp_path: Path, name: str) -> None:
    """A lab named ``store`` was taken for the inner folder of another one, and not found."""
    folder = tmp_path / name
    LabStore.create(folder, SMALL).close()
    assert lab_of_folder(folder) == folder
    assert lab_of_folder(folder / "store") == folder
    assert lab_of_folder(folder / "durable") is None
    assert lab_of_folder(tmp_path) is None


# ---- enabled commands ------------------------------------------------------------------------------------------------


def enabled(window_lab: WindowLab) -> set[str]:
    return {name for name, on in window_lab.enabled_commands().items() if on}


def test_without_a_store_only_opening_for_writing_is_enabled(window_lab: WindowLab, fake_window: Window) -> None:
    assert enabled(window_lab) == set()
    fake_window.session = SimpleNamespace(path=Path("/data/store"))
    assert enabled(window_lab) == {"lab.write"}


def test_each_state_of_a_lab_store_has_its_commands(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, tmp_path: Path
) -> None:
    fake_window.session = SimpleNamespace(path=tmp_path / "store")
    desk.store, desk.folder = tmp_path / "store", tmp_path
    at_rest = {"lab.put", "lab.flush", "lab.start", "lab.serve.show", "lab.plug", "lab.close"}
    assert enabled(window_lab) == at_rest
    desk.done = [object()]
    desk.config = MessageStoreConfig(transient_store_pool_enable=True)
    assert enabled(window_lab) == at_rest | {"lab.again", "lab.commit"}
    desk.done, desk.config, desk.load = [], None, LOAD
    assert enabled(window_lab) == at_rest - {"lab.start"} | {"lab.pause", "lab.stop"}
    desk.load, desk.without_power = None, True
    assert enabled(window_lab) == {"lab.serve.show", "lab.recover", "lab.close"}
    desk.busy = "recover"
    assert enabled(window_lab) == {"lab.serve.show"}, "a recovery is neither begun twice nor cut"


def test_a_users_own_store_never_loses_power(window_lab: WindowLab, desk: FakeLabDesk) -> None:
    desk.store = Path("/data/store")
    assert "lab.plug" not in enabled(window_lab)
    window_lab.ask_to_cut_power()
    assert desk.requests == []


def test_the_message_at_the_top_is_about_the_shown_store(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window
) -> None:
    desk.store = Path("/data/store")
    window_lab.show_access()
    fake_window.session = SimpleNamespace(path=Path("/data/store"))
    window_lab.show_access()
    fake_window.view = "log"
    window_lab.show_access()
    fake_window.session = SimpleNamespace(path=Path("/data/other"))
    window_lab.show_access()
    assert [on for on, _ in fake_window.written] == [False, True, True, False]
    assert fake_window.promised == [False, True, False, False]


def test_a_load_and_a_recovery_are_listed_as_running_work(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any
) -> None:
    desk.store = Path("/data/store")
    desk.load = LOAD
    desk.changed.emit()
    desk.changed.emit()
    (shown,) = fake_window.jobs.list
    desk.sampled.emit(SimpleNamespace(rates=SimpleNamespace(messages=1234.0)))
    assert (shown.title, shown.note) == ("Load", "1,234 /s")
    desk.load_paused = True
    desk.sampled.emit(SimpleNamespace(rates=SimpleNamespace(messages=0.0)))
    assert shown.note == "paused"
    shown.cancel()
    run(desk.begun.pop())
    desk.changed.emit()
    assert fake_window.jobs.list == []
    desk.busy = "recover"
    desk.changed.emit()
    (shown,) = fake_window.jobs.list
    shown.cancel()
    assert fake_window.messages == ["A recovery cannot be stopped halfway."]
    desk.busy = ""
    desk.changed.emit()
    assert fake_window.jobs.list == []


def test_a_closed_window_gets_no_messages(window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window) -> None:
    fake_window.closed, desk.load = True, LOAD
    desk.changed.emit()
    assert fake_window.jobs.list == []


def test_the_end_of_an_engine_is_reported(window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window) -> None:
    desk.died.emit("killed by signal 9")
    assert fake_window.messages == ["The lab's engine has ended: killed by signal 9"]


# ---- opening and leaving ---------------------------------------------------------------------------------------------


def test_a_new_store_is_shown_and_followed_and_its_folder_remembered(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere" / "lab-1"
    assert run(window_lab.open_lab(folder, SMALL, "5.3"))
    assert fake_window.opened == [(folder / "store", "lab")]
    assert fake_window.session.followed == [True]
    assert fake_window.settings.lab_folder == folder.parent
    assert desk.requests == [("open", folder, SMALL, "5.3")], "showing it does not close it again"


def test_a_store_that_cannot_be_made_is_an_error_page(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    folder_before = fake_window.settings.lab_folder
    for error in (StoreError("something is there"), OSError(28, "No space left on device"), EOFError("gone")):
        desk.error = error
        assert not run(window_lab.open_lab(tmp_path / "lab-1", SMALL, "5.3"))
    assert [words for _, words in fake_window.errors] == [
        "something is there",
        "[Errno 28] No space left on device",
        "gone",
    ]
    assert (fake_window.opened, fake_window.settings.lab_folder) == ([], folder_before)


def test_a_lab_store_is_reopened_by_its_inner_store_too(
    window_lab: WindowLab, desk: FakeLabDesk, run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    LabStore.create(folder, SMALL).close()
    for path in (folder / "store", folder, tmp_path):
        run(window_lab.reopen(path))
    assert [request[1] for request in desk.requests if request != "close"] == [folder, folder, tmp_path]


def test_opening_for_writing_names_the_backup_or_the_refusal(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    desk.error = StoreError("another process has it open")
    run(window_lab._open_users_store(store))
    assert fake_window.messages == ["another process has it open"]
    assert fake_window.opened == []
    desk.error = None
    run(window_lab._open_users_store(store))
    assert fake_window.opened == [(store, "lab")]
    assert fake_window.messages[-1] == (
        f"Opening saved what it changed in {tmp_path / 'store.kept-1'}; recover --undo restores it."
    )


def test_a_lab_store_is_opened_without_a_question(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    LabStore.create(folder, SMALL).close()
    fake_window.session = SimpleNamespace(path=folder / "store")
    run(window_lab._ask_to_write(fake_window.session))
    assert ("open", folder, None, "5.5") in desk.requests


def test_a_power_cut_and_a_recovery_are_reported_and_shown(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    desk.store, desk.folder = tmp_path / "store", tmp_path
    run(window_lab.cut_power(7))
    run(window_lab.recover_now())
    assert desk.requests == [("plug", 7), "recover"]
    assert fake_window.messages == ["Cutting the power", "Recovering"]
    assert fake_window.opened == [(tmp_path / "store", "lab")] * 2


def test_a_window_that_leaves_its_store_closes_the_engine(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    async def leave() -> None:
        window_lab.close_in_background()
        await fake_window.jobs.drain()

    run(leave())
    assert desk.requests == [], "nothing is open"
    desk.store = tmp_path / "store"
    run(leave())
    assert desk.requests == ["close"]


def test_closing_uses_the_current_state(
    window_lab: WindowLab, desk: FakeLabDesk, fake_window: Window, run: Any, tmp_path: Path
) -> None:
    looks: list[bool] = []
    fake_window.session = SimpleNamespace(path=tmp_path, look=lambda *, anyway: looks.append(anyway))
    window_lab.close()
    assert desk.requests == [], "nothing is open"
    desk.store = tmp_path
    run(window_lab._close())
    assert desk.requests == ["close"]
    assert fake_window.messages == ["The store is closed cleanly: it is only read from now on."]
    assert looks == [True]


def test_a_load_continues_or_pauses_and_stops(window_lab: WindowLab, desk: FakeLabDesk, run: Any) -> None:
    desk.load = LOAD
    window_lab.pause()
    run(desk.begun.pop())
    assert desk.load_paused
    window_lab.pause()
    run(desk.begun.pop())
    assert not desk.load_paused
    window_lab.stop()
    run(desk.begun.pop())
    assert desk.load is None


def test_the_dialog_for_a_lab_store_starts_in_the_last_folder(
    window_lab: WindowLab, fake_window: Window, tmp_path: Path
) -> None:
    window_lab.open_folder()
    (dialog,) = fake_window.findChildren(QFileDialog, "lab.open.dialog")
    assert Path(dialog.directory().absolutePath()) == tmp_path
    assert dialog.fileMode() == QFileDialog.FileMode.Directory
    dialog.reject()


def test_frames_are_available_while_serving(window_lab: WindowLab, desk: FakeLabDesk) -> None:
    assert window_lab.feed() is None
    desk.serving = object()
    assert window_lab.feed() is not None
