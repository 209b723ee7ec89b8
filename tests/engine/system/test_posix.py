"""Locks, holes, blocks and facts of Linux, and what is used in their place on macOS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from engine.system import posix

HOLDER = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 0)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[True, False], ids=["linux", "other"])
def is_linux(request, monkeypatch):
    """Without Linux's own calls, as on macOS."""
    monkeypatch.setattr(posix, "IS_LINUX", request.param)
    return request.param


def test_the_first_byte_is_locked_against_other_processes_which_are_named(tmp_path, is_linux):
    path = tmp_path / "lock"
    path.write_bytes(b"lock")
    descriptor = os.open(path, os.O_RDWR)
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        pid = int(holder.stdout.readline())
        assert posix.first_byte_lock(descriptor) == (True, pid)
        with pytest.raises(OSError, match=r"temporarily unavailable|denied"):
            posix.lock_first_byte(descriptor)
        holder.stdin.close()
        holder.wait()
    assert not posix.first_byte_lock(descriptor)[0]
    posix.lock_first_byte(descriptor)
    os.close(descriptor)


def test_a_second_holder_of_a_folder_is_refused(tmp_path):
    descriptor = posix.hold_folder(tmp_path)
    with pytest.raises(BlockingIOError):
        posix.hold_folder(tmp_path)
    os.close(descriptor)


def test_blocks_are_allocated_where_the_system_can(tmp_path, is_linux):
    with (tmp_path / "file").open("w+b") as file:
        assert posix.allocate(file.fileno(), 0, 1 << 16) in {is_linux, False}
        file.write(b"data")
        file.flush()
        file.truncate(1 << 20)
        assert posix.next_data(file.fileno(), 0) == 0
        assert posix.next_hole(file.fileno(), 0) <= 1 << 20


def test_a_new_file_gets_its_name_last_or_the_caller_creates_it(tmp_path, is_linux):
    try:
        posix.link_nameless_file(tmp_path / "file", 4096)
    except OSError:
        assert not (tmp_path / "file").exists()
    else:
        assert is_linux
        assert (tmp_path / "file").stat().st_size == 4096


def test_everything_can_be_synced(tmp_path, is_linux):
    posix.sync_file_system(tmp_path)
    with (tmp_path / "file").open("wb") as file:
        posix.sync_data(file.fileno())
        assert posix.read_into(os.open(tmp_path / "file", os.O_RDONLY), memoryview(bytearray(4)), 0) == 0


def test_signals_arrive_after_the_block():
    arrived = []
    old_handler = signal.signal(signal.SIGTERM, lambda *_: arrived.append(1))
    try:
        with posix.postponed_signals():
            signal.raise_signal(signal.SIGTERM)
            assert not arrived
        assert arrived
    finally:
        signal.signal(signal.SIGTERM, old_handler)


def test_limits_and_facts_of_the_machine_are_known(tmp_path):
    soft, hard = posix.descriptor_limit()
    assert soft is None or hard is None or 0 < soft <= hard
    assert posix.memory_bytes() > 1 << 26
    assert posix.peak_memory_bytes() > 1 << 20
    assert posix.processor_count() >= 1
    assert posix.load_average() >= 0
    assert posix.mount_type(tmp_path)
