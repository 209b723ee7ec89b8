"""A folder for new files: proposed beside the store, new or empty, never inside the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewer.pane.target_folder import TargetBox, propose_target, target_fault
from viewer.widgets.stepwise import run_here


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "broker-a"
    (folder / "commitlog").mkdir(parents=True)
    return folder


@pytest.fixture
def box(qtbot, themed_app, store):
    calls: list[Path] = []
    target_box = TargetBox(None, "Folder for the copy", "Try on a copy", store, run_here, calls.append)
    target_box.taken = calls
    qtbot.addWidget(target_box)
    return target_box


def test_a_free_name_beside_the_store_is_proposed(store: Path) -> None:
    assert propose_target(store, "copy") == store.parent / "broker-a-copy"
    (store.parent / "broker-a-copy").mkdir()
    assert propose_target(store, "copy") == store.parent / "broker-a-copy-2"
    assert propose_target(store / "commitlog", "copy").parent == store.parent


def test_an_unwritable_folder_has_a_message(store: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert target_fault(tmp_path / "absent" / "too", store) == ""
    assert target_fault(tmp_path / "empty", store) == ""
    assert "is not empty" in target_fault(tmp_path / "full", store)
    assert "is a file" in target_fault(tmp_path / "file", store)
    assert "No folder can be made" in target_fault(tmp_path / "file" / "below", store)
    assert "Nothing is written into the store" in target_fault(store / "copy", store)


def test_an_absent_folder_is_accepted_and_a_full_one_is_not(box, store: Path) -> None:
    """The dialog requested a directory, "new or empty folder", but refused every name that did not exist."""
    box.propose("copy")
    assert box.field.text() == str(store.parent / "broker-a-copy")
    box.field.setText(str(store))
    box.take()
    assert "Nothing is written into the store" in box.fault.text()
    assert box.taken == []
    box.field.setText("  ")
    box.take()
    assert box.fault.text() == "A folder is needed."
    box.field.setText(str(store.parent / "new"))
    box.take()
    assert box.taken == [store.parent / "new"]
    assert not (store.parent / "new").exists(), "whoever writes makes it"


def test_the_users_text_is_not_overwritten(box) -> None:
    box.field.setText("/mine")
    box.propose("copy")
    assert box.field.text() == "/mine"
