"""Making, opening and deleting lab stores: only in their own directories, with clear errors."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import unprivileged_user

from engine.codec.encode import Message
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, StoreError, StoreLocked, UsageError
from engine.lab.lab_store import MARKER, LabStore, NotALab, delete_lab, is_lab, remove_part
from engine.lab.presets import PRESETS

TINY = PRESETS[3].config


def test_a_lab_store_is_opened_with_its_original_settings(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", TINY, release="4.9", disk_bytes=1 << 30)
    lab.store.put_message(Message("T", b"tea"))
    lab.close()
    assert is_lab(tmp_path / "lab")
    repeated = LabStore.open(tmp_path / "lab")
    assert (repeated.marker.release, repeated.marker.disk_bytes) == ("4.9", 1 << 30)
    assert repeated.store.config.mapped_file_size_commit_log == 1 << 20
    assert repeated.store.max_offset_in_queue("T", 0) == 1
    assert repeated.store.recovery_plan.exit == "normal"
    repeated.close()


def test_a_killed_lab_process_loses_nothing_that_was_put(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", TINY)
    lab.store.put_message(Message("T", b"tea"))
    lab.abandon()
    repeated = LabStore.open(tmp_path / "lab")
    assert repeated.store.recovery_plan.exit == "abnormal"
    assert repeated.store.positions().wrote == lab.store.positions().wrote
    repeated.close()


@pytest.mark.parametrize("content", ["folder", "file"])
def test_a_nonempty_place_is_refused(tmp_path: Path, content: str) -> None:
    place = tmp_path / "mine"
    if content == "folder":
        place.mkdir()
        (place / "notes.txt").write_text("mine")
    else:
        place.write_text("mine")
    with pytest.raises(UsageError, match="new or empty folder, found something there"):
        LabStore.create(place, TINY)
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("key", ["store_path_commit_log", "store_path_root_dir", "read_only_commit_log_store_paths"])
def test_a_configuration_that_leads_out_of_the_directory_is_refused(tmp_path: Path, key: str) -> None:
    config = replace(MessageStoreConfig(), **{key: str(tmp_path / "elsewhere")})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a lab store keeps the default"):
        LabStore.create(tmp_path / "lab", config)
    assert not (tmp_path / "lab").exists()


def test_missing_rights_are_named() -> None:
    def create() -> str:
        try:
            LabStore.create(folder / "lab", TINY)
        except CannotRead as error:
            return str(error)
        return "made"

    with unprivileged_user.open_folder() as folder:
        folder.chmod(0o555)
        output = unprivileged_user.as_nobody(create)
        folder.chmod(0o755)
    assert output == f"{folder / 'lab'}: the directory cannot be made: Permission denied"


def test_a_lab_cannot_be_opened_twice(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", TINY)
    with pytest.raises(StoreLocked, match="this process has the store open"):
        LabStore.open(tmp_path / "lab")
    with pytest.raises(StoreLocked):
        delete_lab(tmp_path / "lab")
    lab.store.put_message(Message("T", b"unharmed"))
    lab.close()


def test_deleting_removes_only_the_labs_own_parts(tmp_path: Path) -> None:
    LabStore.create(tmp_path / "lab", TINY).close()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("mine")
    (tmp_path / "lab/notes.txt").write_text("mine too")
    (tmp_path / "lab/before").symlink_to(tmp_path / "precious")
    delete_lab(tmp_path / "lab")
    assert list((tmp_path / "lab").iterdir()) == [tmp_path / "lab/notes.txt"]
    assert (tmp_path / "precious/file").read_text() == "mine"
    with pytest.raises(NotALab):
        delete_lab(tmp_path / "lab")


def test_without_its_marker_nothing_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/file").write_text("mine")
    for text in (
        None,
        "",
        "[]",
        '{"lab": 2, "config": {}}',
        '{"lab": 1}',
        '{"lab": 1, "config": {"storePathCommitLog": "/"}}',
    ):
        if text is not None:
            (tmp_path / MARKER).write_text(text)
        with pytest.raises(NotALab):
            delete_lab(tmp_path)
        with pytest.raises(NotALab):
            remove_part(tmp_path, "store")
    assert (tmp_path / "store/file").read_text() == "mine"


def test_only_named_parts_are_removed(tmp_path: Path) -> None:
    LabStore.create(tmp_path / "lab", TINY).close()
    with pytest.raises(UsageError, match="expected one of store, durable"):
        remove_part(tmp_path / "lab", "../lab")


def test_a_process_killed_during_a_power_cut_loses_no_further_messages(tmp_path: Path) -> None:
    LabStore.create(tmp_path / "lab", TINY).close()
    (tmp_path / "lab/store").rename(tmp_path / "lab/before")
    LabStore.open(tmp_path / "lab").close()
    assert (tmp_path / "lab/store/checkpoint").exists()


@pytest.mark.parametrize("linked", ["store", "store/commitlog"])
def test_a_link_to_another_store_is_not_followed(tmp_path: Path, linked: str) -> None:
    """The store of this lab directory is a link to a real store. Opening it would write there."""
    LabStore.create(tmp_path / "lab", TINY).close()
    (tmp_path / "lab" / linked).rename(tmp_path / "precious")
    (tmp_path / "lab" / linked).symlink_to(tmp_path / "precious")
    names_before = sorted(path.name for path in (tmp_path / "precious").rglob("*"))
    for action in (LabStore.open, delete_lab):
        with pytest.raises(NotALab, match="leads out of the lab store"):
            action(tmp_path / "lab")
    assert sorted(path.name for path in (tmp_path / "precious").rglob("*")) == names_before


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads_before = set(threading.enumerate())

    def full(path: Path, size: int) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("engine.mapped.disk.make_file", full)
    with pytest.raises((StoreError, OSError), match=r"no new file of the commit log can be made|No space left"):
        LabStore.create(tmp_path / "lab", TINY)
    assert set(threading.enumerate()) <= threads_before, "no service keeps running"
