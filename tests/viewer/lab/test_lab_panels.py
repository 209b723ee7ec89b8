"""The panels of the lab by themselves: what they ask for, and what they show. No engine runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.codec.checkpoint import Checkpoint
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.lab.presets import PRESETS
from engine.lab.samples import PositionSample, PutAnswer, ServiceState
from engine.message_store import MessageStore
from engine.store.latency import Histogram
from engine.store.positions import Positions
from viewer.lab.create import CreateDialog
from viewer.lab.load import LoadPanel
from viewer.lab.pane import LabPane, unit_parts
from viewer.lab.put import PutPanel
from viewer.lab.services import ServicesPanel
from viewer.lab.write_questions import process_name
from viewer.runtime.lab_session import PutDone
from viewer.runtime.put_form import FormFault, PutForm
from viewer.shell.lab_stores import free_name, lab_of_folder

AT = 1_700_000_000_000
POSITIONS = Positions(
    0, 9000, 6000, 4000, 6000, 6000, 6000, 5900, Checkpoint(AT, AT, AT), 4, 0, Histogram(), Histogram()
)
NAMES = ("lab.put", "lab.flush", "lab.commit", "lab.load", "lab.plug", "lab.recover", "lab.hex", "lab.comparison",
         "lab.put.topic", "lab.put.body", "lab.put.kind", "lab.mode", "lab.make", "lab.write")  # fmt: skip


def test_every_name_is_there_and_speaks_before_a_store_is(qapp: QApplication) -> None:
    pane = LabPane()
    for name in NAMES:
        part = pane.findChild(QWidget, name)
        assert part is not None, name
        assert part.accessibleName(), name
    assert not pane.put.put.isEnabled()
    assert not pane.load.start.isEnabled()
    assert pane.status() == "No store is open for writing"
    pane.deleteLater()


def test_the_form_keeps_what_was_put_and_can_be_put_again(qapp: QApplication) -> None:
    panel = PutPanel()
    asked: list[PutForm] = []
    panel.putAsked.connect(asked.append)
    panel.topic.setText("Orders")
    panel.put_now()
    assert not asked  # nothing can be put yet
    panel.set_enabled(True)
    QTest.keyClick(panel.topic, Qt.Key.Key_Return)
    assert asked[-1].topic == "Orders"
    done = PutDone(PutForm("Orders", "2", keys="k"), AT, PutAnswer("PUT_OK", 2048, 219, 41))
    panel.show_done([done])
    panel.set_enabled(True)
    assert panel.answer.text() == "2,048 · Orders/2/41"
    assert "PUT_OK" in panel.answer.accessibleDescription()
    panel.topic.setText("Other")
    panel.put_again()
    assert asked[-1] == done.form
    panel.set_form(done.form)
    assert panel.form() == done.form
    refused = PutDone(PutForm(), AT, PutAnswer("OS_PAGE_CACHE_BUSY"))
    panel.show_done([done, refused])
    assert refused.offset is None
    assert panel.answer.accessibleDescription() == "OS_PAGE_CACHE_BUSY"
    panel.deleteLater()


def test_a_wrong_field_is_marked_and_said(qapp: QApplication) -> None:
    panel = PutPanel()
    panel.show_fault(FormFault("queue", "queue: a number is expected"))
    assert panel.queue.property("state") == "error"
    assert panel.answer.text() == "queue: a number is expected"
    panel.kind.setCurrentIndex(panel.kind.findData("delay"))
    assert not panel.extra.isHidden()
    assert panel.extra.accessibleName() == "Level"
    panel.deleteLater()


def test_sliders_are_settings_of_a_load(qapp: QApplication) -> None:
    panel = LoadPanel()
    started: list[object] = []
    panel.startAsked.connect(started.append)
    panel.toggle()
    assert not started
    panel.show_state(able=True, running=False, paused=False)
    for key, value in (("producers", 2), ("rate", 500), ("body_size", 1000), ("body_spread", 50), ("keys", 10)):
        panel.set_value(key, value)
    panel.zipf.setChecked(False)
    panel.toggle()
    settings = panel.settings()
    assert started == [settings]
    assert (settings.producers, settings.rate, settings.body_size, settings.body_spread) == (2, 500, 1000, 500)
    assert (settings.topics, settings.zipf, settings.keys, settings.batch) == (3, False, 10, 1)
    panel.set_value("rate", 0)
    assert panel.settings().rate == 0
    stopped: list[bool] = []
    panel.stopAsked.connect(lambda: stopped.append(True))
    panel.show_state(able=True, running=True, paused=False)
    panel.toggle()
    assert stopped == [True]
    panel.show_answers(4212.0, {"PUT_OK": 99, "FLUSH_DISK_TIMEOUT": 1}, 0.29, 2.1, 1_614_807.0)
    texts = panel.facts.texts()
    assert texts[0] == "answered: 4,212 /s PUT_OK 99.00 %"
    assert "FLUSH_DISK_TIMEOUT 1" in texts[1]
    assert texts[2] == "median: 0.29 ms p99 2.1 ms"
    panel.deleteLater()


def test_services_say_what_they_did_and_what_waits(qapp: QApplication) -> None:
    panel = ServicesPanel()
    panel.show_store(PRESETS[2].config, able=True)
    services = {
        "commit": ServiceState(True, 10 << 20, AT - 6500, 314_573, "bytes"),
        "reput": ServiceState(False, 0, AT, 274, "units"),
        "queues": ServiceState(False, None, AT - 400, 1, "queues", 1097),
    }
    panel.show_sample(PositionSample(AT, POSITIONS, services=services))
    assert panel.lines["commit"].accessibleName() == "Commit paused. 307 KiB, 6.5 s ago. 10.0 MiB waiting"
    assert panel.lines["reput"].accessibleName() == "Dispatch . 274 units, now. nothing waits"
    assert "1,097 queues waiting" in panel.lines["queues"].accessibleName()
    assert "not there" in panel.lines["flush"].accessibleName()
    assert "pool" in panel.now.accessibleDescription()
    asked: list[object] = []
    panel.pauseAsked.connect(lambda name, on: asked.append((name, on)))
    panel.stepAsked.connect(asked.append)
    panel.reopenAsked.connect(asked.append)
    panel.lines["commit"].pause.click()
    panel.lines["reput"].step.click()
    panel.mode.click()
    panel.pool.click()
    assert asked == [("commit", False), "reput", {"flush_disk_type": "SYNC_FLUSH"},
                     {"transient_store_pool_enable": False}]  # fmt: skip
    panel.show_store(MessageStoreConfig(), able=True)
    assert not panel.commit.isEnabled()
    panel.deleteLater()


@pytest.fixture
def dialog(qapp: QApplication, tmp_path: Path) -> Iterator[CreateDialog]:
    (tmp_path / "lab-1").mkdir()
    parent = QWidget()
    made = CreateDialog(parent, tmp_path, free_name(tmp_path))
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    yield made
    parent.deleteLater()


def test_a_store_is_made_of_a_preset_and_changed_values(dialog: CreateDialog, tmp_path: Path) -> None:
    made: list[tuple[object, ...]] = []
    dialog.made.connect(lambda *what: made.append(what))
    assert dialog.name.text() == "lab-2"
    assert lab_of_folder(tmp_path / "lab-1") is None
    dialog._presets[1].click()
    assert dialog.config.flush_disk_type == "SYNC_FLUSH"
    dialog.search.setText("flushIntervalCommitLog")
    dialog.value.setText("100")
    dialog.value.textEdited.emit("100")
    dialog._likes[1][1].click()
    dialog.create_button.click()
    folder, config, like = made[0]
    assert (folder, like) == (tmp_path / "lab-2", "4.9")
    assert isinstance(config, MessageStoreConfig)
    assert (config.flush_disk_type, config.flush_interval_commit_log) == ("SYNC_FLUSH", 100)


def test_what_cannot_be_is_refused_inline(dialog: CreateDialog) -> None:
    dialog.search.setText("mappedFileSizeCommitLog")
    dialog.value.setText("12")
    dialog.value.textEdited.emit("12")
    assert dialog.editor.note == "Permitted is 128 … 2,147,483,647 bytes, found 12"
    assert not dialog.create_button.isEnabled()
    dialog.editor.reset.click()
    assert dialog.create_button.isEnabled()
    dialog.name.setText("lab-1")
    assert "already" in dialog.fault()
    dialog.name.setText("no/slash")
    assert not dialog.create_button.isEnabled()
    dialog.search.setText("nothing has these words")
    assert dialog.table.total_rows() == 0


def test_a_process_is_named_by_its_command() -> None:
    assert "py" in process_name(os.getpid())
    assert process_name(1 << 30) == ""


def test_the_units_of_a_batch_are_painted_one_behind_the_other(tmp_path: Path) -> None:
    with MessageStore(tmp_path, PRESETS[3].config, services=False) as store:
        first = store.put_message(Message("T", b"one", keys="k"))
        second = store.put_message(Message("T", b"two"))
        assert first.append is not None
        assert second.append is not None
        raw = next((tmp_path / "commitlog").iterdir()).read_bytes()[: second.append.end_offset]
    found = unit_parts(raw)
    bodies = [raw[position : position + length] for name, position, length in found if name == "body"]
    assert bodies == [b"one", b"two"]
    assert unit_parts(raw[:-1])[-1][1] < first.append.size
    assert unit_parts(b"\0" * 200) == []
