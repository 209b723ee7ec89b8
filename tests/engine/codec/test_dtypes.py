"""The bulk types have the sizes and field positions of the single-unit codecs."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import dtypes

TYPES = [
    pytest.param(dtypes.CQ_UNIT, ">qiq", 20, id="consume queue"),
    pytest.param(dtypes.BATCH_CQ_UNIT, ">qiqqqhii", 46, id="batch queue"),
    pytest.param(dtypes.INDEX_SLOT, ">i", 4, id="index slot"),
    pytest.param(dtypes.INDEX_ENTRY, ">iqii", 20, id="index entry"),
    pytest.param(dtypes.TIMER_SLOT, ">qqqii", 32, id="slot of the timing wheel"),
    pytest.param(dtypes.TIMER_LOG_UNIT, ">iqiqiqiiq", 52, id="timer log"),
]


@pytest.mark.parametrize(("kind", "form", "size"), TYPES)
def test_sizes(kind, form, size):
    assert kind.itemsize == struct.calcsize(form) == size


@pytest.mark.parametrize(("kind", "form", "size"), TYPES)
@given(data=st.data())
def test_every_field_is_read_as_struct_reads_it(kind, form, size, data):
    raw = data.draw(st.binary(min_size=3 * size, max_size=3 * size))
    rows = np.frombuffer(raw, kind).tolist()
    assert [row if isinstance(row, tuple) else (row,) for row in rows] == list(struct.iter_unpack(form, raw))


@pytest.mark.parametrize(("kind", "form", "size"), TYPES)
def test_nothing_is_padded(kind, form, size):
    if kind.names:
        assert [kind.fields[name][1] for name in kind.names] == [
            struct.calcsize(">" + form[1 : 1 + number]) for number in range(len(kind.names))
        ]
