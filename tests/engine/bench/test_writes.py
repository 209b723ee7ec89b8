"""The measurements of writing return readable rows and delete their stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.bench import writes


def test_group_commit_is_measured_for_each_number_of_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "SYNC_RUN_S", 0.05)
    monkeypatch.setattr(writes, "PRODUCERS", (1, 3))
    rows = list(writes.run("flush", tmp_path, size=1 << 20))
    assert [row["producers"] for row in rows] == [1, 3]
    for row in rows:
        assert row["puts"] > 0
        assert row["putsPerSecond"] > 0
        assert 0 < row["p50"] <= row["p99"] <= row["max"]
        assert row["flushMicroseconds"] > 0
    assert rows[0]["putsPerFlush"] == pytest.approx(1, rel=0.01)  # the service may flush once more at the end
    assert list(tmp_path.iterdir()) == []


def test_many_topics_are_measured_against_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "TOPICS", 20)
    (row,) = writes.run("topics", tmp_path, size=1 << 20)
    assert row["puts"] == 80
    assert row["ratio"] > 0
    assert row["mebibytes"] > 0
    assert list(tmp_path.iterdir()) == []
