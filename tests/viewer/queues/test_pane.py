"""The queue view on real stores, driven like by a user."""

from __future__ import annotations

import shutil
import sys

import pytest
from panes import on_store, wait_until, wait_until_idle, write_in_place

from viewer.pane import histogram_feed
from viewer.queues.pane import QueuesPane, _no_queues
from viewer.queues.rows import EntryRow, QueueEdgeRow
from viewer.runtime import places


@pytest.mark.golden
def test_the_busiest_queue_opens_with_every_entry_ok(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        topic = max(session.survey.topics, key=lambda t: (not t.name.startswith("SCHEDULE"), t.count))
        assert pane.model.current[0] == topic.name
        assert pane.table.total_rows() == max(q.count for q in topic.queues) + 1
        assert pane._counter.of(pane.model.current).counts.keys() == {"ok"}
        assert "all agree with the log" in pane.status()
        assert pane.side.groups.total_rows() > 0

    on_store(qapp, QueuesPane, golden("broker-orders"), drive)


@pytest.mark.golden
def test_a_place_chooses_its_entry_in_table_cells_and_side(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        moved = []
        pane.placeMoved.connect(moved.append)
        pane.show_place(places.queue("OrderEvents", 1, 100))
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.topic, row.queue_id, row.queue_offset) == ("OrderEvents", 1, 100)
        assert moved[-1] == places.queue("OrderEvents", 1, 100)
        assert session.selection == row.physical_offset
        assert "100" in pane.picture.cells.accessibleDescription()
        pane.picture.entryChosen.emit(120)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().queue_offset == 120

    on_store(qapp, QueuesPane, golden("broker-orders"), drive)


@pytest.mark.golden
def test_the_offset_column_leads_to_the_unit(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        emitted = []
        pane.placeRequested.connect(emitted.append)
        row = pane.table.current_row()
        assert pane.table.follow()
        assert emitted == [places.log(row.physical_offset)]

    on_store(qapp, QueuesPane, golden("clean-5.3.3"), drive)


@pytest.mark.golden
def test_several_queues_follow_each_other_and_the_picture_follows_the_row(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        keys = [("OrderEvents", 0), ("OrderEvents", 1), ("AuditTrail", 0)]
        pane._queues_chosen(keys)
        await wait_until_idle(session.jobs)
        counts = [session.snapshot.queue(*key).max_offset for key in keys]
        assert pane.table.total_rows() == sum(counts) + 3
        assert [column.key for column in pane.table.kind.columns][1:3] == ["topic", "queueId"]
        pane.table.go_to_row(counts[0])
        await wait_until_idle(session.jobs)
        assert isinstance(pane.table.current_row(), QueueEdgeRow)
        pane.table.go_to_row(counts[0] + 5)
        await wait_until_idle(session.jobs)
        assert pane.model.current == ("OrderEvents", 1)
        assert all(pane._counter.of(key).complete for key in keys)

    on_store(qapp, QueuesPane, golden("broker-orders"), drive)


@pytest.mark.golden
def test_a_damaged_unit_is_found_by_stepping_to_the_next_problem(qapp, golden, tmp_path) -> None:
    """Three entries point into a torn unit and have wrong lengths. They are counted, pinned, and reached one after
    the other.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    folder = next(p for p in store.rglob("consumequeue/TopicA") if p.is_dir())
    file = next(iter(sorted((folder / "0").iterdir())))
    data = bytearray(file.read_bytes())
    for entry, position, value in ((5, 0, 7), (9, 8, 1), (12, 12, 99)):  # offset inside a unit, size, tag code
        width = 4 if position == 8 else 8
        data[entry * 20 + position : entry * 20 + position + width] = value.to_bytes(width, "big")
    file.write_bytes(data)

    async def drive(pane, session) -> None:
        pane.show_place(places.queue("TopicA", 0, 0))
        await wait_until_idle(session.jobs)
        counts = pane._counter.of(("TopicA", 0)).counts
        assert (counts["missing"], counts["wrongSize"], counts["wrongTag"]) == (1, 1, 1)
        results = []
        for _ in range(3):
            pane.next_problem(1)
            await wait_until_idle(session.jobs)
            results.append((pane.table.current_row().queue_offset, pane.table.current_row().verdict))
        assert results == [(5, "missing"), (9, "wrongSize"), (12, "wrongTag")]
        pane.next_problem(-1)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().queue_offset == 9
        emitted = []
        pane.statusMessage.connect(emitted.append)
        pane.show_place(places.queue("TopicA", 0, 12))
        await wait_until_idle(session.jobs)
        pane.next_problem(1)
        assert "No further entry" in emitted[-1]
        assert "do not agree" in pane.status()

    on_store(qapp, QueuesPane, store, drive)


@pytest.mark.golden
def test_a_batch_queue_shows_batches_with_their_sizes(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        keys = [column.key for column in pane.table.kind.columns]
        assert "batchSize" in keys
        row = pane.table.current_row()
        assert isinstance(row, EntryRow)
        assert row.batch_size >= 1
        assert "msgBaseOffset" in pane.side._bytes.accessibleDescription()
        pane.show_place(places.queue(row.topic, row.queue_id, row.next_offset + 1))
        await wait_until_idle(session.jobs)
        chosen = pane.table.current_row()
        assert chosen.queue_offset <= row.next_offset + 1 < chosen.next_offset

    on_store(qapp, QueuesPane, golden("batchcq-5.3.3"), drive)


@pytest.mark.golden
def test_an_ext_queue_and_a_delay_queue_get_their_columns(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        with_ext = [
            (topic, number)
            for topic, queues in session.snapshot.topics().items()
            for number, queue in queues.items()
            if queue.ext is not None and queue.max_offset
        ]
        pane.show_place(places.queue(*with_ext[0]))
        await wait_until_idle(session.jobs)
        assert "extTagsCode" in [column.key for column in pane.table.kind.columns]
        delayed = next(t for t in session.snapshot.topics() if t.startswith("SCHEDULE"))
        pane.show_place(places.queue(delayed))
        await wait_until_idle(session.jobs)
        assert "deliveryTime" in [column.key for column in pane.table.kind.columns]
        assert pane.table.current_row().delivery_time > 1_700_000_000_000

    on_store(qapp, QueuesPane, golden("multi-queue-ext-5.3.3"), drive)


@pytest.mark.golden
def test_a_missing_queue_and_a_store_without_queues_have_a_message(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        assert "no consume queues" in pane.table.note.state.text
        pane.show_place(places.queue("Nowhere", 3, 1))
        await wait_until_idle(session.jobs)
        assert "Nowhere/3" in pane.table.note.state.text

    on_store(qapp, QueuesPane, golden("queues-gone-5.3.3"), drive)


@pytest.mark.golden
def test_the_minimum_is_explained_where_files_were_deleted(qapp, golden) -> None:
    async def drive(pane, session) -> None:
        key = next(
            (topic, number)
            for topic, queues in session.snapshot.topics().items()
            for number, queue in queues.items()
            if queue.max_offset > queue.min_offset > 0
        )
        pane.show_place(places.queue(*key))
        await wait_until_idle(session.jobs)
        assert "deleted log file" in pane.side._minimum.text()
        assert pane._counter.of(key).counts["belowMinOffset"] == session.snapshot.queue(*key).min_offset

    on_store(qapp, QueuesPane, golden("first-files-deleted-5.3.3"), drive)


def test_a_queue_of_a_hundred_million_entries_is_scrolled_by_number(qapp, tmp_path) -> None:
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

    async def drive(pane, session) -> None:
        assert pane.table.total_rows() == count + 1
        assert pane.table.go_to_row(count - 1)
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.queue_offset, row.verdict) == (count - 1, "missing")
        assert not pane._counter.of(("T", 0)).complete
        assert "first" in pane.status()

    on_store(qapp, QueuesPane, tmp_path, drive)


@pytest.mark.golden
def test_a_growing_queue_keeps_the_visible_rows(qapp, golden, tmp_path) -> None:
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    file = sorted(next(p for p in store.rglob("consumequeue/TopicA") if p.is_dir()).joinpath("0").iterdir())[0]
    content = file.read_bytes()
    file.write_bytes(content[: 20 * 100].ljust(len(content), b"\0"))
    for later in sorted(file.parent.iterdir())[1:]:
        later.unlink()

    async def drive(pane, session) -> None:
        pane.show_place(places.queue("TopicA", 0, 50))
        await wait_until_idle(session.jobs)
        assert pane.table.total_rows() == 101
        counted = sum(pane._counter.of(("TopicA", 0)).counts.values())
        write_in_place(file, content[: 20 * 120])
        session.look(anyway=True)
        await wait_until_idle(session.jobs)
        pane.refresh()
        await wait_until_idle(session.jobs)
        assert pane.table.total_rows() == 121
        assert pane.table.current_row().queue_offset == 50
        assert sum(pane._counter.of(("TopicA", 0)).counts.values()) == counted + 20

    on_store(qapp, QueuesPane, store, drive)


@pytest.mark.golden
def test_queues_in_a_rocksdb_are_shown_as_those_in_files(qapp, golden) -> None:
    """The view named commands that read them."""
    pytest.importorskip("rocksdict")

    async def drive(pane, session) -> None:
        pane.show_place(places.queue("TopicA", 2, 100))
        await wait_until_idle(session.jobs)
        row = pane.table.current_row()
        assert (row.topic, row.queue_id, row.queue_offset, row.verdict) == ("TopicA", 2, 100, "ok")
        assert session.selection == row.physical_offset
        source = pane.model.source
        assert pane._counter.of(("TopicA", 2)).counts.keys() == {"ok"}
        assert "all agree with the log" in pane.status()
        raw, file, _ = source.raw(row.number)
        assert (len(raw), file) == (28, "")
        assert int.from_bytes(raw[:8], "big") == row.physical_offset
        end = source.row(source.end - 1)
        assert isinstance(end, QueueEdgeRow)
        assert (end.room, end.queue_offset) == (None, session.snapshot.queues.find("TopicA", 2).max_offset)

    on_store(qapp, QueuesPane, golden("rocks-5.5.1"), drive)


@pytest.mark.golden
def test_without_the_extra_the_view_names_it(qapp, golden, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)

    async def drive(pane, session) -> None:
        assert "pip install 'storescope[rocksdb]'" in _no_queues(session).text

    on_store(qapp, QueuesPane, golden("rocks-5.5.1"), drive)


@pytest.mark.golden
def test_the_histogram_of_a_queue_leads_to_entries_and_a_range_to_the_log(qapp, golden, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(histogram_feed, "default_cache", lambda: tmp_path / "cache")

    async def drive(pane, session) -> None:
        model = pane.times.strip.model
        pane.show_place(places.queue("OrderEvents", 1, 100))
        await wait_until_idle(session.jobs)
        await wait_until(lambda: model.bars() and not model.is_filling, "the histogram is read")
        entries = next(q.count for t in session.survey.topics if t.name == "OrderEvents" for q in t.queues[1:2])
        assert sum(bar.messages for bar in model.bars()) == entries
        bar = model.bars()[len(model.bars()) // 2]
        pane.times.strip.offsetChosen.emit(bar.first)
        await wait_until_idle(session.jobs)
        assert pane.table.current_row().physical_offset == bar.first
        asked = []
        pane.placeRequested.connect(asked.append)
        pane.times.strip.rangeBrushed.emit(bar.begin, bar.end)
        assert asked[-1].kind == "filter"
        assert asked[-1].name.startswith('topic = "OrderEvents" and queueId = 1 and storeTimestamp >= ')

    on_store(qapp, QueuesPane, golden("broker-orders"), drive)
