"""The walk of recovery: from a start file on to the first unit that fails (docs/formats/recovery.md#log)."""

from __future__ import annotations

import pytest
from broken_stores import zero_log_from
from made_stores import LOG_SIZE, MadeStore
from planted_faults import patch

from engine.inspection import open_store
from engine.rules.unit_check import Rules
from engine.store.recovery.walk import LogWalk


class Taken:
    """What a walk hands on."""

    def __init__(self):
        self.offsets = []

    def take_rows(self, columns, topics, rows):
        self.offsets += columns.offset[:rows].tolist()

    def take(self, place, request):
        self.offsets.append(place)


@pytest.fixture
def made():
    made = MadeStore()
    for _ in range(80):
        made.put()
    return made


def walked(root, first=0, **rules):
    taken = Taken()
    with open_store(root) as store:
        return LogWalk(store.log.sequence.files, Rules(**rules), taken).run(first), taken.offsets


def test_every_unit_from_the_start_file_on_over_blanks(made, tmp_path):
    root = made.write(tmp_path / "s")
    found, offsets = walked(root)
    assert offsets == [unit.offset for unit in made.units]
    assert (found.end_offset, found.last_unit, found.units) == (made.end, made.units[-1].offset, 80)
    _, later = walked(root, 1)
    assert later == [unit.offset for unit in made.units if unit.offset >= LOG_SIZE]


def test_it_ends_at_a_wrong_body_where_the_crc_is_asked_and_goes_on_where_not(made, tmp_path):
    root = made.write(tmp_path / "s")
    unit = made.units[30]
    patch(root / "commitlog" / f"{unit.offset // LOG_SIZE * LOG_SIZE:020d}", unit.offset % LOG_SIZE + 88, b"X")
    found, offsets = walked(root)
    assert (found.end_offset, len(offsets)) == (unit.offset, 30)
    assert walked(root, crc=False)[0].units == 80


def test_the_dispatch_thread_goes_from_what_it_cannot_read_to_the_next_file(made, tmp_path):
    root = made.write(tmp_path / "s")
    broken = next(unit for unit in made.units if unit.offset > 2000)
    patch(root / "commitlog" / f"{0:020d}", broken.offset, bytes(8))
    taken = Taken()
    with open_store(root) as store:
        LogWalk(store.log.sequence.files, Rules(), taken).run_dispatch(0, made.end)
    assert taken.offsets == [
        unit.offset for unit in made.units if unit.offset < broken.offset or unit.offset >= LOG_SIZE
    ]


def test_zeros_are_the_end(made, tmp_path):
    root = made.write(tmp_path / "s")
    zero_log_from(root, made.units[50].offset)
    assert walked(root)[0].end_offset == made.units[50].offset
