"""Groups as rows and sentences: progress, age, and when retention deletes unread messages."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from broken_stores import group_barred
from handmade_stores import healthy
from PySide6.QtWidgets import QApplication

from engine.inspection import open_store
from engine.inspection.groups import GroupProgress
from engine.inspection.samples import sample
from viewer.look import assets
from viewer.pane.group_rows import GroupRow, groups_kind, order, read_groups, sentence

HOUR = 3_600_000


def row(state: str, offset: int, end: int, unread: int | None = None, goes_at: int | None = None) -> GroupRow:
    """Make a row at the time of 100 h."""
    stored = 98 * HOUR if unread is not None else None
    progress = GroupProgress("g", "T", 1, offset, end, max(0, end - offset), stored, state, "cluster")  # type: ignore[arg-type]
    return GroupRow(progress, unread, goes_at, 100 * HOUR)


SENTENCES = (
    (row("caughtUp", 7, 7), "g has read all of T/1.", None),
    (
        row("behind", 3, 7, 500, 103 * HOUR),
        "g reads T/1 from 3 on, 4 messages behind. Its oldest unread message is 2 h 0 min old. Retention",
        3 * HOUR,
    ),
    (row("behind", 3, 7, 500), "That message is in the newest file, which retention never deletes.", None),
    (row("belowMin", 1, 7, 500), "What it would read next is deleted already", 0),
    (row("beyondMax", 9, 7), "g will ask T/1 for 9; it ends at 7: 2 new messages will be skipped.", None),
    (row("gone", 9, 0), "g has an offset in T/1, which does not exist any more.", None),
)


@pytest.mark.parametrize(("group_row", "words", "expected_left"), SENTENCES)
def test_a_row_in_whole_sentences(
    themed_app: QApplication, group_row: GroupRow, words: str, expected_left: int | None
) -> None:
    assert words in sentence(group_row)
    assert group_row.left == expected_left
    kind = groups_kind()
    assert kind.as_record(group_row)["state"] == group_row.progress.state
    assert kind.as_text(group_row).startswith("g\tT\t1\t")


def test_long_names_lose_their_middle_in_the_sentence(themed_app: QApplication) -> None:
    item = row("caughtUp", 7, 7)
    long = GroupRow(replace(item.progress, group="a" * 140 + "zz"), item.unread, item.goes_at, item.now)
    assert sentence(long, 12) == "aaaaaa…aaazz has read all of T/1."
    assert sentence(long).startswith("a" * 140 + "zz has read")


def test_groups_that_need_attention_come_first() -> None:
    rows = [
        row("caughtUp", 7, 7),
        row("behind", 3, 7, 5, 200 * HOUR),
        row("behind", 6, 7, 5, 101 * HOUR),
        row("belowMin", 1, 7, 5),
        row("beyondMax", 9, 7),
        row("gone", 1, 0),
    ]
    states = [(item.progress.state, item.goes_at) for item in order(rows)]
    assert states == [
        ("beyondMax", None),
        ("belowMin", None),
        ("behind", 101 * HOUR),
        ("behind", 200 * HOUR),
        ("gone", None),
        ("caughtUp", None),
    ]


def test_unread_messages_are_deleted_with_the_first_file(tmp_path: Path) -> None:
    import shutil

    store = Path(shutil.copytree(sample("orders"), tmp_path / "store"))
    first_file = store / "commitlog" / "00000000000000000000"
    os.utime(first_file, (1_000_000, 1_000_000))
    with open_store(store) as opened:
        groups = read_groups(opened)
    lagging = [group_row for group_row in groups.rows if group_row.progress.state == "behind"]
    assert lagging
    for group_row in lagging:
        assert group_row.unread is not None
        assert (group_row.goes_at is not None) == (group_row.unread < 1 << 20), "the newest file is never deleted"
    assert groups.reserved_hours == 72
    assert not groups.running


def test_the_mode_of_a_group_is_translated(themed_app: QApplication) -> None:
    mode = next(column for column in groups_kind().columns if column.key == "mode")
    item = row("caughtUp", 7, 7)
    assert mode.text(item) == "cluster"
    assets.set_language("zh_CN")
    assert mode.text(item) == "集群消费"
    assert mode.value(item) == "cluster", "exports and filters keep RocketMQ's"


def test_a_group_that_may_not_consume_has_this_state_and_sentence(themed_app: QApplication, tmp_path: Path) -> None:
    """The table said "behind" for a group to which the broker refuses every message. Only `check` gave the reason."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    group_barred(root, new_store)
    with open_store(root) as store:
        (refused,) = read_groups(store).rows
    state = next(column for column in groups_kind().columns if column.key == "state")
    assert state.text(refused) == "may not consume"
    assert "refuses it every message: billing may not consume: subscriptionGroup.json says" in sentence(refused)
    assert groups_kind().as_record(refused)["barred"].startswith("billing may not consume")
    caught_up = replace(row("caughtUp", 7, 7), barred="g may not consume")
    assert state.text(caught_up) == "caught up"
    assert "g may not consume" in sentence(caught_up)
    lagging = row("behind", 3, 7, 5, 101 * HOUR)
    assert order([lagging, refused]) == [refused, lagging]
