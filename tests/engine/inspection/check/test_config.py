"""A broker's configuration held against the files of a store (CF05)."""

from __future__ import annotations

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.config import from_mapping
from engine.inspection import open_store
from engine.inspection.check.config import findings


@pytest.fixture
def root(tmp_path):
    made = HandmadeStore()
    for number in range(30):
        made.put(keys=f"K{number}")
    return made.write(tmp_path / "s")


def told(root, **given):
    config, _ = from_mapping({name: str(value) for name, value in given.items()})
    with open_store(root) as store:
        return [(one.severity, one.evidence["keys"], one.message) for one in findings(store, config)]


def test_a_length_that_was_given_and_is_not_the_files_is_an_error_and_says_what_fits(root):
    found = {keys[0]: (severity, words) for severity, keys, words in told(root, mappedFileSizeCommitLog=8192)}
    severity, words = found["mappedFileSizeCommitLog"]
    assert severity == "error"
    assert words.endswith("means files of 8,192 bytes, the store's have 4,096; mappedFileSizeCommitLog=4096 fits")


def test_a_default_that_nobody_wrote_down_is_a_note(root):
    assert {severity for severity, _, _ in told(root)} == {"note"}


def test_a_path_of_another_machine_is_a_note_and_the_own_none(root):
    paths = [one for one in told(root, storePathRootDir=root.parent / "other") if one[1] == ["storePathRootDir"]]
    assert [severity for severity, _, _ in paths] == ["note"]
    assert not [one for one in told(root, storePathRootDir=root) if one[1] == ["storePathRootDir"]]


def test_the_lengths_of_the_files_are_right(root):
    keys = [one[1][0] for one in told(root, mappedFileSizeCommitLog=LOG_SIZE, mappedFileSizeConsumeQueue=400)]
    assert "mappedFileSizeCommitLog" not in keys
    assert "mappedFileSizeConsumeQueue" not in keys
