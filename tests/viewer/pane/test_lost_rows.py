"""What an incident loses is a row a topic and a row a queue, with links to both, and the sum of all."""

from __future__ import annotations

from typing import Any

from viewer.pane.lost_rows import lost_kind, lost_rows
from viewer.runtime import places


def queue(topic: str, number: int, messages: int, **more: Any) -> dict[str, Any]:
    known = {"firstUnit": 4096 * (number + 1), "firstTimestamp": None, "lastTimestamp": None}
    return {"topic": topic, "queueId": number, "messages": messages, "firstQueueOffset": 10,
            "lastQueueOffset": 9 + messages} | known | more  # fmt: skip


def test_each_topic_has_its_sum_the_largest_first_and_the_last_row_is_all() -> None:
    rows = lost_rows([queue("Audit", 0, 3), queue("Orders", 1, 1000), queue("Orders", 0, 200)])
    assert [(row.topic, row.queue_id, row.queues, row.messages) for row in rows] == [
        ("Orders", None, 2, 1200), ("Orders", 0, 1, 200), ("Orders", 1, 1, 1000), ("Audit", None, 1, 3),
        ("Audit", 0, 1, 3), ("", None, 3, 1203),
    ]  # fmt: skip
    kind = lost_kind(rows)
    assert [kind.as_text(row, "|") for row in rows[:2]] == ["Orders|2 queues|1,200||4,096", "|0|200|10 – 209|4,096"]
    assert kind.as_text(rows[-1], "|") == "|All, 3 queues|1,203||4,096"


def test_a_row_leads_to_its_first_entry_and_to_its_first_unit() -> None:
    rows = lost_rows([queue("Orders", 1, 7)])
    jumps = {column.key: column.jump for column in lost_kind(rows).columns if column.jump is not None}
    assert jumps["firstQueueOffset"](rows[1]) == places.queue("Orders", 1, 10)
    assert jumps["firstUnit"](rows[1]) == places.log(8192)
    assert jumps["firstQueueOffset"](rows[0]) is None, "a topic's offsets are those of its queues"


def test_times_stand_there_where_any_is_known() -> None:
    rows = lost_rows([queue("Orders", 0, 7), queue("Orders", 1, 7, firstTimestamp=5_000, lastTimestamp=9_000)])
    assert [(row.first_timestamp, row.last_timestamp) for row in rows] == [
        (5_000, 9_000), (None, None), (5_000, 9_000), (5_000, 9_000),
    ]  # fmt: skip
    assert [column.key for column in lost_kind(rows).columns][-2:] == ["firstTimestamp", "lastTimestamp"]
    assert "firstTimestamp" not in [column.key for column in lost_kind(lost_rows([queue("Orders", 0, 7)])).columns]


def test_nothing_lost_has_no_rows() -> None:
    assert lost_rows([]) == []
