"""Notes of a plan on what an operator should know besides."""

from __future__ import annotations

import pytest
from handmade_stores import healthy
from recovery_plans import change_checkpoint, planned


@pytest.mark.parametrize(
    ("position", "value", "note"),
    [
        (32, 1 << 20, "The checkpoint's confirm offset 1,048,576 is after the end of the log"),
        (0, -5, "The checkpoint holds numbers that no broker writes: "),
    ],
)
def test_odd_numbers_of_the_checkpoint_are_noted(tmp_path, position, value, note):
    healthy(80).write(tmp_path)
    change_checkpoint(tmp_path, position, value)
    notes = planned(tmp_path, "5.3").notes
    assert [text for text in notes if text.startswith(note)]
