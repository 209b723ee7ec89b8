"""Somebody's own store, opened for writing from the window: what its recovery takes away can be brought back."""

from __future__ import annotations

import shutil
from pathlib import Path

import golden_stores
import pytest
from made_stores import healthy

from engine.cli.main import main
from engine.codec.encode import Message
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.lab.own_store import OwnStore
from engine.lab.server import Lab
from engine.store.recovery.empty_log import LogIsEmpty


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return healthy().write(tmp_path / "store")


def config(root: Path):
    with open_store(root) as store:
        return derived_config(store)


def test_what_opening_changes_is_kept_and_all_of_it_comes_back(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    lab = Lab()
    opened = lab.open_store(root, settled, "5.3")
    assert opened.kept is not None
    assert opened.kept.parent == root.parent
    assert lab._open.put_message(Message("Orders", b"one more")).ok
    lab._open.delete_topics(["Orders"])
    assert not (root / "consumequeue" / "Orders").exists()
    lab.close()
    assert main(["recover", str(root), "--undo", str(opened.kept), "--yes"]) == 0
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_store_that_was_closed_well_needs_no_folder(root: Path) -> None:
    own = OwnStore(root, config(root), "5.3")
    assert own.kept is None
    own.close()
    assert list(root.parent.iterdir()) == [root]


def test_a_store_whose_log_is_gone_stays_as_it_is(root: Path) -> None:
    settled = config(root)
    shutil.rmtree(root / "commitlog")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    with pytest.raises(LogIsEmpty, match="is its disk mounted"):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_where_opening_fails_nothing_was_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = config(root)
    shutil.rmtree(root / "consumequeue" / "Payments")
    (root / "abort").write_text("4711")
    before = golden_stores.fingerprint(root)
    monkeypatch.setattr("engine.services.store_services.StoreServices.start", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        OwnStore(root, settled, "5.3")
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []
    assert list(root.parent.iterdir()) == [root]
