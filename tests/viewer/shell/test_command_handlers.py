"""What commands do that no part of the window does by itself, over windows with as much as each command asks for."""

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
    """A window that notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
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
        self.show_view, self.go, self.say = self.asked.append, self.asked.append, self.asked.append

    def pane_commands(self) -> dict[str, Callable[[], object]]:
        return self.answers

    def close_store(self) -> None:
        self.asked.append("closed")

    def show_welcome(self) -> None:
        self.asked.append("welcome")

    def ask_open(self, path: Path) -> None:
        self.asked.append(path)


@pytest.fixture
def fake_window(themed_app: object) -> Iterator[Any]:
    window = Window()
    yield window
    window.deleteLater()


class Action:
    """A command's tick."""

    def __init__(self, on: bool = False) -> None:
        self.on = on

    def isChecked(self) -> bool:  # noqa: N802
        return self.on

    def setChecked(self, on: bool) -> None:  # noqa: N802
        self.on = on


# ---- what the view in front answers ----------------------------------------------------------------------------------


def test_a_command_of_the_findings_is_answered_there_from_anywhere(fake_window: Any) -> None:
    in_findings(fake_window, "check.run")
    assert fake_window.asked == ["findings"], "it comes to the front, though it has no answer"
    fake_window.answers["check.run"] = lambda: fake_window.asked.append("checked")
    in_findings(fake_window, "check.run")
    assert fake_window.asked[1:] == ["findings", "checked"]


def test_looking_again_asks_the_store_and_the_view_in_front(fake_window: Any) -> None:
    refresh_view(fake_window)
    assert fake_window.asked == []
    fake_window.session = SimpleNamespace(look=lambda *, anyway: fake_window.asked.append(anyway))
    fake_window.answers["view.refresh"] = lambda: fake_window.asked.append("refreshed")
    refresh_view(fake_window)
    assert fake_window.asked == [True, "refreshed"], "also where nothing seems to have changed"


def test_the_filter_of_the_view_in_front_comes_before_the_log_s(fake_window: Any) -> None:
    def show_log(view: str) -> None:
        fake_window.asked.append(view)
        fake_window.answers["filter.focus"] = lambda: fake_window.asked.append("the log's")

    fake_window.show_view = show_log
    focus_filter(fake_window)
    assert fake_window.asked == ["log", "the log's"]
    fake_window.answers["filter.focus"] = lambda: fake_window.asked.append("its own")
    focus_filter(fake_window)
    assert fake_window.asked == ["log", "the log's", "its own"]


def test_the_key_to_trace_is_asked_for_in_the_index(fake_window: Any) -> None:
    trace_key(fake_window)
    assert fake_window.asked == ["index"], "without the field nothing breaks"
    fake_window.answers["trace.open"] = lambda: fake_window.asked.append("focused")
    trace_key(fake_window)
    assert fake_window.asked == ["index", "index", "focused"]


def test_a_store_is_closed_before_the_welcome_page_comes(fake_window: Any) -> None:
    close_store(SimpleNamespace(window=fake_window, lab=SimpleNamespace(ask_leave=lambda agreed: agreed())))
    assert fake_window.asked == ["closed", "welcome"]


# ---- places ----------------------------------------------------------------------------------------------------------


def test_a_place_is_copied_as_the_command_line_writes_it(fake_window: Any) -> None:
    QGuiApplication.clipboard().setText("before")
    copy_place(fake_window)
    assert (QGuiApplication.clipboard().text(), fake_window.asked) == ("before", [])
    fake_window.history.current = places.queue("Orders", 0, 42)
    copy_place(fake_window)
    assert QGuiApplication.clipboard().text() == "queue:Orders/0/42"
    assert fake_window.asked == ["Copied queue:Orders/0/42"]


def follow_answers(made: Any, *, on: bool) -> list[bool]:
    """What the session was told about following once the command is ticked or not."""
    answers: list[bool] = []

    def follow(expected: bool) -> None:
        answers.append(expected)
        made.asked.append(f"follow {expected}")

    made.session = SimpleNamespace(follow=follow)
    made.actions_by_id["view.follow"] = Action(on)
    follow_end(made)
    return answers


def test_following_brings_the_log_to_the_front_first(fake_window: Any) -> None:
    """A jump to a row ends Follow, so the log comes to the front as a whole before Follow begins. The log itself then
    chooses its newest unit.
    """
    assert follow_answers(fake_window, on=True) == [True]
    assert fake_window.asked == [Place("log"), "follow True"]
    assert not fake_window.asked[0].names_row


def test_following_ends_where_one_is(fake_window: Any) -> None:
    assert follow_answers(fake_window, on=False) == [False]
    assert fake_window.asked == ["follow False"]
    fake_window.session = None
    follow_end(fake_window)


@pytest.fixture
def parts(fake_window: Any) -> list[QWidget]:
    """Go-to box, tree and a part of the view, in their order, and a field besides."""
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


@pytest.mark.parametrize(("step", "at"), [(1, 0), (-1, 2)])
def test_from_elsewhere_one_comes_to_the_first_or_backwards_to_the_last(
    parts: list[QWidget], fake_window: Any, qtbot: Any, step: int, at: int
) -> None:
    """Backwards it was the last but one."""
    qtbot.waitUntil(fake_window.isActiveWindow, timeout=60_000)
    parts[3].setFocus()
    next_pane(fake_window, step)
    assert fake_window.focusWidget() is parts[at]


def test_where_no_part_is_seen_the_focus_stays(fake_window: Any) -> None:
    next_pane(fake_window, 1)
    assert fake_window.focusWidget() is None


# ---- stores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "mode"),
    [(ask_directory, QFileDialog.FileMode.Directory), (ask_file, QFileDialog.FileMode.ExistingFile)],
)
def test_another_store_is_asked_for_beside_the_last_one_and_opened(
    fake_window: Any, tmp_path: Path, ask: Callable[[Any], None], mode: Any
) -> None:
    fake_window.settings.recent = [SimpleNamespace(path=str(tmp_path / "stores" / "one"))]
    (tmp_path / "stores").mkdir()
    ask(fake_window)
    (dialog,) = fake_window.findChildren(QFileDialog, "open.dialog")
    assert dialog.fileMode() == mode
    assert Path(dialog.directory().absolutePath()) == tmp_path / "stores"
    dialog.fileSelected.emit(str(tmp_path))
    assert fake_window.asked == [tmp_path]
    dialog.reject()


def test_every_window_is_asked_whether_it_may_close(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    windows = [SimpleNamespace(ask_close=lambda number=number: numbers.append(number)) for number in range(3)]
    monkeypatch.setattr(module, "windows_of_program", lambda: windows)
    quit_all()
    assert numbers == [0, 1, 2]


def test_settings_are_shown_in_the_desktop_s_own_way(fake_window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    show_logs(fake_window)
    assert opened == ["/settings"]


# ---- looks -----------------------------------------------------------------------------------------------------------


class Theme:
    """What is in force."""

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


def ticked(made: Any) -> set[str]:
    return {name for name, action in made.actions_by_id.items() if action.isChecked()}


def test_colours_are_kept_and_ticked_in_every_window(fake_window: Any, looks: Theme) -> None:
    set_scheme(fake_window, "dark")
    assert (fake_window.settings.theme, looks.scheme) == ("dark", "dark")
    assert ticked(fake_window) == {"theme.dark", "language.en", "view.tree"}
    fake_window.settings.tree_shown, fake_window.settings.restore = False, True
    tick(fake_window)
    assert ticked(fake_window) == {"theme.dark", "language.en", "session.restore"}


@pytest.mark.parametrize(
    ("desktop", "on", "kept"), [(False, True, True), (True, False, False), (True, True, None), (False, False, None)]
)
def test_contrast_that_the_desktop_wants_too_goes_on_following_it(
    fake_window: Any, looks: Theme, monkeypatch: pytest.MonkeyPatch, desktop: bool, on: bool, kept: bool | None
) -> None:
    monkeypatch.setattr(module, "desktop_contrast", lambda: desktop)
    set_contrast(fake_window, on)
    assert (looks.contrast, looks.contrast_follows) == (on, kept is None)
    assert fake_window.settings.contrast is kept


@pytest.mark.parametrize(
    ("still", "on", "kept"), [(False, False, False), (True, True, True), (False, True, None), (True, False, None)]
)
def test_motion_that_the_desktop_wants_too_goes_on_following_it(
    fake_window: Any, looks: Theme, monkeypatch: pytest.MonkeyPatch, still: bool, on: bool, kept: bool | None
) -> None:
    monkeypatch.setattr(module, "desktop_still", lambda: still)
    set_motion(fake_window, on)
    assert fake_window.settings.motion is kept
    assert looks.motion is kept


def test_every_window_speaks_another_language_and_the_same_one_changes_nothing(fake_window: Any, looks: Theme) -> None:
    spoken: list[str] = []
    fake_window.speak_anew = lambda: spoken.append(assets.language())
    set_language(fake_window, "en")
    assert spoken == []
    set_language(fake_window, "zh_CN")
    assert spoken == ["zh_CN"]
    assert fake_window.settings.language == "zh_CN"
    assert ticked(fake_window) == {"theme.light", "language.zh_CN", "view.tree"}
