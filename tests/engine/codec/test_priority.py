"""Priorities of messages."""

from __future__ import annotations

import pytest

from engine.codec.priority import counting_priority, is_priority_message, priority_of

NAME = "_SYS_MSG_PRIORITY_"


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("0", 0),
        ("9", 9),
        ("+3", 3),
        ("2147483647", 2**31 - 1),
        ("2147483648", -1),
        ("-1", -1),
        (" 3", -1),
        ("", -1),
    ],
)
def test_a_priority_is_a_number_of_32_bits(text: str, priority: int) -> None:
    assert priority_of({NAME: text}) == priority


def test_a_message_without_a_priority() -> None:
    assert priority_of({}) == -1


@pytest.mark.parametrize(
    "other",
    [
        {"TRAN_MSG": "true"},
        {"DELAY": "1"},
        {"TIMER_DELIVER_MS": "1"},
        {"TIMER_DELAY_SEC": "1"},
        {"TIMER_DELAY_MS": "1"},
        {"__SHARDINGKEY": "a"},
    ],
)
def test_a_message_of_another_kind_is_no_priority_message(other: dict[str, str]) -> None:
    assert is_priority_message({NAME: "3", "TRAN_MSG": "false"})
    assert not is_priority_message({NAME: "3", **other})
    assert counting_priority({NAME: "3"}) == 3
    assert counting_priority({NAME: "3", **other}) is None
    assert counting_priority(other) is None
