"""What a mend of the store itself changes is said in numbers."""

from __future__ import annotations

from pathlib import Path

from engine.mapped.backup import BackupJournal
from engine.patching.patches import MoveFile, RemoveFile, ResizeFile, WriteBytes, WriteFile
from viewer.findings.mend_words import backup_title, changes_in_words, restored_in_words


def test_changes_are_counted_by_kind() -> None:
    patches = [
        WriteBytes(file="checkpoint", offset=0, old=bytes(8), new=b"\1" * 8, why=""),
        WriteBytes(file="checkpoint", offset=8, old=bytes(8), new=b"\1" * 8, why=""),
        WriteFile(file="config/topics.json", old=b"{", new=b"{}", why=""),
        WriteFile(file="commitlog/0", old=None, new=b"x", zeros=1023, why=""),
        ResizeFile(file="log", size=1, new_size=2, sample="", why=""),
        RemoveFile(file="junk", size=1, sample="", why=""),
        MoveFile(file="a", target="b", size=1, sample="", why=""),
    ]
    assert changes_in_words(patches) == (
        "18 B in 2 files are changed · 1 file is created (1.00 KiB) · 1 file gets another length · 1 file is removed · "
        "1 file gets another name"
    )


def test_a_backup_names_its_time_and_state() -> None:
    journal = BackupJournal(Path("/stores/store.kept-20261129-211117"), "/stores/store", 1, "repair", (), {})
    assert backup_title(journal) == "2026-11-29 21:11:17 · repair"
    assert "is partly changed now" in restored_in_words(journal)
    journal.stamps_after, journal.begun, journal.undone = {}, True, True
    journal.absent = ["lock", "commitlog/0"]
    assert backup_title(journal).endswith("restored already")
    assert restored_in_words(journal).startswith("0 files get their old bytes back (0 B) · 1 file that was created")
