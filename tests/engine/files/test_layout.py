"""Names of files and folders."""

from __future__ import annotations

import pytest

from engine.files.layout import is_folder_name, parse_file_name, queue_file_name

FOLDERS = [
    *(pytest.param(name, True, id=name) for name in ("Orders", "%RETRY%g", "a|b", "...", "仓库", "with blank")),
    pytest.param("x" * 255, True, id="longest"),
    pytest.param("x" * 256, False, id="too long"),
    pytest.param("仓" * 86, False, id="too many bytes"),
    pytest.param("", False, id="empty"),
    pytest.param(".", False, id="the folder itself"),
    pytest.param("..", False, id="the folder above"),
    pytest.param("../../etc", False, id="a way out"),
    pytest.param("a/b", False, id="two folders"),
    pytest.param("Ord\0\0\0", False, id="torn in the middle"),
    pytest.param("\ud800", False, id="half a character"),
]


@pytest.mark.parametrize(("topic", "expected"), FOLDERS)
def test_a_topic_may_be_a_folder(topic, expected):
    assert is_folder_name(topic) == expected


@pytest.mark.parametrize("start", [0, 1 << 30, (1 << 63) - 1])
def test_a_file_is_named_by_its_start(start):
    name = queue_file_name(start)
    assert len(name) == 20
    assert parse_file_name(name) == start
