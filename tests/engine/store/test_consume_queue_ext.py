from dispatching import Place

from engine.codec.queue_placing import NO_ADDRESS
from engine.config import from_mapping
from engine.store.consume_queue import ConsumeQueue
from engine.store.consume_queue_ext import ConsumeQueueExt

CONFIG, _ = from_mapping({"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 100})


def made() -> ConsumeQueueExt:
    queue = Place(CONFIG).queues.find_or_create("T", 0)
    assert isinstance(queue, ConsumeQueue)
    assert queue.ext is not None
    return queue.ext


def test_a_unit_is_found_at_its_address():
    ext = made()
    addresses = [ext.put(tag, 1_700_000_000_000 + tag, bytes([tag]) * 3) for tag in range(6)]
    assert addresses[0] == -(1 << 63)
    for tag, address in enumerate(addresses):
        unit = ext.unit(address)
        assert unit is not None
        assert (unit.tags_code, unit.store_timestamp, unit.bit_map) == (tag, 1_700_000_000_000 + tag, bytes([tag]) * 3)
    assert ext.unit(addresses[-1] + 23) is None
    assert ext.unit(5) is None


def test_a_unit_never_crosses_a_file_and_a_mark_ends_the_file():
    ext = made()
    for tag in range(5):
        ext.put(tag, 0, b"x" * 10)
    assert ext.files.starts == (0, 100)
    assert ext.files.read(90, 2) == b"\xff\xff"
    assert ext.files.end == 160


def test_four_bytes_stay_free():
    ext = made()
    ext.put(1, 0, b"x" * 57)
    assert ext.put(2, 0) == 100 - (1 << 63)


def test_what_is_too_long_has_no_address():
    ext = made()
    assert ext.put(1, 0, b"x" * 77) == NO_ADDRESS
    assert ext.files.starts == ()


def test_it_is_cut_and_recovered():
    ext = made()
    for tag in range(5):
        ext.put(tag, 0, b"x" * 10)
    ext.cut(60)
    assert (ext.files.starts, ext.files.end) == ((0,), 60)
    ext.files.write(60, b"\xff\xff")
    ext.files.end = 100
    ext.recover()
    assert ext.files.end == 60


def test_files_before_an_address_are_deleted():
    ext = made()
    for tag in range(9):
        ext.put(tag, 0, b"x" * 10)
    assert ext.files.starts == (0, 100, 200)
    ext.forget_before(150 - (1 << 63))
    assert ext.files.starts == (100, 200)
