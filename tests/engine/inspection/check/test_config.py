"""A broker's configuration compared with the files of a store (CF05)."""

from __future__ import annotations

import os

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore, healthy

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.check.config import findings


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for number in range(30):
        store.put(keys=f"K{number}")
    return store.write(tmp_path / "s")


def config_findings(root, **options):
    config, _ = from_mapping({name: str(value) for name, value in options.items()})
    with open_store(root) as store:
        return [(finding.severity, finding.evidence["keys"], finding.message) for finding in findings(store, config)]


def test_a_configured_length_that_differs_from_the_files_is_an_error(root):
    record = {
        keys[0]: (severity, words) for severity, keys, words in config_findings(root, mappedFileSizeCommitLog=8192)
    }
    severity, words = record["mappedFileSizeCommitLog"]
    assert severity == "error"
    assert words.endswith("means files of 8,192 bytes, the store's have 4,096; mappedFileSizeCommitLog=4096 fits")


def test_a_differing_default_is_a_note(root):
    assert {severity for severity, _, _ in config_findings(root)} == {"note"}


def test_queues_that_are_not_among_the_opened_ones_are_a_warning(root):
    options = {"rocksdbCQDoubleWriteEnable": "true", "combineCQPreferCQType": "RocksDB"}
    assert any(
        severity == "warn" and "combineCQPreferCQType=RocksDB names no queues" in words
        for severity, _, words in config_findings(root, **options)
    )


def test_a_path_of_another_machine_is_a_note_and_its_own_path_none(root):
    paths = [
        finding
        for finding in config_findings(root, storePathRootDir=root.parent / "other")
        if finding[1] == ["storePathRootDir"]
    ]
    assert [severity for severity, _, _ in paths] == ["note"]
    assert not [
        finding for finding in config_findings(root, storePathRootDir=root) if finding[1] == ["storePathRootDir"]
    ]


def test_the_lengths_of_the_files_are_right(root):
    keys = [
        item[1][0] for item in config_findings(root, mappedFileSizeCommitLog=LOG_SIZE, mappedFileSizeConsumeQueue=400)
    ]
    assert "mappedFileSizeCommitLog" not in keys
    assert "mappedFileSizeConsumeQueue" not in keys


def test_an_empty_index_file_is_no_error_of_the_check(tmp_path):
    """A file of the index had 0 bytes. check and repair ended with an error where the configuration was given."""
    store = healthy()
    root = store.write(tmp_path / "store")
    os.truncate(min((root / "index").iterdir()), 0)
    assert config_findings(root, mappedFileSizeCommitLog=LOG_SIZE)
