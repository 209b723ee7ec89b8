"""The dispatch gap has one value everywhere: confirm − dispatched."""

from __future__ import annotations

from engine.inspection.positions import Position, Positions
from viewer.pane.position_facts import ruler_view
from viewer.positions.positions_model import PositionsModel
from viewer.runtime.position_reading import PositionReading

MIB = 1 << 20


def test_status_and_ruler_show_the_same_dispatch_gap() -> None:
    reported = {
        "wrote": 9 * MIB,
        "committed": 6 * MIB,
        "confirm": 6 * MIB,
        "flushed": 5 * MIB,
        "dispatched": 4 * MIB,
        "queue_max": 4 * MIB,
        "index_end": 4 * MIB,
        "min": 0,
    }
    positions = Positions(checkpoint={}, **{name: Position(value, "told") for name, value in reported.items()})
    observed = PositionReading(positions, ((0, 16 * MIB, "0" * 20),), (), 1_795_280_000_000, True, True)
    assert "dispatch is 2.00 MiB behind" in PositionsModel(observed).status()
    assert [gap.words for gap in ruler_view(observed, None).gaps if not gap.above] == ["to dispatch 2.00 MiB"]
