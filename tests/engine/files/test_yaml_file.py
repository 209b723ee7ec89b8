"""YAML as RocketMQ's files of accounts have it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CannotRead, UsageError
from engine.files.yaml_file import MAX_FILE_BYTES, parse, read_yaml


def test_maps_lists_and_texts_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tools.yml"
    file.write_text("# who asks\naccessKey: 'it #1'\nrows:\n- a: 1\n  b: [x, y]\n- a: 2 # the second\nnone: ~\n")
    rows = [{"a": "1", "b": ["x", "y"]}, {"a": "2"}]
    assert read_yaml(file) == {"accessKey": "it #1", "rows": rows, "none": ""}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tools.yml"
    with pytest.raises(CannotRead, match="No such file"):
        read_yaml(file)
    file.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="at most"):
        read_yaml(file)
    file.write_text("a: 1\nwhat is this")
    with pytest.raises(UsageError, match="line 2") as raised:
        read_yaml(file)
    assert raised.value.file == str(file)


@given(st.text(alphabet=" -:#'\"[]{}\nab=|,", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse(text), dict | list | str)
