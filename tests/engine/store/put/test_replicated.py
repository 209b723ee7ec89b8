"""Bytes of a master's log stand in the follower's files as they came."""

from __future__ import annotations

from pathlib import Path

import pytest
from put_logs import PutLog

from engine.codec.encode import Message
from engine.errors import StoreError
from engine.store.put.replicated import append_replicated

FILE = 4096


def filled(folder: Path) -> list[bytes]:
    log = PutLog(folder, FILE)
    for number in range(40):
        assert log.log.put_message(Message("Orders", b"%d" % number * 99, 0)).ok
    return log.bytes()


def test_files_are_those_of_the_master_wherever_its_log_begins(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    for first in (0, 1):
        copy = PutLog(tmp_path / f"b{first}", FILE)
        end = append_replicated(copy.log, first * FILE, b"".join(master[first:]), 7)
        assert (end, copy.bytes()) == (first * FILE + sum(map(len, master[first:])), master[first:])
        assert copy.files.files[-1].store_timestamp == 7


def test_a_gap_and_a_repetition_are_refused(tmp_path: Path) -> None:
    master = filled(tmp_path / "a")
    copy = PutLog(tmp_path / "b", FILE)
    append_replicated(copy.log, 0, master[0], 0)
    for offset in (0, FILE * 2):
        with pytest.raises(StoreError, match="expected bytes of offset"):
            append_replicated(copy.log, offset, master[1], 0)
    assert copy.bytes()[0] == master[0]
