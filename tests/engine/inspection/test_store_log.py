"""The commit log of an open store: files that a broker replaces, and folders of a multi-path log."""

from __future__ import annotations

import shutil

import pytest
from handmade_stores import healthy

from engine.config import MessageStoreConfig, from_mapping
from engine.inspection import open_store
from engine.message_store import Message, MessageStore

CONFIG = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)


@pytest.mark.parametrize("rename", [True, False])
def test_a_recreated_log_file_is_read_again(tmp_path, rename):
    for name in (b"old", b"new"):
        with MessageStore(tmp_path / name.decode(), CONFIG) as store:
            for number in range(3):
                store.put_message(Message("T", b"%s %d" % (name, number)))
    first_file = f"commitlog/{0:020d}"
    with open_store(tmp_path / "old") as opened:
        assert [item.body for item in opened.units() if hasattr(item, "body")][0] == b"old 0"
        if rename:
            (tmp_path / "new" / first_file).replace(tmp_path / "old" / first_file)
        else:
            (tmp_path / "old" / first_file).unlink()
            shutil.copy(tmp_path / "new" / first_file, tmp_path / "old" / first_file)
        assert opened.refresh()
        assert [item.body for item in opened.units() if hasattr(item, "body")] == [b"new 0", b"new 1", b"new 2"]


def test_a_configured_folder_that_is_not_there_is_named(tmp_path):
    root = healthy(5).write(tmp_path / "store")
    paths = f"{root / 'commitlog'},{root / 'second'}"
    with open_store(root, from_mapping({"storePathCommitLog": paths})[0]) as store:
        assert store.commit_log.folders == (root / "commitlog",)
        assert [note for note in store.notes if "second" in note] == [
            f"storePathCommitLog names {root / 'second'}, which is not here"
        ]
