"""The dialog that makes a lab store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from engine.config import MessageStoreConfig
from viewer.lab.create import CreateDialog
from viewer.shell.lab_stores import free_name, lab_of_folder


@pytest.fixture
def dialog(qapp: QApplication, tmp_path: Path) -> Iterator[CreateDialog]:
    (tmp_path / "lab-1").mkdir()
    parent = QWidget()
    create_dialog = CreateDialog(parent, tmp_path, free_name(tmp_path))
    create_dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    yield create_dialog
    parent.deleteLater()


def test_a_store_is_made_of_a_preset_and_changed_values(dialog: CreateDialog, tmp_path: Path) -> None:
    emitted: list[tuple[object, ...]] = []
    dialog.createRequested.connect(lambda *arguments: emitted.append(arguments))
    assert dialog.name.text() == "lab-2"
    assert lab_of_folder(tmp_path / "lab-1") is None
    dialog._presets[1].click()
    assert dialog.config.flush_disk_type == "SYNC_FLUSH"
    dialog.search.setText("flushIntervalCommitLog")
    dialog.value.setText("100")
    dialog.value.textEdited.emit("100")
    dialog._release_buttons[-1][1].click()
    dialog.create_button.click()
    folder, config, release = emitted[0]
    assert (folder, release) == (tmp_path / "lab-2", "4.9")
    assert isinstance(config, MessageStoreConfig)
    assert (config.flush_disk_type, config.flush_interval_commit_log) == ("SYNC_FLUSH", 100)


def test_invalid_values_are_refused_inline(dialog: CreateDialog) -> None:
    dialog.search.setText("mappedFileSizeCommitLog")
    dialog.value.setText("12")
    dialog.value.textEdited.emit("12")
    assert dialog.editor.note == "Allowed: 128 … 2,147,483,647 bytes, found 12"
    assert not dialog.create_button.isEnabled()
    dialog.editor.reset.click()
    assert dialog.create_button.isEnabled()
    dialog.name.setText("lab-1")
    assert "already" in dialog.fault()
    dialog.name.setText("no/slash")
    assert not dialog.create_button.isEnabled()
    dialog.search.setText("nothing has these words")
    assert dialog.table.total_rows() == 0
