"""The facts of an entry."""

from __future__ import annotations

import shutil

import made_rocksdb
import pytest
from handmade_stores import healthy
from tiered_stores import drop_first_queue_files

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.moved_entries import find_moved_messages
from viewer.queues.columns import record, state_of
from viewer.queues.facts import look, own_unit
from viewer.queues.rows import QueueSource
from viewer.queues.side import logical_words, minimum_words, sides_words
from viewer.queues.verdict_work import Verdicts, count_verdicts
from viewer.runtime import places
from viewer.runtime.place_search import checked
from viewer.runtime.survey import survey


@pytest.mark.golden
def test_zeroed_entries_are_missing_and_another_queue_is_not_another_topic(golden, tmp_path):
    """Zeroed entries were "– empty" and neutral, and 2 of 4 were counted. An entry of TopicA/0 in TopicA/2 was "wrong
    topic", without the place of its unit.
    """
    path = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), path)
    folder = path / "consumequeue" / "TopicA"
    file = folder / "2" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    true = int.from_bytes(data[5 * 20 : 5 * 20 + 8], "big")
    data[5 * 20 : 6 * 20] = (folder / "0" / f"{0:020d}").read_bytes()[:20]
    data[7 * 20 : 9 * 20] = bytes(40)
    file.write_bytes(data)
    with open_store(path) as store:
        queue = store.queue("TopicA", 2)
        source = QueueSource(store.log, [queue])
        rows = {row.queue_offset: row for row in source.read(0, 0, 12).rows}
        assert [state_of(rows[number]) for number in (4, 5, 6, 7, 8)] == [
            "ok",
            "wrongQueue",
            "ok",
            "missing",
            "missing",
        ]
        assert rows[5].verdict == "wrongTopic", "the word of queue --resolve is the contract's"
        assert rows[5].what == "the unit is of TopicA/0"
        assert own_unit(store, rows[5]) == true
        assert own_unit(store, rows[4]) is None
        seven = own_unit(store, rows[7])
        assert seven is not None
        assert store.log.unit_at(seven).queue_offset == 7
        counts = count_verdicts(NeverCancelled(), store.log, queue, Verdicts(), 10_000).counts
        assert (counts["missing"], counts["wrongQueue"], counts["empty"]) == (2, 1, 0)


class NeverCancelled:
    """A control that is never cancelled."""

    cancelled = False

    def emit(self, items): ...
    def report(self, done, total=None, note=""): ...


@pytest.mark.golden
def test_messages_that_are_only_in_tiered_storage_are_rows_and_counted(golden, tmp_path):
    """They were "below min offset", or had no row if the queue's file was deleted, too."""
    with open_store(drop_first_queue_files(golden("tiered-5.5.1"), tmp_path)) as store:
        loaded = look(store, [("Orders", 0)])
        facts, source = loaded.facts["Orders", 0], loaded.source
        assert facts.moved == (0, 111)
        assert facts.tiered is not None
        rows = source.read(0, 0, source.end).rows[:-1]
        assert [row.queue_offset for row in rows] == list(range(120))
        assert [state_of(row) for row in rows] == ["moved"] * 111 + ["ok"] * 9
        assert record(rows[3])["tieredFile"] == rows[3].tiered_file
        raw, file, number = source.raw(3)
        assert (int.from_bytes(raw[:8], "big"), number) == (rows[3].tiered_offset, 3)
        assert file.endswith("0" * 20)
        counts = count_verdicts(
            NeverCancelled(),
            store.log,
            store.queue("Orders", 0),
            Verdicts(),
            10_000,
            find_moved_messages(store, "Orders", 0),
        )
        assert (counts.counts, counts.complete) == ({"moved": 111, "ok": 9}, True)


@pytest.mark.golden
def test_a_queue_that_only_tiered_storage_has_is_shown(golden, tmp_path):
    """Its topic was not in the tree, and the view said that there is no such queue."""
    root = shutil.copytree(golden("tiered-5.5.1"), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    shutil.rmtree(root / "consumequeue" / "Orders")
    with open_store(root) as store:
        loaded = look(store, [("Orders", 0)])
        assert loaded.facts["Orders", 0].files == ()
        assert minimum_words(loaded.facts["Orders", 0]).endswith("only tiered storage has it.")
        rows = loaded.source.read(0, 0, loaded.source.end).rows[:-1]
        assert ({state_of(row) for row in rows}, len(rows)) == ({"moved"}, 120)
        assert checked(store, places.queue("Orders", 0, 3)).place.queue_offset == 3
        orders = next(topic for topic in survey(store).topics if topic.name == "Orders")
        assert (orders.is_moved, orders.count > 0) == (True, True)
        assert all(not topic.is_moved for topic in survey(store).topics if topic.name != "Orders")


@pytest.mark.golden
def test_entries_of_a_static_topic_have_their_logical_offsets(golden):
    with open_store(golden("static-topic-5.5.1")) as store:
        loaded = look(store, [("Ledger", 2)])
        rows = loaded.source.read(0, 0, loaded.source.end).rows[:-1]
        assert [(row.logical_queue_id, row.logical_offset) for row in rows] == [(1, 10_000 + n) for n in range(8)]
        assert "Logical queue 1: its offsets 10,000 to 10,008." in logical_words(loaded.facts["Ledger", 2])


@pytest.mark.golden
def test_entries_of_a_priority_topic_have_priorities(golden):
    with open_store(golden("lite-priority-5.5.1")) as store:
        loaded = look(store, [("Jobs", 3), ("Plain", 0)])
        rows = loaded.source.read(0, 0, 4).rows
    assert [row.priority for row in rows] == [3, 5, 9, 3]
    assert [facts.has_priorities for facts in loaded.facts.values()] == [True, False]


@pytest.mark.parametrize(("preferred", "is_read"), [("default", "files"), ("defaultRocksDB", "rocksdb")])
def test_the_queues_are_shown_that_the_broker_reads(preferred, is_read, tmp_path):
    """With combineCQPreferCQType=defaultRocksDB the view still showed the file queues."""
    made_rocksdb.binding()
    made = healthy(60)
    root = made.write(tmp_path / "store")
    made_rocksdb.make_database(root / "consumequeue_rocksdb", made_rocksdb.rows_of_store(made))
    settings = {"rocksdbCQDoubleWriteEnable": "true", "combineCQPreferCQType": preferred}
    with open_store(root, from_mapping(settings)[0]) as store:
        facts = look(store, [("Orders", 0)]).facts["Orders", 0]
        assert facts.both_sides.counting == is_read
        assert f"combineCQPreferCQType={preferred}" in sides_words(facts)
        assert facts.in_rocksdb == (is_read == "rocksdb")
