"""Saving what a command changes: by links, by shared blocks, by copies, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import golden_stores
import pytest
from undone_stores import kept_in, made, same, undone

from engine.cli.main import main
from engine.mapped.backup import BackupWriter

PUT = ["--topic", "Orders", "--body", "one more"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


def test_a_full_disk_while_it_keeps_changes_nothing(tmp_path, capsys):
    real = BackupWriter._write
    for number in range(1, 60):
        store = made(tmp_path / f"store{number}")
        before, count = golden_stores.fingerprint(store), 0

        def full(keeper, entry, number=number):
            nonlocal count
            count += 1
            if count >= number and "file" in entry:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(keeper.folder))
            real(keeper, entry)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(BackupWriter, "_write", full)
            code = main(["recover", str(store), "--apply", "--yes"])
        if code == 0:
            assert number > 5
            return
        assert code == 3
        assert "No space left" in capsys.readouterr().err
        assert same(store, before) == [], number
        assert kept_in(tmp_path) == []
        shutil.rmtree(store)
    raise AssertionError("more is kept than was tried")


def test_where_nothing_can_be_kept_nothing_is_changed(store, tmp_path, capsys, monkeypatch):
    before = golden_stores.fingerprint(store)

    def forbidden(real: Path) -> Path:
        raise PermissionError(errno.EACCES, "Permission denied", str(real.parent))

    monkeypatch.setattr("engine.mapped.backup._new_folder", forbidden)
    for command in (["recover", "--apply"], ["dispatch"], ["put", *PUT]):
        assert main([command[0], str(store), *command[1:], "--yes"]) == 3
        said = capsys.readouterr().err
        assert "cannot be kept here" in said
        assert "--no-backup" in said
        assert str(tmp_path) in said
        assert same(store, before) == []


def test_where_there_are_no_links_files_are_copied(store, tmp_path, monkeypatch):
    """A log on another disk, or a folder that was brought to one."""
    before = golden_stores.fingerprint(store)

    def other_disk(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "link", other_disk)
        assert main(["recover", str(store), "--apply", "--yes"]) == 0
        undone(store, before)
    shutil.rmtree(kept_in(tmp_path)[0])
    assert main(["recover", str(store), "--apply", "--yes"]) == 0
    monkeypatch.setattr(os, "link", other_disk)
    undone(store, before)


@pytest.fixture
def store_of_kept_folder(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


def refuses(store: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = golden_stores.fingerprint(store)
    assert main(["recover", str(store), "--undo", str(folder), "--yes"]) == 3
    assert same(store, before) == []
    return capsys.readouterr().err


def test_what_is_no_folder_of_ours_is_refused(store_of_kept_folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert "no journal" in refuses(store_of_kept_folder, tmp_path / "empty", capsys)
    assert "no journal" in refuses(store_of_kept_folder, tmp_path / "absent", capsys)
