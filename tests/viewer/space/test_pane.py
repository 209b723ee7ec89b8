"""Space: a row a topic whose sum is the directory, areas that are chosen with the rows, and retention."""

from __future__ import annotations

from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from viewer.runtime.places import Place
from viewer.space.pane import SpacePane


def test_the_rows_add_up_to_the_directory_and_a_topic_is_chosen(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for number in range(60):
        store.put(("Orders", "Paid")[number % 3 == 0])
    root = store.write(tmp_path / "s")

    async def drive(pane, session) -> None:
        pane.show_place(Place("space", name="Orders"))
        await wait_until_idle(session.jobs)
        rows = pane.table.source.rows
        total_bytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        assert [row.equal for row in rows if row.kind == "sum"] == [True]
        assert pane.model.account.bytes == total_bytes
        assert pane.table.current_row().key == "Orders"
        assert pane.map.path[:1] == ("Orders",)
        assert pane.retention.text()
        assert not pane.busy()
        assert pane.status()

    on_store(qapp, SpacePane, root, drive)
