"""The result of a power loss: any subset of pages, torn between sectors, and the first names in order."""

from __future__ import annotations

import random

import pytest

from engine.mapped.power_loss import (
    PAGE,
    SECTOR,
    NameChange,
    PageFates,
    choose_survival_chance,
    lose_pages,
    lose_rewritten,
    surviving_changes,
)

OLD, NEW = bytes(3 * PAGE), b"\1" * PAGE + bytes(PAGE) + b"\2" * PAGE


@pytest.mark.parametrize(("keep", "remaining"), [(0.0, OLD), (1.0, None)])
def test_no_page_or_every_page_arrives(keep, remaining):
    fates = PageFates()
    buffer = bytearray(OLD)
    lose_pages(buffer, NEW, random.Random(1), keep, fates)
    assert fates.dirty == 2  # the page in the middle is unchanged
    if remaining is not None:
        assert (buffer, fates.survived, fates.torn) == (remaining, 0, 0)
    else:
        assert fates.survived == 2


def test_a_page_is_torn_between_sectors_only():
    torn = 0
    for seed in range(60):
        buffer, fates = bytearray(OLD), PageFates()
        lose_pages(buffer, NEW, random.Random(seed), 1.0, fates)
        torn += fates.torn
        sectors = {bytes(buffer[position : position + SECTOR]) for position in range(0, len(buffer), SECTOR)}
        assert sectors <= {bytes(SECTOR), b"\1" * SECTOR, b"\2" * SECTOR}
    assert torn > 0


def test_names_arrive_in_order_and_a_rename_completely():
    pending = [NameChange("a", "A", 1), NameChange("b", None, 2), NameChange("c", "A", 2), NameChange("d", "D", 3)]
    counts = set()
    for seed in range(80):
        remaining_surviving = surviving_changes(pending, random.Random(seed), 0.5)
        assert remaining_surviving == pending[: len(remaining_surviving)]
        counts.add(len(remaining_surviving))
    assert counts == {0, 1, 3, 4}
    assert surviving_changes(pending, random.Random(1), 0.0) == []
    assert surviving_changes(pending, random.Random(1), 1.0) == pending
    names = {"b": "A"}
    for change in pending:
        change.apply(names)
    assert names == {"a": "A", "c": "A", "d": "D"}


def test_a_rewritten_file_is_the_old_one_or_a_beginning_of_the_new():
    for seed in range(40):
        results = lose_rewritten(b"newer text", b"old", random.Random(seed), 0.5)
        assert results == b"old" or b"newer text".startswith(results)
    assert 0 <= choose_survival_chance(random.Random(7)) <= 1
