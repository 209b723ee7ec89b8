"""The view Timeline on a real store: rows, choices and the way to a unit."""

from __future__ import annotations

import asyncio

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


@pytest.mark.golden
def test_a_second_visit_reads_the_log_only_if_it_has_grown(qapp, golden) -> None:
    """Each visit read the whole log again: seconds of work for the same events."""

    async def drive(pane, session) -> None:
        pane.show_place(Place("timeline"))
        await wait_until_idle(session.jobs)
        events = session.timeline
        pane.show_place(Place("timeline"))
        await asyncio.sleep(0)
        assert not session.jobs.list
        assert session.timeline is events
        session.set_timeline(events, (0, 0))
        pane.show_place(Place("timeline"))
        await asyncio.sleep(0)
        assert session.jobs.list
        await wait_until_idle(session.jobs)
        assert session.timeline is not events

    on_store(qapp, TimelinePane, golden("broker-crash", "store-recovered"), drive)
