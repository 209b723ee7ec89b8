from __future__ import annotations

import pytest

from engine.inspection import open_store
from viewer.queues.rows import EntryRow, QueueEdgeRow, QueueSource


def queues_of(store):
    return [queue for queues in store.topics().values() for queue in queues.values()]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-5.3.3", "batchcq-5.3.3", "first-files-deleted-5.3.3", "multi-queue-ext-5.3.3"])
def test_pages_join_to_all_rows_of_all_queues(golden, name) -> None:
    with open_store(golden(name)) as store:
        source = QueueSource(store.log, queues_of(store))
        complete = source.read(0, 0, source.end)
        assert [row.number for row in complete.rows] == list(range(source.total))
        assert sum(isinstance(row, QueueEdgeRow) for row in complete.rows) == len(queues_of(store))
        position, pieces = 0, []
        while position < source.end:
            page = source.read(position, 0, 97)
            pieces += page.rows
            position += len(page.rows)
        assert pieces == complete.rows
        middle = source.end // 2
        page = source.read(middle, 10, 10)
        assert page.rows[page.rows_before].number == middle


@pytest.mark.golden
def test_every_entry_is_found_by_its_queue_offset(golden) -> None:
    with open_store(golden("batchcq-5.3.3")) as store:
        source = QueueSource(store.log, queues_of(store))
        for row in source.read(0, 0, source.end).rows:
            if isinstance(row, EntryRow):
                for offset in (row.queue_offset, row.next_offset - 1):
                    assert source.place_of(row.topic, row.queue_id, offset) == row.number
        assert source.place_of("No such topic", 0, 0) is None


@pytest.mark.golden
def test_the_raw_bytes_of_a_row_are_those_of_its_entry(golden) -> None:
    with open_store(golden("clean-5.3.3")) as store:
        source = QueueSource(store.log, queues_of(store))
        for row in source.read(300, 0, 20).rows:
            if isinstance(row, EntryRow):
                raw, file, _ = source.raw(row.number)
                assert int.from_bytes(raw[:8], "big") == row.physical_offset
                assert file.isdigit()
