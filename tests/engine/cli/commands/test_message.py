"""``message``: one message by its id, its key, or its place in a queue."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("by", ["Orders/0/1", "U00002", "K2", "7F00000100002A9F000000000000010A"])
def test_it_is_found_by_any_of_its_names(asked, by):
    (record,) = asked("message", by)
    assert (record["physicalOffset"], record["uniqueKey"]) == (asked.made.units[2].offset, "U00002")


def test_nothing_ends_with_1(asked):
    assert asked("message", "Orders/0/99", status=1) == []
