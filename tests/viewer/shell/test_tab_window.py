"""Several stores in the tabs of one window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panes import wait_until
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from viewer.look import assets
from viewer.look.theme import theme
from viewer.runtime.places import Place, log
from viewer.shell.commands import BY_ID
from viewer.shell.main_window import MainWindow
from viewer.shell.tab_window import TabWindow, put_into_tabs, tab_titles, tab_window_of
from viewer.shell.windows import close_all, open_tab, windows

Run = Callable[[Any], Any]
Golden = Callable[..., Path]
SECOND = "broker-pop"


async def two_tabs(window: MainWindow, golden: Golden) -> tuple[TabWindow, MainWindow]:
    """Open a store in the window and another one in a second tab, which is in front."""
    assert await window.open(golden("broker-orders"))
    page = open_tab(window, golden(SECOND))
    assert page is not None
    await wait_until(lambda: page.session is not None, "the second store is open")
    await page.settled(60)
    tabs = tab_window_of(window)
    assert tabs is not None
    return tabs, page


@pytest.mark.parametrize(
    ("paths", "titles"),
    [
        (["/data/broker-a/store", "/data/broker-b/store"], ["broker-a", "broker-b"]),
        (["/a/x/broker/store", "/b/x/broker/store", ""], ["a/x/broker", "b/x/broker", ""]),
        (["/a/store", "/b/a/store"], ["a", "b/a"]),
        (["/a/broker", "/a/broker"], ["broker", "broker (2)"]),
        ([], []),
    ],
)
def test_stores_of_the_same_name_are_told_apart(paths: list[str], titles: list[str]) -> None:
    assert tab_titles(paths) == titles


def test_a_window_with_one_tab_looks_like_the_window_alone(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        assert await window.open(golden("broker-orders"))
        await window.settled(60)
        window.resize(1280, 720)
        alone = window.grab().toImage()
        tabs = put_into_tabs(window)
        tabs.resize(1280, 720)
        assert tabs.head.isHidden()
        assert tabs.grab().toImage().size() == alone.size()
        assert tabs.windowTitle() == f"{golden('broker-orders')} – Storescope"
        assert put_into_tabs(window) is tabs
        window.actions_by_id["window.close"].trigger()
        await wait_until(lambda: not tabs.isVisible(), "the window closes with its only tab")
        assert window.closed

    run(walk())


def test_each_tab_keeps_its_view_and_place(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        tabs, page = await two_tabs(window, golden)
        tabs.show()
        tabs.activateWindow()
        await wait_until(tabs.isActiveWindow, "the keys belong to the window")
        assert tabs.current is page
        assert not tabs.head.isHidden()
        assert [tabs.bar.tabToolTip(n) for n in range(2)] == [str(golden("broker-orders")), str(golden(SECOND))]
        page.go(Place("findings"))
        window.go(log(0))
        QTest.keyClick(page, Qt.Key.Key_PageDown, Qt.KeyboardModifier.ControlModifier)
        assert tabs.current is window
        assert (window.view, page.view) == ("log", "findings")
        assert tabs.windowTitle() == window.windowTitle()
        QTest.keyClick(window, Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier)
        assert tabs.current is page
        assert page.isVisible()
        assert not window.isVisible()
        await close_all()

    run(walk())


def test_the_focus_of_a_page_stays_and_escape_leaves_the_tabs(run: Run, window: MainWindow, golden: Golden) -> None:
    """When the second tab opened, the first one lost its focus to the button Back. Escape on the tabs did nothing."""

    async def walk() -> None:
        assert await window.open(golden("broker-orders"))
        window.show()
        window.pane("log").setFocus()
        table = window.focusWidget()
        assert table is not None
        page = open_tab(window)
        tabs = tab_window_of(window)
        assert tabs is not None
        assert page is not None
        tabs.show_page(window)
        assert tabs.focusWidget() is table
        tabs.activateWindow()
        await wait_until(tabs.isActiveWindow, "the window is active")
        tabs.bar.setFocus(Qt.FocusReason.TabFocusReason)
        bar = tabs.bar.grab().toImage()
        QTest.keyClick(tabs.bar, Qt.Key.Key_Escape)
        assert tabs.focusWidget() is table
        assert tabs.bar.grab().toImage() != bar, "the focus is seen on the tabs"

    run(walk())


def test_a_closed_tab_opens_again_at_its_place(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        tabs, page = await two_tabs(window, golden)
        page.go(Place("space"))
        page.actions_by_id["window.close"].trigger()
        assert page.closed
        assert not window.closed
        assert tabs.pages == [window]
        assert tabs.head.isHidden()
        assert window.actions_by_id["tab.reopen"].isEnabled()
        window.actions_by_id["tab.reopen"].trigger()
        reopened = tabs.pages[1]
        await wait_until(lambda: reopened.session is not None and reopened.view == "space", "it is open again")
        assert not window.actions_by_id["tab.reopen"].isEnabled()
        await close_all()

    run(walk())


def test_the_first_tab_can_close_before_the_others(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        window.remembers = True
        tabs, page = await two_tabs(window, golden)
        tabs.show_page(window)
        window.actions_by_id["window.close"].trigger()
        assert window.closed
        assert tabs.current is page
        assert page.remembers
        page.actions_by_id["app.quit"].trigger()
        assert page.closed
        await close_all()

    run(walk())


def test_the_sessions_of_all_tabs_come_back(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        window.remembers = window.settings.restore = True
        tabs, page = await two_tabs(window, golden)
        page.go(Place("space"))
        tabs.close()
        assert window.closed
        assert page.closed
        assert window.workspace.last() is not None
        ((file, in_front),) = window.workspace.last_tabs()
        assert in_front
        assert str(golden(SECOND)) in file.read_text("utf-8")
        window.settings.restore = False
        await close_all()

    run(walk())


def test_a_dropped_folder_opens_in_a_tab_beside_an_open_store(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        assert await window.open(golden("broker-orders"))
        urls = QMimeData()
        urls.setUrls([QUrl.fromLocalFile(str(golden(SECOND)))])
        copy, no_button, no_key = Qt.DropAction.CopyAction, Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        event = QDropEvent(QPointF(9, 9), copy, urls, no_button, no_key)
        assert window._drops.eventFilter(window, event)  # Qt delivers a drop only after a real drag
        (page,) = windows()
        await wait_until(lambda: page.session is not None, "the dropped store is open")
        assert window.session is not None
        assert window.session.path == golden("broker-orders")
        await close_all()

    run(walk())


def test_two_tabs_are_compared_on_one_page_and_side_by_side(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        tabs, page = await two_tabs(window, golden)
        assert page.actions_by_id["tab.compare"].isEnabled()
        page.actions_by_id["tab.compare"].trigger()
        assert page.view == "compare"
        assert page.history.current == Place("compare", name=str(golden("broker-orders")))
        page.show_view("log")
        page.actions_by_id["tab.link"].trigger()
        own = tab_window_of(window)
        assert own is not None
        assert own is not tabs
        assert page.workspace.comparison.other_window is window
        assert window.workspace.comparison.other_window is page
        assert str(golden(SECOND)) in window.tied.accessibleName()
        assert (tabs.pages, own.pages) == ([page], [window])
        await close_all()

    run(walk())


def test_a_tab_has_a_menu_that_says_what_comparing_needs(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        tabs, _page = await two_tabs(window, golden)
        tabs.bar.menuRequested.emit(1, tabs.mapToGlobal(tabs.rect().center()))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        compare = menu.actions()[0]
        assert not compare.isEnabled()
        assert compare.toolTip() == "Needs a store in this tab and another one in front."
        menu.close()
        tabs.bar.menuRequested.emit(0, tabs.mapToGlobal(tabs.rect().center()))
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        assert menu.actions()[0].isEnabled()
        menu.close()
        await close_all()

    run(walk())


def test_a_new_tab_shows_the_first_page_and_follows_language_and_colours(
    run: Run, window: MainWindow, golden: Golden
) -> None:
    async def walk() -> None:
        assert await window.open(golden("broker-orders"))
        window.actions_by_id["tab.new"].trigger()
        tabs = tab_window_of(window)
        assert tabs is not None
        assert tabs.bar.tabText(1) == "New tab"
        light = tabs.bar.styleSheet()
        theme.set_scheme("dark")
        assert tabs.bar.styleSheet() != light
        theme.set_scheme("light")
        assets.set_language("zh_CN")
        for page in tabs.pages:
            page.rebuild()
        assert tabs.bar.tabText(1) == "新标签页"
        await close_all()

    assert BY_ID["tab.new"].keys == ("Ctrl+N",)
    run(walk())
