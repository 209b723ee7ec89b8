"""Transfers over an HA port, cut at any position, and the complete units in them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from put_logs import PutLog

from engine.codec.encode import Message
from engine.errors import CorruptUnit
from engine.replication.transfer import Receiver, Transfer, UnitCutter, report

FILE = 4096
# sent by a master of 5.3.3 (docs/protocol/check-vectors.md#ha): 11,894 bytes from offset 256 on, then a heartbeat
HEADER = bytes.fromhex("000000000000010000002e76")
IDLE = bytes.fromhex("0000000000002f7600000000")


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """Files of 4 KiB with blanks at their ends."""
    put_log = PutLog(tmp_path, FILE)
    for number in range(60):
        assert put_log.log.put_message(
            Message("Orders", bytes([number % 251]) * (number * 37 % 900 + 1), number % 3)
        ).ok
    return b"".join(put_log.bytes())


def test_transfers_are_read_in_any_pieces() -> None:
    raw = HEADER + bytes(range(256)) * 46 + bytes(118) + IDLE
    for seed in range(20):
        draw, receiver, results, position = random.Random(seed), Receiver(), [], 0
        while position < len(raw):
            stop = position + draw.choice([1, 5, 12, 700, 20_000])
            results += receiver.feed(raw[position:stop])
            position = stop
        assert [(item.offset, len(item.data)) for item in results] == [(256, 11_894), (12_150, 0)]
    assert report(256).hex() == "0000000000000100"


def test_invalid_transfers_are_refused() -> None:
    for raw in (b"HTTP/1.1 400 Bad", b"\xff" * 12):
        with pytest.raises(CorruptUnit, match="expected a transfer of an HA port"):
            Receiver().feed(raw)


@pytest.mark.parametrize("seed", range(10))
def test_the_cutter_returns_only_complete_units_and_all_bytes(log: bytes, seed: int) -> None:
    draw, cutter, copied, position = random.Random(seed), UnitCutter(0, FILE), bytearray(), 0
    while position < len(log):
        stop = min(position + draw.choice([1, 9, 333, 5000]), len(log))
        offset_before = cutter.offset
        feed = cutter.feed(Transfer(position, log[position:stop]))
        assert offset_before == len(copied)
        copied += feed
        position = stop
    assert bytes(copied) == log
    assert cutter.expected == cutter.offset == len(log)


def test_a_gap_other_file_sizes_and_damage_are_named(log: bytes) -> None:
    with pytest.raises(CorruptUnit, match="expected bytes of offset 0, the master sends 9"):
        UnitCutter(0, FILE).feed(Transfer(9, log))
    with pytest.raises(CorruptUnit, match="expected its mappedFileSizeCommitLog"):
        UnitCutter(0, FILE * 2).feed(Transfer(0, log))
    with pytest.raises(CorruptUnit, match="has no unit here: magic 0x00000000"):
        UnitCutter(0, FILE).feed(Transfer(0, bytes(64)))
