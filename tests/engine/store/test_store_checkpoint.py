"""The checkpoint of a running store: which values are written when."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from recovered_stores import golden_config

from engine.codec.checkpoint import Checkpoint, decode, encode
from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.mapped.disk import RealDisk
from engine.message_store import MessageStore
from engine.store.store_checkpoint import StoreCheckpoint


def new_checkpoint(path: Path) -> StoreCheckpoint:
    checkpoint = StoreCheckpoint(path, RealDisk())
    checkpoint.load()
    return checkpoint


def test_a_missing_file_reads_as_zeros_and_a_flush_makes_it(tmp_path: Path) -> None:
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    assert checkpoint.value == Checkpoint(0, 0, 0)
    assert not (tmp_path / "checkpoint").exists()
    assert checkpoint.flush()
    assert (tmp_path / "checkpoint").read_bytes() == bytes(4096)
    checkpoint.close()


def test_values_round_trip(tmp_path: Path) -> None:
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    checkpoint.physic, checkpoint.index, checkpoint.confirm, checkpoint.master_flushed = 5, 3, 77, 78
    checkpoint.settle_logics(4)
    checkpoint.flush()
    checkpoint.close()
    assert new_checkpoint(tmp_path / "checkpoint").value == Checkpoint(5, 4, 3, 78, 77)


def test_logics_reaches_the_file_only_when_the_queues_were_flushed(tmp_path: Path) -> None:
    """Java writes it before the flush. After a power loss, recovery then began after entries that never reached the
    disk.
    """
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    checkpoint.logics = 10
    checkpoint.flush()
    assert decode((tmp_path / "checkpoint").read_bytes()).logics_msg_timestamp == 0
    checkpoint.settle_logics(10)
    checkpoint.flush()
    assert decode((tmp_path / "checkpoint").read_bytes()).logics_msg_timestamp == 10
    checkpoint.close()


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    checkpoint.physic = 5
    assert checkpoint.flush()
    assert not checkpoint.flush()
    checkpoint.close()
    assert not new_checkpoint(tmp_path / "checkpoint").flush()


def test_a_short_file_reads_as_zeros_and_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(b"\1" * 7)
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    assert checkpoint.value == Checkpoint(0, 0, 0)
    assert checkpoint.flush()
    assert (tmp_path / "checkpoint").read_bytes() == bytes(4096)
    checkpoint.close()


def test_the_queues_offset_is_written_with_their_time_and_never_falls_to_zero(tmp_path: Path) -> None:
    """Every checkpoint that we wrote had 0 at byte 40, and 5.5 begins a start after a crash at that number."""
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    checkpoint.settle_logics(10, 4_000)
    checkpoint.flush()
    checkpoint.settle_logics(20)
    checkpoint.flush()
    checkpoint.close()
    assert decode((tmp_path / "checkpoint").read_bytes()) == Checkpoint(0, 20, 0, None, None, 4_000)


def test_an_older_release_leaves_the_numbers_of_a_newer_one_in_place(tmp_path: Path) -> None:
    bytes_before = encode(Checkpoint(1, 2, 3, 4, 5, 6))[:100] + b"\x07" * 3996
    (tmp_path / "checkpoint").write_bytes(bytes_before)
    checkpoint = StoreCheckpoint(tmp_path / "checkpoint", RealDisk(), 3)
    checkpoint.load()
    checkpoint.physic, checkpoint.confirm = 11, 99
    checkpoint.settle_logics(12, 98)
    assert checkpoint.flush()
    assert not checkpoint.flush()
    checkpoint.close()
    bytes_after = (tmp_path / "checkpoint").read_bytes()
    assert decode(bytes_after) == Checkpoint(11, 12, 3, 4, 5, 6)
    assert bytes_after[24:] == bytes_before[24:]


def test_a_cut_of_the_log_lowers_the_offset(tmp_path: Path) -> None:
    checkpoint = new_checkpoint(tmp_path / "checkpoint")
    checkpoint.settle_logics(10, 4_000)
    checkpoint.cut_logics_offset(1_000)
    assert checkpoint.value.logics_physical_offset == 1_000


@pytest.mark.golden
def test_a_closed_store_of_5_5_keeps_its_checkpoint_over_a_start_and_a_close(golden, tmp_path: Path) -> None:
    shutil.copytree(golden("clean-5.5.1"), tmp_path / "store")
    checkpoint_before = decode((tmp_path / "store" / "checkpoint").read_bytes())
    with MessageStore(tmp_path / "store", golden_config("clean-5.5.1")) as store:
        assert store.release == "5.5"
    checkpoint_after = decode((tmp_path / "store" / "checkpoint").read_bytes())
    assert checkpoint_before.logics_physical_offset
    assert (
        replace(checkpoint_after, confirm_phy_offset=checkpoint_before.confirm_phy_offset) == checkpoint_before
    )  # a start sets this value


def test_a_put_moves_the_offset_to_the_last_unit_of_a_queue(tmp_path: Path) -> None:
    with MessageStore(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=1 << 20)) as store:
        results = [store.put_message(Message("Orders", b"body", 0)) for _ in range(3)]
    checkpoint = decode((tmp_path / "store" / "checkpoint").read_bytes())
    assert checkpoint.logics_physical_offset == results[-1].append.physical_offset > 0
