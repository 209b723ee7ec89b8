import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import columns, index
from engine.codec.index import Geometry, IndexHeader
from engine.codec.index_builder import put_entries, put_entry, remaining_entries, time_difference

GEOMETRY = Geometry(3, 12)
BEGIN = 1_700_000_000_000

DIFFERENCES = [
    pytest.param(0, 5000, 0, id="the very first file"),
    pytest.param(-1, 5000, 0, id="no time yet"),
    pytest.param(BEGIN, BEGIN + 1999, 1, id="rounded down"),
    pytest.param(BEGIN, BEGIN - 5000, 0, id="a clock that went back"),
    pytest.param(1, 1 << 60, (1 << 31) - 1, id="longer than an entry can say"),
]


@pytest.mark.parametrize(("begin", "stored", "seconds"), DIFFERENCES)
def test_time_differences_count_from_the_begin_of_the_file(begin, stored, seconds):
    assert time_difference(begin, stored) == seconds


def test_the_first_difference_is_taken_before_the_header_is_set():
    """A new file begins with the end of the previous one. Its first entry counts from there, the next ones from the
    first.
    """
    raw = np.zeros(GEOMETRY.file_size, np.uint8)
    empty_header = IndexHeader(BEGIN, BEGIN, 500, 500, 0, 1)
    header = put_entries(
        raw,
        empty_header,
        GEOMETRY,
        np.array([4, 7, 5], np.int32),
        np.array([600, 700, 700]),
        np.array([BEGIN + 7000] * 3),
    )
    entries = [index.decode_entry(raw.data, GEOMETRY.entry_position(n)) for n in (1, 2, 3)]
    assert [entry.time_diff for entry in entries] == [7, 0, 0]
    assert [entry.prev for entry in entries] == [0, 1, 0]
    assert header == IndexHeader(BEGIN + 7000, BEGIN + 7000, 600, 700, 2, 4)
    assert remaining_entries(header, GEOMETRY) == 8


def test_more_keys_than_free_entries_are_refused():
    raw = np.zeros(GEOMETRY.file_size, np.uint8)
    many = np.zeros(12, np.int32)
    with pytest.raises(ValueError, match="at most 11 keys"):
        put_entries(raw, IndexHeader(0, 0, 0, 0, 0, 1), GEOMETRY, many, many.astype(np.int64), many.astype(np.int64))


@settings(max_examples=80)
@given(
    st.binary(min_size=GEOMETRY.slots * 4, max_size=GEOMETRY.slots * 4),
    st.integers(0, 12),
    st.sampled_from([0, 1, BEGIN]),
    st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**50), st.sampled_from([0, BEGIN - 1, 1 << 60]))),
)
def test_single_bulk_and_both_twins_write_the_same_bytes(slots, count, begin, keys):
    columns.twin()
    header = IndexHeader(begin, 5, 6, 7, 2, count)
    keys = keys[: remaining_entries(header, GEOMETRY)]
    arrays = (
        np.array([key for key, _, _ in keys], np.int32),
        np.array([offset for _, offset, _ in keys], np.int64),
        np.array([stored for _, _, stored in keys], np.int64),
    )
    outputs = []
    for way in ("compiled", "plain", "one by one"):
        raw = np.zeros(GEOMETRY.file_size, np.uint8)
        raw[index.HEADER_SIZE : GEOMETRY.entry_position(0)] = np.frombuffer(slots, np.uint8)
        if way == "plain":
            os.environ["STORESCOPE_PLAIN"] = "1"
        try:
            new_header = header
            if way == "one by one":
                for key in keys:
                    new_header = put_entry(raw.data, new_header, GEOMETRY, *key)
            else:
                new_header = put_entries(raw, header, GEOMETRY, *arrays)
        finally:
            os.environ.pop("STORESCOPE_PLAIN", None)
        outputs.append((new_header, raw.tobytes()))
    assert outputs[0] == outputs[1] == outputs[2]
