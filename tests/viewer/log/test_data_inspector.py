"""The bytes under the cursor as every type, beside them or below the tree."""

from __future__ import annotations

import pytest

from viewer.log.data_inspector import DataInspector


@pytest.fixture
def inspector(shown):
    return shown(DataInspector())


def test_bytes_are_read_as_every_type_and_the_chosen_row_stays(inspector):
    inspector.show_bytes(1234, bytes([0, 0, 0, 0, 0, 0, 0, 42]), b"")
    assert inspector.head.note.text() == "@ 1,234"
    assert inspector.table.total_rows() > 4
    inspector.table.go_to(2)
    row_before = inspector.table.currentIndex().row()
    inspector.show_bytes(1235, bytes(8), b"")
    assert inspector.table.currentIndex().row() == row_before


def test_without_bytes_it_is_empty(inspector):
    inspector.show_bytes(1, bytes(8), b"")
    inspector.clear()
    assert (inspector.head.note.text(), inspector.table.total_rows()) == ("", 0)


def test_beside_the_bytes_it_is_as_wide_as_the_longest_number(inspector):
    inspector.set_beside_bytes(True)
    assert inspector.minimumWidth() == inspector.maximumWidth() == inspector.full_width()
    inspector.set_beside_bytes(False)
    assert inspector.minimumWidth() == 0
