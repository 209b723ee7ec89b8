"""Targets of writing commands: a new folder, an existing store, and refusals before anything changes."""

from __future__ import annotations

import argparse
import io

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.cli.output import Output
from engine.cli.writing import check_new_path, find_target, given_config, report_compilation
from engine.codec import compiled_cache
from engine.config import from_mapping
from engine.errors import NotAStore, StoreError, UsageError


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for _ in range(6):
        store.put()
    return store.write(tmp_path / "store")


def test_an_empty_folder_becomes_a_new_store(tmp_path):
    target = find_target(str(tmp_path / "new"), None)
    assert (target.exists, target.recovery) == (False, None)
    assert list(target.planned()) == [f"{tmp_path / 'new'} has no commit log yet: a new one is created."]


def test_an_existing_store_keeps_the_sizes_of_its_files(root):
    target = find_target(str(root), None)
    assert (target.exists, target.config.mapped_file_size_commit_log) == (True, LOG_SIZE)
    opening_line, end_line = target.planned()
    assert opening_line.endswith("is opened as a broker opens it after a clean stop:")
    assert f"its log ends at {target.recovery.end_offset:,}" in end_line


def test_a_part_of_a_store_and_other_folders_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="found a part of one"):
        find_target(str(root / "commitlog"), None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text").write_text("mine")
    with pytest.raises(NotAStore):
        find_target(str(tmp_path / "other"), None)


def test_a_copy_needs_an_empty_folder_outside_the_store(root, tmp_path):
    assert check_new_path(str(tmp_path / "copy"), root) == tmp_path / "copy"
    with pytest.raises(UsageError, match="outside the store"):
        check_new_path(str(root / "copy"), root)
    with pytest.raises(UsageError, match="new or empty"):
        check_new_path(str(root), tmp_path / "elsewhere")


def test_unknown_configuration_keys_are_named(tmp_path, capsys):
    file = tmp_path / "broker.conf"
    file.write_text("mappedFileSizeCommitLog=8192\nnobodysKey=1\n")
    out = Output(as_json=False, stream=io.StringIO())
    assert (
        given_config(
            argparse.Namespace(config=str(file), paths_from_config=False, ignore_config_paths=False), out
        ).mapped_file_size_commit_log
        == 8192
    )
    assert "no broker knows nobodysKey" in capsys.readouterr().err
    assert given_config(argparse.Namespace(config=None), out) is None


@pytest.mark.golden
def test_a_store_whose_opening_would_leave_messages_in_no_queue_is_refused(golden):
    """A put opened a store of 17 log files without queues like RocketMQ 5.5 does. Afterwards 1,313 messages were in no
    queue, without a warning.
    """
    store = golden("queues-gone-past-ten-files-5.5.1")
    with pytest.raises(StoreError, match=r"nothing was changed: 1,313 messages of 11 queues .* storescope dispatch"):
        find_target(str(store), None)
    config = from_mapping({"commitLogRecoverMaxNum": 17})[0]
    assert find_target(str(store), config).recovery.units == 3099
    assert find_target(str(store), None, "5.3").recovery.units == 3099


def test_the_first_start_reports_compiling_and_its_duration(monkeypatch, capsys):
    monkeypatch.setattr(compiled_cache, "on_first_compilation", None)
    report_compilation(Output(as_json=False))
    assert capsys.readouterr().err == ""
    compiled_cache.note_compilation()
    words = capsys.readouterr().err
    assert "is compiled once, which takes about 5 to 12 seconds" in words
    assert words.count("\n") == 1
