"""The model of the Groups view: rows, sums, the chosen row, and the messages of the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from viewer.groups.groups_model import GroupsModel, sentences
from viewer.pane.group_rows import GroupTable, read_groups


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> GroupTable:
    store = HandmadeStore()
    for number in range(8):
        store.put("Orders", queue_id=number % 2)
    root = store.write(tmp_path_factory.mktemp("groups") / "store")
    (root / "config").mkdir()
    offsets = {"Orders@slow": {"0": 1, "1": 3}, "Orders@there": {"0": 4}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    with open_store(root) as opened:
        return read_groups(opened)


def model_of(groups: GroupTable) -> GroupsModel:
    filled = GroupsModel()
    filled.take(groups)
    return filled


@pytest.fixture
def model(groups: GroupTable) -> GroupsModel:
    return model_of(groups)


def place(model: GroupsModel, row: int) -> tuple[str, int]:
    progress = model.queue_rows[row].progress
    return progress.group, progress.queue_id


def index(model: GroupsModel, group: str, queue_id: int) -> int:
    return next(number for number in range(len(model.queue_rows)) if place(model, number) == (group, queue_id))


def test_before_a_store_is_read_there_is_no_message():
    model = GroupsModel()
    assert (model.summary(), model.table_state(), list(model.rows)) == ("", None, [])
    assert model.head_note() == "config/consumerOffset.json against the queues"


def test_groups_are_summed_up_and_another_store_forgets_them(model: GroupsModel):
    assert model.summary() == "2 groups, 3 offsets, 4 messages behind"
    assert "by RocketMQ's defaults; no broker runs" in model.head_note()
    assert model.table_state() is None
    model.forget_store()
    assert (model.summary(), list(model.rows)) == ("", [])


def test_the_used_table_is_named(groups: GroupTable):
    """The head named consumerOffset.json although it was missing and its .bak was read."""
    assert model_of(groups).head_note().startswith("config/consumerOffset.json against the queues · ")
    from_backup = replace(groups, file="consumerOffset.json.bak")
    assert model_of(from_backup).head_note().startswith("config/consumerOffset.json.bak against the queues · ")


def test_rows_are_queues_or_the_sums_of_topics_or_groups(model: GroupsModel):
    assert model.rows == model.queue_rows
    model.grouping = "groups"
    assert [(row.group, row.queues) for row in model.rows] == [("slow", 2), ("there", 1)]
    model.grouping = "topics"
    assert {row.topic for row in model.rows} == {"Orders"}
    model.forget_store()
    assert list(model.rows) == []


def test_the_chosen_queue_stays_chosen_as_the_tables_are_read_again(model: GroupsModel):
    chosen = model.queue_rows[index(model, "slow", 1)]
    moved = replace(chosen, progress=replace(chosen.progress, behind=0))
    assert place(model, model.row_to_choose(moved)) == ("slow", 1)
    assert model.row_to_choose(None) == 0


def test_a_named_group_is_chosen_before_the_previous_row(model: GroupsModel):
    model.pending_group = "there"
    assert place(model, model.row_to_choose(model.queue_rows[index(model, "slow", 1)])) == ("there", 0)
    model.pending_group = "slow"
    assert place(model, model.row_to_choose(model.queue_rows[index(model, "slow", 1)])) == ("slow", 1)
    model.pending_group = "unheard of"
    assert model.row_to_choose(None) == 0


def test_the_group_of_a_removed_queue_stays_chosen(model: GroupsModel):
    chosen = model.queue_rows[index(model, "there", 0)]
    removed = replace(chosen, progress=replace(chosen.progress, queue_id=9))
    assert place(model, model.row_to_choose(removed)) == ("there", 0)


def test_an_empty_table_has_a_reason(model: GroupsModel, groups: GroupTable):
    model.fail("Permission denied")
    assert model.table_state().kind == "error"
    model.take(groups)
    assert model.table_state() is None
    model.take(replace(groups, rows=()))
    assert model.table_state().kind == "empty"
    model.take(replace(groups, rows=(), unknown="consumerOffset.json cannot be read"))
    assert model.table_state().kind == "unread"
    assert model.table_state().text == model.summary()


def test_rows_with_messages_to_read_are_pinned_and_have_a_sentence(model: GroupsModel):
    assert {row.progress.group for _, row in model.pinned_rows()} == {"slow"}
    short_text, full_text = sentences(model.queue_rows[0])
    assert "slow" in short_text
    assert "slow" in full_text
    assert sentences(None) == ("", "")
    model.grouping = "groups"
    assert sentences(model.rows[0])[0]
