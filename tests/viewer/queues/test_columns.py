"""Columns of a queue's entries."""

from __future__ import annotations

import errno

import pytest
from controls import FakeControl
from handmade_stores import LOG_SIZE, healthy

from engine.inspection import open_store
from engine.mapped.reading import SystemDisk
from viewer.look import assets
from viewer.queues.columns import queue_kind, state_of, what_words
from viewer.queues.entry_cells import words_of
from viewer.queues.queues_model import verdict_sentence
from viewer.queues.rows import PROBLEMS, QueueSource
from viewer.queues.verdict_work import Verdicts, count_verdicts


def queues_of(store):
    return [queue for queues in store.topics().values() for queue in queues.values()]


@pytest.mark.golden
def test_groups_are_at_the_entry_they_read_next(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        queue = next(q for q in queues_of(store) if q.max_offset > 10)
        key = (queue.topic, queue.queue_id)
        source = QueueSource(store.log, [queue], {key: {7: ("billing", "ledger")}})
        row = source.row(source.place_of(*key, 7))
        assert row.groups == ("billing", "ledger")
        assert "billing · ledger" in queue_kind(lambda offset: offset).as_text(row)


def test_a_hundred_million_entries_open_at_once(tmp_path) -> None:
    """A queue of 100 M entries is 2 GB of files. Rows are numbers, and only the visible ones are read."""
    commit = tmp_path / "commitlog"
    commit.mkdir()
    (commit / f"{0:020d}").write_bytes(bytes(4096))
    folder = tmp_path / "consumequeue" / "T" / "0"
    folder.mkdir(parents=True)
    count = 100_000_000
    with (folder / f"{0:020d}").open("wb") as file:
        file.truncate(count * 20)
        file.seek((count - 1) * 20)
        file.write((5).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8))
    with open_store(tmp_path) as store:
        source = QueueSource(store.log, queues_of(store))
        assert source.total == count + 1
        page = source.read(count - 1, 3, 5)
        assert [row.number for row in page.rows] == list(range(count - 4, count + 1))
        assert state_of(page.rows[3]) == "missing"
        assert state_of(page.rows[3]) in PROBLEMS
        assert page.is_last


def test_entries_into_an_unreadable_log_file_have_their_own_state(tmp_path, monkeypatch) -> None:
    """Painting such an entry failed (KeyError: 'entry'), and the whole queue view stayed white. Its detail showed "ok"
    and the status bar "all agree with the log".
    """
    root = healthy().write(tmp_path / "store")
    opened, unreadable = SystemDisk.open, str(root / "commitlog" / f"{LOG_SIZE:020d}")

    def refuse(self: SystemDisk, path: str) -> int:
        if path == unreadable:
            raise OSError(errno.EACCES, "Permission denied", path)
        return opened(self, path)

    monkeypatch.setattr(SystemDisk, "open", refuse)
    with open_store(root) as store:
        queue = next(q for q in queues_of(store) if q.topic == "Orders")
        source = QueueSource(store.log, [queue])
        rows = source.read(0, 0, source.end).rows[:-1]
        counts = count_verdicts(FakeControl(), store.log, queue, Verdicts(), 1000)
    unread = [row for row in rows if LOG_SIZE <= row.physical_offset < 2 * LOG_SIZE]
    assert {state_of(row) for row in unread} == {"unread"}
    assert "unit cannot be read" in queue_kind(lambda offset: offset).speak(unread[0])
    assert words_of("unread") == "unit cannot be read"
    assert what_words(unread[0]) == f"{LOG_SIZE:020d}: cannot be read: Permission denied"
    assert counts.counts["unread"] == len(unread)
    sentence = verdict_sentence((queue.topic, queue.queue_id), counts)
    assert f"{len(unread)} point into files that cannot be read" in sentence
    assert "all agree" not in sentence
    assets.set_language("zh_CN")
    assert what_words(unread[0]) == f"{LOG_SIZE:020d}：无法读取：权限不足"
