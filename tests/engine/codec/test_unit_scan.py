"""The walk over a buffer: its items, its stop reason, and the search for the next real unit after damage.

The walk over one file gives the same result wherever its blocks end.
"""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_units import raw_blank, raw_log, raw_unit

from engine.codec import dledger, unit_scan
from engine.codec.message import Unit
from engine.codec.unit_scan import (
    Blank,
    Damage,
    Stop,
    decode_entry_item,
    decode_item,
    find_in_file,
    find_unit,
    stored_size,
    walk,
    walk_file,
)
from engine.errors import CannotRead

BASE = 1 << 33
UNIT = len(raw_unit(0))
THREE = raw_log({}, {"body": b"x" * 300}, {"version": 2}, base=BASE)
ENDS = [
    pytest.param(b"", "end", id="the end of the bytes"),
    pytest.param(bytes(4), "zero", id="a few zeros"),
    pytest.param(bytes(1000), "zero", id="zeros"),
    pytest.param(b"\x00\x00\x00\x7b", "cut", id="a few bytes of a unit"),
    pytest.param(raw_unit(BASE)[:50], "cut", id="half a unit"),
    pytest.param(b"\xff" * 1000, "damage", id="something else"),
    pytest.param(bytes(4) + b"\x01" + bytes(200), "damage", id="a length of 0 with another magic"),
    pytest.param(
        raw_unit(0).replace(b"\x00\x12TAGS", b"\x00\x11TAGS") + bytes(100), "damage", id="lengths that disagree"
    ),
]


@pytest.mark.parametrize(("tail", "kind"), ENDS)
def test_a_walk_yields_its_units_and_a_stop_reason(tail, kind):
    *units, stop = walk(THREE + tail, BASE)
    assert [type(unit) for unit in units] == [Unit] * 3
    assert [unit.offset for unit in units] == [BASE, BASE + units[0].size, BASE + units[0].size + units[1].size]
    assert stop.kind == kind
    assert stop.offset == BASE + len(THREE)
    assert stop.reason


def test_a_blank_ends_the_file():
    blank = raw_blank(500).ljust(500, b"\0")
    *units, output, stop = walk(THREE + blank, BASE)
    assert len(units) == 3
    assert output == Blank(BASE + len(THREE), 500)
    assert stop == Stop(BASE + len(THREE) + 500, "end", "end of the file")


@pytest.mark.parametrize("size", [0, -1, 1, 8, 0x7FFFFFFF])
def test_a_blank_of_any_size_ends_the_walk(size):
    *_, output, stop = walk(THREE + raw_blank(size), BASE)
    assert (output.size, stop.kind) == (size, "end")
    assert stop.offset >= output.offset


def test_a_stale_unit_is_yielded_with_its_state():
    (unit, _) = walk(raw_unit(9_000_000), BASE)
    assert unit.stale
    assert unit.offset == BASE


def test_a_walk_may_begin_anywhere():
    assert [item.offset for item in walk(THREE, BASE, UNIT)][0] == BASE + UNIT


DECOYS = [
    pytest.param(b"\xda\xa3\x20\xa7", id="a magic by itself"),
    pytest.param(b"\x00\x00\x00\x7b\xda\xa3\x20\xa7" + b"\x11" * 120, id="size and magic"),
    pytest.param(raw_unit(0), id="a whole unit that belongs elsewhere"),
    pytest.param(raw_unit(0)[:90], id="half a unit that belongs elsewhere"),
    pytest.param(raw_blank(4000), id="a blank that does not reach the file's end"),
    pytest.param(b"\xcb\xd4\x31\x94" * 4, id="a blank's magic by itself"),
]


@pytest.mark.parametrize("decoy", DECOYS)
@pytest.mark.parametrize("garbage", [0, 1, 3, 7, 200])
def test_the_next_real_unit_needs_more_than_a_magic_code(decoy, garbage):
    head = b"\xee" * garbage + decoy + b"\xee" * garbage
    data = head + raw_unit(BASE + len(head)) + bytes(100)
    assert find_unit(data, BASE, 0, BASE + len(data)) == len(head)


def test_a_message_that_carries_a_unit_in_its_body_is_not_taken_for_two():
    inner = raw_unit(12345)
    data = b"\xee" * 10 + raw_unit(BASE + 10, body=inner) + bytes(50)
    assert find_unit(data, BASE, 0, BASE + len(data)) == 10
    assert find_unit(data, BASE, 11, BASE + len(data)) == -1


def test_a_unit_with_a_wrong_length_is_skipped():
    damaged_unit = bytearray(raw_unit(BASE))
    struct.pack_into(">i", damaged_unit, 84, 6)
    data = bytes(damaged_unit) + raw_unit(BASE + len(damaged_unit))
    assert find_unit(data, BASE, 0, BASE + len(data)) == len(damaged_unit)


def test_a_unit_that_the_buffer_cuts_off_is_taken_where_the_file_may_hold_it():
    data = b"\xee" * 20 + raw_unit(BASE + 20)
    assert find_unit(data[:-10], BASE, 0, BASE + len(data)) == 20
    assert find_unit(data[:-10], BASE, 0, BASE + len(data) - 10) == -1


def test_a_blank_counts_from_its_place_to_the_end_of_the_file():
    data = b"\xee" * 20 + raw_blank(480).ljust(480, b"\0")
    assert find_unit(data, BASE, 0, BASE + 500) == 20
    assert find_unit(data, BASE, 0, BASE + 501) == -1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer(kind):
    data = kind(b"\xee" * 20 + raw_unit(BASE + 20))
    assert find_unit(data, BASE, 0, BASE + len(data)) == 20
    assert isinstance(decode_item(data, 20, len(data), BASE), Unit)


def resynchronised(data, base):
    """Walk a whole file with walk and search together; return all items including damage."""
    position = 0
    while True:
        for row in walk(data, base, position):
            if isinstance(row, Stop):
                break
            yield row
            if isinstance(row, Blank):
                yield Stop(base + len(data), "end", "")
                return
            position = row.offset + row.size - base
        if position >= len(data):
            return
        unit = find_unit(data, base, position + 1, base + len(data))
        if unit < 0:
            yield Damage(base + position, len(data) - position, row.reason)
            return
        yield Damage(base + position, unit - position, row.reason)
        position = unit


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.integers(0, 6))
def test_walk_and_search_cover_every_byte_exactly_once(seed, faults):
    pick = random.Random(seed)
    data = bytearray(raw_log(*({"body": pick.randbytes(pick.randrange(200))} for _ in range(12)), base=BASE))
    for _ in range(faults):
        position = pick.randrange(len(data))
        piece = pick.choice([b"\x00" * 40, pick.randbytes(9), b"\xda\xa3\x20\xa7", b"\xff\xff\xff\xff"])
        data[position : position + len(piece)] = piece[: len(data) - position]
    position = BASE
    for stop in resynchronised(bytes(data), BASE):
        if isinstance(stop, Stop):
            break
        assert stop.offset == position
        assert stop.size > 0 or isinstance(stop, Blank)
        position += stop.size
    assert position == BASE + len(data) or isinstance(stop, Stop)


@given(st.binary(max_size=600), st.integers(-5, 700))
def test_random_bytes_cause_no_error(data, start):
    for _, item in zip(range(100), walk(data, 0), strict=False):
        assert isinstance(item, Unit | Blank | Stop)
    unit = find_unit(data, 0, max(start, 0), len(data))
    assert -1 <= unit < max(len(data), 1)


class InMemory:
    """A log file whose bytes are in memory."""

    def __init__(self, data, start_offset=0, *, followed=False, unread_from=None):
        self.data = data
        self.size = len(data)
        self.start_offset = start_offset
        self.followed = followed
        self.unread_from = unread_from

    def read(self, position, size):
        if self.unread_from is not None and position + size > self.unread_from:
            raise CannotRead("input/output error", file="0", offset=position)
        return self.data[position : position + size]

    def next_data(self, position):
        remainder = self.data[position:].lstrip(b"\0")
        return len(self.data) - len(remainder) if remainder else -1

    def is_followed(self):
        return self.followed


@pytest.mark.parametrize("inside", range(1, 12))
def test_a_unit_that_a_block_cuts_after_its_first_bytes_is_a_unit(inside):
    """A unit shorter than 16 MiB begins with a zero byte. Where a block ended after such bytes, the walk took them for
    unwritten space, reported damage and lost the unit. The walk in columns has other blocks and did not.
    """
    log = bytearray()
    place = unit_scan.BLOCK_BYTES - inside
    least = len(raw_unit(0, body=b""))
    while place - len(log) > 4000:
        log += raw_unit(len(log), body=b"x" * 1000)
    log += raw_unit(len(log), body=b"x" * (place - len(log) - least))
    log += raw_unit(len(log)) + raw_unit(len(log) + least + 5)
    items = list(unit_scan.walk_file(InMemory(bytes(log).ljust(2 * unit_scan.BLOCK_BYTES, b"\0")), 0))
    assert [type(item) for item in items] == [Unit] * (len(items) - 1) + [Stop]
    assert items[-3].offset == place
    assert items[-1].kind == "zero"


def damaged_log(seed, faults):
    """Make a log of twelve units and zeros after them, with overwritten bytes."""
    pick = random.Random(seed)
    data = bytearray(raw_log(*({"body": pick.randbytes(pick.randrange(200))} for _ in range(12)), base=BASE))
    for _ in range(faults):
        position = pick.randrange(len(data))
        piece = pick.choice([bytes(40), bytes(400), pick.randbytes(9), b"\xda\xa3\x20\xa7", b"\xff\xff\xff\xff"])
        data[position : position + len(piece)] = piece[: len(data) - position]
    return bytes(data) + bytes(pick.choice([0, 5, 300]))


def joined_damage(items):
    """Return kind, offset and size of each item, with adjacent damage joined."""
    joined = []
    for item in items:
        if isinstance(item, Damage) and joined and joined[-1][0] is Damage:
            joined[-1] = (Damage, joined[-1][1], joined[-1][2] + item.size)
        else:
            joined.append((Stop, 0, 0) if isinstance(item, Stop) else (type(item), item.offset, item.size))
    return joined


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.integers(0, 6), st.integers(65, 700), st.booleans())
def test_block_ends_do_not_change_the_result(seed, faults, block, followed):
    """Blocks of a mebibyte hold the whole log. Small ones cut units, damage and zeros anywhere.

    Damage may be reported as two items: a block that cuts a unit does not show what is wrong after its end.
    """
    file = InMemory(damaged_log(seed, faults), BASE, followed=followed)
    complete = joined_damage(walk_file(file, BASE))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unit_scan, "BLOCK_BYTES", block)
        assert joined_damage(walk_file(file, BASE)) == complete
    position = BASE
    for kind, offset, size in complete:
        assert kind is Stop or offset == position
        position += size
    assert not followed or position == BASE + file.size


def test_damage_ends_at_the_next_unit_and_the_walk_continues():
    log = raw_unit(BASE) + b"\xee" * 50
    log += raw_unit(BASE + len(log))
    log += bytes(60)
    log += raw_unit(BASE + len(log)) + bytes(300)
    unit_1, damage, unit_2, zeros, unit_3, stop = walk_file(InMemory(log, BASE), BASE)
    assert [type(item) for item in (unit_1, unit_2, unit_3)] == [Unit] * 3
    assert (damage.offset, damage.size) == (BASE + UNIT, 50)
    assert (zeros.size, zeros.reason) == (60, "zero bytes in front of the next unit")
    assert (stop.offset, stop.kind) == (BASE + len(log) - 300, "zero")


def test_without_a_search_the_first_damage_ends_the_walk():
    log = raw_unit(BASE) + b"\xee" * 50 + raw_unit(BASE + UNIT + 50)
    _, stop = walk_file(InMemory(log, BASE), BASE, resync=False)
    assert (stop.offset, stop.kind) == (BASE + UNIT, "damage")


def test_damage_behind_the_last_unit_ends_at_its_last_byte():
    """A log file is preallocated. The zeros after the damage are not part of it."""
    log = raw_unit(BASE) + b"\xee" * 50 + bytes(3000)
    for block in (unit_scan.BLOCK_BYTES, 100):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(unit_scan, "BLOCK_BYTES", block)
            _, damage, stop = walk_file(InMemory(log, BASE), BASE)
        assert (damage.offset, damage.size) == (BASE + UNIT, 50)
        assert (stop.offset, stop.kind, stop.reason) == (BASE + UNIT, "damage", damage.reason)


def test_before_a_later_file_the_whole_rest_of_the_file_is_damage():
    log = raw_unit(BASE) + bytes(300)
    _, damage = walk_file(InMemory(log, BASE, followed=True), BASE)
    assert (damage.offset, damage.size) == (BASE + UNIT, 300)
    assert damage.reason == "zero bytes in front of the next unit; to the end of the file"


@pytest.mark.parametrize("followed", [True, False])
def test_units_that_a_writer_puts_in_place_of_zeros_meanwhile_are_no_damage(followed):
    """A writer goes on in this file, and in the next one, between two reads of a walk."""
    log = b"".join(raw_unit(BASE + number * UNIT) for number in range(4))

    class Written(InMemory):
        """The second unit and those behind it are written after the first read."""

        reads = 0

        def read(self, position, size):
            self.reads += 1
            data = super().read(position, size)
            return data if self.reads > 1 else data[: UNIT - position].ljust(len(data), b"\0")

    *units, stop = walk_file(Written(log + bytes(300), BASE, followed=followed), BASE)
    assert [unit.offset for unit in units[:4]] == [BASE + number * UNIT for number in range(4)]
    assert (stop.offset, type(stop)) == (BASE + 4 * UNIT, Damage if followed else Stop)


def test_a_walk_of_a_range_ends_at_the_first_unit_behind_it():
    file = InMemory(raw_log({}, {}, {}, base=BASE), BASE)
    unit, stop = walk_file(file, BASE, BASE + 1)
    assert (unit.offset, stop) == (BASE, Stop(BASE + UNIT, "limit", "end of the range"))
    assert len(list(walk_file(file, BASE, BASE + len(file.data)))) == 3
    assert len(list(walk_file(InMemory(THREE + raw_blank(100), BASE), BASE))) == 4


def test_a_file_that_became_shorter_ends_the_walk():
    file = InMemory(raw_unit(BASE), BASE)
    file.size += 100
    _, damage, stop = walk_file(file, BASE)
    assert (damage.offset, stop.offset, stop.kind) == (BASE + UNIT, BASE + UNIT, "end")
    file.data = b""
    (stop,) = walk_file(file, BASE)
    assert (stop.kind, stop.reason) == ("cut", f"the file ends here, it had {UNIT + 100} bytes when it was opened")


@pytest.mark.parametrize("readable", [0, UNIT + 10])
def test_unreadable_bytes_are_damage(readable):
    """Either the first read fails, or the read that searches the next unit after damage."""
    log = raw_unit(BASE) + b"\xee" * 50 + raw_unit(BASE + UNIT + 50)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unit_scan, "BLOCK_BYTES", UNIT + 8)
        *units, damage = walk_file(InMemory(log, BASE, unread_from=readable), BASE)
        *same_units, stop = walk_file(InMemory(log, BASE, unread_from=readable), BASE, resync=False)
    assert len(units) == len(same_units) == (readable > 0)
    assert (damage.offset + damage.size, damage.unread) == (BASE + len(log), True)
    assert damage.reason.endswith("input/output error")
    assert (stop.offset, stop.kind) == (damage.offset, "unread")


def test_the_next_unit_of_a_file_is_searched_in_a_range():
    log = bytes(2000) + raw_unit(BASE + 2000) + b"\xee" * 400
    file = InMemory(log, BASE)
    for block in (unit_scan.BLOCK_BYTES, 150):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(unit_scan, "BLOCK_BYTES", block)
            ends = (len(log), 2001, 2000, 1900, 0)
            assert [find_in_file(file, 0, end) for end in ends] == [2000, 2000, -1, -1, -1]
            assert find_in_file(file, 2001, len(log)) == -1
    assert find_in_file(InMemory(bytes(100)), 0, 100) == -1


def entry(position: int, unit: bytes, size: int | None = None) -> bytes:
    """A DLedger entry around a unit; ``size`` replaces the size of its body."""
    body_size = len(unit) if size is None else size
    header = dledger.EntryHeader(1, 48 + body_size, 0, 0, position, 0, 0, 0, body_size)
    return dledger.encode_header(header) + unit


ENTRY = entry(BASE, raw_unit(BASE + 48))


def test_an_entry_of_a_dledger_log_yields_its_unit():
    unit = decode_entry_item(ENTRY, 0, len(ENTRY), BASE)
    assert isinstance(unit, Unit)
    assert (unit.offset, unit.size) == (BASE + 48, UNIT)
    assert decode_entry_item(dledger.encode_blank(4096) + bytes(40), 0, 48, BASE) == Blank(BASE, 4096)
    assert isinstance(decode_entry_item(raw_unit(BASE), 0, UNIT, BASE), Unit), "a walk may begin at the unit itself"
    assert stored_size(ENTRY) == len(ENTRY)
    assert stored_size(raw_unit(BASE)) == UNIT
    assert stored_size(b"") == 0


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        pytest.param(bytes(4), "zero", "4 bytes left", id="less than a size and a magic code"),
        pytest.param(raw_blank(64), "damage", "no header of a DLedger entry", id="a blank of a plain log"),
        pytest.param(ENTRY[:40], "cut", "40 bytes of the header", id="half a header"),
        pytest.param(ENTRY[:100], "cut", "the entry has", id="half a unit"),
        pytest.param(entry(BASE + 1, raw_unit(BASE + 48)), "damage", "no header", id="another position"),
        pytest.param(entry(BASE, b"\xff" * 200), "damage", "the body of the entry is no unit", id="no unit"),
        pytest.param(entry(BASE, raw_unit(BASE + 48), UNIT + 8) + bytes(8), "damage", "not the size", id="other size"),
    ],
)
def test_an_entry_that_holds_no_unit_stops_the_walk(data, kind, reason):
    stop = decode_entry_item(data, 0, len(data), BASE)
    assert isinstance(stop, Stop)
    assert (stop.offset, stop.kind) == (BASE, kind)
    assert reason in stop.reason


def test_behind_damage_a_dledger_walk_goes_on_at_the_next_entry():
    first = entry(0, raw_unit(48))
    damage_end = len(first) + 60
    log = first + b"\xee" * 60 + entry(damage_end, raw_unit(damage_end + 48))
    unit, damage, next_unit = walk_file(InMemory(log, 0, followed=True), 0, decode=decode_entry_item)
    assert (unit.offset, next_unit.offset) == (48, damage_end + 48)
    assert (damage.offset, damage.size) == (len(first), 60), "the header in front of the unit is no damage"


def test_behind_damage_a_unit_without_its_header_is_found_too():
    first = entry(0, raw_unit(48))
    unit_offset = len(first) + 60
    log = first + b"\xee" * 60 + raw_unit(unit_offset)
    _, damage, next_unit = walk_file(InMemory(log, 0, followed=True), 0, decode=decode_entry_item)
    assert (damage.offset, damage.size, next_unit.offset) == (len(first), 60, unit_offset)


@pytest.mark.parametrize("size", [100, 9000, 70_000])
def test_a_walk_and_a_search_read_little_first_and_find_the_same(monkeypatch, size):
    """A view that showed 30 rows read a mebibyte for each question."""
    log = b"".join(raw_unit(BASE + number * UNIT) for number in range(size // UNIT + 1))
    log = log[: size // 2] + b"\xee" * 3000 + log[size // 2 + 3000 :]
    results, sizes = [], []
    for first in (64, 1000, unit_scan.BLOCK_BYTES):
        monkeypatch.setattr(unit_scan, "FIRST_BLOCK_BYTES", first)
        file = InMemory(log, BASE)
        read = file.read
        file.read = lambda position, count, read=read, sizes=sizes: sizes.append(count) or read(position, count)
        sizes.clear()
        found = [unit_scan.find_in_file(file, start, len(log)) for start in (0, 1, UNIT + 5, size // 2)]
        assert sizes[0] == first
        results.append((list(walk_file(file, BASE)), found))
    assert results[0] == results[1] == results[2]
