"""Blocks are the bytes of the file, also after the file changed."""

from __future__ import annotations

import fcntl
import os

from ssh_stand_in import on_machine

from engine.ssh.block_cache import BLOCK_BYTES
from engine.ssh.listings import MAX_AGE_S, MAX_QUIET_AGE_S


def test_reads_at_any_place_give_the_bytes_of_the_file(disk, tmp_path, read):
    content = os.urandom(5 * BLOCK_BYTES + 77)
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    file.write_bytes(content)
    disk.entries(str(on_machine(tmp_path / "store")))
    for position in (
        0,
        1,
        BLOCK_BYTES - 1,
        BLOCK_BYTES,
        3 * BLOCK_BYTES + 5,
        len(content) - 3,
        len(content),
        len(content) + 9,
    ):
        for size in (0, 1, 100, BLOCK_BYTES, 3 * BLOCK_BYTES, len(content) + 1):
            assert read(file, size, position) == content[position : position + size]


def test_a_range_that_is_read_again_while_a_process_holds_the_store_is_compared(disk, tmp_path, read):
    """A broker writes through a map: the file keeps its length and time. A reader that reads twice must see it."""
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    file.write_bytes(b"old" + bytes(97))
    with (tmp_path / "store" / "lock").open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)
        disk.entries(str(on_machine(tmp_path / "store")))
        info = file.stat()
        assert read(file, 3) == b"old"
        descriptor = disk.open(str(on_machine(file)))
        disk.read(descriptor, 3, 0)
        with file.open("r+b") as writer:
            writer.write(b"new")
        os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
        assert disk.read(descriptor, 3, 0) == b"new"
        os.close(descriptor)


def test_a_store_that_nobody_holds_is_compared_by_its_listing(disk, tmp_path, clock, read):
    file = tmp_path / "store" / "commitlog" / "00000000000000000000"
    file.write_bytes(b"old")
    disk.entries(str(on_machine(tmp_path / "store")))
    assert read(file, 3) == b"old"
    file.write_bytes(b"new")
    os.utime(file, ns=(0, 0))
    clock.now += MAX_QUIET_AGE_S + MAX_AGE_S
    assert read(file, 3) == b"new"
