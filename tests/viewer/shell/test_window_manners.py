"""The window follows common conventions: keys and menus, errors below their field, default buttons, names and
titles.
"""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from panes import wait_until
from PySide6.QtCore import QRect
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu, QWidget

from viewer.look import assets
from viewer.shell.commands import MENUS, MNEMONICS
from viewer.shell.main_window import MainWindow
from viewer.shell.palette_box import Entry, PaletteBox
from viewer.shell.views import AT_FOOT, LISTENING, ON_RAIL
from viewer.widgets.record_view import RecordView

Run = Callable[[Any], Any]
Golden = Callable[..., Path]


async def opened(window: MainWindow, path: Path) -> None:
    assert await window.open(path)
    assert await window.settled(60)


def test_ctrl_and_digits_follow_the_rail_from_the_top() -> None:
    """Ctrl+7 opened the Lab, the last of the rail, and Ctrl+9 the Cluster above it."""
    keys = [view.keys for view in (*ON_RAIL, *LISTENING, *AT_FOOT)]
    assert keys == [f"Ctrl+{number % 10}" for number in range(1, len(keys) + 1)]


def test_every_menu_opens_by_its_letter_and_f10_opens_the_first(run: Run, window: MainWindow) -> None:
    assert set(MNEMONICS) == set(MENUS)
    assert len(set(MNEMONICS.values())) == len(MENUS)
    for action, name in zip(window.strip.bar.actions(), MENUS, strict=True):
        assert QKeySequence.mnemonic(action.text()).toString() == f"Alt+{MNEMONICS[name]}"
    assets.set_language("zh_CN")
    window.rebuild()
    assert [action.text()[-4:] for action in window.strip.bar.actions()] == [f"(&{MNEMONICS[name]})" for name in MENUS]
    window.actions_by_id["window.menus"].trigger()
    assert window.strip.menus[0].isVisible()
    window.strip.menus[0].close()


def test_recent_stores_are_in_the_file_menu(run: Run, window: MainWindow, golden: Golden) -> None:
    async def look() -> None:
        path = golden("broker-orders")
        await opened(window, path)
        menu = window.strip.menus[0].findChild(QMenu, "menu.recent")
        assert menu is not None
        menu.aboutToShow.emit()
        assert [action.text() for action in menu.actions()] == [str(path)]
        window.close_store()
        menu.actions()[0].trigger()
        await wait_until(lambda: window.session is not None, "it is opened")
        assert window.session is not None
        assert window.session.path == path

    run(look())


def test_the_tree_has_no_chosen_line_for_a_view_outside_it(run: Run, window: MainWindow, golden: Golden) -> None:
    """Config stayed chosen in the tree while Findings was shown beside it."""

    async def look() -> None:
        await opened(window, golden("broker-orders"))
        for view, line in (("config", True), ("findings", False), ("log", True), ("space", False)):
            window.show_view(view)
            assert window.side.tree.currentIndex().isValid() == line, view
            assert bool(window.side.tree.selectionModel().selectedIndexes()) == line, view

    run(look())


def test_an_archive_is_shown_under_its_own_name(run: Run, window: MainWindow, golden: Golden, tmp_path: Path) -> None:
    """The card showed store-21dda5abf9dc, and the note named a cache directory that the user had not given."""

    async def look() -> None:
        archive = tmp_path / "from-the-broker.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(golden("broker-orders"), "store")
        await opened(window, archive)
        session = window.session
        assert session is not None
        assert session.survey is not None
        assert window.side.card.name.text() == archive.name
        assert window.windowTitle().startswith(str(archive))
        assert session.survey.notes[0] == f"unpacked from {archive.name}"
        assert "found below" not in window.side.note.text()
        assert window.settings.recent[0].path == str(archive)

    run(look())


def test_the_title_has_no_parent_references(run: Run, window: MainWindow, golden: Golden) -> None:
    async def look() -> None:
        path = golden("broker-orders")
        await opened(window, path / ".." / path.name)
        assert window.windowTitle() == f"{path} – Storescope"
        assert window.top.crumbs._parts[0][0] == window.side.card.name.text()

    run(look())


def test_the_shadow_of_the_palette_leaves_nothing_behind(run: Run) -> None:
    """The box became smaller with each letter, and parts of its shadow stayed over the view below."""
    window, painted = QWidget(), []
    window.resize(1000, 800)

    class CountingPaletteBox(PaletteBox):
        def paintEvent(self, event: Any) -> None:  # noqa: N802
            painted.append(event.rect())
            super().paintEvent(event)

    entries = [Entry("Commands", "", f"Command {n}", f"id.{n}", "", lambda: None) for n in range(30)]
    box = CountingPaletteBox(window, lambda text: [entry for entry in entries if text in entry.text])
    window.show()
    box.open()
    window.grab()
    assert QTest.qWaitForWindowExposed(window, 60_000)
    painted.clear()
    box.field.setText("Command 29")
    run(wait_until(lambda: any(rect.contains(box.rect()) for rect in painted), "all of it is painted again"))
    window.close()


def test_half_of_a_small_screen_fits_a_linked_window(run: Run, window: MainWindow, golden: Golden) -> None:
    """Below 1,800 px linked windows overlapped, because none could be narrower than 900 px."""

    async def narrow() -> None:
        await opened(window, golden("broker-orders"))
        window.layouts.tie(True)
        window.resize(640, 720)
        await wait_until(
            lambda: (window.width(), window.height()) == (640, 720) and window.side.isHidden(), "it is narrow"
        )
        assert window.top.key.isHidden()
        assert window.top.follow.text() == ""
        table = window.findChild(RecordView, "units.table")
        assert table is not None
        shown = [slot.column.key for slot in table.slots_on_screen()]
        assert "tags" not in shown
        assert {"physicalOffset", "topic", "keys", "storeTimestamp"} <= set(shown)
        window.layouts.tie(False)
        await wait_until(lambda: window.width() >= 900 and not window.side.isHidden(), "it is wide again")
        assert not window.top.key.isHidden()

    run(narrow())


def test_no_name_in_a_view_moves_the_splitter_of_the_tree(run: Run, window: MainWindow, golden: Golden) -> None:
    """A group name of 142 letters made the tree 40 px narrower, permanently."""

    async def widen() -> None:
        await opened(window, golden("broker-orders"))
        window.resize(1000, 700)
        await asyncio.sleep(0.05)
        width_before = window.side.width()
        wide = QWidget(window.panes["log"])
        wide.setMinimumWidth(1500)
        window.panes["log"].layout().addWidget(wide)
        await asyncio.sleep(0.05)
        assert window.side.width() == width_before

    run(widen())


def test_the_first_window_comes_inside_the_screen_though_its_frame_comes_late(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window manager adds the frame after the window is shown: the title was above the screen, or the status bar
    below it. A requested size was never checked.
    """

    screen = SimpleNamespace(availableGeometry=lambda: QRect(0, 0, 1280, 720))
    framed = False

    def frame() -> QRect:
        return window.geometry().adjusted(-1, -20, 1, 5) if framed else window.geometry()

    monkeypatch.setattr(window, "screen", lambda: screen)
    monkeypatch.setattr(window, "frameGeometry", frame)
    window.remembers = True

    async def shown() -> None:
        nonlocal framed
        window.layouts.first_size((1280, 720))
        window.show()
        await asyncio.sleep(0.05)
        framed = True
        while frame().top() < 0 or frame().bottom() >= 720:
            await asyncio.sleep(0.01)

    run(shown())
    assert frame().width() <= 1280
    assert frame().top() >= 0
    assert frame().bottom() < 720
