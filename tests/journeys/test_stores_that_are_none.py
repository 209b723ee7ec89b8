"""Paths without a store, parts of a store, and stores that grow, shrink and vanish while they are open."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from walker import Run, Walker

from viewer.shell.views import BY_KIND
from viewer.widgets.record_view import RecordView

pytestmark = pytest.mark.journey
LOG = "units.table"


def make_nothing(path: Path) -> None:
    """Make no file at all."""


def make_text(path: Path) -> None:
    """Make a file that is no log."""
    path.write_text("this is no log")


def make_digits(path: Path) -> None:
    """Make a file with a log file's name and other content."""
    (path := path.with_name("00000000000000000000")).write_bytes(b"\x89PNG" + bytes(5000))


def make_tree(path: Path) -> None:
    """Make a directory with other files."""
    (path / "photos").mkdir(parents=True)
    (path / "notes.txt").write_text("nothing")


@pytest.mark.parametrize("make", [make_nothing, make_text, Path.mkdir, make_tree])
def test_the_window_names_what_the_path_is_instead(
    run: Run, walker: Walker, tmp_path: Path, make: Callable[[Path], object], orders: Path
) -> None:
    path = tmp_path / "here"
    make(path)

    async def walk() -> None:
        assert not await walker.window.open(path)
        page = walker.find(QWidget, "error.page")
        assert page.isVisible()
        words = walker.texts(page)
        assert str(path) in words
        assert "Expected" in words
        assert "Found" in words
        assert "Traceback" not in words
        walker.find(QPushButton, "error.again").click()
        await asyncio.sleep(0.1)
        await walker.open(orders)
        assert walker.table(LOG).model().rowCount() > 10

    run(walk())


def test_a_log_file_without_a_log_says_so(run: Run, walker: Walker, tmp_path: Path) -> None:
    make_digits(tmp_path / "x")

    async def walk() -> None:
        opened = await walker.window.open(tmp_path / "00000000000000000000")
        await walker.rest()
        if opened:
            output = walker.table(LOG).note.state or walker.table(LOG).strip.state
            rows = [" ".join(row.values()) for row in walker.rows(LOG)]
            assert rows or output is not None
            assert any("Damaged" in row or "Zero tail" in row for row in rows) or output is not None
        else:
            assert walker.find(QWidget, "error.page").isVisible()

    run(walk())


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("part", ["above", "commitlog", "file", "second file"])
def test_a_part_of_a_store_opens_and_says_what_it_is(
    run: Run, walker: Walker, orders: Path, tmp_path: Path, part: str
) -> None:
    files = sorted((orders / "commitlog").iterdir())
    path = {
        "above": orders.parent,
        "commitlog": orders / "commitlog",
        "file": files[0],
        "second file": tmp_path / files[1].name,
    }[part]
    if part == "second file":
        shutil.copy(files[1], path)

    async def walk() -> None:
        await walker.open(path)
        assert walker.table(LOG).model().rowCount() > 10
        first_offset = walker.values(LOG, "Physical offset")[0]
        assert first_offset == (int(files[1].name) if part == "second file" else 0)
        silent: list[str] = []
        for view in BY_KIND:
            walker.window.show_view(view)
            await walker.rest()
            silent += mute_tables(walker)
        assert not silent, silent

    run(walk())


def mute_tables(walker: Walker) -> list[str]:
    """Return the empty tables on the screen without a reason."""
    return [
        f"{walker.window.view}: {table.objectName()}"
        for table in walker.window.panes[walker.window.view].findChildren(RecordView)
        if table.isVisible()
        and not table.model().rowCount()
        and not any(state is not None and state.text for state in (table.note.state, table.strip.state))
    ]


def test_a_directory_is_dropped_anywhere(run: Run, walker: Walker, orders: Path) -> None:
    """With a store in the window it opens in a new tab: ``tests/viewer/shell/test_tab_window.py``."""

    async def walk() -> None:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(orders))])
        copy, left_button, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        enter = QDragEnterEvent(QPoint(700, 500), copy, data, left_button, none)
        QApplication.sendEvent(walker.window, enter)
        assert enter.isAccepted()
        QApplication.sendEvent(walker.window, QDropEvent(QPointF(700, 500), copy, data, left_button, none))
        await walker.until(lambda: walker.window.session is not None and walker.window.session.path == orders)
        await walker.rest()
        assert walker.table(LOG).model().rowCount() > 10

    run(walk())


def test_growth_is_seen_and_followed_until_somebody_goes_elsewhere(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    """With Follow on, every link into the log ended at the last row: the table went back there at once."""
    store = copied(orders)
    log = sorted((store / "commitlog").iterdir())[-1]

    async def walk() -> None:
        await walker.open(store)
        session = walker.window.session
        assert session is not None
        walker.action("view.follow").trigger()
        await walker.rest()
        end = session.snapshot.log.max_offset
        last_unit = session.snapshot.log.items_before(end, 1)[0]
        unit = bytearray(session.snapshot.log.read(last_unit.offset, last_unit.size))
        for n in range(3):
            position = end + n * last_unit.size
            unit[28:36] = position.to_bytes(8, "big")
            with log.open("r+b") as file:
                file.seek(position - int(log.name))
                file.write(unit)
        newest = end + 2 * last_unit.size
        walker.action("view.refresh").trigger()
        await walker.until(lambda: newest in walker.values(LOG, "Physical offset"), "new rows are shown", 60)
        assert walker.window.top.follow.isChecked()
        await walker.go("0")
        assert not session.following
        assert not walker.window.top.follow.isChecked()
        assert "Follow has ended" in walker.status_text
        assert walker.value(LOG, "Physical offset") == 0
        walker.action("view.refresh").trigger()
        await walker.rest()
        assert walker.value(LOG, "Physical offset") == 0

    run(walk())


@pytest.mark.parametrize("how", ["truncate", "delete"])
def test_files_that_shrink_or_vanish_are_reported_in_words(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], how: str
) -> None:
    store = copied(orders)

    async def walk() -> None:
        await walker.open(store)
        log = sorted((store / "commitlog").iterdir())
        if how == "truncate":
            os.truncate(log[1], 5_000)
            os.truncate(next((store / "consumequeue" / "OrderPaid" / "0").iterdir()), 50)
            os.truncate(sorted((store / "index").iterdir())[0], 100)
        else:
            shutil.rmtree(store)
        walker.action("view.refresh").trigger()
        for view in (*BY_KIND, "log"):
            walker.window.show_view(view)
            await walker.rest()
        await walker.act("go.last")
        for text in ("1500000", "OrderPaid/0/200", "index", "0"):
            await walker.go(text)
        await walker.rest()
        assert walker.window.isVisible()
        if how == "truncate":
            assert walker.table(LOG).model().rowCount() > 0
        else:
            log_table = walker.table(LOG)
            await walker.until(
                lambda: log_table.note.state or log_table.strip.state, "the table says that nothing is there"
            )

    run(walk())
