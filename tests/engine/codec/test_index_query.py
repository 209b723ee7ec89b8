"""The compiled twins of key queries, and when they are loaded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uncompiled_queries import compiled, plain

from engine.codec import columns, index_builder, index_query
from engine.codec.index import Geometry, IndexHeader
from engine.codec.index_query import (
    Span,
    TimeWindow,
    Units,
    find_key,
    find_keys,
    hashes_of,
    mapped_files,
    mapped_index,
    place_units,
)
from engine.codec.java import index_key_hash


def test_the_twins_are_loaded_after_enough_queries():
    """This test failed when it ran alone: saved machine code loads without numba, and then more keys are needed."""
    pytest.importorskip("numba")
    assert columns.twin() is not None
    with plain():
        index_query.TwinState.keys_without_twin = 0
        assert index_query.twin_for(index_query.KEYS_WITH_NUMBA_IMPORTED - 1) is None
        assert index_query.twin_for(1) is not None
        assert index_query.twin_for(0) is index_query.TwinState.twin


GEOMETRY = Geometry(7, 50)
FOREVER = (0, (1 << 63) - 1, 64)
BEGIN = 1_700_000_000_000
SOUGHT_KEYS = ["a", "b", "键", "not there", "\ud800", "long-key-of-an-order"]


class Files:
    """Index files of (key, offset, time) under topic T, oldest first, and their bytes."""

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

    def find(self, key, begin, end, max_count):
        return find_key(self.mapped, "T", key, begin, end, max_count)


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
def test_one_key_many_keys_and_both_twins_find_the_same(chains, begin, end, max_count):
    files, window = Files(*chains), TimeWindow(begin, end, max_count)
    with compiled():
        offsets_by_key = [files.find(key, *window) for key in SOUGHT_KEYS]
        hashes = hashes_of("T", SOUGHT_KEYS)
        combined_offsets = pieces(*find_keys(files.mapped, hashes, window))
    with plain():
        assert [files.find(key, *window) for key in SOUGHT_KEYS] == offsets_by_key
        assert (hashes_of("T", SOUGHT_KEYS) == hashes).all()
        assert pieces(*find_keys(files.mapped, hashes, window)) == combined_offsets
    assert [sorted(offsets) for offsets in offsets_by_key] == combined_offsets


def pieces(ends, offsets):
    """Return each key's offsets."""
    assert len(offsets) == (ends[-1] if len(ends) else 0)
    return [word.tolist() for word in np.split(offsets, ends[:-1])]


@pytest.mark.usefixtures("twin")
def test_newest_entries_come_first_up_to_the_limit():
    files = Files([("a", offset, BEGIN) for offset in (1, 2, 3)])
    assert files.find("a", *FOREVER) == [3, 2, 1]
    assert files.find("a", 0, 1 << 62, 2) == [3, 2]
    assert files.find("a", 0, 1 << 62, 1) == [3]
    assert files.find("a", 0, 1 << 62, 0) == files.find("a", 0, 1 << 62, -1) == []


@pytest.mark.usefixtures("twin")
def test_the_newest_file_is_read_first_and_none_before_the_window():
    files = Files([("a", 1, BEGIN)], [("a", 2, BEGIN + 60_000), ("a", 3, BEGIN + 90_000)])
    assert files.find("a", *FOREVER) == [3, 2, 1]
    assert files.find("a", 0, 1 << 62, 1) == [3]
    assert files.find("a", BEGIN, BEGIN + 5000, 9) == [1]
    assert files.find("a", BEGIN + 60_000, BEGIN + 60_000, 9) == [2]
    # The newest file begins before the window: RocketMQ stops here, whatever the older files contain.
    assert files.find("a", BEGIN + 60_001, 1 << 62, 9) == [3]
    assert Files().find("a", *FOREVER) == Files([]).find("a", *FOREVER) == []


@pytest.mark.usefixtures("twin")
def test_a_negative_offset_is_returned_unchanged():
    """The entry is damaged. The log has no unit there, and the caller detects that."""
    assert Files([("a", -5, BEGIN)]).find("a", *FOREVER) == [-5]
    assert Files([("a", -1, BEGIN), ("a", -2, BEGIN)]).find("a", *FOREVER) == [-2, -1]


@pytest.mark.usefixtures("twin")
def test_a_window_beyond_64_bits_is_unbounded():
    files = Files([("a", 7, BEGIN)])
    assert files.find("a", -(1 << 70), 1 << 70, 1 << 70) == [7]
    window = TimeWindow(-(1 << 70), 1 << 70, 9)
    assert find_keys(files.mapped, hashes_of("T", ["a"]), window)[1].tolist() == [7]


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("count", [1, 2])
def test_entries_beyond_the_count_are_ignored(count):
    """The slot leads to an entry that the header does not count yet. RocketMQ returns nothing in this case, too."""
    entries = [("a", 1, BEGIN), ("a", 2, BEGIN), ("a", 3, BEGIN)]
    assert Files(entries, count=count).find("a", *FOREVER) == []
    assert Files(entries).find("a", *FOREVER) == [3, 2, 1]


@pytest.mark.usefixtures("twin")
def test_chains_that_loop_or_lead_upwards_end():
    files = Files([("a", 1, BEGIN), ("a", 2, BEGIN)])
    position = GEOMETRY.entry_position(1) + 16
    files.raw[0][position : position + 4] = [0, 0, 0, 2]
    assert files.find("a", *FOREVER) == [2, 1]


@pytest.mark.usefixtures("twin")
def test_every_text_has_java_s_hash():
    texts = ["a", "\ud800", "b", "键" * 30, "", "x" * 200, "\U0001f375", "ab\ud83c\udf75", "a\0b"]
    for request in (texts, texts[:1] + texts[4:6], texts[2:7], texts[-1:], [""], ["", ""], ["12345678", "1234567"], []):
        assert hashes_of("T", request).tolist() == [index_key_hash("T", key) for key in request]
    files = Files([(key, number, BEGIN) for number, key in enumerate(texts)])
    assert [files.find(key, *FOREVER) for key in texts[:6]] == [[number] for number in range(6)]
    assert files.find("ab\U0001f375", *FOREVER) == [7]


def test_without_numba_plain_python_answers_permanently(monkeypatch):
    monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    with plain():
        index_query.TwinState.keys_without_twin = 0
        assert index_query.load() is None
        assert index_query.twin_for(2 * index_query.KEYS_WITHOUT_NUMBA) is None
        assert Files([("a", 1, BEGIN)]).find("a", *FOREVER) == [1]


FILE = 64


def unit(size, declared=None):
    return (size if declared is None else declared).to_bytes(4, "big", signed=True) + bytes(size - 4)


LOG = unit(10) + unit(20) + unit(12, -5) + unit(22, 23)  # the last unit declares one byte more than the file has
LOG += unit(FILE)
LOG += unit(8) + b"\0\0\0"  # the readable part


def placed(*arguments, unavailable=()):
    """Place the units of each key's offsets. Return the placement and the offsets whose spans were requested."""
    offsets = []

    def span_at(offset):
        offsets.append(offset)
        start = offset - offset % FILE
        view = memoryview(LOG)[start : start + FILE] if offset < len(LOG) and start not in unavailable else None
        return Span(start, start + FILE, view)

    ends = np.cumsum([len(offsets_of_key) for offsets_of_key in arguments], dtype=np.int64)
    return place_units(
        ends, np.array([offset for key_offsets in arguments for offset in key_offsets], np.int64), span_at
    ), offsets


@pytest.mark.usefixtures("twin")
def test_units_are_placed_span_by_span():
    units, request = placed([0, 10, 64], [], [10], [10, 128])
    assert units == Units(
        [0, 10, 64, 10, 10, 128], [0, 10, 0, 10, 10, 0], [10, 30, 64, 30, 30, 8], [0, 0, 1, 0, 0, 2], [3, 3, 4, 6]
    )
    assert request == [0, 64, 128]


@pytest.mark.usefixtures("twin")
def test_bytes_with_a_wrong_size_are_no_unit():
    units, _ = placed([10, 30, 42], [136, 138], [128])
    assert (units.offsets, units.ends) == ([10, 128], [1, 1, 2])


@pytest.mark.usefixtures("twin")
def test_deleted_offsets_are_left_out():
    units, request = placed([0, 10**9], [-(1 << 63), -1, (1 << 63) - 1], [3, 64], unavailable={0})
    assert (units.offsets, units.ends) == ([64], [0, 0, 1])
    assert request == [0, 10**9, 64]


@pytest.mark.usefixtures("twin")
def test_a_log_of_many_files_is_read_file_by_file():
    units, request = placed([10**9 + FILE * n for n in range(40)], [64])
    assert (units.offsets, units.spans) == ([64], [40])
    assert len(request) == 41
    assert placed() == (Units([], [], [], [], []), [])
    assert placed([])[0].ends == [0]


@given(st.lists(st.lists(st.integers(-3, 200), max_size=9), max_size=9))
def test_both_twins_place_alike(offsets_by_key):
    with compiled():
        compiled_result = placed(*offsets_by_key, unavailable={64})
    with plain():
        assert placed(*offsets_by_key, unavailable={64}) == compiled_result
