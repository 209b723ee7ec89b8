"""A read error stays listed after the read that met it, and ends when the file is readable again."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import healthy

from engine.inspection.capsule_making import make_capsule
from engine.inspection.snapshot import open_store
from engine.mapped.reading import Unread
from viewer.look import assets
from viewer.runtime.unread import UnreadFiles, still_unread


@pytest.fixture
def ledger(themed_app: object) -> UnreadFiles:
    return UnreadFiles(Path("/a/store"))


A = Unread("/a/store/commitlog/0", "Permission denied", "open")
B = Unread("/a/store/consumequeue", "Input/output error", "list")
C = Unread("/elsewhere/x", "Stale file handle", "read")


def test_the_text_names_the_first_and_counts_the_others(ledger: UnreadFiles) -> None:
    reports: list[int] = []
    ledger.changed.connect(lambda: reports.append(1))
    assert (bool(ledger), ledger.words, ledger.count, ledger.beside("done")) == (False, "", "", "done")
    assert ledger.edge == "complete"
    ledger.note((A,))
    assert ledger.words == "commitlog/0: cannot be read: Permission denied"
    ledger.note((A, B, C))
    ledger.note((A, B, C))
    assert ledger.words == "commitlog/0: cannot be read: Permission denied · and 2 more"
    assert (ledger.count, len(reports)) == ("3 unread", 2)
    assert ledger.edge == f"incomplete: {ledger.words}"
    assert ledger.entry_text(B) == "consumequeue: cannot be listed: Input/output error"
    assert ledger.entry_text(C) == "/elsewhere/x: cannot be read: Stale file handle"
    assert not ledger.keep((A, B, C))
    assert ledger.keep((B,))
    assert (ledger.list, len(reports)) == ((B,), 3)


def test_the_text_is_in_chinese(ledger: UnreadFiles) -> None:
    assets.set_language("zh_CN")
    ledger.note((A, B))
    assert ledger.words == "commitlog/0：无法读取：权限不足 · 另有 1 个"
    assert ledger.entry_text(B) == "consumequeue：无法列出：输入/输出错误"


def test_what_a_capsule_lacks_stays_unread(tmp_path: Path) -> None:
    """The file is asked of the capsule: the system knows nothing below it, and would call it absent."""
    store_path = healthy().write(tmp_path / "store")
    (store_path / "config").mkdir()
    (store_path / "config" / "topics.json").symlink_to(tmp_path / "none")
    with open_store(store_path) as store:
        make_capsule(store, tmp_path / "x.capsule", 1, leave_out_unread=True)
    with open_store(tmp_path / "x.capsule") as store:
        item = Unread(str(tmp_path / "x.capsule" / "config" / "topics.json"), "", "open")
        assert still_unread((item,), anew=True, store_reading=store.reading) == (item,)
        assert store.unread == ()


def test_a_file_that_is_readable_again_is_removed(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_bytes(b"x")
    folder.mkdir()
    unreads = (Unread(str(file), "", "open"), Unread(str(folder), "", "list"), Unread(str(file), "", "look"))
    unread = tuple(Unread(str(tmp_path / "none"), "", action) for action in ("open", "list", "look"))
    assert still_unread((*unreads, *unread), anew=False) == ()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    bad = Unread(str(loop), "", "open")
    read = Unread(str(file), "", "read")
    assert still_unread((*unreads, bad, read), anew=False) == (bad, read)
    assert still_unread((*unreads, bad, read), anew=True) == (bad,), "asked anew, what failed while read is met again"
