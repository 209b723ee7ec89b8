"""Commands that no single part of the window handles, tested with fake windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLineEdit, QVBoxLayout, QWidget

from viewer.look import assets
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.shell import command_handlers as module
from viewer.shell.command_handlers import (
    ask_directory,
    ask_file,
    close_store,
    copy_place,
    focus_filter,
    follow_end,
    in_findings,
    next_pane,
    quit_all,
    refresh_view,
    set_contrast,
    set_language,
    set_motion,
    set_scheme,
    show_logs,
    tick,
    trace_key,
)


class Window(QWidget):
    """A fake window that records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self.begun: list[Any] = []
        self.answers: dict[str, Callable[[], object]] = {}
        self.session: Any = None
        self.view = "log"
        self.panes: dict[str, Any] = {}
        self.top, self.side = SimpleNamespace(goto=QLineEdit()), SimpleNamespace(tree=QLineEdit())
        self.settings = SimpleNamespace(
            recent=[],
            theme="light",
            contrast=None,
            motion=None,
            language="en",
            folder=Path("/settings"),
            tree_shown=True,
            restore=False,
        )
        self.history = SimpleNamespace(current=None)
        self.jobs = SimpleNamespace(start=self.begun.append)
        self.actions_by_id: dict[str, Any] = {}
        self.show_view, self.go, self.say = self.calls.append, self.calls.append, self.calls.append

    def pane_commands(self) -> dict[str, Callable[[], object]]:
        return self.answers

    def close_store(self) -> None:
        self.calls.append("closed")

    def show_welcome(self) -> None:
        self.calls.append("welcome")

    def ask_open(self, path: Path) -> None:
        self.calls.append(path)


@pytest.fixture
def fake_window(themed_app: object) -> Iterator[Any]:
    window = Window()
    yield window
    window.deleteLater()


class Action:
    """A fake command with a tick."""

    def __init__(self, on: bool = False) -> None:
        self.on = on

    def isChecked(self) -> bool:  # noqa: N802
        return self.on

    def setChecked(self, on: bool) -> None:  # noqa: N802
        self.on = on


# ---- commands of the front view ----------------------------------------------------------------------------------


def test_a_findings_command_works_from_any_view(fake_window: Any) -> None:
    in_findings(fake_window, "check.run")
    assert fake_window.calls == ["findings"], "it comes to the front, though it has no answer"
    fake_window.answers["check.run"] = lambda: fake_window.calls.append("checked")
    in_findings(fake_window, "check.run")
    assert fake_window.calls[1:] == ["findings", "checked"]


def test_refresh_reaches_the_store_and_the_front_view(fake_window: Any) -> None:
    refresh_view(fake_window)
    assert fake_window.calls == []
    fake_window.session = SimpleNamespace(look=lambda *, anyway: fake_window.calls.append(anyway))
    fake_window.answers["view.refresh"] = lambda: fake_window.calls.append("refreshed")
    refresh_view(fake_window)
    assert fake_window.calls == [True, "refreshed"], "also where nothing seems to have changed"


def test_the_front_views_filter_comes_before_the_logs(fake_window: Any) -> None:
    def show_log(view: str) -> None:
        fake_window.calls.append(view)
        fake_window.answers["filter.focus"] = lambda: fake_window.calls.append("the log's")

    fake_window.show_view = show_log
    focus_filter(fake_window)
    assert fake_window.calls == ["log", "the log's"]
    fake_window.answers["filter.focus"] = lambda: fake_window.calls.append("its own")
    focus_filter(fake_window)
    assert fake_window.calls == ["log", "the log's", "its own"]


def test_the_key_to_trace_is_entered_in_the_index(fake_window: Any) -> None:
    trace_key(fake_window)
    assert fake_window.calls == ["index"], "without the field nothing breaks"
    fake_window.answers["trace.open"] = lambda: fake_window.calls.append("focused")
    trace_key(fake_window)
    assert fake_window.calls == ["index", "index", "focused"]


def test_a_store_is_closed_before_the_welcome_page_is_shown(fake_window: Any) -> None:
    close_store(SimpleNamespace(window=fake_window, lab=SimpleNamespace(ask_leave=lambda agreed: agreed())))
    assert fake_window.calls == ["closed", "welcome"]


# ---- places ----------------------------------------------------------------------------------------------------------


def test_a_place_is_copied_as_the_command_line_writes_it(fake_window: Any) -> None:
    QGuiApplication.clipboard().setText("before")
    copy_place(fake_window)
    assert (QGuiApplication.clipboard().text(), fake_window.calls) == ("before", [])
    fake_window.history.current = places.queue("Orders", 0, 42)
    copy_place(fake_window)
    assert QGuiApplication.clipboard().text() == "queue:Orders/0/42"
    assert fake_window.calls == ["Copied queue:Orders/0/42"]


def follow_answers(window: Any, *, on: bool) -> list[bool]:
    """Return the calls that the session gets when the command is ticked or not."""
    answers: list[bool] = []

    def follow(expected: bool) -> None:
        answers.append(expected)
        window.calls.append(f"follow {expected}")

    window.session = SimpleNamespace(follow=follow)
    window.actions_by_id["view.follow"] = Action(on)
    follow_end(window)
    return answers


def test_following_brings_the_log_to_the_front_first(fake_window: Any) -> None:
    """A jump to a row ends Follow, so the log comes to the front as a whole before Follow begins. The log then chooses
    its newest unit itself.
    """
    assert follow_answers(fake_window, on=True) == [True]
    assert fake_window.calls == [Place("log"), "follow True"]
    assert not fake_window.calls[0].names_row


def test_following_ends_at_the_current_place(fake_window: Any) -> None:
    assert follow_answers(fake_window, on=False) == [False]
    assert fake_window.calls == ["follow False"]
    fake_window.session = None
    follow_end(fake_window)


@pytest.fixture
def parts(fake_window: Any) -> list[QWidget]:
    """Return the go-to box, the tree and a part of the view, in their order, and another field."""
    box = QVBoxLayout(fake_window)
    fields = [QLineEdit() for _ in range(4)]
    for field in fields:
        box.addWidget(field)
    fake_window.top.goto, fake_window.side.tree = fields[:2]
    fake_window.panes = {"log": SimpleNamespace(focus_stops=lambda: [fields[2]])}
    fake_window.show()
    fake_window.activateWindow()
    return fields


def test_from_part_to_part_and_round(parts: list[QWidget], fake_window: Any, qtbot: Any) -> None:
    qtbot.waitUntil(fake_window.isActiveWindow, timeout=60_000)
    parts[0].setFocus()
    for step, position in ((1, 1), (1, 2), (1, 0), (-1, 2), (-1, 1)):
        next_pane(fake_window, step)
        assert fake_window.focusWidget() is parts[position]
    parts[2].hide()
    next_pane(fake_window, 1)
    assert fake_window.focusWidget() is parts[0], "what is not seen is passed over"


@pytest.mark.parametrize(("step", "expected_index"), [(1, 0), (-1, 2)])
def test_the_focus_enters_at_the_first_part_or_backwards_at_the_last(
    parts: list[QWidget], fake_window: Any, qtbot: Any, step: int, expected_index: int
) -> None:
    """Going backwards led to the last but one."""
    qtbot.waitUntil(fake_window.isActiveWindow, timeout=60_000)
    parts[3].setFocus()
    next_pane(fake_window, step)
    assert fake_window.focusWidget() is parts[expected_index]


def test_without_visible_parts_the_focus_stays(fake_window: Any) -> None:
    next_pane(fake_window, 1)
    assert fake_window.focusWidget() is None


# ---- stores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "mode"),
    [(ask_directory, QFileDialog.FileMode.Directory), (ask_file, QFileDialog.FileMode.ExistingFile)],
)
def test_another_store_is_chosen_beside_the_last_one_and_opened(
    fake_window: Any, tmp_path: Path, ask: Callable[[Any], None], mode: Any
) -> None:
    fake_window.settings.recent = [SimpleNamespace(path=str(tmp_path / "stores" / "one"))]
    (tmp_path / "stores").mkdir()
    ask(fake_window)
    (dialog,) = fake_window.findChildren(QFileDialog, "open.dialog")
    assert dialog.fileMode() == mode
    assert Path(dialog.directory().absolutePath()) == tmp_path / "stores"
    dialog.fileSelected.emit(str(tmp_path))
    assert fake_window.calls == [tmp_path]
    dialog.reject()


def test_every_window_is_asked_whether_it_may_close(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    windows = [
        SimpleNamespace(ask_close=lambda number=number: numbers.append(number), window=lambda: None)
        for number in range(3)
    ]
    monkeypatch.setattr(module, "windows_of_program", lambda: windows)
    quit_all()
    assert numbers == [0, 1, 2]


def test_settings_are_shown_in_the_desktop_s_own_way(fake_window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    show_logs(fake_window)
    assert opened == ["/settings"]


# ---- appearance ------------------------------------------------------------------------------------------------------


class Theme:
    """A fake theme."""

    def __init__(self) -> None:
        self.scheme, self.contrast, self.still, self.contrast_follows = "light", False, False, True
        self.motion: bool | None = None

    def set_scheme(self, scheme: str) -> None:
        self.scheme = scheme

    def set_contrast(self, on: bool) -> None:
        self.contrast = on

    def set_motion(self, motion: bool | None) -> None:
        self.motion = motion


@pytest.fixture
def looks(fake_window: Any, monkeypatch: pytest.MonkeyPatch) -> Theme:
    theme = Theme()
    names = (
        "theme.system",
        "theme.light",
        "theme.dark",
        "theme.contrast",
        "theme.motion",
        "view.tree",
        "session.restore",
        *(f"language.{language}" for language in assets.LANGUAGES),
    )
    fake_window.actions_by_id = {name: Action() for name in names}
    monkeypatch.setattr(module, "theme", theme)
    monkeypatch.setattr(module, "windows_of_program", lambda: [fake_window])
    return theme


def ticked_commands(window: Any) -> set[str]:
    return {name for name, action in window.actions_by_id.items() if action.isChecked()}


def test_colours_are_saved_and_ticked_in_every_window(fake_window: Any, looks: Theme) -> None:
    set_scheme(fake_window, "dark")
    assert (fake_window.settings.theme, looks.scheme) == ("dark", "dark")
    assert ticked_commands(fake_window) == {"theme.dark", "language.en", "view.tree"}
    fake_window.settings.tree_shown, fake_window.settings.restore = False, True
    tick(fake_window)
    assert ticked_commands(fake_window) == {"theme.dark", "language.en", "session.restore"}


@pytest.mark.parametrize(
    ("desktop", "on", "saved"), [(False, True, True), (True, False, False), (True, True, None), (False, False, None)]
)
def test_contrast_equal_to_the_desktops_keeps_following_it(
    fake_window: Any, looks: Theme, monkeypatch: pytest.MonkeyPatch, desktop: bool, on: bool, saved: bool | None
) -> None:
    monkeypatch.setattr(module, "desktop_contrast", lambda: desktop)
    set_contrast(fake_window, on)
    assert (looks.contrast, looks.contrast_follows) == (on, saved is None)
    assert fake_window.settings.contrast is saved


@pytest.mark.parametrize(
    ("is_reduced", "on", "saved"), [(False, False, False), (True, True, True), (False, True, None), (True, False, None)]
)
def test_motion_equal_to_the_desktops_keeps_following_it(
    fake_window: Any, looks: Theme, monkeypatch: pytest.MonkeyPatch, is_reduced: bool, on: bool, saved: bool | None
) -> None:
    monkeypatch.setattr(module, "desktop_still", lambda: is_reduced)
    set_motion(fake_window, on)
    assert fake_window.settings.motion is saved
    assert looks.motion is saved


def test_every_window_changes_its_language_and_the_same_one_changes_nothing(fake_window: Any, looks: Theme) -> None:
    spoken: list[str] = []
    fake_window.speak_anew = lambda: spoken.append(assets.language())
    set_language(fake_window, "en")
    assert spoken == []
    set_language(fake_window, "zh_CN")
    assert spoken == ["zh_CN"]
    assert fake_window.settings.language == "zh_CN"
    assert ticked_commands(fake_window) == {"theme.light", "language.zh_CN", "view.tree"}
