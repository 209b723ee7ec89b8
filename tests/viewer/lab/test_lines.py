"""The tail of a lab store's log as a line: what is not safe is seen however long the log is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from viewer.lab.lines import now_line, sized

GIB = 1 << 30


def line(**places: int) -> Any:
    positions = {"min": 0, "flushed": 0, "committed": 0, "wrote": 0}
    return now_line(cast("Any", SimpleNamespace(**positions | places)))


def test_the_parts_are_the_whole_line_and_each_that_is_there_is_seen():
    parts, flags = line(flushed=40 * GIB, committed=40 * GIB + 10, wrote=40 * GIB + 20)
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert all(part.share >= 0.02 for part in parts)
    assert [flag.words for flag in flags] == ["flushed", "wrote"]


def test_where_all_is_safe_only_one_flag_stands():
    parts, flags = line(flushed=500, committed=500, wrote=500)
    assert [part.share > 0 for part in parts] == [True, False, False, True]
    assert [flag.words for flag in flags] == ["flushed"]


def test_an_empty_log_is_room_only():
    parts, _flags = line()
    assert [part.share for part in parts] == [0, 0, 0, 1]


def test_a_store_that_is_not_in_the_window_has_no_places_to_go_to():
    positions = cast("Any", SimpleNamespace(min=0, flushed=5, committed=5, wrote=9))
    _parts, flags = now_line(positions, open_here=False)
    assert [flag.offset for flag in flags] == [None, None]
    assert (sized("pool", 0), sized("pool", 1 << 20)) == ("", "pool 1.00 MiB")
