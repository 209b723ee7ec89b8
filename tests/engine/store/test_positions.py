"""Two figures that are asked of a look: how far dispatch is behind, and what a power loss would take."""

from __future__ import annotations

from engine.codec.checkpoint import Checkpoint
from engine.store.latency import Histogram
from engine.store.positions import Positions


def look(**other: int) -> Positions:
    values = {
        "min": 0,
        "wrote": 900,
        "committed": 800,
        "flushed": 600,
        "dispatched": 500,
        "confirm": 800,
        "queue_max": 500,
        "index_end": 400,
    }
    none = Histogram(())
    return Positions(
        **values | other,
        checkpoint=Checkpoint(0, 0, 0),
        buffers_left=None,
        waiting=0,
        put_latency=none,
        flush_latency=none,
    )


def test_what_is_behind_and_what_is_not_flushed():
    assert (look().behind, look().unflushed) == (300, 300)


def test_neither_is_ever_below_zero():
    """A look is taken while threads go on: one figure may be newer than the other."""
    assert (look(dispatched=820).behind, look(flushed=950).unflushed) == (0, 0)
