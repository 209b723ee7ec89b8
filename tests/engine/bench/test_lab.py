"""``bench lab``: every row has figures, and no files remain."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.bench import lab


def test_a_load_is_compared_with_the_engine_and_polls_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "PUTS", 2000)
    monkeypatch.setattr(lab, "LOAD_S", 0.4)
    monkeypatch.setattr(lab, "PRODUCERS", (2,))
    (row,) = lab.run("lab", tmp_path / "new", repeats=1, size=1 << 24)
    assert row["ratio"] == row["messagesPerSecond"] / row["engineMessagesPerSecond"] > 0
    assert 0 < row["lookSeconds"]["p50"] <= row["lookSeconds"]["p99"] <= row["lookSeconds"]["max"]
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(KeyError):
        next(lab.run("tea"))
