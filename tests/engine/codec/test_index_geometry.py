"""Derive how many slots and entries an index file has: RocketMQ writes neither number into it."""

from __future__ import annotations

from engine.codec import index as codec
from engine.codec.index_geometry import derive_geometry
from engine.files.layout import INDEX_ENTRIES, INDEX_SLOTS

DEFAULT = codec.Geometry(INDEX_SLOTS, INDEX_ENTRIES)


class Growing:
    """A file of the default length whose slots know ``ahead`` more entries of one key than its header counts."""

    size = DEFAULT.file_size

    def __init__(self, counted: int, ahead: int, key_hash: int = 7) -> None:
        header = codec.IndexHeader(1, 2, 3, 4, 1, counted + 1)
        self.parts = {0: codec.encode_header(header)}
        last = counted + ahead
        self.parts[DEFAULT.slot_position(key_hash)] = last.to_bytes(4, "big")
        for number in range(1, last + 1):
            self.parts[DEFAULT.entry_position(number)] = codec.encode_entry(
                codec.IndexEntry(key_hash, 100 * number, 0, number - 1)
            )
        self.most = 0

    def read(self, position: int, size: int) -> bytes:
        self.most = max(self.most, size)
        return self.parts.get(position, bytes(min(size, 64)))[:size]


def test_a_header_that_is_behind_its_slots_is_no_reason_to_read_the_whole_file() -> None:
    """Beside a fast writer the newest entry's slot led on to the next one already; then every number of slots was tried
    over all 400 MiB of the file, and the window took a gigabyte for a moment.
    """
    for ahead in (0, 1, 50):
        file = Growing(20, ahead)
        assert derive_geometry(file)[0] == DEFAULT
        assert file.most <= codec.HEADER_SIZE


class Late(Growing):
    """A file whose newest entry is counted a moment before its bytes can be read."""

    def __init__(self) -> None:
        super().__init__(20, 0)
        self.newest = DEFAULT.entry_position(20)
        self.looks = 0

    def read(self, position: int, size: int) -> bytes:
        if position == self.newest:
            self.looks += 1
            if self.looks == 1:
                self.most = max(self.most, size)
                return bytes(size)
        return super().read(position, size)


def test_an_entry_that_is_counted_before_its_bytes_are_there_is_looked_at_again() -> None:
    file = Late()
    assert derive_geometry(file)[0] == DEFAULT
    assert file.looks == 2
    assert file.most <= codec.HEADER_SIZE
