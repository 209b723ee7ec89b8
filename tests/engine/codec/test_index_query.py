import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import dispatch_twin, index_builder, index_query
from engine.codec.index import Geometry, IndexHeader
from engine.codec.index_query import Key, MappedIndex, Window, mapped_index

GEOMETRY = Geometry(7, 50)
FOREVER = Window(0, (1 << 63) - 1, 64)
BEGIN = 1_700_000_000_000


def filled(keys: list[tuple[str, int, int]]) -> tuple[MappedIndex, np.ndarray]:
    """A file with (key, offset, time) under topic T; the bytes are given too, so that they stay."""
    raw = np.zeros(GEOMETRY.file_size, np.uint8)
    header = IndexHeader(0, 0, 0, 0, 0, 1)
    hashes = index_query.hashes_of("T", [key for key, _, _ in keys])
    header = index_builder.put_entries(
        raw, header, GEOMETRY, hashes, np.array([o for _, o, _ in keys]), np.array([t for _, _, t in keys])
    )
    return mapped_index(raw.data, raw.ctypes.data, GEOMETRY, header), raw


keys = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "键", "long-key-of-an-order", ""]),
        st.integers(0, 1 << 40),
        st.integers(BEGIN, BEGIN + 9000),
    ),
    min_size=1,
    max_size=45,
)


@settings(max_examples=60)
@given(keys, st.integers(BEGIN - 1, BEGIN + 9000), st.integers(BEGIN, BEGIN + 9001), st.integers(0, 9))
def test_one_key_many_keys_and_both_twins_find_the_same(keys, begin, end, most):
    dispatch_twin.twin()
    file, _raw = filled(keys)
    window = Window(begin, end, most)
    wanted = ["a", "b", "键", "not there"]
    singly = [Key("T", key).find(file, *window) for key in wanted]
    ready, dispatch_twin._ready[:] = list(dispatch_twin._ready), []
    try:
        plain = [Key("T", key).find(file, *window) for key in wanted]
        hashes = index_query.hashes_of("T", wanted)
        slow_taken, slow = np.zeros(4, np.int64), np.zeros((4, most), np.int64)
        index_query.find_keys(file, hashes, window, slow_taken, slow)
    finally:
        dispatch_twin._ready[:] = ready
    assert (index_query.hashes_of("T", wanted) == hashes).all()
    taken, out = np.zeros(4, np.int64), np.zeros((4, most), np.int64)
    index_query.find_keys(file, hashes, window, taken, out)
    assert singly == plain == [out[i, : taken[i]].tolist() for i in range(4)]
    assert slow.tolist() == out.tolist()


def test_the_newest_entry_comes_first_and_only_so_many_do():
    file, _raw = filled([("a", offset, BEGIN) for offset in (1, 2, 3)])
    assert Key("T", "a").find(file, *FOREVER) == [3, 2, 1]
    assert Key("T", "a").find(file, *Window(0, 1 << 62, 2)) == [3, 2]


def test_entries_beyond_the_count_are_not_seen():
    """The slot leads to an entry that the header does not count yet: RocketMQ answers nothing then, too."""
    file, raw = filled([("a", 1, BEGIN), ("a", 2, BEGIN), ("a", 3, BEGIN)])
    for count in (1, 2):
        few = mapped_index(raw.data, raw.ctypes.data, GEOMETRY, IndexHeader(BEGIN, BEGIN, 1, 1, 1, count))
        assert Key("T", "a").find(few, *FOREVER) == []
    assert Key("T", "a").find(file, *FOREVER) == [3, 2, 1]


@pytest.mark.parametrize("plain", [False, True])
def test_chains_that_loop_or_lead_upwards_end(plain, monkeypatch):
    file, raw = filled([("a", 1, BEGIN), ("a", 2, BEGIN)])
    at = GEOMETRY.entry_position(1) + 16
    raw[at : at + 4] = [0, 0, 0, 2]
    if plain:
        monkeypatch.setattr(dispatch_twin, "_ready", [])
    assert Key("T", "a").find(file, *FOREVER) == [2, 1]


def test_a_key_that_is_no_utf8_has_java_s_hash():
    assert index_query.hashes_of("T", ["a", "\ud800", "b"]).tolist() == [
        index_query.index_key_hash("T", key) for key in ("a", "\ud800", "b")
    ]
    assert index_query.hashes_of("T", []).tolist() == []
