"""Folders are synced, and taken away with all that they hold."""

from __future__ import annotations

import pytest

from engine import folders


def test_a_folder_goes_with_what_it_holds(tmp_path):
    (tmp_path / "made" / "deep").mkdir(parents=True)
    (tmp_path / "made" / "deep" / "file").write_bytes(b"x")
    folders.take_away(tmp_path / "made")
    assert not (tmp_path / "made").exists()
    folders.take_away(tmp_path / "made")


def test_who_is_still_writing_into_it_does_not_keep_it(tmp_path, monkeypatch):
    made, pauses = tmp_path / "made", []
    made.mkdir()
    real = folders.shutil.rmtree
    monkeypatch.setattr(folders.shutil, "rmtree", lambda *a, **k: real(*a, **k) if len(pauses) > 1 else None)
    monkeypatch.setattr(folders.time, "sleep", pauses.append)
    folders.take_away(made)
    assert (made.exists(), len(pauses)) == (False, 2)


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path):
    folders.sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        folders.sync_folder(tmp_path / "nowhere")
