"""Complete units stored again in one call have the same bytes as single appends."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from put_logs import PutLog
from raw_units import raw_unit, with_property_crc

from engine.codec.encode import Message
from engine.errors import StoreError, UsageError
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.store import put_raw_units as module
from engine.store.put_raw_units import append_replicated, append_units


def units(seed, count, largest=900):
    pick = random.Random(seed)
    return [raw_unit(pick.randrange(1 << 40), body=pick.randbytes(pick.randrange(largest))) for _ in range(count)]


def together(log, listed):
    data = np.frombuffer(b"".join(listed), np.uint8)
    stored = np.full(len(listed), 1_700_000_000_123)
    return append_units(log, data, np.array([len(unit) for unit in listed]), stored)


@pytest.mark.parametrize("file_size", [1100, 4096, 1 << 16])
@pytest.mark.parametrize("seed", range(5))
def test_files_are_those_of_single_appends(tmp_path, seed, file_size):
    log, many = PutLog(tmp_path / "one", file_size), PutLog(tmp_path / "many", file_size)
    listed = units(seed, 120)
    for unit in listed:
        log.log.append_raw(unit)
    pick, row = random.Random(seed), 0
    while row < len(listed):
        count = pick.randrange(1, 50)
        assert together(many.log, listed[row : row + count]) == many.log.wrote
        row += count
    assert many.bytes() == log.bytes()
    assert [unit.physical_offset for unit in many.units()] == [unit.offset for unit in many.units()]
    assert [unit.body for unit in many.units()] == [unit.body for unit in log.units()]
    assert many.files.last.store_timestamp == 1_700_000_000_123


def test_a_unit_longer_than_a_file_is_refused_before_anything_is_written(tmp_path):
    log = PutLog(tmp_path, 1000)
    with pytest.raises(UsageError, match="does not fit into files of 1,000"):
        together(log.log, [raw_unit(), raw_unit(body=bytes(2000))])
    assert log.bytes() == []


def test_without_a_file_nothing_can_be_stored(tmp_path, monkeypatch):
    log = PutLog(tmp_path)
    monkeypatch.setattr(MappedFileQueue, "last_or_create", lambda *_: None)
    with pytest.raises(UsageError, match="no new file"):
        together(log.log, [raw_unit()])


def test_units_with_a_property_crc_are_recognized():
    plain, sealed = raw_unit(), with_property_crc(raw_unit())
    data = np.frombuffer(plain + sealed + plain, np.uint8)
    sizes = np.array([len(plain), len(sealed), len(plain)])
    assert module.with_property_crc(data, sizes).tolist() == [False, True, False]


FILE = 4096


def filled(folder: Path) -> list[bytes]:
    log = PutLog(folder, FILE)
    for number in range(40):
        assert log.log.put_message(Message("Orders", b"%d" % number * 99, 0)).ok
    return log.bytes()


def test_files_are_those_of_the_master_wherever_its_log_begins(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    for first_file in (0, 1):
        copy = PutLog(tmp_path / f"b{first_file}", FILE)
        end = append_replicated(copy.log, first_file * FILE, b"".join(master[first_file:]), 7)
        assert (end, copy.bytes()) == (first_file * FILE + sum(map(len, master[first_file:])), master[first_file:])
        assert copy.files.files[-1].store_timestamp == 7


def test_a_gap_and_a_repetition_are_refused(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    copy = PutLog(tmp_path / "b", FILE)
    append_replicated(copy.log, 0, master[0], 0)
    for offset in (0, FILE * 2):
        with pytest.raises(StoreError, match="expected bytes of offset"):
            append_replicated(copy.log, offset, master[1], 0)
    assert copy.bytes()[0] == master[0]
