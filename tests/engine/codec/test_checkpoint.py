"""The checkpoint file in both directions, and files of real brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.checkpoint import CHECKPOINT_SIZE, PARTS, Checkpoint, decode, encode
from engine.errors import CorruptUnit

CASES = [
    pytest.param(Checkpoint(0, 0, 0), "00" * 40, id="new store"),
    pytest.param(
        Checkpoint(1700000000000, 1700000000001, 0),
        "0000018bcfe568000000018bcfe56801" + "00" * 24,
        id="three fields of 4.9",
    ),
    pytest.param(
        Checkpoint(1, 2, 3, 4, 5),
        "".join(f"{n:016x}" for n in (1, 2, 3, 4, 5)),
        id="five fields of 5.x",
    ),
    pytest.param(
        Checkpoint(1, 2, 3, 4, 5, 6), "".join(f"{n:016x}" for n in (1, 2, 3, 4, 5, 6)), id="six numbers of 5.5"
    ),
    pytest.param(Checkpoint(-1, 0, 0, -1, None), "ff" * 8 + "00" * 16 + "ff" * 8 + "00" * 8, id="below zero"),
]


@pytest.mark.parametrize(("checkpoint", "wire"), CASES)
def test_writes(checkpoint, wire):
    assert encode(checkpoint) == bytes.fromhex(wire).ljust(4096, b"\0")


@pytest.mark.parametrize(("checkpoint", "wire"), CASES)
def test_reads(checkpoint, wire):
    assert decode(bytes.fromhex(wire).ljust(4096, b"\0")) == checkpoint


_I64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(_I64, _I64, _I64, _I64, _I64)
def test_a_checkpoint_round_trips(physic, logics, index, master, confirm):
    checkpoint = Checkpoint(physic, logics, index, master or None, confirm or None)
    assert decode(encode(checkpoint)) == checkpoint


@given(st.binary(max_size=5000))
def test_any_bytes_give_a_checkpoint_or_corrupt_unit(raw):
    if len(raw) < 24:
        with pytest.raises(CorruptUnit, match="expected 4,096 bytes"):
            decode(raw)
    else:
        assert decode(raw).min_timestamp >= 0


@pytest.mark.parametrize(
    ("physic", "logics", "index", "least", "least_index"),
    [
        (10_000, 20_000, 5_000, 7_000, 5_000),
        (20_000, 10_000, 50_000, 7_000, 7_000),
        (0, 10_000, 50_000, 0, 0),
        (2_999, 10_000, 0, 0, 0),
    ],
)
def test_recovery_begins_three_seconds_earlier(physic, logics, index, least, least_index):
    checkpoint = Checkpoint(physic, logics, index)
    assert (checkpoint.min_timestamp, checkpoint.min_timestamp_index) == (least, least_index)


def test_an_older_release_keeps_the_numbers_after_its_own():
    """4.9 and 5.4 map the file and set their own numbers. The numbers that a newer release wrote after them stay."""
    old_bytes = encode(Checkpoint(1, 2, 3, 4, 5, 6))[:48] + b"\x07" * (CHECKPOINT_SIZE - 48)
    written = encode(Checkpoint(10, 20, 30, 40, 50, 60), 5, old_bytes)
    assert decode(written) == Checkpoint(10, 20, 30, 40, 50, 6)
    assert written[48:] == old_bytes[48:]
    assert decode(encode(Checkpoint(10, 20, 30, 40, 50, 60), 3, old_bytes)) == Checkpoint(10, 20, 30, 4, 5, 6)


def test_parts_cover_the_fields():
    assert [part.position for part in PARTS] == [0, 8, 16, 24, 32, 40]


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean-4.9.8", "clean-5.3.3", "crash-4.9.8", "crash-5.3.3", "sync-5.3.3"])
def test_agrees_with_what_rocketmq_read(golden, golden_account, name):
    raw = (golden(name) / "checkpoint").read_bytes()
    assert len(raw) == CHECKPOINT_SIZE
    actual_row = next(
        row
        for row in golden_account(name, "expected.jsonl.xz")
        if row["t"] == "checkpointFile" and row["when"] == "found"
    )
    results = decode(raw)
    assert actual_row["values"] == [
        results.physic_msg_timestamp,
        results.logics_msg_timestamp,
        results.index_msg_timestamp,
        results.master_flushed_offset or 0,
        results.confirm_phy_offset or 0,
    ]
    assert encode(results) == raw


def test_numbers_that_no_broker_writes_are_named():
    """Random bytes were read as times 282 million years ahead, and the check reported that the log had lost its
    tail.
    """
    now, end = 1_764_000_000_000, 1 << 40
    assert Checkpoint(now, now, 0, end, end, end).impossible == {}
    assert Checkpoint(0, 0, 0, -1, -1).impossible == {}
    text = decode((b"ERROR no space left\n" * 300)[:CHECKPOINT_SIZE])
    assert list(text.impossible) == [part.name for part in PARTS]
    assert Checkpoint(now, -5, 0, confirm_phy_offset=-2).impossible == {
        "logicsMsgTimestamp": -5,
        "confirmPhyOffset": -2,
    }
