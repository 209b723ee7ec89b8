"""Consumer groups: one row per group and queue, problems first, and a sentence below."""

from __future__ import annotations

import json

import pytest
from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from viewer.groups.pane import GroupsPane
from viewer.pane.group_rows import sentence
from viewer.runtime.places import Place


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for _ in range(8):
        store.put("Orders")
    root = store.write(tmp_path / "s")
    (root / "config").mkdir()
    offsets = {"Orders@slow": {"0": 3}, "Orders@there": {"0": 8}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    return root


def test_groups_their_sum_and_the_sentence_of_the_chosen_one(qapp, root) -> None:
    async def drive(pane, session) -> None:
        pane.show_place(Place("groups", name="slow"))
        await wait_until_idle(session.jobs)
        assert {row.progress.group for row in pane.table.source.rows} == {"slow", "there"}
        assert pane.status() == "2 groups, 2 offsets, 5 messages behind"
        assert pane.table.current_row().progress.group == "slow"
        assert "slow" in pane._sentence.text()
        assert "by RocketMQ's defaults" in pane.head.note.text()

    on_store(qapp, GroupsPane, root, drive)


def test_a_store_without_offsets_names_the_searched_files(qapp, tmp_path) -> None:
    store = HandmadeStore()
    store.put()

    async def drive(pane, session) -> None:
        pane.refresh()
        await wait_until_idle(session.jobs)
        assert pane.table.source.rows == []
        assert pane.table.note.state.text.startswith("No group has an offset in this store.")

    on_store(qapp, GroupsPane, store.write(tmp_path / "s"), drive)


def test_a_group_with_waiting_retries_has_not_caught_up(qapp, golden) -> None:
    """ "✓ caught up" was beside a topic with five messages waiting in %RETRY%, the broker's own group came first, and
    no row summed up a group.
    """

    async def drive(pane, session) -> None:
        pane.refresh()
        await wait_until_idle(session.jobs)
        rows = list(pane.table.source.rows)
        assert rows[0].progress.group == "billing"
        assert rows[-1].progress.group.startswith("CID_RMQ_SYS_")
        orders = next(row for row in rows if row.progress.topic == "OrderEvents")
        assert orders.progress.state == "caughtUp"
        waiting = orders.waits.retry + orders.waits.popped
        assert pane.table.kind.verdict(orders) == f"{waiting} wait"
        assert "4 messages of this topic wait for it in its retry topics" in sentence(orders)
        pane.tabs.choose("groups")
        first_row = pane.table.source.rows[0]
        assert (first_row.group, first_row.queues, first_row.behind, first_row.retry) == ("billing", 2, 0, 4)
        pane.tabs.choose("topics")
        topics = [row.topic for row in pane.table.source.rows if row.group == "billing"]
        assert topics == ["OrderEvents", "%RETRY%billing"]
        assert "4 to be tried again" in pane._sentence.text()
        pane.tabs.choose("queues")
        assert list(pane.table.source.rows) == rows

    on_store(qapp, GroupsPane, golden("broker-pop-5.5.1"), drive)
