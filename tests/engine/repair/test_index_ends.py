"""The last entries of an index file are taken back, with the bytes that RocketMQ had written before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from engine.codec.index import HEADER_SIZE, encode_header, next_header
from engine.codec.index_builder import put_entries
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.repair.index_ends import without_last_entries


@dataclass
class ShorterLog:
    """A log that ends before messages of the store."""

    units: dict[int, Unit]
    max_offset: int

    def unit_at(self, offset: int, *, crc: bool) -> Unit:
        assert not crc
        return self.units[offset]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-4.9.8", "clean-5.3.3"])
def test_the_file_is_as_before_its_last_entries(golden, name: str) -> None:
    with open_store(golden(name)) as store:
        previous, reader = store.index_files()[-2:]
        geometry = reader.geometry
        assert geometry is not None
        units = {unit.offset: unit for unit in store.units(crc=False) if isinstance(unit, Unit)}
        entries = [entry for _, entry in reader.entries()]
        written = reader.file.read(0, reader.size)
    offsets = np.array([entry.phy_offset for entry in entries], np.int64)
    for end in np.unique(offsets)[1:]:
        count = int(np.searchsorted(offsets, end))
        before = np.zeros(geometry.file_size, np.uint8)
        header = put_entries(
            before,
            next_header(previous.header),
            geometry,
            np.array([entry.key_hash for entry in entries[:count]], np.int32),
            offsets[:count],
            np.array([units[offset].store_timestamp for offset in offsets[:count].tolist()], np.int64),
        )
        before[:HEADER_SIZE] = np.frombuffer(encode_header(header), np.uint8)
        assert without_last_entries(written, reader.header, geometry, ShorterLog(units, int(end))) == before.tobytes()
    assert without_last_entries(written, reader.header, geometry, ShorterLog(units, int(offsets[0]))) is None
    spoilt = written[:HEADER_SIZE] + bytes(4 * geometry.slots) + written[geometry.entry_position(0) :]
    assert without_last_entries(spoilt, reader.header, geometry, ShorterLog(units, int(offsets[-1]))) is None
