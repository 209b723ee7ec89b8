"""The tables below config/: which file is used and why, its values, and its differences from the ``.bak`` file."""

from __future__ import annotations

import json

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from viewer.config.pane import ConfigPane
from viewer.runtime.places import Place


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    store.put()
    root = store.write(tmp_path / "s")
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {"A": {"perm": 6}}}))
    (root / "config" / "topics.json.bak").write_text(json.dumps({"topicConfigTable": {"A": {"perm": 4}}}))
    (root / "config" / "consumerOffset.json").write_text("{broken")
    (root / "config" / "consumerOffset.json.bak").write_text('{"offsetTable":{"A@g":{0:5}}}')
    return root


def test_every_table_shows_which_file_is_used(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.refresh()
        await wait_until_idle(session.jobs)
        rows = {row.name: row for row in pane.table.source.rows}
        assert {name: row.table.used for name, row in rows.items()} == {
            "topics.json": "main",
            "consumerOffset.json": "bak",
        }
        assert rows["topics.json"].differing == "1 value"
        assert rows["consumerOffset.json"].differing == "not comparable"
        assert pane.status() == "2 tables"

    on_store(qapp, ConfigPane, root, drive)


def test_a_place_chooses_a_table_with_its_values_and_changes(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("config", name="topics.json"))
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().name == "topics.json"
        assert [(row.path, row.value) for row in pane.values.source.rows][-1][1] == "6"
        (change,) = pane.changes.source.rows
        assert (change.kind, str(change.second_text), str(change.first_text)) == ("differs", "4", "6")

    on_store(qapp, ConfigPane, root, drive)
