"""Stretches of a log that are no unit: each with its place, the first ones by themselves, the others counted."""

from __future__ import annotations

from made_stores import healthy

from engine.inspection import open_store
from engine.inspection.unreadable import Unreadable, UnreadableSpans, unreadable_spans


def test_a_whole_log_has_none(tmp_path):
    with open_store(healthy(60).write(tmp_path / "store")) as store:
        assert unreadable_spans(store.log, 5) == UnreadableSpans()


def test_each_torn_unit_is_a_stretch(tmp_path):
    made = healthy(60)
    torn = [made.units[at] for at in (5, 20, 40)]
    for unit in torn:
        made.log[unit.offset : unit.offset + unit.size] = b"\xff" * unit.size
    done: list[int] = []
    with open_store(made.write(tmp_path / "store")) as store:
        found = unreadable_spans(store.log, 2, done.append)
    assert [(one.offset, one.size) for one in found.first] == [(unit.offset, unit.size) for unit in torn[:2]]
    assert all(one.reason for one in found.first)
    assert (found.more, found.more_bytes, found.more_from) == (1, torn[2].size, torn[2].offset)
    assert done == sorted(done)
    assert done


def test_those_that_are_too_many_are_counted_from_the_first_of_them():
    found = UnreadableSpans()
    for offset in (10, 20, 30):
        found.take(Unreadable(offset, 3, "torn"), 1)
    assert ([one.offset for one in found.first], found.more, found.more_bytes, found.more_from) == ([10], 2, 6, 20)
