"""The frequency of each value in the log: the values of a column, and the filter for a chosen value."""

from __future__ import annotations

from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from viewer.log.pane import UnitsPane


def test_values_are_counted_and_a_chosen_one_becomes_a_filter(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for number in range(30):
        store.put(("Orders", "Paid", "Paid")[number % 3])

    async def drive(pane, session) -> None:
        terms = []
        pane.frequency.termRequested.connect(lambda how, term: terms.append((how, term)))
        sheet = pane.frequency.ask()
        sheet.fields.setCurrentIndex(sheet.fields.findData("topic"))
        await wait_until_idle(session.jobs)
        assert {row.value: row.units for row in sheet.table.source.rows} == {"Paid": 20, "Orders": 10}
        sheet.chosen.emit("Paid")
        assert terms == [("and", 'topic = "Paid"')]

    on_store(qapp, UnitsPane, store.write(tmp_path / "s"), drive)
