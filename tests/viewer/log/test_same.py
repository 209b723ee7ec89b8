"""Next of the same: which filter finds what belongs together with a unit, and what is said where there is nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.query import parse
from viewer.log.same import WHATS, same_term


def unit(**changes):
    values = {"topic": "Orders", "queue_id": 3, "keys": [], "unique_key": None, "sys_flag": 0, "offset": 500,
              "prepared_transaction_offset": 0, "properties": {}}  # fmt: skip
    return SimpleNamespace(**values | changes)


def test_a_queue_is_its_topic_and_number():
    assert same_term("queue", unit()) == 'topic = "Orders" and queueId = 3'


def test_any_of_several_keys_will_do_and_else_the_unique_one():
    assert same_term("key", unit(keys=["a", "b"], unique_key="U")) == 'keys = "a" or keys = "b"'
    assert same_term("key", unit(unique_key="U")) == 'uniqueKey = "U"'
    assert same_term("key", unit()) is None


def test_units_of_a_transaction_point_at_the_half_message_and_share_its_key():
    half = unit(offset=500, properties={"TRAN_MSG": "true"}, unique_key="U")
    end = unit(offset=900, prepared_transaction_offset=500, unique_key="U")
    assert same_term("transaction", half) == same_term("transaction", end)
    assert "500" in same_term("transaction", end)
    assert same_term("transaction", unit()) is None


@pytest.mark.parametrize("what", WHATS)
def test_every_filter_can_be_read(what):
    parse(same_term(what, unit(keys=['"quoted"'], unique_key="U", properties={"TRAN_MSG": "true"})))
