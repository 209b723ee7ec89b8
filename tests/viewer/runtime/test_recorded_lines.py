"""A recording grows line by line, and a truncated line is ignored."""

from __future__ import annotations

import pytest

from viewer.runtime.recorded_lines import RecordedLines, object_of


def test_lines_are_appended_in_order(tmp_path) -> None:
    file = tmp_path / "looks.jsonl"
    recorded = RecordedLines(file)
    recorded.keep('{"at": 1}\n', '{"at": 2}\n')
    recorded.write()
    recorded.keep('{"at": "三"}\n')
    recorded.write()
    recorded.write()
    assert file.read_text("utf-8") == '{"at": 1}\n{"at": 2}\n{"at": "三"}\n'
    assert recorded.bytes == file.stat().st_size


def test_an_unwritable_file_is_reported(tmp_path) -> None:
    recorded = RecordedLines(tmp_path / "nowhere" / "looks.jsonl")
    recorded.keep("{}\n")
    with pytest.raises(FileNotFoundError):
        recorded.write()
    assert recorded.bytes == 0


@pytest.mark.parametrize(("line", "expected"), [('{"at": 1}\n', {"at": 1}), ('{"at": ', {}), ("", {}), ("[1]", {})])
def test_a_line_is_an_object_or_nothing(line: str, expected: dict[str, int]) -> None:
    assert object_of(line) == expected
