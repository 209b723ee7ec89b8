"""A listing answers as long as nothing can have changed, and what does not fit is an error."""

from __future__ import annotations

import fcntl

import pytest
from ssh_stand_in import install_stand_in, on_machine

from engine.ssh.address import parse_address
from engine.ssh.listings import MAX_AGE_S, MAX_QUIET_AGE_S
from engine.ssh.remote_disk import RemoteDisk


@pytest.mark.parametrize("part", ["store", "store/commitlog"])
def test_the_lock_counts_without_a_log_folder_beside_it_and_above_a_part(tmp_path, monkeypatch, clock, part):
    """A store in DLedger mode has no commitlog folder, and of an opened part the lock is above: both passed as stores
    that nobody holds, whose blocks answer again without a question.
    """
    (tmp_path / "bin").mkdir()
    install_stand_in(tmp_path / "bin", monkeypatch)
    (tmp_path / part).mkdir(parents=True)
    (tmp_path / "store" / "lock").touch()
    disk = RemoteDisk(parse_address(on_machine(tmp_path / part)), clock)
    with (tmp_path / "store" / "lock").open("r+b") as lock:
        disk.entries(str(on_machine(tmp_path / part)))
        assert disk._listings.is_quiet
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)
        clock.now += MAX_QUIET_AGE_S + MAX_AGE_S
        disk.entries(str(on_machine(tmp_path / part)))
        assert not disk._listings.is_quiet
    disk.close()


def test_a_file_that_is_removed_is_absent_once_the_listing_is_old(disk, tmp_path, clock):
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    file.write_bytes(b"old")
    disk.entries(str(on_machine(tmp_path / "store")))
    file.unlink()
    clock.now += MAX_QUIET_AGE_S + MAX_AGE_S
    with pytest.raises(FileNotFoundError):
        disk.status(str(on_machine(file)), True)


@pytest.mark.parametrize("data", [b"", b"[]", b"[{}]", b"null", b'[{"folder": "/", "entries": [["a", [1], null]]}]'])
def test_an_answer_that_does_not_fit_is_an_error_of_the_folder(disk, tmp_path, monkeypatch, data):
    monkeypatch.setattr(disk.connection, "request", lambda *_: ({"locks": []}, data))
    with pytest.raises(OSError, match="the other machine sent an answer that does not fit"):
        disk.entries(str(on_machine(tmp_path / "store")))
