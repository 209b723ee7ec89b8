"""The tail of a lab store's log as a line: unsafe bytes are visible however long the log is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from viewer.lab.lines import now_line, sized

GIB = 1 << 30


def line(**places: int) -> Any:
    positions = {"min": 0, "flushed": 0, "committed": 0, "wrote": 0}
    return now_line(cast("Any", SimpleNamespace(**positions | places)))


def test_the_parts_cover_the_line_and_each_one_is_visible():
    parts, flags = line(flushed=40 * GIB, committed=40 * GIB + 10, wrote=40 * GIB + 20)
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert all(part.share >= 0.02 for part in parts)
    assert [flag.words for flag in flags] == ["flushed", "wrote"]


def test_a_safe_log_has_only_one_flag():
    parts, flags = line(flushed=500, committed=500, wrote=500)
    assert [part.share > 0 for part in parts] == [True, False, False, True]
    assert [flag.words for flag in flags] == ["flushed"]


def test_an_empty_log_is_only_free_space():
    parts, _flags = line()
    assert [part.share for part in parts] == [0, 0, 0, 1]


def test_a_store_outside_the_window_has_no_links():
    positions = cast("Any", SimpleNamespace(min=0, flushed=5, committed=5, wrote=9))
    _parts, flags = now_line(positions, open_here=False)
    assert [flag.offset for flag in flags] == [None, None]
    assert (sized("pool", 0), sized("pool", 1 << 20)) == ("", "pool 1.00 MiB")
