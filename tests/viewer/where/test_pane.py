"""Where is my message: one field, a verdict, the evidence and the ways to it."""

from __future__ import annotations

import pytest
from made_stores import MadeStore
from panes import on_store, settled

from viewer.runtime.places import Place
from viewer.where.pane import WherePane, known_groups


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    for number in range(6):
        made.put("Orders", keys=f"K{number}")
    return made.write(tmp_path / "s")


def test_a_key_is_asked_for_and_found(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("where", key="K3"))
        await settled(session.jobs)
        (found,) = pane.results
        assert (found.verdict, found.queue_offset) == ("found", 3)
        assert pane._meaning.text() == "The unit is intact and its queue leads to it."
        assert pane.evidence.total_rows() > 2
        assert {row.route.by for row in pane.routes.source.rows} >= {"offset", "queue", "key"}
        assert not pane.busy()

    on_store(qapp, WherePane, root, drive)


def test_what_is_nowhere_is_never_seen(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.field.setText("K99")
        pane.ask()
        await settled(session.jobs)
        assert [one.verdict for one in pane.results] == ["neverSeen"]
        assert known_groups(session.snapshot) == []

    on_store(qapp, WherePane, root, drive)
