"""Looks at positions as a live view takes them, made by hand."""

from __future__ import annotations

from engine.inspection.positions import Position, Positions
from viewer.runtime.position_look import Look

START = 1_795_280_000_000


FILES = ((0, 1 << 20, "0" * 20), (1 << 20, 2 << 20, f"{1 << 20:020d}"))


def look(number: int = 0, *, lab: bool = True, checkpoint: int = START, live: bool = True, **more) -> Look:
    """A look 100 ms times ``number`` after the start."""
    told = {
        "wrote": 1000 * number,
        "committed": 900 * number,
        "flushed": 500 * number,
        "confirm": 900 * number,
        "dispatched": 800 * number,
        "queue_max": 800 * number,
        "index_end": 800 * number,
        "min": 0,
    }
    told |= {key: value for key, value in more.items() if key in told}
    found = {
        key: Position(value, "told") if value is not None else Position(None, why="nobody tells")
        for key, value in told.items()
    }
    at = {"physicMsgTimestamp": Position(100, "by time", timestamp=checkpoint)}
    rest = {key: value for key, value in more.items() if key not in told}
    settled = {"files": FILES, "heads": ((START, 0), (START + 100 * number, told["wrote"])), **rest}
    return Look(
        Positions(checkpoint=at, **found),
        time_ms=START + 100 * number,
        live=live,
        lab=lab,
        units=10 * number,
        **settled,
    )
