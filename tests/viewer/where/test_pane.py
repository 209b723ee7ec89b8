"""View with one search field: verdict, evidence and routes to the message."""

from __future__ import annotations

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle
from PySide6.QtGui import QGuiApplication

from viewer.runtime.places import Place, filtered
from viewer.where.pane import WherePane, known_groups


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(6):
        store.put("Orders", keys=f"K{number}")
    return store.write(tmp_path / "s")


def test_a_key_is_asked_for_and_found(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("where", key="K3"))
        await wait_until_idle(session.jobs)
        (result,) = pane.model.results
        assert (result.verdict, result.queue_offset) == ("found", 3)
        assert pane._meaning.text() == "The message is intact, and its queue leads to it."
        assert pane.evidence.total_rows() > 2
        assert {row.route.by for row in pane.routes.source.rows} >= {"offset", "queue", "key"}
        assert not pane.busy()

    on_store(qapp, WherePane, root, drive)


def test_a_message_that_is_nowhere_is_reported_as_never_seen(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.field.setText("K99")
        pane.ask()
        await wait_until_idle(session.jobs)
        assert [result.verdict for result in pane.model.results] == ["neverSeen"]
        assert known_groups(session.snapshot) == []

    on_store(qapp, WherePane, root, drive)


def test_tags_are_looked_for_in_the_index(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("where", key="T#open"))
        await wait_until_idle(session.jobs)
        assert len(pane.model.results) > 1
        assert {result.verdict for result in pane.model.results} == {"found"}
        pane._copy_command()
        assert QGuiApplication.clipboard().text().endswith("--tag --json -- open")

    on_store(qapp, WherePane, golden("broker-tags-5.5.1"), drive)


def test_tags_that_no_entry_has_lead_to_the_filter(qapp, root) -> None:
    async def drive(pane, session) -> None:
        places = []
        pane.placeRequested.connect(places.append)
        pane.show_place(Place("where", key="T#open"))
        await wait_until_idle(session.jobs)
        assert not pane.model.results
        state = pane.table.note.state
        assert state.text.startswith("The index has no entry for these tags.")
        state.steps[0][1]()
        assert places == [filtered("only", 'tags = "open"')]

    on_store(qapp, WherePane, root, drive)
