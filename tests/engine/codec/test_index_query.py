import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_queries import compiled, plain

from engine.codec import columns, index_builder, query_twin
from engine.codec.index import Geometry, IndexHeader
from engine.codec.index_query import TimeWindow, find_key, find_keys, hashes_of, mapped_files, mapped_index
from engine.codec.java import index_key_hash

GEOMETRY = Geometry(7, 50)
FOREVER = (0, (1 << 63) - 1, 64)
BEGIN = 1_700_000_000_000
WANTED = ["a", "b", "键", "not there", "\ud800", "long-key-of-an-order"]


class Files:
    """Index files of (key, offset, time) under topic T, the oldest first, and their bytes."""

    def __init__(self, *files, count=None):
        self.raw = []
        mapped = []
        for keys in files:
            raw = np.zeros(GEOMETRY.file_size, np.uint8)
            hashes = np.array([index_key_hash("T", key) for key, _, _ in keys], np.int32)
            header = index_builder.put_entries(
                raw,
                IndexHeader(0, 0, 0, 0, 0, 1),
                GEOMETRY,
                hashes,
                np.array([o for _, o, _ in keys], np.int64),
                np.array([t for _, _, t in keys], np.int64),
            )
            if count is not None:
                header = IndexHeader(BEGIN, BEGIN, 1, 1, 1, count)
            self.raw.append(raw)
            mapped.append(mapped_index(raw.data, raw.ctypes.data, GEOMETRY, header))
        self.mapped = mapped_files(mapped[::-1])

    def find(self, key, begin, end, most):
        return find_key(self.mapped, "T", key, begin, end, most)


@pytest.fixture(params=[plain, compiled])
def twin(request):
    with request.param():
        yield


keys = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "键", "long-key-of-an-order", ""]),
        st.integers(0, 1 << 40),
        st.integers(BEGIN, BEGIN + 9000),
    ),
    max_size=45,
)


@settings(max_examples=60)
@given(
    st.lists(keys, max_size=4),
    st.integers(BEGIN - 1, BEGIN + 9000),
    st.integers(BEGIN, BEGIN + 9001),
    st.integers(0, 9),
)
def test_one_key_many_keys_and_both_twins_find_the_same(chains, begin, end, most):
    files, window = Files(*chains), TimeWindow(begin, end, most)
    with compiled():
        singly = [files.find(key, *window) for key in WANTED]
        hashes = hashes_of("T", WANTED)
        together = pieces(*find_keys(files.mapped, hashes, window))
    with plain():
        assert [files.find(key, *window) for key in WANTED] == singly
        assert (hashes_of("T", WANTED) == hashes).all()
        assert pieces(*find_keys(files.mapped, hashes, window)) == together
    assert [sorted(offsets) for offsets in singly] == together


def pieces(ends, offsets):
    """Each key's offsets."""
    assert len(offsets) == (ends[-1] if len(ends) else 0)
    return [mine.tolist() for mine in np.split(offsets, ends[:-1])]


@pytest.mark.usefixtures("twin")
def test_the_newest_entry_comes_first_and_only_so_many_do():
    files = Files([("a", offset, BEGIN) for offset in (1, 2, 3)])
    assert files.find("a", *FOREVER) == [3, 2, 1]
    assert files.find("a", 0, 1 << 62, 2) == [3, 2]
    assert files.find("a", 0, 1 << 62, 1) == [3]
    assert files.find("a", 0, 1 << 62, 0) == files.find("a", 0, 1 << 62, -1) == []


@pytest.mark.usefixtures("twin")
def test_the_newest_file_comes_first_and_none_before_the_window_is_asked():
    files = Files([("a", 1, BEGIN)], [("a", 2, BEGIN + 60_000), ("a", 3, BEGIN + 90_000)])
    assert files.find("a", *FOREVER) == [3, 2, 1]
    assert files.find("a", 0, 1 << 62, 1) == [3]
    assert files.find("a", BEGIN, BEGIN + 5000, 9) == [1]
    assert files.find("a", BEGIN + 60_000, BEGIN + 60_000, 9) == [2]
    # The newest file begins before the window: RocketMQ looks no further, whatever older ones say.
    assert files.find("a", BEGIN + 60_001, 1 << 62, 9) == [3]
    assert Files().find("a", *FOREVER) == Files([]).find("a", *FOREVER) == []


@pytest.mark.usefixtures("twin")
def test_an_offset_below_zero_is_told_as_it_stands():
    """A damaged entry: the log has nothing there, and whoever asks it finds that out."""
    assert Files([("a", -5, BEGIN)]).find("a", *FOREVER) == [-5]
    assert Files([("a", -1, BEGIN), ("a", -2, BEGIN)]).find("a", *FOREVER) == [-2, -1]


@pytest.mark.usefixtures("twin")
def test_a_window_beyond_64_bits_is_for_ever():
    files = Files([("a", 7, BEGIN)])
    assert files.find("a", -(1 << 70), 1 << 70, 1 << 70) == [7]
    window = TimeWindow(-(1 << 70), 1 << 70, 9)
    assert find_keys(files.mapped, hashes_of("T", ["a"]), window)[1].tolist() == [7]


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("count", [1, 2])
def test_entries_beyond_the_count_are_not_seen(count):
    """The slot leads to an entry that the header does not count yet: RocketMQ answers nothing then, too."""
    entries = [("a", 1, BEGIN), ("a", 2, BEGIN), ("a", 3, BEGIN)]
    assert Files(entries, count=count).find("a", *FOREVER) == []
    assert Files(entries).find("a", *FOREVER) == [3, 2, 1]


@pytest.mark.usefixtures("twin")
def test_chains_that_loop_or_lead_upwards_end():
    files = Files([("a", 1, BEGIN), ("a", 2, BEGIN)])
    at = GEOMETRY.entry_position(1) + 16
    files.raw[0][at : at + 4] = [0, 0, 0, 2]
    assert files.find("a", *FOREVER) == [2, 1]


@pytest.mark.usefixtures("twin")
def test_every_text_has_java_s_hash():
    texts = ["a", "\ud800", "b", "键" * 30, "", "x" * 200, "\U0001f375", "ab\ud83c\udf75", "a\0b"]
    for asked in (texts, texts[:1] + texts[4:6], texts[2:7], texts[-1:], [""], ["", ""], ["12345678", "1234567"], []):
        assert hashes_of("T", asked).tolist() == [index_key_hash("T", key) for key in asked]
    files = Files([(key, number, BEGIN) for number, key in enumerate(texts)])
    assert [files.find(key, *FOREVER) for key in texts[:6]] == [[number] for number in range(6)]
    assert files.find("ab\U0001f375", *FOREVER) == [7]


def test_the_twins_are_loaded_when_enough_keys_were_asked_for():
    assert columns.twin() is not None
    with plain():
        query_twin.TwinState.keys_without_twin = 0
        assert query_twin.twin_for(query_twin.KEYS_WITH_NUMBA_IMPORTED - 1) is None
        assert query_twin.twin_for(1) is not None
        assert query_twin.twin_for(0) is query_twin.TwinState.twin


def test_without_numba_plain_python_answers_for_good(monkeypatch):
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    with plain():
        query_twin.TwinState.keys_without_twin = 0
        assert query_twin.load() is None
        assert query_twin.twin_for(2 * query_twin.KEYS_WITHOUT_NUMBA) is None
        assert Files([("a", 1, BEGIN)]).find("a", *FOREVER) == [1]
