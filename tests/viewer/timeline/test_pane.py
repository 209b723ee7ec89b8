"""The view Timeline on a real store: rows, choices and the way to a unit."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.timeline.pane import TimelinePane


@pytest.mark.golden
def test_events_lead_to_their_units_and_a_choice_filters_them(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("timeline"))
        await wait_until_idle(session.jobs)
        assert [row.kind for row in pane.model.rows[-4:]] == ["pause", "crash", "start", "cleanStop"]
        assert pane.status() == "8 events"
        assert session.selection is None, "the unit selected in the log stays until the user chooses a row"
        pane.table.choose_next(1)
        row = pane.table.current_row()
        assert session.selection == row.physical_offset
        assert session.chosen_event == row
        emitted = []
        pane.placeRequested.connect(emitted.append)
        assert pane.table.follow()
        assert emitted == [places.log(row.physical_offset)]

        pane.table.go_to_row(5)
        pane.refresh()
        await wait_until_idle(session.jobs)
        assert pane.table.current_row() == pane.model.rows[5]

        pane.kinds.setCurrentIndex(pane.kinds.findData("crash"))
        assert [row.kind for row in pane.model.rows] == ["crash"]
        assert pane.message.text().startswith("The broker ended without closing the store between 2026-11-21 ")
        assert "indexedFrom 2617592" in pane.evidence.text()
        pane.show_place(Place("timeline", name="start"))
        assert pane.kinds.currentData() == "start"
        assert [row.kind for row in pane.model.rows] == ["start"]
        assert "copy.row" in pane.commands()
        await wait_until_idle(session.jobs)

    on_store(qapp, TimelinePane, golden("broker-crash", "store-recovered"), drive)
