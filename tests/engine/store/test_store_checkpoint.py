"""The checkpoint of a running store: what is written when."""

from __future__ import annotations

from pathlib import Path

from engine.codec.checkpoint import Checkpoint, decode
from engine.mapped.disk import RealDisk
from engine.store.store_checkpoint import StoreCheckpoint


def made(path: Path) -> StoreCheckpoint:
    checkpoint = StoreCheckpoint(path, RealDisk())
    checkpoint.load()
    return checkpoint


def test_a_missing_file_reads_as_zeros_and_a_flush_makes_it(tmp_path: Path) -> None:
    checkpoint = made(tmp_path / "checkpoint")
    assert checkpoint.value == Checkpoint(0, 0, 0)
    assert not (tmp_path / "checkpoint").exists()
    assert checkpoint.flush()
    assert (tmp_path / "checkpoint").read_bytes() == bytes(4096)
    checkpoint.close()


def test_values_come_back(tmp_path: Path) -> None:
    checkpoint = made(tmp_path / "checkpoint")
    checkpoint.physic, checkpoint.index, checkpoint.confirm, checkpoint.master_flushed = 5, 3, 77, 78
    checkpoint.settle_logics(4)
    checkpoint.flush()
    checkpoint.close()
    assert made(tmp_path / "checkpoint").value == Checkpoint(5, 4, 3, 78, 77)


def test_logics_reaches_the_file_only_when_the_queues_were_flushed(tmp_path: Path) -> None:
    """Java writes it before: after a power loss recovery then began behind entries that never reached the disk."""
    checkpoint = made(tmp_path / "checkpoint")
    checkpoint.logics = 10
    checkpoint.flush()
    assert decode((tmp_path / "checkpoint").read_bytes()).logics_msg_timestamp == 0
    checkpoint.settle_logics(10)
    checkpoint.flush()
    assert decode((tmp_path / "checkpoint").read_bytes()).logics_msg_timestamp == 10
    checkpoint.close()


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    checkpoint = made(tmp_path / "checkpoint")
    checkpoint.physic = 5
    assert checkpoint.flush()
    assert not checkpoint.flush()
    checkpoint.close()
    assert not made(tmp_path / "checkpoint").flush()


def test_a_short_file_reads_as_zeros_and_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_bytes(b"\1" * 7)
    checkpoint = made(tmp_path / "checkpoint")
    assert checkpoint.value == Checkpoint(0, 0, 0)
    assert checkpoint.flush()
    assert (tmp_path / "checkpoint").read_bytes() == bytes(4096)
    checkpoint.close()
