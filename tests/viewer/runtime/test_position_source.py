"""Positions of a lab store come from the engine's sample. Later values from files never exceed it."""

from __future__ import annotations

from dataclasses import replace

from engine.codec.checkpoint import Checkpoint
from engine.inspection.positions import Position, Positions
from engine.lab.samples import PositionSample
from engine.store.latency import Histogram
from engine.store.positions import Positions as Told
from viewer.runtime.position_reading import PositionReading
from viewer.runtime.position_source import _places, positions_of_sample

NONE = Histogram()


def sample(index_end: int = 900) -> PositionSample:
    return PositionSample(
        5_000,
        Told(0, 2000, 1800, 1500, 1100, 1200, 1100, index_end, Checkpoint(4_000, 3_900, 3_000), None, 0, NONE, NONE),
    )


def files(index_end: int | None, **checkpoint: tuple[int, int]) -> Positions:
    end = Position(9000)
    return Positions(
        end,
        end,
        end,
        end,
        end,
        end,
        end,
        Position(index_end, "file"),
        {name: Position(offset, "file", timestamp=time) for name, (offset, time) in checkpoint.items()},
    )


def test_the_index_end_of_a_file_counts_only_where_the_sample_had_been_dispatched() -> None:
    assert positions_of_sample(sample(), files(1000)).index_end == Position(1000, "file")
    for later in (1101, 9000, None):
        assert positions_of_sample(sample(), files(later)).index_end.offset == 900


def test_an_index_unknown_to_the_engine_has_no_end() -> None:
    assert positions_of_sample(sample(index_end=-1), files(1000)).index_end.offset is None


def test_no_field_of_the_checkpoint_runs_ahead_of_what_it_follows() -> None:
    checkpoint = positions_of_sample(
        sample(),
        files(
            1000,
            physicMsgTimestamp=(1900, 4_500),
            logicsMsgTimestamp=(1000, 3_900),
            confirmPhyOffset=(1300, 0),
            masterFlushedOffset=(3000, 0),
        ),
    ).checkpoint
    assert (checkpoint["physicMsgTimestamp"].offset, checkpoint["physicMsgTimestamp"].timestamp) == (1500, 4_000)
    assert (checkpoint["logicsMsgTimestamp"].offset, checkpoint["logicsMsgTimestamp"].timestamp) == (1000, 3_900)
    assert (checkpoint["confirmPhyOffset"].offset, checkpoint["masterFlushedOffset"].offset) == (1200, 2000)


def test_queues_read_for_the_first_time_are_no_growth() -> None:
    """Each poll reads only some of many queues: a store at rest was reported as growing for half a minute after
    opening.
    """
    first_look = PositionReading(files(900), (), (), 0, False, units=64)
    next_look = replace(first_look, units=128)
    assert _places(first_look, all_queues=False) == _places(next_look, all_queues=False)
    assert _places(first_look, all_queues=True) != _places(next_look, all_queues=True)
