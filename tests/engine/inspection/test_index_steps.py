"""Entries that only one of two sets of index files has."""

from __future__ import annotations

import shutil
import struct

import pytest

from engine.inspection.index_steps import Entry, count_key_hashes, step_index, sum_key_hashes
from engine.inspection.samples import sample
from engine.inspection.snapshot import open_store


def test_changed_entries_are_named_on_either_side(tmp_path):
    copy = shutil.copytree(sample("orders"), tmp_path / "copy")
    with open_store(copy) as store:
        reader = store.index_files()[0]
        assert reader.geometry is not None
        positions = [reader.geometry.entry_position(number) for number in (5, 6, 9)]
    index = min((copy / "index").iterdir())
    data = bytearray(index.read_bytes())
    for position in positions:
        data[position : position + 4] = struct.pack(">i", 12345)
    index.write_bytes(data)
    with open_store(sample("orders")) as store, open_store(copy) as other:
        assert list(step_index(lambda: None, store.index_files(), store.index_files(), 0)) == []
        steps = list(step_index(lambda: None, store.index_files(), other.index_files(), 0))
    assert [(here and here.number, there and there.number) for here, there in steps] == [(5, 5), (6, 6), (9, 9)]
    assert isinstance(steps[0][0], Entry)


def test_the_steps_can_be_stopped():
    def stop() -> None:
        raise InterruptedError

    with open_store(sample("orders")) as store, pytest.raises(InterruptedError):
        list(step_index(stop, store.index_files(), store.index_files(), 0))


def test_key_hashes_are_counted_in_parts():
    def counts_of(part, parts):
        hashes, counts = count_key_hashes(lambda: None, files, part, parts)
        return dict(zip(hashes.tolist(), counts.tolist(), strict=True))

    with open_store(sample("orders")) as store:
        files = store.index_files()
        counts = counts_of(0, 1)
        assert sum(counts.values()) == sum_key_hashes(lambda: None, files)[0] > 1000
        assert counts == counts_of(0, 3) | counts_of(1, 3) | counts_of(2, 3)
        assert sum_key_hashes(lambda: None, files) == sum_key_hashes(lambda: None, list(reversed(files)))
        assert sum_key_hashes(lambda: None, files) != sum_key_hashes(lambda: None, files[1:])
