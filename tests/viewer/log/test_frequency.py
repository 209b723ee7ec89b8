"""How often each value occurs in the log: a sheet of the column, and the filter that a value narrows down to."""

from __future__ import annotations

from handmade_stores import HandmadeStore
from panes import on_store, settled

from viewer.log.pane import UnitsPane


def test_values_are_counted_and_one_drills_in(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for number in range(30):
        store.put(("Orders", "Paid", "Paid")[number % 3])

    async def drive(pane, session) -> None:
        terms = []
        pane.frequency.termRequested.connect(lambda how, term: terms.append((how, term)))
        sheet = pane.frequency.ask()
        sheet.fields.setCurrentIndex(sheet.fields.findData("topic"))
        await settled(session.jobs)
        assert {row.value: row.units for row in sheet.table.source.rows} == {"Paid": 20, "Orders": 10}
        sheet.chosen.emit("Paid")
        assert terms == [("and", 'topic = "Paid"')]

    on_store(qapp, UnitsPane, store.write(tmp_path / "s"), drive)
