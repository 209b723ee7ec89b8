"""Sessions saved, opened and restored; archives opened by unpacking a copy; a place in a window of its own."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit
from walker import SHIFT, Run, Walker

from viewer.runtime.bookmarks import Bookmark, bookmarks_of
from viewer.shell import session_file
from viewer.shell.windows import close_all, windows

pytestmark = pytest.mark.journey
LOG = "units.table"


def test_a_session_file_brings_place_notes_filter_and_bookmarks_back(
    run: Run, walker: Walker, damaged: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        window, file = walker.window, tmp_path / "night.storescope"
        await walker.open(damaged)
        walker.find(QLineEdit, "filter.field").setText('topic = "OrderPaid"')
        await walker.act("filter.apply")
        await walker.until(lambda: set(walker.values(LOG, "Topic")) == {"OrderPaid"}, "hits are there")
        await walker.choose(LOG, 5)
        chosen = walker.value(LOG, "Physical offset")
        session = window.session
        assert session is not None
        bookmarks_of(session).put(Bookmark("log:1310900", "flipped", "error"))
        bookmarks_of(session).set_notes("asked the replica")
        window.workspace.save(damaged / "no.storescope")
        assert "Nothing is written into the store" in walker.status_text
        window.workspace.save(file)
        await walker.until(file.exists, "it is written")
        assert not (damaged / "no.storescope").exists()
        bookmarks_of(session).remove("log:1310900")
        bookmarks_of(session).set_notes("")
        await walker.until(lambda: window.jobs.quick_idle, "that is kept")
        window.close_store()
        await walker.open(file)
        await walker.until(lambda: set(walker.values(LOG, "Topic")) == {"OrderPaid"}, "the filter is there again")
        await walker.until(lambda: walker.value(LOG, "Physical offset") == chosen, "the unit is chosen")
        marks = bookmarks_of(window.session)
        await walker.until(lambda: bool(marks.list), "bookmarks came with it")
        assert (marks.list[0].name, marks.notes) == ("flipped", "asked the replica")
        assert walker.find(QLineEdit, "filter.field").text() == 'topic = "OrderPaid"'
        marks.remove("log:1310900")
        marks.set_notes("")
        await walker.rest()

    run(walk())


def test_section_8_the_last_store_comes_back_where_that_was_chosen(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        window = walker.window
        await walker.open(orders, "queue:StockReserved/1/7")
        assert window.workspace.last() is None
        await walker.act("session.restore")
        assert "next start opens" in walker.status_text
        window.remembers = True
        window.workspace.keep_last()
        window.remembers = False
        file = window.workspace.last()
        assert file is not None
        assert session_file.read(file).place == "queue:StockReserved/1/7"
        await walker.act("session.restore")
        assert window.workspace.last() is None

    run(walk())


def test_section_8_an_archive_is_opened_by_unpacking_a_copy(
    run: Run, walker: Walker, orders: Path, tmp_path: Path
) -> None:
    async def walk() -> None:
        packed = tmp_path / "from-the-broker.tar"
        with tarfile.open(packed, "w") as out:
            out.add(orders, "broker-a/store")
        await walker.open(packed)
        session = walker.window.session
        assert session is not None
        assert not session.path.is_relative_to(tmp_path)
        assert walker.table(LOG).model().rowCount() > 10
        (tmp_path / "x.storescope").write_text("{}", "utf-8")
        assert not await walker.window.open(tmp_path / "x.storescope")
        assert "session file" in walker.window.error_words

    run(walk())


def test_pattern_1_shift_enter_opens_the_target_in_a_window_of_its_own(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        await walker.open(orders, "queue:OrderPaid/1/7")
        unit = walker.value("queue.table", "Physical offset")
        await walker.key(walker.table("queue.table"), Qt.Key.Key_Return, SHIFT)
        assert walker.window.view == "queue", "this window stays where it is"
        (other_window,) = windows()
        beside = Walker(other_window)
        await walker.until(
            lambda: other_window.session is not None and other_window.view == "log", "the other shows the unit"
        )
        await beside.rest()
        assert beside.value(LOG, "Physical offset") == unit
        assert other_window.findChild(QLabel, "status.message") is not None
        await close_all()
        await walker.until(lambda: windows() == (), "the other has closed")
        assert walker.value("queue.table", "Physical offset") == unit, "closing one closes nothing of the other"

    run(walk())
