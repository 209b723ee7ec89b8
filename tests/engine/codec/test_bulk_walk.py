"""Whole stretches of units through one buffer: every unit once, whatever lends the bytes."""

from __future__ import annotations

import os

import pytest
from made_stores import MadeStore

from engine.codec import columns
from engine.codec.bulk_walk import BulkWalk


class Lent:
    """Bytes that a call gives, or those of an open file."""

    def __init__(self, data, descriptor=-1):
        self.data, self.descriptor = data, descriptor

    def read_into(self, view, position):
        piece = self.data[position : position + len(view)]
        view[: len(piece)] = piece
        return len(piece)


@pytest.fixture
def made():
    made = MadeStore(log_size=1 << 16)
    for number in range(300):
        made.put(body=b"x" * (number % 40))
    return made


def walked(source, rows=64, position=0, stop=None):
    walk = BulkWalk(rows=rows)
    return [int(one) for block in walk.stretch(source, 0, position, stop) for one in block.offset[: block.count]]


@pytest.mark.parametrize("rows", [1, 7, 8192])
def test_every_unit_comes_once_in_blocks_of_any_size(made, rows):
    assert walked(Lent(bytes(made.log)), rows) == [unit.offset for unit in made.units]


def test_a_file_is_read_by_its_descriptor(made, tmp_path):
    file = tmp_path / "log"
    file.write_bytes(bytes(made.log).ljust(1 << 16, b"\0"))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        assert walked(Lent(file.read_bytes(), descriptor)) == [unit.offset for unit in made.units]
    finally:
        os.close(descriptor)


def test_it_begins_at_a_unit_and_ends_before_an_offset(made):
    first, last = made.units[40], made.units[90]
    assert walked(Lent(bytes(made.log)), 16, first.offset, last.offset) == [u.offset for u in made.units[40:90]]


def test_it_ends_at_what_is_no_unit_and_gives_nothing_where_that_is_at_once(made, monkeypatch):
    data = bytearray(made.log)
    data[made.units[50].offset : made.units[50].offset + 8] = bytes(8)
    assert walked(Lent(bytes(data))) == [unit.offset for unit in made.units[:50]]
    assert walked(Lent(bytes(data)), position=made.units[50].offset) == []
    monkeypatch.setattr(columns, "twin", lambda: None)
    assert walked(Lent(bytes(data))) == [unit.offset for unit in made.units[:50]]
