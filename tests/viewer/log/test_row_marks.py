"""Marks of rows are kept outside of the store; what cannot be read counts as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewer.log.row_marks import RowMarks, marks_file, read, write

ALL = RowMarks(frozenset({0, 1 << 40}), frozenset({7}), (7, 1_700_000_000_000))


def test_they_come_back(tmp_path: Path) -> None:
    store = tmp_path / "store"
    file = marks_file(tmp_path / "config", store)
    assert read(file) == RowMarks()
    write(file, store, ALL)
    assert read(file) == ALL
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert file != marks_file(tmp_path / "config", tmp_path / "other")


def test_the_file_goes_with_the_last_mark(tmp_path: Path) -> None:
    file = marks_file(tmp_path, tmp_path / "store")
    write(file, tmp_path / "store", RowMarks())
    write(file, tmp_path / "store", ALL)
    write(file, tmp_path / "store", RowMarks())
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"marked": 7}', '{"marked": ["a", -5, true, 1.5], "reference": [4], "ignored": {}}']
)
def test_a_broken_file_holds_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, "utf-8")
    assert read(file) == RowMarks()
