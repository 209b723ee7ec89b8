"""The search through raw bytes: the item at each place, and effort that grows with the bytes, not with the hits."""

from __future__ import annotations

import pytest
from raw_units import raw_blank, raw_unit

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.errors import CannotRead
from engine.inspection import byte_scan
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import DescriptorCache, FileSequence, ReadOnlyFile

HIT = b"KEYS\x010 0 0\x02TAGS\x010\x02"
SIZE = 1 << 18


class SmallLog:
    """A log of files of :data:`SIZE` bytes, with the offsets of its units."""

    def __init__(self) -> None:
        self.files: list[bytearray] = [bytearray()]
        self.units: list[int] = []

    def put(self, count: int = 1, body: bytes = b"0") -> None:
        for _ in range(count):
            position = (len(self.files) - 1) * SIZE + len(self.files[-1])
            self.units.append(position)
            self.files[-1] += raw_unit(position, body=body, properties=HIT)

    def spoil(self, size: int, text: bytes = b" 0") -> None:
        self.files[-1] += (text * size)[:size]

    def end_file(self, *, blank: bool = True) -> None:
        room = SIZE - len(self.files[-1])
        self.files[-1] += raw_blank(room).ljust(room, b"\0") if blank else bytes(room)
        self.files.append(bytearray())

    def open(self, folder, size: int = SIZE) -> LogReader:
        for number, data in enumerate(self.files):
            (folder / f"{number * size:020d}").write_bytes(data.ljust(size, b"\0"))
        return LogReader(FileSequence([folder], DescriptorCache()))


@pytest.fixture
def read_bytes(monkeypatch) -> list[int]:
    """Return the list that receives the length of each read from files."""
    lengths: list[int] = []
    read, read_into = ReadOnlyFile.read, ReadOnlyFile.read_into

    def counted(file, position, size):
        data = read(file, position, size)
        lengths.append(len(data))
        return data

    def counted_into(file, view, position):
        lengths.append(read_into(file, view, position))
        return lengths[-1]

    monkeypatch.setattr(ReadOnlyFile, "read", counted)
    monkeypatch.setattr(ReadOnlyFile, "read_into", counted_into)
    return lengths


def bed_of_damage() -> SmallLog:
    log = SmallLog()
    log.put(300)
    for size in (1, 7, 90, 5000):
        log.spoil(size)
        log.put(20)
    log.end_file()
    log.put(100, body=b"0" * 900)
    log.spoil(70_000)
    log.put()
    log.files[-1] += raw_blank(50)  # a magic code that is not at the file's end
    log.put(100)
    log.end_file(blank=False)
    log.put(30)
    log.files[-1] += raw_blank(-1)
    log.spoil(100_000)
    log.files.append(bytearray())
    log.spoil(100_000)
    log.files.append(bytearray())
    log.put(3)
    log.spoil(200)
    log.put(1000)
    log.spoil(50_000)
    return log


def test_every_unit_is_given_once_in_order_over_damage_and_false_ends(tmp_path):
    bed = bed_of_damage()
    log = bed.open(tmp_path)
    for needle, word in ((b"0", True), (b"0", False), (b"\x010 0", False), (b"0\x02TAGS", True)):
        results = list(byte_scan.units_with(log, needle, word=word))
        assert [unit.offset for unit in results] == bed.units, needle


def test_each_hit_has_the_item_that_contains_it(tmp_path):
    bed = bed_of_damage()
    log = bed.open(tmp_path)
    hits = list(byte_scan.items_with(log, b"0", word=True))
    for place, item in hits:
        preceding_unit = max(position for position in bed.units if position <= place)
        unit = log.unit_at(preceding_unit, crc=False)
        assert isinstance(unit, Unit)
        assert isinstance(item, Unit) == (place < unit.end)
        assert isinstance(item, (Unit, Damage, Blank, Stop))
        assert item.offset <= place
    assert {type(item) for _, item in hits} >= {Unit, Damage}
    assert [place for place, _ in hits] == sorted({place for place, _ in hits})


@pytest.mark.parametrize("needle", [b"0", b" 0", b"\x01"])
def test_many_hits_need_no_more_reading_than_the_log_is_long(tmp_path, read_bytes, monkeypatch, needle):
    """`where STORE 0` began again 64 KiB before each hit, both in units and in other bytes."""
    log = bed_of_damage().open(tmp_path)
    begins = []
    walk = log.walk
    monkeypatch.setattr(log, "walk", lambda *arguments, **named: begins.append(arguments) or walk(*arguments, **named))
    hits = sum(1 for _ in byte_scan.places_of(log, needle))
    assert hits > 3000
    read_bytes.clear()
    assert list(byte_scan.items_with(log, needle))
    assert sum(read_bytes) < 12 * log.end_offset
    assert len(begins) <= 3 * len(log.files)


def test_hits_far_apart_are_reached_by_a_jump_each(tmp_path, read_bytes):
    small_log = SmallLog()
    for _ in range(2):
        small_log.put(900)
        small_log.put(1, body=b"QQQQ")
    log = small_log.open(tmp_path)
    walked = []
    walk = log.walk
    log.walk = lambda start, crc: (walked.append(item) or item for item in walk(start, crc=crc))
    assert [unit.offset for unit in byte_scan.units_with(log, b"QQQQ")] == [small_log.units[900], small_log.units[1801]]
    assert len(read_bytes) < 8
    assert len(walked) < 1200


def test_a_text_in_a_long_tail_without_units_is_searched_once(tmp_path, read_bytes):
    """Nothing after the last unit can be aligned: for each hit the search went back to the file's start, and
    forward.
    """
    small_log = SmallLog()
    small_log.put(2)
    small_log.spoil(SIZE - len(small_log.files[0]))
    log = small_log.open(tmp_path)
    (damage,) = [item for _, item in byte_scan.items_with(log, b"0", word=True) if not isinstance(item, Unit)]
    assert damage.offset == small_log.units[1] + log.unit_at(small_log.units[1]).size
    assert sum(read_bytes) < 10 * SIZE


def test_a_word_is_found_at_the_border_of_blocks_too(tmp_path, monkeypatch):
    """The byte before a block decides whether a word begins at the block's start."""
    small_log = SmallLog()
    small_log.put(1, body=b"x0 0" * 100)
    log = small_log.open(tmp_path, size=4096)
    places = list(byte_scan.places_of(log, b"0", word=True))
    for block, cached in ((1, 9), (3, 2), (64, 64), (64, 17)):
        monkeypatch.setattr(byte_scan, "_BLOCK", block)
        monkeypatch.setattr(byte_scan, "_CACHED", cached)
        assert list(byte_scan.places_of(log, b"0", word=True)) == places


def test_overlapping_files_are_searched_as_they_are_read(tmp_path):
    """A file is longer than the distance to the next file. Its tail has no offset, and places never go back."""
    (tmp_path / f"{0:020d}").write_bytes(raw_unit(0, properties=HIT) + b" 0" * 500)
    (tmp_path / f"{300:020d}").write_bytes(raw_unit(300, properties=HIT))
    log = LogReader(FileSequence([tmp_path], DescriptorCache()))
    places = list(byte_scan.places_of(log, b"0", word=True))
    assert places == sorted(set(places))
    assert [unit.offset for unit in byte_scan.units_with(log, b"0", word=True)] == [0, 300]


def test_a_missing_file_does_not_hide_others(tmp_path, monkeypatch):
    """The file disappeared between the search for the text and the search for the unit."""
    small_log = SmallLog()
    small_log.put(5)
    small_log.end_file()
    small_log.put(5)
    log = small_log.open(tmp_path)

    def gone(offset, floor):
        raise CannotRead("cannot be read: gone")

    start = log.walk_start
    monkeypatch.setattr(
        log, "walk_start", lambda position, floor: gone(position, floor) if position < SIZE else start(position, floor)
    )
    items = [item for _, item in byte_scan.items_with(log, b"0", word=True)]
    assert isinstance(items[0], Stop)
    assert [item.offset for item in items[1:] if isinstance(item, Unit)] == small_log.units[5:]
