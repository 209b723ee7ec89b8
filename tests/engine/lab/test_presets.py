"""Values of a lab store, and the presets."""

from __future__ import annotations

from pathlib import Path

from engine.config import MessageStoreConfig
from engine.lab.lab_store import LabStore, read_marker
from engine.lab.presets import PRESETS, changes_of, config_rows, with_changes


def test_every_value_has_a_row(tmp_path: Path) -> None:
    rows = {row.key: row for row in config_rows()}
    assert len(rows) > 100
    assert rows["flushDiskType"].choices == ("ASYNC_FLUSH", "SYNC_FLUSH")
    assert (rows["syncFlushTimeout"].default, rows["syncFlushTimeout"].minimum) == (5000, 0)
    assert all(row.meaning for row in rows.values())
    assert rows["storePathCommitLog"].fixed
    for preset in PRESETS:
        assert set(changes_of(preset.config)) == {row.key for row in rows.values() if row.attribute in preset.changes}
        LabStore.create(tmp_path / preset.name, preset.config).close()
        assert read_marker(tmp_path / preset.name).config == preset.config


def test_changes_count_as_given() -> None:
    assert "flushDiskType" in with_changes(MessageStoreConfig(), {"flush_disk_type": "SYNC_FLUSH"}).given
