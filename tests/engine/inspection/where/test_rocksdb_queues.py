"""``where`` with queues in a RocksDB: units that have a row, that get one at the next start, and that lost it."""

from __future__ import annotations

import shutil

import agree
import made_rocksdb
import pytest

from engine.codec import rocksdb_queue_rows as rows

pytestmark = pytest.mark.golden
TOPIC, QUEUE, OFFSET = "TopicA", 0, 140


@pytest.fixture
def edited(golden, tmp_path):
    """``edited(change)``: a store whose RocksDB was changed by ``change``, as a broker would."""

    def make(change):
        rocks = made_rocksdb.binding()
        root = shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store")
        options = rocks.Options(raw_mode=True)
        families = {name: rocks.Options(raw_mode=True) for name in rows.FAMILIES}
        database = rocks.Rdict(str(root / "consumequeue"), options, families)
        change(database, database.get_column_family(rows.BOUND_FAMILY))
        database.close()
        return root

    return make


def place_of(root):
    (entry,) = agree.records_of("queue", root, TOPIC, QUEUE, "--from", OFFSET, "--to", OFFSET + 1)
    return entry["physicalOffset"]


def verdict(root, question=f"{TOPIC}/{QUEUE}/{OFFSET}"):
    return agree.records_of("where", root, question)[0]["verdict"]


def test_a_unit_with_a_row_is_found(edited):
    assert verdict(edited(lambda entries, bounds: None)) == "found"


def test_a_unit_whose_row_is_gone_is_in_no_queue(edited, golden):
    made_rocksdb.binding()
    place = place_of(golden("rocks-5.5.1"))

    def remove(entries, _bounds):
        del entries[rows.entry_key(TOPIC, QUEUE, OFFSET)]

    assert verdict(edited(remove), str(place)) == "notInQueue"


def test_a_unit_behind_the_end_of_dispatch_waits_for_the_next_start(edited, golden):
    """A broker writes its rows in batches. Rows that a crash loses are dispatched again."""
    made_rocksdb.binding()
    place = place_of(golden("rocks-5.5.1"))

    def go_back(entries, bounds):
        for number in range(OFFSET, 160):
            del entries[rows.entry_key(TOPIC, QUEUE, number)]
        last_bound = rows.BoundRow(TOPIC, QUEUE, "max", place - 1, OFFSET - 1)
        bounds[rows.bound_key(TOPIC, QUEUE, "max")] = rows.encode_bound(last_bound)
        bounds[rows.CHECKPOINT_KEY] = place.to_bytes(8, "big")

    root = edited(go_back)
    assert verdict(root, str(place)) == "notYetDispatched"
    dispatched = next(line for line in agree.records_of("positions", root))["dispatched"]
    assert dispatched["offset"] == place
