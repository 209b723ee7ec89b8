"""The walk over one file: where its blocks end must not show in what it tells."""

import pytest
from raw_units import raw_unit

from engine.codec import file_walk
from engine.codec.message import Unit
from engine.codec.unit_scan import Stop


class InMemory:
    """A file of a log that lends the bytes of a string."""

    start_offset = 0

    def __init__(self, data):
        self.data = data
        self.size = len(data)

    def read(self, position, size):
        return self.data[position : position + size]

    def next_data(self, position):
        return position

    def is_followed(self):
        return False


@pytest.mark.parametrize("inside", range(1, 12))
def test_a_unit_that_a_block_cuts_after_its_first_bytes_is_a_unit(inside):
    """A unit shorter than 16 MiB begins with zero bytes. Where a block ended behind them the walk took them for bytes
    that nothing was written to, told of damage and lost the unit; the walk in columns, with other blocks, did not.
    """
    log = bytearray()
    place = file_walk.BLOCK - inside
    least = len(raw_unit(0, body=b""))
    while place - len(log) > 4000:
        log += raw_unit(len(log), body=b"x" * 1000)
    log += raw_unit(len(log), body=b"x" * (place - len(log) - least))
    log += raw_unit(len(log)) + raw_unit(len(log) + least + 5)
    items = list(file_walk.walk_file(InMemory(bytes(log).ljust(2 * file_walk.BLOCK, b"\0")), 0))
    assert [type(item) for item in items] == [Unit] * (len(items) - 1) + [Stop]
    assert items[-3].offset == place
    assert items[-1].kind == "zero"
