"""The picture of one queue: cells around the chosen entry get verdicts, and other queues leave no traces."""

from __future__ import annotations

import struct

from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle
from planted_faults import patch

from viewer.queues.pane import QueuesPane
from viewer.runtime import places


def test_cells_around_the_chosen_entry_know_their_verdicts(qapp, tmp_path) -> None:
    store = HandmadeStore()
    for _ in range(40):
        store.put("Orders")
    root = store.write(tmp_path / "s")
    patch(root / "consumequeue" / "Orders" / "0" / f"{0:020d}", 20 * 7, struct.pack(">q", 1))

    async def drive(pane, session) -> None:
        pane.show_place(places.queue("Orders", 0, 9))
        await wait_until_idle(session.jobs)
        picture = pane.picture
        picture.choose(9)
        await wait_until_idle(session.jobs)
        verdict = picture._verdicts["Orders", 0]
        assert verdict[9] == "ok"
        assert verdict[7] not in {"ok", None}
        assert picture._facts.maximum == 40
        picture.set_source(None, None)
        assert (picture._facts, picture._verdicts) == (None, {})

    on_store(qapp, QueuesPane, root, drive)
