"""Marker files of a store's root."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.markers import decode

CASES = [
    (b"29215", "pid", 29215, "process id 29215"),
    (b"29215\n", "pid", 29215, "process id 29215"),
    (b"", "empty", None, "empty"),
    (b"\n", "empty", None, "empty"),
    (b"lock", "lock", None, "the word lock"),
    (b"0", "other", None, "unexpected text '0'"),
    (b"\0\0\0", "other", None, "unexpected text '\\x00\\x00\\x00'"),
    ("٣".encode(), "other", None, "unexpected text '٣'"),
    (b"9" * 5000, "other", None, f"unexpected text '{'9' * 64}'"),
]


@pytest.mark.parametrize(("raw", "kind", "pid", "words"), CASES)
def test_reads(raw, kind, pid, words):
    marker = decode(raw)
    assert (marker.kind, marker.pid, marker.words) == (kind, pid, words)


@given(st.integers(1, (1 << 31) - 1))
def test_every_pid_is_read(pid):
    assert decode(str(pid).encode()).pid == pid


@given(st.binary())
def test_any_bytes_give_a_marker(raw):
    assert decode(raw).words


@pytest.mark.golden
def test_markers_of_real_brokers(golden):
    store = golden("broker-crash")
    assert decode((store / "abort").read_bytes()).kind == "pid"
    assert decode((store / "abort.bak").read_bytes()).kind == "empty"
    assert decode((store / "lock").read_bytes()).kind == "lock"
    recovered = golden("broker-crash", "store-recovered") / "abort.bak"
    assert decode(recovered.read_bytes()).kind == "pid"
