"""Find in the log: the next hit beside the filter, round the end, and in vain."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, settled

from viewer.log.pane import UnitsPane


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(40):
        store.put("Orders", body=b"needle" if number in {5, 30} else b"hay", keys=f"K{number}")
    return store


def test_hits_come_one_behind_the_other_and_round_the_end(qapp, small_store, tmp_path) -> None:
    async def drive(pane, session) -> None:
        find = pane.finding
        find.open()
        find.line.field.setText("needle")
        output = []
        for _ in range(3):
            find.step(1)
            await settled(session.jobs)
            text = find.line.result.text()
            output.append((pane.table.current_row().offset, text.partition(" · ")[0], "other end" in text))
        first, second = small_store.units[5].offset, small_store.units[30].offset
        assert output == [(first, "1 of 2", False), (second, "2 of 2", False), (first, "1 of 2", True)]
        find.step(-1)
        await settled(session.jobs)
        assert pane.table.current_row().offset == second

    on_store(qapp, UnitsPane, small_store.write(tmp_path / "s"), drive)


def test_what_is_not_there_is_said_with_how_much_was_looked_at(qapp, small_store, tmp_path) -> None:
    async def drive(pane, session) -> None:
        pane.finding.open()
        pane.finding.line.field.setText("nowhere in it")
        pane.finding.step(1)
        await settled(session.jobs)
        assert pane.finding.line.result.text().startswith("Not found · scanned")
        pane.finding.close()
        assert pane.finding.line.isHidden()

    on_store(qapp, UnitsPane, small_store.write(tmp_path / "s"), drive)
