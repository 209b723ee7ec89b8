"""``positions``: how far the store was written, flushed, dispatched, each with where that is known from."""

from __future__ import annotations


def test_a_store_that_was_closed_is_everywhere_at_its_end(asked):
    (found,) = asked("positions")
    assert found["min"]["offset"] == 0
    for name in ("wrote", "committed", "flushed", "confirm"):
        assert found[name]["offset"] == asked.made.end
        assert found[name]["how"], "where it is known from is said"
