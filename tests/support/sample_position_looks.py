"""Handmade looks at positions, in the form of a live view."""

from __future__ import annotations

from engine.inspection.positions import Position, Positions
from viewer.runtime.position_reading import PositionReading

START = 1_795_280_000_000


FILES = ((0, 1 << 20, "0" * 20), (1 << 20, 2 << 20, f"{1 << 20:020d}"))


def look(
    number: int = 0, *, lab: bool = True, checkpoint: int = START, live: bool = True, **options
) -> PositionReading:
    """Return a look 100 ms times ``number`` after the start."""
    reported = {
        "wrote": 1000 * number,
        "committed": 900 * number,
        "flushed": 500 * number,
        "confirm": 900 * number,
        "dispatched": 800 * number,
        "queue_max": 800 * number,
        "index_end": 800 * number,
        "min": 0,
    }
    reported |= {key: value for key, value in options.items() if key in reported}
    results = {
        key: Position(value, "told") if value is not None else Position(None, why="nobody tells")
        for key, value in reported.items()
    }
    position = {"physicMsgTimestamp": Position(100, "by time", timestamp=checkpoint)}
    remainder = {key: value for key, value in options.items() if key not in reported}
    settled = {"files": FILES, "heads": ((START, 0), (START + 100 * number, reported["wrote"])), **remainder}
    return PositionReading(
        Positions(checkpoint=position, **results),
        time_ms=START + 100 * number,
        live=live,
        lab=lab,
        units=10 * number,
        **settled,
    )
