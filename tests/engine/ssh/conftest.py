"""A disk of another machine, which is this one behind a command in place of ssh, and a clock that stands."""

from __future__ import annotations

import os

import pytest
from ssh_stand_in import install_stand_in, on_machine

from engine.ssh.address import parse_address
from engine.ssh.remote_disk import RemoteDisk


class Clock:
    """A clock that stands until it is moved."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def disk(tmp_path, monkeypatch, clock):
    (tmp_path / "bin").mkdir()
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "lock").touch()
    install_stand_in(tmp_path / "bin", monkeypatch)
    disk = RemoteDisk(parse_address(on_machine(tmp_path / "store")), clock)
    yield disk
    disk.close()


@pytest.fixture
def read(disk):
    """Reads a part of a file of this machine through the disk."""

    def read_part(path, size, position=0):
        descriptor = disk.open(str(on_machine(path)))
        try:
            return disk.read(descriptor, size, position)
        finally:
            os.close(descriptor)

    return read_part
