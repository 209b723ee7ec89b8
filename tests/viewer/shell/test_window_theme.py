"""A new theme is applied part by part, the front window first; nothing waits for other windows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from viewer.look.theme import DARK, C, _Follower, mono, px, style_sheet, theme, ui
from viewer.shell import window_theme, windows
from viewer.shell.main_window import MainWindow
from viewer.shell.views import BY_KIND
from viewer.shell.window_theme import all_windows_themed
from viewer.widgets.basics import ElidedLine, Label, PaneHead
from viewer.widgets.record_state import State, StateLine
from viewer.widgets.record_view import RecordView

with_every_pane = pytest.mark.usefixtures("every_pane")

Run = Callable[[Any], Any]
Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(60)


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(15_000):  # 150 s: a machine may be busy
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


@with_every_pane
def test_windows_get_a_new_style_part_by_part(run: Run, window: MainWindow, golden: Golden, monkeypatch) -> None:
    """The application's style sheet was applied to every widget of all windows at once, so no click was accepted for
    seconds.

    With five windows open the screen froze for six seconds, and requested dialogs piled up.
    """
    turns: list[tuple[MainWindow, bool]] = []
    before_front: list[tuple[MainWindow, QWidget]] = []

    async def change() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        second_window = windows.open_beside(window, path, "log")
        assert second_window is not None
        await second_window.settled(60)
        assert QApplication.instance().styleSheet() == ""
        front = second_window if second_window.isActiveWindow() else window
        front.activateWindow()
        await _until(lambda: all_windows_themed() and front.isActiveWindow())
        stale = window_theme.WindowTheme.stale

        def noted(window_style: window_theme.WindowTheme, *, visible: bool) -> QWidget | None:
            part = stale(window_style, visible=visible)
            if part is not None:
                turns.append((window_style._window, visible))
                in_front = next(
                    (
                        second_window
                        for second_window in window_theme._all
                        if second_window.holds(QApplication.activeWindow())
                    ),
                    window_style,
                )
                if visible and in_front is not window_style and stale(in_front, visible=True) is not None:
                    before_front.append((window_style._window, part))
            return part

        monkeypatch.setattr(window_theme.WindowTheme, "stale", noted)
        theme.set_scheme("dark")
        assert not turns, "no style is applied in the turn of the click"
        await _until(all_windows_themed)
        assert not before_front, "the front window gets the style first"
        assert {themed for themed, observed in turns if observed} == {window, second_window}
        for shown_window in (window, second_window):
            assert shown_window.updatesEnabled()
            assert {shown_window.panes[view].styleSheet() for view in shown_window.panes} == {style_sheet()}
            labels = [label for label in shown_window.findChildren(Label) if label.isVisible() and label.text()]
            assert len(labels) > 5
            assert {label.palette().windowText().color().name() for label in labels} <= {
                colour.lower() for colour in DARK.values()
            }
            assert {
                part.styleSheet()
                for part in (shown_window.top, shown_window.rail, shown_window.side, shown_window.strip)
            } == {style_sheet()}
        await windows.close_all()

    run(change())


def test_windows_opened_later_have_the_theme(run: Run, window: MainWindow, golden: Golden) -> None:
    async def look() -> None:
        await opened(window, golden("broker-orders"))
        theme.set_scheme("dark")
        await _until(all_windows_themed)
        box = QDialog(window)
        button = QPushButton("x", box)
        box.show()
        assert box.styleSheet() == style_sheet()
        assert button.grab().toImage().pixelColor(4, button.height() // 2).name() == C("raised").name()
        theme.set_scheme("light")
        await _until(all_windows_themed)
        assert box.styleSheet() == style_sheet()
        box.close()

    run(look())


def test_fast_zoom_steps_are_joined(run: Run, window: MainWindow, golden: Golden, tmp_path: Path) -> None:
    """Four steps queued eight seconds of work. Now they are joined, and keys are handled in between."""
    zooms: list[int] = []

    async def scale() -> None:
        await opened(window, golden("broker-orders"))
        theme.changed.connect(lambda: zooms.append(theme.zoom))
        for _ in range(4):
            window.actions_by_id["zoom.in"].trigger()
        assert "140 %" in window.status.message.text()
        await _until(lambda: theme.zoom == 140)
        assert zooms == [140]
        assert window.settings.zoom == 140

    run(scale())


def _late(window: MainWindow) -> list[QWidget]:
    """Return the widgets in ``window`` that follow the theme and do not have the current one yet."""
    return [item.parent() for item in QWidget.findChildren(window, _Follower) if item.version != theme.version]


@with_every_pane
def test_no_widget_is_updated_in_the_turn_of_the_click_and_all_are_in_the_end(
    run: Run, window: MainWindow, golden: Golden
) -> None:
    """All widgets of all windows were updated in the turn of the click: fonts, icons and heights of 9,000 widgets."""

    async def change() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        second_window = windows.open_beside(window, path, "log")
        assert second_window is not None
        await second_window.settled(60)
        boxes = (
            "help.keys",
            "help.about",
            "help.tour",
            "view.operations",
            "layout.save",
            "colour.rules",
            "palette.open",
        )
        for name in boxes:
            window.actions_by_id[name].trigger()
            await asyncio.sleep(0.02)
        await _until(all_windows_themed)
        assert not _late(window)
        for step in (lambda: theme.set_scheme("dark"), lambda: theme.set_zoom(130)):
            count = {
                each_window: len(QWidget.findChildren(each_window, _Follower))
                for each_window in (window, second_window)
            }
            step()
            for shown_window in (window, second_window):
                assert len(_late(shown_window)) == count[shown_window] > 500
            await _until(all_windows_themed)
            assert not [*_late(window), *_late(second_window)]
        for shown_window in (window, second_window):
            for view in BY_KIND if shown_window is window else ("log",):
                shown_window.show_view(view)
                await asyncio.sleep(0.02)
                assert shown_window.panes[view].styleSheet() == style_sheet()
            assert not _late(shown_window)
            labels = [label for label in shown_window.findChildren(Label) if type(label) in {Label, ElidedLine}]
            assert len(labels) > 100
            for label in labels:
                fonts = (ui, mono)[label._code](label._size, label._weight)
                assert label.font().pixelSize() == fonts.pixelSize(), label.text()
                assert label.palette().windowText().color() == C(label._role), label.text()
            heads = [head for head in shown_window.findChildren(PaneHead) if head.isVisible()]
            assert heads
            for head in heads:
                assert head.minimumHeight() == px(32)
        await windows.close_all()

    run(change())


@with_every_pane
def test_changes_during_the_update_have_the_new_theme(run: Run, window: MainWindow, golden: Golden) -> None:
    """A text, a role and a chip that are set while the window is half updated have the new theme in the end."""

    async def change() -> None:
        await opened(window, golden("broker-orders"))
        window.show_view("config")
        await window.settled(60)
        pane = window.panes["config"]
        head = pane.findChild(PaneHead)
        assert head is not None
        await _until(lambda: head.note.text() != "")  # the table has its values, so it is not written later
        theme.set_scheme("dark")
        theme.set_zoom(120)
        head.note.setText("said in between")
        head.note.set_role("error")
        new_label = Label("made in between")
        head.box.addWidget(new_label)
        theme.set_zoom(140)
        window.show_view("findings")
        assert not [item for item in _late(window) if window.panes["findings"].isAncestorOf(item)], (
            "a view that is shown does not wait for its turn"
        )
        await _until(all_windows_themed)
        for label, role, size in ((head.note, "error", 12), (new_label, "text", 13)):
            assert label.palette().windowText().color() == C(role)
            assert label.font().pixelSize() == ui(size).pixelSize()
        assert head.note.text() == "said in between"

    run(change())


@pytest.mark.full_form
@with_every_pane
def test_a_language_change_runs_step_by_step_despite_other_changes(
    run: Run, window: MainWindow, golden: Golden
) -> None:
    """Windows were rebuilt in the turn of the click, 0.4 s each, and the old ones were deleted in another turn."""

    async def speak() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        second_window = windows.open_beside(window, path, "log")
        assert second_window is not None
        await second_window.settled(60)
        parts_before = {
            each_window: (each_window.stack, list(each_window.panes.values()))
            for each_window in (window, second_window)
        }
        window.actions_by_id["language.zh_CN"].trigger()
        for shown_window, (stack, panes) in parts_before.items():
            assert shown_window.stack is stack, "nothing is rebuilt in the turn of the click"
            assert [isValid(pane) for pane in panes] == [True] * len(panes)
        for number in range(24):
            window.show_view(("index", "queue", "log")[number % 3])
            window.actions_by_id["view.tree"].trigger()
            await asyncio.sleep(0)
            if number == 4:
                window.actions_by_id["language.en"].trigger()
            if number == 9:
                window.actions_by_id["language.zh_CN"].trigger()
        await _until(all_windows_themed)
        for shown_window, (stack, panes) in parts_before.items():
            assert shown_window.updatesEnabled()
            assert not isValid(stack)
            assert not any(isValid(pane) for pane in panes)
            assert shown_window.rail.buttons["findings"].text() == "诊断"
            assert shown_window.actions_by_id["language.zh_CN"].isChecked()
            for view in BY_KIND if shown_window is window else ("log",):
                shown_window.show_view(view)
                await shown_window.settled(60)
                assert shown_window.panes[view].session is shown_window.session
            heads = shown_window.findChild(RecordView, "units.table").model()
            assert "物理偏移量" in [heads.head(n) for n in range(heads.columnCount())]
        await windows.close_all()

    run(speak())


def test_a_window_without_a_store_changes_its_language(run: Run, window: MainWindow) -> None:
    async def speak() -> None:
        window.show_welcome()
        window.actions_by_id["language.zh_CN"].trigger()
        await _until(all_windows_themed)
        assert window.rail.buttons["findings"].text() == "诊断"
        assert not window.panes
        assert window.pages.currentIndex() == 1

    run(speak())


def test_a_dialog_made_before_the_theme_has_it_when_it_is_shown(run: Run, window: MainWindow, golden: Golden) -> None:
    async def look() -> None:
        await opened(window, golden("broker-orders"))
        box = QDialog(window)
        words = Label("x")
        QVBoxLayout(box).addWidget(words)
        theme.set_scheme("dark")
        await _until(all_windows_themed)
        box.show()
        assert words.palette().windowText().color() == C("text")
        box.close()

    run(look())


def test_a_shown_banner_takes_the_colours_of_the_new_theme(themed_app: QApplication) -> None:
    """A banner shown in light colours was hardly readable in dark ones."""
    holder = QWidget()
    line = StateLine(holder)
    line.show_state(State("note", "Linked to another store"))
    theme.set_scheme("dark")
    label = line.findChild(QLabel)
    assert label is not None
    assert label.palette().windowText().color().name() == C("text2").name()


def test_menu_icons_have_the_colour_of_the_current_theme(run: Run, window: MainWindow, golden: Golden) -> None:
    """They kept the colour of the theme in which they were made: dark grey on black, nearly invisible."""

    async def change() -> None:
        await opened(window, golden("broker-orders"))
        action = window.actions_by_id["view.units"]
        await _until(lambda: not action.icon().isNull())
        for scheme in ("dark", "light"):
            theme.set_scheme(scheme)
            await _until(all_windows_themed)
            assert _colour_of(action.icon()) == C("text2").name(), scheme

    run(change())


def _colour_of(icon: QIcon) -> str:
    """Return the stroke colour of an icon: that of its most opaque pixel."""
    picture = icon.pixmap(18, 18).toImage()
    pixels = [picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height())]
    return max(pixels, key=lambda pixel: pixel.alpha()).name()
