"""Moves of offsets by the window on a running broker: planned, set, and set back from the undo file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.codec.encode import Message
from engine.errors import CannotRead, UsageError
from engine.message_store import MessageStore
from viewer.cluster import offset_work
from viewer.cluster.offset_work import OffsetRequest, undo_request

CONTROL: Any = None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Addresses]:
    """A broker with 2 queues of 10 messages; the group billing is at 6 and 2."""
    with MessageStore(tmp_path / "store") as store:
        store.tables.create_topic("Orders", 2)
        for group in ("billing", "audit"):
            store.tables.create_group(group)
        for number in range(20):
            store.put_message(Message("Orders", b"%d" % number, queue_id=number % 2))
        for queue_id, offset in {0: 6, 1: 2}.items():
            store.tables.commit_consumer_offset("billing", "Orders", queue_id, offset)
        store.tables.commit_consumer_offset("audit", "Orders", 0, 9)
    with serving_beside(tmp_path / "store") as addresses:
        yield addresses


def request(cluster: Addresses, kind: Any, **fields: Any) -> OffsetRequest:
    return OffsetRequest((cluster.namesrv,), kind, "billing", "Orders", **fields)


def test_what_was_shown_is_set_and_set_back(cluster: Addresses, tmp_path: Path) -> None:
    skip = request(cluster, "end")
    plan = offset_work.plan(CONTROL, skip)
    assert (plan.again_count, plan.never_count, plan.members) == (0, 12, ())
    assert [(move.old, move.new) for move in plan.moves] == [(6, 10), (2, 10)]
    result = offset_work.apply(CONTROL, skip, plan, tmp_path / "undo.json")
    assert result.failures == {}
    back = undo_request(skip, tmp_path / "undo.json")
    undo = offset_work.plan(CONTROL, back)
    assert [(move.old, move.new) for move in undo.moves] == [(10, 6), (10, 2)]
    assert offset_work.apply(CONTROL, back, undo, tmp_path / "again.json").failures == {}
    assert [move.old for move in offset_work.plan(CONTROL, skip).moves] == [6, 2]


def test_an_undo_file_is_never_written_over(cluster: Addresses, tmp_path: Path) -> None:
    skip = request(cluster, "end")
    plan = offset_work.plan(CONTROL, skip)
    (tmp_path / "undo.json").write_text("kept")
    with pytest.raises(FileExistsError):
        offset_work.apply(CONTROL, skip, plan, tmp_path / "undo.json")
    assert [move.old for move in offset_work.plan(CONTROL, skip).moves] == [6, 2]


def test_a_time_and_another_group_are_targets_too(cluster: Addresses) -> None:
    plan = offset_work.plan(CONTROL, request(cluster, "time", time_ms=0))
    assert [move.new for move in plan.moves] == [0, 0]
    assert plan.again_count == 8
    plan = offset_work.plan(CONTROL, request(cluster, "group", source_group="audit"))
    assert [(move.queue.queue_id, move.new) for move in plan.moves] == [(0, 9)]
    with pytest.raises(UsageError, match="has no offset in topic"):
        offset_work.plan(CONTROL, request(cluster, "group", source_group="nobody"))


def test_a_cluster_that_does_not_answer_is_one_sentence() -> None:
    with pytest.raises((CannotRead, OSError)):
        offset_work.plan(CONTROL, OffsetRequest(("127.0.0.1:1",), "end", "billing", "Orders"))
