"""The view Waiting on real stores: rows, choices, the way to a unit, and a store in which nothing waits."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle

from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.waiting.pane import WaitingPane

pytestmark = pytest.mark.golden


def test_rows_lead_to_their_units_and_choices_filter_them(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("waiting"))
        await wait_until_idle(session.jobs)
        assert pane.table.total_rows() == 83
        assert pane.status() == "83 messages wait: waits 16, ready 67"
        row = pane.table.current_row()
        assert session.selection is None, "the unit selected in the log stays until the user chooses a row"
        pane.commands()["list.next"]()
        row = pane.table.current_row()
        assert session.selection == row.physical_offset
        emitted = []
        pane.placeRequested.connect(emitted.append)
        assert pane.table.follow()
        assert emitted == [places.log(row.physical_offset)]
        assert pane.services.total_rows() >= 3
        assert pane.totals.total_rows() == 4

        pane.kinds.setCurrentIndex(pane.kinds.findData("timer"))
        await wait_until_idle(session.jobs)
        assert {shown.kind for shown in pane.model.rows} == {"timer"}
        assert pane.kinds.itemText(0) == "All that wait (83)"

        pane.show_place(Place("waiting", name="retry"))
        await wait_until_idle(session.jobs)
        assert pane.kinds.currentData() == "retry"
        pane.choose_group(next(total for total in pane.model.totals if total.name == "pricing"))
        await wait_until_idle(session.jobs)
        assert {shown.group for shown in pane.model.rows} == {"pricing"}
        assert pane.groups.currentData() == "pricing"
        pane.tabs.choose("queue")
        assert emitted[-1] == Place("queue")
        assert "copy.row" in pane.commands()

    on_store(qapp, WaitingPane, golden("broker-retries-5.5.1"), drive)


def test_a_choice_made_while_reading_is_what_is_shown(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("waiting"))
        pane.kinds.setCurrentIndex(pane.kinds.findData("timer"))
        pane.refresh()
        await wait_until_idle(session.jobs)
        assert {shown.kind for shown in pane.model.rows} == {"timer"}

    on_store(qapp, WaitingPane, golden("broker-retries-5.5.1"), drive)


def test_a_store_in_which_nothing_waits_says_so(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("waiting"))
        await wait_until_idle(session.jobs)
        assert pane.table.total_rows() == 0
        assert pane.model.table_state().text == "No message waits in this store."
        assert not pane._unknown.isVisible()

    on_store(qapp, WaitingPane, golden("lmq-5.3.3"), drive)
