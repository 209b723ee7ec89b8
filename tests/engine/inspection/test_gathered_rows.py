"""What a check finds does not depend on how many units are gathered before their queues are looked at."""

from __future__ import annotations

from engine.inspection.gathered_rows import GatheredRows


def test_a_full_room_has_none_left():
    rows = GatheredRows(3)
    assert rows.has_room(3)
    rows.rows = 2
    assert rows.has_room(1)
    assert not rows.has_room(2)
