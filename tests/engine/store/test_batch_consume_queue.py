from dispatching import Place

from engine.codec.batch_consume_queue import BatchCqUnit, decode
from engine.config import from_mapping
from engine.store.batch_consume_queue import BatchConsumeQueue
from engine.store.recovery.plan import QueueState

CONFIG, _ = from_mapping({"mapperFileSizeBatchConsumeQueue": 92})


def filled(count: int) -> BatchConsumeQueue:
    found = Place(CONFIG, batch_topics=frozenset({"B"})).queues.find_or_create("B", 1)
    assert isinstance(found, BatchConsumeQueue)
    for number in range(count):
        found.put(BatchCqUnit(number * 100, 100, 7, 1_700_000_000_000, 10 + 3 * number, 3))
    return found


def test_entries_stand_back_to_back_and_tell_their_offsets():
    found = filled(5)
    assert found.files.starts == (0, 92, 184)
    assert (found.min_offset, found.max_offset, found.max_physic_offset) == (10, 25, 400)
    assert decode(found.read_bytes(46, 46)) == BatchCqUnit(100, 100, 7, 1_700_000_000_000, 13, 3)


def test_an_empty_queue_begins_at_minus_one():
    found = filled(0)
    assert (found.min_offset, found.max_offset) == (-1, 0)


def test_known_units_and_impossible_batches_are_passed_over():
    found = filled(2)
    found.put(BatchCqUnit(100, 100, 0, 0, 99, 1))
    found.put(BatchCqUnit(900, 100, 0, 0, -1, 1))
    found.put(BatchCqUnit(900, 100, 0, 0, 1, -1))
    assert found.max_offset == 16


def test_the_minimum_follows_the_log():
    found = filled(5)
    found.delete_expired(150)
    assert (found.min_offset, found.files.starts) == (16, (92, 184))
    found.delete_expired(350)
    assert (found.min_offset, found.files.starts) == (22, (184,))


def test_it_stands_where_recovery_says():
    found = filled(5)
    found.restore(QueueState(92, 138, 200, 0, 10, 19))
    assert found.state() == QueueState(92, 138, 200, 0, 10, 19)
    found.destroy()
    assert found.state() == QueueState(None, 0, -1, 0, -1, 0)
