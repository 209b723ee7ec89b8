"""Columns of rows that stand for messages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from viewer.pane.message_columns import entry_place, queue_columns, translated_chip
from viewer.runtime import places
from viewer.widgets.columns import Chip


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (("Orders", 2, 17), places.queue("Orders", 2, 17)),
        (("Orders", 0, 0), places.queue("Orders", 0, 0)),
        ((None, 2, 17), None),
        (("Orders", None, 17), None),
        (("Orders", 2, None), None),
    ],
)
def test_a_row_with_topic_queue_and_offset_has_an_entry(row, place) -> None:
    topic, queue_id, queue_offset = row
    assert entry_place(SimpleNamespace(topic=topic, queue_id=queue_id, queue_offset=queue_offset)) == place


def test_the_queue_offset_is_left_out_where_rows_have_none() -> None:
    assert [column.key for column in queue_columns("Waits in")] == ["topic", "queueId", "queueOffset"]
    assert [column.key for column in queue_columns(has_offset=False)] == ["topic", "queueId"]


def test_a_chip_follows_the_row(themed_app: object) -> None:
    chip_of = translated_chip({"waiting": Chip("chat", "waits"), "ready": Chip("ok", "ready")}, "state")
    assert chip_of(SimpleNamespace(state="ready")).kind == "ok"
