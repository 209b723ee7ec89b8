"""Find in the log: the next hit without a filter, wrapping at the end, and searches without a hit."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from viewer.log.pane import UnitsPane


@pytest.fixture
def small_store():
    store = HandmadeStore()
    for number in range(40):
        store.put("Orders", body=b"needle" if number in {5, 30} else b"hay", keys=f"K{number}")
    return store


def test_hits_come_in_order_and_wrap_at_the_end(qapp, small_store, tmp_path) -> None:
    async def drive(pane, session) -> None:
        find = pane.finding
        find.open()
        find.line.field.setText("needle")
        hits = []
        for _ in range(3):
            find.step(1)
            await wait_until_idle(session.jobs)
            text = find.line.result.text()
            hits.append((pane.table.current_row().offset, text.partition(" · ")[0], "other end" in text))
        first_hit, second_hit = small_store.units[5].offset, small_store.units[30].offset
        assert hits == [(first_hit, "1 of 2", False), (second_hit, "2 of 2", False), (first_hit, "1 of 2", True)]
        find.step(-1)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().offset == second_hit

    on_store(qapp, UnitsPane, small_store.write(tmp_path / "s"), drive)


def test_a_search_without_hits_reports_the_searched_amount(qapp, small_store, tmp_path) -> None:
    async def drive(pane, session) -> None:
        pane.finding.open()
        pane.finding.line.field.setText("nowhere in it")
        pane.finding.step(1)
        await wait_until_idle(session.jobs)
        assert pane.finding.line.result.text().startswith("Not found · scanned")
        pane.finding.close()
        assert pane.finding.line.isHidden()

    on_store(qapp, UnitsPane, small_store.write(tmp_path / "s"), drive)
