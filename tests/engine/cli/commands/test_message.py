"""``message``: one message by its id, its key, or its queue offset."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("by", ["Orders/0/1", "U00002", "K2", "7F00000100002A9F000000000000010A"])
def test_a_message_is_found_by_id_key_or_queue_offset(storescope, by):
    (record,) = storescope("message", by)
    assert (record["physicalOffset"], record["uniqueKey"]) == (storescope.store.units[2].offset, "U00002")


def test_a_missing_message_exits_with_1(storescope):
    assert storescope("message", "Orders/0/99", status=1) == []
