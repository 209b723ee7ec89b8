"""Messages that a consumer's filter accepts."""

from __future__ import annotations

from memory_logs import MemoryLog, MemoryQueue, ext_unit
from raw_units import raw_unit

from engine.codec.consume_queue import EXT_BASE
from engine.codec.java import jhash
from engine.store.get_message import Limits, get_message
from engine.store.message_filter import BloomData, SqlFilter, TagFilter

WIDE = Limits(memory=1 << 40)


def queue_and_log(sizes, tags=None, **options):
    """A log of ``sizes`` and a queue with an entry for each message."""
    entries, position = [], 0
    for number, size in enumerate(sizes):
        entries.append((position, size, jhash(tags[number]) if tags else 0))
        position += size
    return MemoryQueue(entries, **options), MemoryLog(bytes(range(256)) * (position // 256 + 1))


def test_tags_are_compared_by_hash():
    queue, log = queue_and_log([100] * 6, tags=["A", "B", "C", "A", "B", "C"])
    assert list(get_message(queue, log, 0, 32, TagFilter("A || C"), WIDE).offsets) == [0, 200, 300, 500]
    none = get_message(queue, log, 0, 32, TagFilter("Z"), WIDE)
    assert (none.status, none.next_begin_offset) == ("NO_MATCHED_MESSAGE", 6)
    assert get_message(queue, log, 0, 32, TagFilter("*"), WIDE).count == 6


def test_sql_is_evaluated_on_the_stored_properties():
    units = [raw_unit(properties=b"a\x01%d\x02" % n) for n in range(6)]
    position, entries = 0, []
    for unit in units:
        entries.append((position, len(unit), 0))
        position += len(unit)
    result = get_message(MemoryQueue(entries), MemoryLog(b"".join(units)), 0, 32, SqlFilter("a > 3"), WIDE)
    assert [unit.properties["a"] for unit in result.units()] == ["4", "5"]


def test_an_ext_units_tag_and_bit_map_replace_the_address():
    units = [raw_unit(properties=b"a\x011\x02")] * 3
    size = len(units[0])
    entries = [(n * size, size, EXT_BASE + n) for n in range(3)]
    ext = {EXT_BASE: ext_unit(jhash("A"), 5000, b"\x01"), EXT_BASE + 1: ext_unit(jhash("B"), 5000, b"\x02")}
    queue, log = MemoryQueue(entries, ext=ext), MemoryLog(b"".join(units))
    assert list(get_message(queue, log, 0, 32, TagFilter("A"), WIDE).offsets) == [0, 2 * size]
    bloom = SqlFilter("a = 1", BloomData((1,), 8, 1000))
    assert list(get_message(queue, log, 0, 32, bloom, WIDE).offsets) == [size, 2 * size]
    older = SqlFilter("a = 1", BloomData((1,), 8, 5000))
    assert get_message(queue, log, 0, 32, older, WIDE).count == 3
