"""Reading what a whole table shows: off the loop, for the store that is still open, its error said in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from viewer.pane import Pane
from viewer.widgets.record_state import State
from viewer.widgets.record_view import RecordView

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

Row = TypeVar("Row")


def read_into(
    pane: Pane, table: RecordView, read: Callable[[StoreSnapshot], list[Row]], fill: Callable[[list[Row]], None]
) -> None:
    """Have ``read`` done in a thread and ``fill`` called with what it gave; nothing while nobody sees the pane."""
    session = pane.session
    if session is None or not pane.isVisible():
        return

    def done(rows: list[Row]) -> None:
        if session is pane.session:
            fill(rows)

    session.jobs.read(lambda: read(session.snapshot), done, lambda error: table.set_state(State("error", str(error))))
