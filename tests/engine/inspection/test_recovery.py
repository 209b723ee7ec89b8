"""The log end used for answers is the one that the next start will find, wherever a body is wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace

import golden_stores
import pytest

from engine.codec.checkpoint import encode
from engine.codec.message import Unit
from engine.inspection import open_store
from engine.inspection.recovery import plan
from engine.inspection.where.evidence import where

STORES = [
    "crash-late-5.3.3",
    "crash-5.3.3",
    "crash-4.9.8",
    "broker-crash",
    "clean-5.3.3",
    "clean-4.9.8",
    "first-files-deleted-5.3.3",
    "late-queue-flush-5.5.1",
    "crash-5.4.0",
    "clean-5.5.1",
]


@pytest.mark.full_form(keep=5)
@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_the_settled_end_is_where_the_next_start_ends_the_log(golden, tmp_path, name):
    """After a crash, recovery begins at the file that the checkpoint confirms, not at the newest file in use.

    Units after a wrong body in an earlier file were reported as found, but the next start would have dropped them.
    """
    with open_store(golden(name)) as store:
        files = list(store.log.files)
    for number, file in enumerate(files):
        path = shutil.copytree(golden(name), tmp_path / str(number))
        with open_store(path) as store:
            items = store.log.walk(file.start_offset, file.end_offset)
            units = [item for item in items if isinstance(item, Unit) and len(item.body) > 20 and item.unique_key]
        if not units:
            continue
        unit, following = units[len(units) // 2 : len(units) // 2 + 2]
        log = path / "commitlog" / file.name
        data = bytearray(log.read_bytes())
        position = data.index(unit.body, unit.offset - file.start_offset)
        data[position] ^= 1
        log.write_bytes(data)
        with open_store(path) as store:
            store.commit_log.settle_end()
            end = plan(store, golden_stores.release_of(name)).end_offset
            assert store.log.max_offset == end
            assert next(where(store, unit.offset_msg_id)).verdict == "damaged"
            cut_off = next(where(store, following.offset_msg_id)).verdict == "truncated"
            assert cut_off == (end == unit.offset)


@pytest.mark.golden
def test_after_a_crash_of_5_5_the_log_is_read_from_the_file_of_the_checkpoints_offset(golden, tmp_path):
    """5.5 begins at the checkpoint's logicsPhysicalOffset. We used its times and read from another file."""
    store = shutil.copytree(golden("late-queue-flush-5.5.1"), tmp_path / "store")
    with open_store(store) as opened:
        second = opened.log.files[1]
        checkpoint = opened.checkpoint()
    offset = replace(checkpoint, logics_physical_offset=second.start_offset)
    (store / "checkpoint").write_bytes(encode(offset))
    (store / "abort").write_text("1")
    with open_store(store) as opened:
        assert opened.commit_log.settle_start == second.start_offset == plan(opened, "5.5").start_offset
