"""The Rows view on a real store: tabs, rows, and the way to the message."""

from __future__ import annotations

import pytest
from panes import on_store, wait_until_idle

from viewer.rows.pane import RowsPane
from viewer.runtime import places
from viewer.runtime.places import Place

pytestmark = pytest.mark.golden


def test_the_first_rows_open_and_lead_to_their_message(qapp, golden) -> None:
    pytest.importorskip("rocksdict")

    async def drive(pane, session) -> None:
        pane.show_place(Place("rows"))
        await wait_until_idle(session.jobs)
        assert pane.model.subject == pane.tabs.key == "timer"
        row = pane.table.current_row()
        assert session.selection == row.physical_offset
        emitted = []
        pane.placeRequested.connect(emitted.append)
        assert pane.table.follow()
        assert emitted == [places.log(row.physical_offset)]

        pane.tabs.choose("pop")
        await wait_until_idle(session.jobs)
        assert {line.subject for line in pane.table.table.rows} == {"pop"}
        assert "Popped messages: " in pane.status()
        pane.refresh()
        await wait_until_idle(session.jobs)
        assert pane.model.subject == "pop"

        pane.show_place(Place("rows", name="transactions"))
        await wait_until_idle(session.jobs)
        assert pane.tabs.key == "transactions"
        assert {line.subject for line in pane.table.table.rows} == {"transactions"}

    on_store(qapp, RowsPane, golden("rocksdb-rows-5.5.1"), drive)


def test_a_store_without_such_rows_says_so(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("rows"))
        await wait_until_idle(session.jobs)
        assert pane.table.total_rows() == 0
        assert "keeps them in files" in pane.model.table_state().text

    on_store(qapp, RowsPane, golden("clean-5.3.3"), drive)
