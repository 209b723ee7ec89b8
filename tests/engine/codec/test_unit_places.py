"""Locate the units that an index leads to in the bytes of a mapped log. Pure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_queries import compiled, plain

from engine.codec.unit_places import Span, Units, place_units

FILE = 64


def unit(size, declared=None):
    return (size if declared is None else declared).to_bytes(4, "big", signed=True) + bytes(size - 4)


LOG = unit(10) + unit(20) + unit(12, -5) + unit(22, 23)  # the last one claims a byte more than the file has
LOG += unit(FILE)
LOG += unit(8) + b"\0\0\0"  # as far as may be read


@pytest.fixture(params=[plain, compiled])
def twin(request):
    with request.param():
        yield


def placed(*wanted, gone=()):
    """Units of each key's offsets, and the offsets that spans were asked for."""
    asked = []

    def span_at(offset):
        asked.append(offset)
        start = offset - offset % FILE
        view = memoryview(LOG)[start : start + FILE] if offset < len(LOG) and start not in gone else None
        return Span(start, start + FILE, view)

    ends = np.cumsum([len(mine) for mine in wanted], dtype=np.int64)
    return place_units(ends, np.array([offset for mine in wanted for offset in mine], np.int64), span_at), asked


@pytest.mark.usefixtures("twin")
def test_units_are_placed_span_by_span():
    units, asked = placed([0, 10, 64], [], [10], [10, 128])
    assert units == Units(
        [0, 10, 64, 10, 10, 128], [0, 10, 0, 10, 10, 0], [10, 30, 64, 30, 30, 8], [0, 0, 1, 0, 0, 2], [3, 3, 4, 6]
    )
    assert asked == [0, 64, 128]


@pytest.mark.usefixtures("twin")
def test_what_does_not_hold_its_own_size_is_no_unit():
    units, _ = placed([10, 30, 42], [136, 138], [128])
    assert (units.offsets, units.ends) == ([10, 128], [1, 1, 2])


@pytest.mark.usefixtures("twin")
def test_what_the_log_has_no_more_is_left_out():
    units, asked = placed([0, 10**9], [-(1 << 63), -1, (1 << 63) - 1], [3, 64], gone={0})
    assert (units.offsets, units.ends) == ([64], [0, 0, 1])
    assert asked == [0, 10**9, 64]


@pytest.mark.usefixtures("twin")
def test_a_log_of_many_files_is_lent_file_by_file():
    units, asked = placed([10**9 + FILE * n for n in range(40)], [64])
    assert (units.offsets, units.spans) == ([64], [40])
    assert len(asked) == 41
    assert placed() == (Units([], [], [], [], []), [])
    assert placed([])[0].ends == [0]


@given(st.lists(st.lists(st.integers(-3, 200), max_size=9), max_size=9))
def test_both_twins_place_alike(wanted):
    with compiled():
        quickly = placed(*wanted, gone={64})
    with plain():
        assert placed(*wanted, gone={64}) == quickly
