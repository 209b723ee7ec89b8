"""A change that was stopped is found in a store here, on another machine, and in its capsule."""

from __future__ import annotations

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from ssh_stand_in import install_stand_in, on_machine

from engine.cli.main import main
from engine.inspection import open_store
from engine.inspection.interrupted_change import find_interruption
from engine.mapped.backup import begin_unsaved_change


@pytest.fixture
def interrupted(tmp_path):
    handmade = healthy()
    store = handmade.write(tmp_path / "stores" / "store")
    BROKEN["AB02"](store, handmade)
    return store


def changes(tmp_path, monkeypatch, store):
    """Return what is found in the store here, on another machine, and in a capsule that was made of the latter."""
    install_stand_in(tmp_path, monkeypatch)
    capsule = tmp_path / "capsule" / store.name
    capsule.parent.mkdir()
    assert main(["capsule", str(on_machine(store)), "-o", str(capsule), "--quiet"]) == 0
    found = []
    for path in (store, on_machine(store), capsule):
        with open_store(path) as snapshot:
            found.append(find_interruption(snapshot))
    return found


def test_a_change_with_a_backup(interrupted, tmp_path, monkeypatch):
    here, there, in_capsule = changes(tmp_path, monkeypatch, interrupted)
    assert here is not None
    assert there.command == in_capsule.command == here.command
    assert there.folder == str(on_machine(here.folder))


def test_a_change_without_a_backup(tmp_path, monkeypatch):
    store = healthy().write(tmp_path / "store")
    begin_unsaved_change(store, "repair")
    here, there, in_capsule = changes(tmp_path, monkeypatch, store)
    assert here == there == in_capsule
    assert here.command == "repair"


def test_a_store_that_no_command_changes(tmp_path, monkeypatch):
    assert changes(tmp_path, monkeypatch, healthy().write(tmp_path / "store")) == [None] * 3
