"""Acknowledged messages of a load are recorded, and those lost by a power loss are counted."""

from __future__ import annotations

import pytest

from engine.lab.acknowledged import Acknowledged, lost_behind

# Acknowledged messages compared with those that may be lost.


def test_flushed_messages_are_not_lost() -> None:
    acknowledged = Acknowledged()
    for end in range(100, 1100, 100):
        acknowledged.ends.append(end)
    acknowledged.note_many(1000, 1640, 64)
    assert acknowledged.lost_behind(500).messages == 5 + 64
    assert acknowledged.lost_behind(1200).cut == 1000
    assert acknowledged.lost_behind(1640).messages == 0
    acknowledged.prune(600)
    assert list(acknowledged.ends) == [700, 800, 900, 1000, 1640]
    two = Acknowledged()
    two.ends.append(5000)
    assert lost_behind([acknowledged, two], 1000).messages == 65


def test_memory_for_unflushed_messages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.lab import acknowledged

    monkeypatch.setattr(acknowledged, "MAX_ENDS", 10_000)
    item = Acknowledged()
    for end in range(1, 50_001):
        item.ends.append(end)
        item.bound()
    assert len(item.ends) <= 10_000
    assert item.lost_behind(0).messages == 50_000
    assert item.lost_behind(0).exact
    assert not item.lost_behind(5000).exact
    item.prune(49_000)
    assert item.lost_behind(49_000).messages == 1000
