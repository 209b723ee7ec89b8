"""The values of a lab store's configuration: search, changes, and refused values."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QWidget

from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.lab.presets import PRESETS
from viewer.lab.values import ValuesDialog, changed, config_rows, differences
from viewer.look.theme import ui


def test_every_value_has_a_default_a_range_and_a_meaning() -> None:
    rows = config_rows(MessageStoreConfig())
    assert len(rows) > 100
    assert all(row.meaning and row.span for row in rows)
    size = next(row for row in rows if row.key == "mappedFileSizeCommitLog")
    assert (size.text, size.default, size.unit) == ("1073741824", "1073741824", "bytes")
    assert size.span == "128 … 2,147,483,647"
    assert rows[-1].fixed
    assert not rows[0].fixed


def test_search_finds_names_and_meanings() -> None:
    assert [row.key for row in config_rows(MessageStoreConfig(), "put is on disk")] == ["flushDiskType"]
    assert config_rows(MessageStoreConfig(), "no such thing") == []


def test_a_preset_differs_in_its_listed_values() -> None:
    assert differences(PRESETS[0].config) == []
    assert [row.key for row in differences(PRESETS[1].config)] == ["flushDiskType"]


def test_a_value_is_changed_or_refused_with_the_permitted_range() -> None:
    config = changed(MessageStoreConfig(), "flushIntervalCommitLog", " 250 ")
    assert config.flush_interval_commit_log == 250
    for key, text, message in (
        ("mappedFileSizeCommitLog", "12", "128 … 2,147,483,647 bytes"),
        ("flushDiskType", "NEVER", "ASYNC_FLUSH | SYNC_FLUSH"),
        ("transientStorePoolEnable", "maybe", "true | false"),
        ("storePathCommitLog", "/elsewhere", "its own folder"),
    ):
        with pytest.raises(UsageError, match=message.replace("|", r"\|")):
            changed(config, key, text)


def test_the_dialog_shows_every_meaning_in_full(shown) -> None:
    """The column of meanings was 188 px wide, because the values and ranges of other rows used its space."""
    window = QWidget()
    dialog = ValuesDialog(window, "lab.values", "Values", MessageStoreConfig())
    shown(dialog, dialog.width())
    table = dialog.editor.table
    (meaning,) = (slot for slot in table.slots_on_screen() if slot.column.key == "meaning")
    widest = max(QFontMetrics(ui(13)).horizontalAdvance(row.meaning) for row in config_rows(MessageStoreConfig())[:60])
    assert meaning.width > widest
    ranges = {row.key: table.kind.columns[4].text(row) for row in config_rows(MessageStoreConfig())}
    assert ranges["flushIntervalCommitLog"] == "≥ 0 ms"
    assert ranges["flushDiskType"] == "ASYNC_FLUSH | SYNC_FLUSH"
