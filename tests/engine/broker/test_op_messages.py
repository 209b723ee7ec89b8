"""Decisions wait for others, and are written together."""

from __future__ import annotations

from engine.broker.op_messages import INTERVAL_MS, OpMessages


def test_decisions_wait_for_others() -> None:
    ops = OpMessages()
    assert not ops.add(0, 17, 1_000)
    assert not ops.add(0, 18, 2_000)
    assert ops.bodies(1_000 + INTERVAL_MS - 1) == []
    assert ops.bodies(1_000 + INTERVAL_MS) == [(0, b"17,18,")]
    ops.add(0, 19, 5_000)
    ops.written(0, b"17,18,")
    assert ops.bodies(None) == [(0, b"19,")]


def test_many_do_not_wait() -> None:
    ops = OpMessages()
    assert [ops.add(0, 1_000_000 + number, 0) for number in range(600)].index(True) == 512
