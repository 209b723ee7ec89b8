"""Queue entries return from their columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.capsule.numbers import BadColumns
from engine.capsule.queue_columns import decode, encode


@given(st.lists(st.binary(min_size=20, max_size=20), min_size=1, max_size=20))
def test_any_entries_return(entries):
    data = b"".join(entries)
    assert decode(encode(data), len(data)) == data


def test_cut_columns_are_refused():
    data = bytes(range(200))
    encoded = encode(data)
    for length in range(len(encoded)):
        with pytest.raises(BadColumns):
            decode(encoded[:length], len(data))
