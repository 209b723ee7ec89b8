"""The lab: a store is made, put to, loaded, loses its power, is recovered; another is opened for writing; two at once.

A real engine runs in a process of its own underneath.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QDialog, QPushButton, QToolButton, QWidget
from walker import Run, Walker

from engine.lab.presets import PRESETS, with_changes
from engine.mapped.store_lock import StoreLock
from viewer.lab.create import CreateDialog
from viewer.lab.pane import LabPane
from viewer.lab.values import ValuesDialog
from viewer.widgets.basics import Button
from viewer.widgets.hex_view import HexView
from viewer.widgets.word_tabs import WordTabs

pytestmark = pytest.mark.journey


@pytest.fixture
def lab(walker: Walker, run: Run, tmp_path: Path) -> Iterator[LabWalker]:
    """A person in the lab; stores that the test makes are closed at the end."""
    walker.window.settings.lab_folder = tmp_path / "lab"
    lab_walker = LabWalker(walker)
    yield lab_walker
    run(lab_walker.leave())


class LabWalker:
    """Actions of a person in the lab."""

    def __init__(self, walker: Walker) -> None:
        self.walker, self.window = walker, walker.window

    @property
    def pane(self) -> LabPane:
        pane = self.window.pane("lab")
        assert isinstance(pane, LabPane)
        return pane

    @property
    def session(self) -> Any:
        return self.window.lab.session

    async def make(self, preset: int) -> None:
        """Make a store by the dialog."""
        self.walker.action("lab.create").trigger()
        await self.until(lambda: self.window.findChild(CreateDialog, "lab.create.dialog"), "the dialog opens")
        dialog = self.window.findChild(CreateDialog, "lab.create.dialog")
        assert dialog is not None
        dialog.findChild(Button, f"lab.create.preset.{preset}").click()
        dialog.findChild(Button, "lab.create.make").click()
        await self.until(lambda: self.window.view == "lab" and self.session.sample is not None, "the store is made")
        await self.until(lambda: self.window.session and self.window.session.following, "the window follows it")

    async def put(self, key: str) -> None:
        """Put a message with this key."""
        done_before = len(self.session.done)
        self.pane.put.keys.setText(key)
        self.walker.find(QPushButton, "lab.put").click()
        await self.until(lambda: len(self.session.done) > done_before, "the put is answered")

    async def until(self, is_true: Callable[[], object], expectation: str) -> None:
        await self.walker.until(is_true, expectation, 60)

    def answer(self, name: str, work: str) -> None:
        """Press a button of a question."""
        dialog = self.window.findChild(QDialog, name)
        assert dialog is not None
        dialog.findChild(Button, f"{name}.{work}").click()

    async def leave(self) -> None:
        """Close the open stores, and wait until the engines have ended."""
        two = self.pane.two if "lab" in self.window.panes else None
        if two is not None:
            await two.end()
        self.window.close_store()
        await self.session.close()
        while self.window.jobs._last:
            await asyncio.sleep(0.02)


def test_a_message_is_put_and_seen_as_bytes_and_in_the_log(run: Run, walker: Walker, lab: LabWalker) -> None:
    async def walk() -> None:
        await lab.make(2)
        assert walker.find(QWidget, "promise").text() == "Lab store, open for writing"
        assert walker.window.session is not None
        assert walker.window.session.following
        walker.find(QPushButton, "lab.flush").click()
        await lab.put("ord-1")
        assert walker.find(QWidget, "lab.put.answer").accessibleDescription().startswith("PUT_OK 0 · OrderPaid/0/0")
        view = walker.find(HexView, "lab.hex")
        view.choose_field("magicCode")
        await lab.until(lambda: "0xDA" in view.spoken(), "the bytes are read")
        await lab.until(lambda: lab.session.sample.positions.dispatched > 0, "the message is dispatched")
        walker.window.session.look(anyway=True)
        walker.window.show_view("log")
        await lab.until(lambda: walker.table("units.table").total_rows() >= 1, "the log shows it")
        assert walker.rows("units.table")[0]["Keys"] == "ord-1"

    run(walk())


def test_a_pulled_plug_is_recovered_and_compared(run: Run, walker: Walker, lab: LabWalker, tmp_path: Path) -> None:
    async def walk() -> None:
        assert await walker.window.lab.open_lab(tmp_path / "lab" / "pool", PRESETS[2].config, "5.3")
        await lab.until(lambda: lab.session.sample is not None, "the engine answers")
        for name in ("commit", "flush"):
            button = walker.find(QToolButton, f"lab.service.{name}.pause")
            await lab.until(button.isEnabled, "the services are there")
            button.click()
        await lab.until(lambda: lab.session.sample.services["flush"].paused, "flush pauses")
        walker.action("lab.start").trigger()
        await lab.until(lambda: lab.session.sample.positions.unflushed > 100_000, "the load runs")
        await lab.until(lambda: "Paused by hand: Commit, Flush" in walker.status_text, "the status bar says it")
        walker.action("lab.stop").trigger()
        await lab.until(lambda: lab.session.load is None, "the load has stopped")

        lab.pane.show_serving()
        walker.action("lab.plug").trigger()
        assert lab.window.findChild(QDialog, "lab.plug.dialog").focusWidget().objectName().endswith("cancel")
        lab.answer("lab.plug.dialog", "deed")
        await lab.until(lambda: lab.session.without_power and walker.window.session is not None, "the power is cut")
        assert lab.pane.deck.key == "plug", "the outcome is in front, not the page Serve"
        rows = {row["Figure"]: row for row in walker.rows("lab.comparison")}
        assert rows["end of log"]["After recovery"] == ""
        assert not walker.action("lab.put").isEnabled()
        walker.find(QPushButton, "lab.recover").click()
        await lab.until(
            lambda: lab.session.report.state_after is not None and lab.session.alive, "the store is recovered"
        )
        rows = {row["Figure"]: row for row in walker.rows("lab.comparison")}
        assert "as ASYNC_FLUSH allows" in rows["units"]["Verdict"]
        assert rows["plan and result"]["Verdict"].startswith("equal in all")
        await lab.until(lambda: walker.action("lab.recoverAgain").isEnabled(), "it can be recovered again")
        assert not walker.find(QPushButton, "lab.recover").isVisible()
        walker.find(QPushButton, "lab.recoverAgain").click()
        await lab.until(
            lambda: lab.session.report.repeated_recovery is not None, "the kept disk is recovered once more"
        )
        rows = {row["Figure"]: row for row in walker.rows("lab.comparison")}
        assert rows["recovered again"]["After recovery"] == rows["end of log"]["After recovery"]
        assert rows["recovered again"]["Verdict"].startswith("the same disk gives the same store: equal in all")
        await lab.until(lambda: walker.action("lab.put").isEnabled(), "messages can be put again")
        await lab.put("ord-2")
        assert lab.session.done[-1].ok

    run(walk())


def test_answers_are_counted_queues_are_weighed_and_the_store_is_closed(
    run: Run, walker: Walker, lab: LabWalker, tmp_path: Path
) -> None:
    async def walk() -> None:
        changes = {"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 500}
        assert await walker.window.lab.open_lab(
            tmp_path / "lab" / "sync", with_changes(PRESETS[3].config, changes), "5.3"
        )
        await lab.until(lambda: lab.session.sample is not None, "the engine answers")
        walker.find(WordTabs, "lab.tabs").choose("answers")
        put_counts = lab.pane.put_statistics
        assert "Nothing was put yet." in walker.texts(put_counts)
        await lab.put("one")
        lab.pane.put.queue.setText("3")
        for key in ("two", "three", "four"):
            await lab.put(key)
        await lab.until(lambda: put_counts.topic.currentText() == "OrderPaid", "the topic is there")
        await lab.until(lambda: put_counts.bars.bars == (("0", 1), ("3", 3)), "its queues are counted")
        assert put_counts.words.text() == "4 entries in 2 queues · unevenly filled: 0.50 to 1.50 × the mean"
        await lab.session.pause("flush", True)
        await lab.put("late")
        await lab.until(lambda: sum(lab.session.sample.statuses.values()) == 5, "all are counted")
        assert lab.session.done[-1].status == "FLUSH_DISK_TIMEOUT"
        for status, count in lab.session.sample.statuses.items():
            await lab.until(
                lambda output=f"{status} {count}": output in walker.texts(put_counts), "the status stands there"
            )
        await lab.session.pause("flush", False)
        button = walker.find(QToolButton, "top.lab.close")
        assert button.isVisible()
        assert not walker.window.top.follow.isVisible()
        button.click()
        await lab.until(lambda: not lab.session.there, "the store is closed")
        await walker.rest()
        assert not (tmp_path / "lab" / "sync" / "store" / "abort").exists()
        assert walker.find(QWidget, "promise").text() == "Read-only"
        assert not button.isVisible()
        assert not walker.action("lab.close").isEnabled()
        assert walker.find(QPushButton, "lab.write").isVisible()
        walker.window.show_view("log")
        await lab.until(lambda: walker.table("units.table").total_rows() >= 5, "what was put can be read")

    run(walk())


def test_two_ways_at_once_are_compared_until_both_plugs_are_pulled(
    run: Run, walker: Walker, lab: LabWalker, orders: Path
) -> None:
    async def walk() -> None:
        await walker.open(orders)
        walker.action("lab.compare").trigger()
        two = lab.pane.two
        assert two is not None
        two.panels[1].preset.setCurrentIndex(3)
        walker.find(QPushButton, "lab.two.pool.a").click()
        assert two.panels[0].config.transient_store_pool_enable
        assert two.panels[0].config.mapped_file_size_commit_log == 64 << 20
        assert "transientStorePoolEnable=true" in two.panels[0].words.text()
        walker.find(QPushButton, "lab.two.values.b").click()
        values = walker.find(ValuesDialog, "lab.two.dialog")
        assert values.editor.set_value("flushDiskType", "SYNC_FLUSH")
        values.agree.click()
        assert walker.find(QPushButton, "lab.two.sync.b").isChecked()
        assert not walker.action("lab.copyTwo").isEnabled()
        two.load.set_value("rate", 1000)
        walker.find(QPushButton, "lab.two.load").click()
        await lab.until(lambda: all(side.rate > 0 for side in two.sides), "both are fed")
        walker.find(QPushButton, "lab.two.plug").click()
        await lab.until(lambda: all(side.lost is not None for side in two.sides), "both plugs are pulled")
        rows = {row["Figure"]: row for row in walker.rows("lab.two.table")}
        assert rows["PUT_OK"]["A"] != "0" != rows["PUT_OK"]["B"]
        assert rows["lost at the power cut"]["B"] == "0", "what SYNC_FLUSH answered is kept"
        assert {"median of a put", "p99 of a put", "longest put, at most", "recovery took"} <= set(rows)
        await lab.until(lambda: walker.action("lab.copyTwo").isEnabled(), "it can be copied")
        walker.action("lab.copyTwo").trigger()
        copied = walker.clipboard.splitlines()
        assert copied[0].startswith("- **A**: default broker; ")
        assert "mappedFileSizeCommitLog=67108864" in copied[0]
        assert "flushDiskType=SYNC_FLUSH" in copied[1]
        assert f"| PUT_OK | {rows['PUT_OK']['A']} | {rows['PUT_OK']['B']} |  |" in copied
        folder = two.folder_made
        assert folder is not None
        assert folder.parent == walker.window.settings.lab_folder
        walker.find(QPushButton, "lab.two.leave").click()
        await lab.until(lambda: not folder.exists(), "what was made for it is deleted")

    run(walk())


def test_opening_for_writing_says_who_holds_the_store_and_refuses(
    run: Run, walker: Walker, lab: LabWalker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)

    async def walk() -> None:
        await walker.open(store)
        with StoreLock(store / "lock"):
            walker.action("lab.write").trigger()
            await lab.until(lambda: walker.window.findChild(QDialog, "lab.write.dialog"), "the question is asked")
            dialog = walker.window.findChild(QDialog, "lab.write.dialog")
            assert dialog is not None
            output = walker.find(QWidget, "lab.write.holder")
            await lab.until(lambda: "refused" in output.text(), "the holder is named")
            work = dialog.findChild(Button, "lab.write.dialog.deed")
            await lab.until(lambda: walker.table("lab.write.plan").total_rows() > 0, "the plan is shown")
            assert not work.isEnabled()
            dialog.findChild(Button, "lab.write.dialog.cancel").click()
        assert not lab.session.there

    run(walk())


def test_an_own_store_is_written_to_after_the_question_and_has_no_plug(
    run: Run, walker: Walker, lab: LabWalker, orders: Path, copied: Callable[[Path], Path]
) -> None:
    store = copied(orders)

    async def walk() -> None:
        await walker.open(store, "lab")
        end = walker.window.session.snapshot.log.max_offset
        walker.find(QPushButton, "lab.write").click()
        await lab.until(lambda: walker.window.findChild(QDialog, "lab.write.dialog"), "the question is asked")
        work = walker.find(Button, "lab.write.dialog.deed")
        await lab.until(work.isEnabled, "the plan is there and nobody holds the store")
        work.click()
        await lab.until(lambda: lab.session.sample is not None and walker.window.session is not None, "it is open")
        assert walker.find(QWidget, "promise").text() == "Open for writing"
        assert not walker.action("lab.plug").isEnabled()
        await lab.put("mine")
        assert lab.session.done[-1].offset >= end
        lab.session.client.kill()
        await lab.until(lambda: lab.session.dead, "the death of the engine is told")
        assert "Open the store for writing again" in walker.texts(lab.pane)
        assert walker.find(QWidget, "promise").text() == "Read-only"
        assert walker.action("lab.write").isEnabled()
        assert not walker.action("lab.put").isEnabled()

    run(walk())
