"""Columns of bytes: the byte found under the pointer is the byte that is painted there."""

from __future__ import annotations

from itertools import pairwise

import pytest

from viewer.widgets.hex_painter import measure


@pytest.fixture
def metrics(qapp):
    return measure(1200, 1 << 40)


def test_every_cell_and_every_letter_is_found_again(metrics):
    for column in range(16):
        assert metrics.column_at(metrics.hex_x(column) + metrics.cell / 2) == (column, False)
        assert metrics.column_at(metrics.text_x(column) + metrics.letter / 2) == (column, True)
    assert metrics.column_at(0) is None
    assert metrics.column_at(metrics.right + 50) is None


def test_columns_do_not_overlap_and_large_offsets_have_room(qapp, metrics):
    edges = [metrics.hex_x(column) for column in range(16)]
    assert all(right - left >= metrics.cell for left, right in pairwise(edges))
    assert edges[-1] + metrics.cell < metrics.text
    assert measure(1200, 1 << 62).left > measure(1200, 1).left


def test_names_are_left_out_where_there_is_no_room(qapp, metrics):
    assert metrics.shows_names
    assert not measure(300, 1).shows_names
