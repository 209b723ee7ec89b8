"""The space account of a store adds up to its files, to the byte, in every state of the store."""

from __future__ import annotations

import shutil
import struct
import threading
from collections import Counter
from pathlib import Path

import golden_stores
import naive_space_count
import pytest
from dledger_damage import as_dledger
from failing_reads import FailingDisk
from handmade_stores import HandmadeStore, healthy

from engine.inspection import open_store
from engine.inspection.space.account import quick_space, space_of
from engine.mapped.reading import read_through

pytestmark = pytest.mark.golden


def _root(golden, name: str) -> Path:
    actual_golden = golden(name)
    return actual_golden / "store" if (actual_golden / "store").is_dir() else actual_golden


@pytest.mark.parametrize("name", golden_stores.names())
def test_the_rows_of_every_real_store_add_up_to_its_files(golden, name):
    root = _root(golden, name)
    with open_store(root) as store:
        space, quick = space_of(store), quick_space(store)
    plain = naive_space_count.bytes_by_folder(root)
    assert space.bytes == space.counted == quick.bytes == quick.counted == sum(plain.values())
    assert space.equal
    by_folder: Counter[str] = Counter()
    for row in space.rows:
        by_folder[row.kind] += row.bytes
    for kind in ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index", "config"):
        assert by_folder[kind] == plain[kind], kind
    for results in (space, quick):
        assert (
            sum(row.allocated for row in results.rows) == results.allocated == sum(k.allocated for k in results.kinds)
        )
        assert all(row.bytes >= 0 and row.allocated >= 0 for row in results.rows)


@pytest.mark.parametrize("name", golden_stores.names())
def test_topics_and_queues_of_every_real_store_match_a_plain_count(golden, name):
    root = _root(golden, name)
    sizes, messages, blanks = naive_space_count.units_by_queue(root / "commitlog")
    with open_store(root) as store:
        space = space_of(store)
    counts: Counter[tuple[str, int]] = Counter()
    counted: Counter[tuple[str, int]] = Counter()
    for row in space.rows:
        if row.kind == "commitlog" and row.topic is not None:
            counts[row.topic, row.queue_id] += row.bytes
            counted[row.topic, row.queue_id] += row.messages
    assert counts == sizes
    assert counted == messages
    assert sum(row.bytes for row in space.rows if row.part == "blank") == blanks
    total = sum(sizes.values())
    assert sum(tag.bytes for tag in space.tags) == sum(producer.bytes for producer in space.producers) == total
    assert sum(tag.messages for tag in space.tags) == sum(producer.messages for producer in space.producers)


def _written_store(tmp_path: Path) -> tuple[HandmadeStore, Path]:
    store = HandmadeStore()
    for number in range(60):
        store.put(
            topic=("Orders", "Paid")[number % 2],
            queue_id=number % 3,
            tags=("Aa", "BB", None)[number % 3],
            body=b"x" * (number % 7),
            step=3_600_000,
        )
    return store, store.write(tmp_path / "store")


def test_tags_with_the_same_hash_code_are_counted_separately(tmp_path):
    """``Aa`` and ``BB`` have the same hash code in Java. A count by code alone would join them."""
    sample, root = _written_store(tmp_path)
    with open_store(root) as store:
        space = space_of(store)
    expected: Counter[str | None] = Counter()
    for number, unit in enumerate(sample.units):
        expected[("Aa", "BB", None)[number % 3]] += unit.size
    counts: Counter[str | None] = Counter()
    for tag in space.tags:
        counts[tag.name] += tag.bytes
    assert counts == expected
    assert {producer.name for producer in space.producers} == {"127.0.0.1"}


def test_files_have_their_own_parts(tmp_path):
    _, root = _written_store(tmp_path)
    with open_store(root) as store:
        files = space_of(store).files
    assert len(files) > 1
    for file in files:
        assert file.written + file.blank + file.unreadable + file.zero == file.size
        assert sum(file.topics.values()) == file.written
        assert 0 < file.first_time <= file.last_time


def test_damage_stale_units_and_bytes_after_the_end_have_separate_rows(tmp_path):
    sample, root = _written_store(tmp_path)
    spoiled, stale = sample.units[5], sample.units[9]
    for unit, position, data in ((spoiled, 4, b"\xff\xff\xff\xff"), (stale, 28, struct.pack(">q", 77))):
        path = root / "commitlog" / f"{unit.offset // 4096 * 4096:020d}"
        with path.open("r+b") as file:
            file.seek(unit.offset % 4096 + position)
            file.write(data)
    with open_store(root) as store:
        space = space_of(store)
        actual_unit = store.log.unit_at(stale.offset, crc=False)
    assert space.equal
    parts: Counter[str] = Counter()
    for row in space.rows:
        if row.kind == "commitlog":
            parts[row.part] += row.bytes
    lost = spoiled.size + (0 if hasattr(actual_unit, "topic") else stale.size)
    assert parts["unreadable"] == lost
    assert parts["units"] + parts["stale"] + parts["beyondEnd"] == sum(unit.size for unit in sample.units) - lost


def test_files_that_are_no_part_of_the_log_are_rows_too(tmp_path):
    _, root = _written_store(tmp_path)
    (root / "commitlog" / "notes.txt").write_bytes(b"x" * 77)
    (root / "lost+found").mkdir()
    (root / "lost+found" / "core").write_bytes(b"y" * 99)
    (root / "dangling").symlink_to("nowhere")
    with open_store(root) as store:
        space = space_of(store)
    assert space.equal
    assert [row.bytes for row in space.rows if row.kind == "commitlog" and row.part == "notRead"] == [77]
    assert [row.bytes for row in space.rows if row.kind == "other"] == [99 + len("nowhere")]
    assert space.bytes == sum(naive_space_count.bytes_by_folder(root).values())


def test_entries_below_the_minimum_are_dead(golden):
    with open_store(golden("first-files-deleted-5.3.3")) as store:
        space = space_of(store)
        least = store.log.min_offset
        expected = 0
        for queues in store.topics().values():
            for queue in queues.values():
                expected += 20 * sum(entry.physical_offset < least for entry in queue.entries())
    queues = [row for row in space.rows if row.kind == "consumequeue"]
    assert expected == sum(row.bytes for row in queues if row.part == "belowMin") > 0
    assert space.dead >= expected


def test_a_deleted_topics_units_are_dead(golden):
    with open_store(golden("broker-orders")) as store:
        space = space_of(store)
    assert space.deleted_topics == ("DroppedAuditTrail",)
    rows = [row for row in space.rows if row.topic == "DroppedAuditTrail"]
    assert rows
    assert all(space.is_dead(row) for row in rows)
    assert space.dead >= sum(row.bytes for row in rows)


def test_a_stopped_walk_reports_the_uncounted_bytes(tmp_path):
    _, root = _written_store(tmp_path)
    with open_store(root) as store:
        space = space_of(store, cancelled=lambda: True)
    assert space.method == "cut"
    assert space.equal
    assert sum(row.bytes for row in space.rows if row.part == "notLookedAt") > 0


def test_a_file_that_cannot_be_read_does_not_stop_the_walk(tmp_path):
    """The Space view said "Stopped" and offered to continue, although all readable bytes were counted."""
    _, root = _written_store(tmp_path)
    with open_store(root) as store:
        second_file = store.log.files[1].path
    with read_through(FailingDisk(second_file, "open", 0, "EACCES")), open_store(root) as store:
        space = space_of(store)
    assert space.method == "unread"
    assert space.equal
    assert sum(row.bytes for row in space.rows if row.part == "notLookedAt") > 0


def test_progress_goes_up_to_the_logs_bytes(tmp_path):
    _, root = _written_store(tmp_path)
    reports: list[tuple[int, int]] = []
    with open_store(root) as store:
        space_of(store, progress=lambda done, total: reports.append((done, total)))
        size = store.log.sequence.total_size
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1] == (size, size)


def test_the_quick_account_has_the_topics_of_the_queues(tmp_path):
    sample, root = _written_store(tmp_path)
    with open_store(root) as store:
        space = quick_space(store)
    assert space.method == "queues"
    assert space.equal
    for topic in ("Orders", "Paid"):
        total = sum(row.bytes for row in space.rows if row.kind == "commitlog" and row.topic == topic)
        assert total == sum(unit.size for unit in sample.units if unit.topic == topic)


def test_a_log_by_itself_and_a_single_file_are_accounted_for(tmp_path):
    _, root = _written_store(tmp_path)
    folder = shutil.copytree(root / "commitlog", tmp_path / "alone")
    for path in (folder, min(folder.iterdir())):
        with open_store(path) as store:
            space = space_of(store)
        assert space.equal
        assert {row.kind for row in space.rows} == {"commitlog"}
        assert space.bytes == (path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.iterdir()))


def test_holes_are_apparent_not_allocated(tmp_path):
    handmade_store = HandmadeStore(log_size=1 << 20)
    handmade_store.put()
    root = handmade_store.write(tmp_path / "store")
    path = next((root / "commitlog").iterdir())
    head = path.read_bytes()[: handmade_store.end]
    path.unlink()
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 20)
    with open_store(root) as store:
        space = space_of(store)
    row = next(row for row in space.rows if row.part == "zeroTail")
    assert row.bytes == (1 << 20) - handmade_store.end
    assert row.allocated < 65_536
    assert space.allocated < space.bytes


def test_headers_of_dledger_entries_are_counted_apart(tmp_path):
    """They were counted as bytes that were never written."""
    root = healthy(20).write(tmp_path / "store")
    as_dledger(root)
    with open_store(root) as store:
        rows = {row.part: row.bytes for row in space_of(store).rows if row.kind == "commitlog"}
        end = store.log.max_offset
    assert rows["entryHeaders"] == 20 * 48
    assert rows["zeroTail"] == (1 << 20) - end


def test_a_store_can_lose_a_file_while_it_is_counted(tmp_path):
    _, root = _written_store(tmp_path)
    last_file = max((root / "commitlog").iterdir())
    removed = threading.Event()

    def progress(_done: int, _total: int) -> None:
        if not removed.is_set():
            removed.set()
            last_file.unlink()

    with open_store(root) as store:
        space = space_of(store, progress=progress)
    assert space.counted == space.bytes
    assert space.changed == 1
