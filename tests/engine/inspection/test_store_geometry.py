"""Sizes of files: configured, or the commonest length, and always with their source."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.config import from_mapping
from engine.inspection import open_store


@pytest.mark.parametrize(
    ("options", "source"),
    [({}, "the commonest length of 1 file"), ({"mappedFileSizeCommitLog": "4096"}, "the configuration says so")],
)
def test_the_size_of_the_logs_files_has_a_source(options, source, tmp_path):
    root = healthy(3).write(tmp_path / "store")
    with open_store(root, from_mapping(options)[0]) as store:
        assert store.geometry.sources["mappedFileSizeCommitLog"] == source
        file_size = min((root / "commitlog").iterdir()).stat().st_size
        assert store.geometry.commit_log_file_size == (4096 if options else file_size)


def test_a_store_without_queues_and_index_says_so(tmp_path):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "config").mkdir()
    with open_store(tmp_path) as store:
        assert (store.geometry.consume_queue_file_size, store.geometry.index) == (0, None)
        assert store.geometry.sources["mappedFileSizeConsumeQueue"] == "there are no files"
        assert store.geometry.sources["maxHashSlotNum"] == "there are no index files"
