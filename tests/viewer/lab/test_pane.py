"""The panels of the lab without an engine: their requests and their contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from panes import on_store
from PySide6.QtWidgets import QApplication, QWidget

from engine.codec.encode import Message
from engine.lab.presets import PRESETS
from engine.message_store import MessageStore
from viewer.lab.pane import LabPane, unit_parts

NAMES = (
    "lab.put",
    "lab.flush",
    "lab.commit",
    "lab.load",
    "lab.plug",
    "lab.recover",
    "lab.hex",
    "lab.comparison",
    "lab.put.topic",
    "lab.put.body",
    "lab.put.kind",
    "lab.mode",
    "lab.make",
    "lab.write",
)


def test_every_panel_exists_with_a_text_before_a_store_is_open(qapp: QApplication) -> None:
    pane = LabPane()
    for name in NAMES:
        part = pane.findChild(QWidget, name)
        assert part is not None, name
        assert part.accessibleName(), name
    assert not pane.put.put.isEnabled()
    assert not pane.load.start.isEnabled()
    assert pane.status() == "No store is open for writing"
    pane.deleteLater()


def test_the_units_of_a_batch_are_painted_in_order(tmp_path: Path) -> None:
    with MessageStore(tmp_path, PRESETS[3].config, services=False) as store:
        first_result = store.put_message(Message("T", b"one", keys="k"))
        second = store.put_message(Message("T", b"two"))
        assert first_result.append is not None
        assert second.append is not None
        raw = next((tmp_path / "commitlog").iterdir()).read_bytes()[: second.append.end_offset]
    fields = unit_parts(raw)
    bodies = [raw[position : position + length] for name, position, length in fields if name == "body"]
    assert bodies == [b"one", b"two"]
    assert unit_parts(raw[:-1])[-1][1] < first_result.append.size
    assert unit_parts(b"\0" * 200) == []


@pytest.mark.golden
def test_a_store_that_is_never_written_is_not_offered_for_writing(qapp: QApplication, golden: Any) -> None:
    """The button opened a dialog whose only choice was Cancel."""

    async def drive(pane: LabPane, session: Any) -> None:
        words = pane.findChild(QWidget, "lab.write.words")
        assert words.text() == session.snapshot.writing_refusal
        assert words.text().endswith("nothing is written into this store")
        assert pane.findChild(QWidget, "lab.write").isHidden()

    on_store(qapp, LabPane, golden("rocks-5.5.1"), drive)
