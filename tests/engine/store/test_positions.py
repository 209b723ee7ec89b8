"""Two figures derived from a store's positions: undispatched bytes, and bytes that a power loss would lose."""

from __future__ import annotations

from engine.codec.checkpoint import Checkpoint
from engine.store.latency import Histogram
from engine.store.positions import Positions


def positions_with(**changed_values: int) -> Positions:
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
        **values | changed_values,
        checkpoint=Checkpoint(0, 0, 0),
        buffers_left=None,
        waiting=0,
        put_latency=none,
        flush_latency=none,
    )


def test_undispatched_and_unflushed_bytes():
    assert (positions_with().behind, positions_with().unflushed) == (300, 300)


def test_no_figure_is_negative():
    """Positions are read while threads run, so one figure may be newer than the other."""
    assert (positions_with(dispatched=820).behind, positions_with(flushed=950).unflushed) == (0, 0)
