"""The folder listing of a store that the check for undecoded parts uses."""

from __future__ import annotations

from engine.mapped.folder_listing import ReadingListing
from engine.mapped.reading import Reading


def test_files_folders_and_links_are_listed_with_their_lengths(tmp_path):
    (tmp_path / "config" / "topics").mkdir(parents=True)
    (tmp_path / "config" / "table").write_bytes(b"12345")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "config")
    listing = ReadingListing(Reading(), tmp_path)
    assert listing.entries("config") == [("table", 5, False), ("topics", 0, True)]
    assert listing.entries("") == [("config", 0, True), ("elsewhere", 0, True)]
    assert listing.entries("nowhere") == []


def test_the_head_of_a_short_file_is_read(tmp_path):
    (tmp_path / "short").write_bytes(b"abc")
    listing = ReadingListing(Reading(), tmp_path)
    assert listing.head("short", 2) == b"ab"
    assert listing.head("short", 99) == b"abc"


def test_unreadable_entries_are_left_out_and_noted(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    reading = Reading()
    assert ReadingListing(reading, tmp_path).entries("") == []
    assert [item.file for item in reading.unread] == [str(tmp_path / "gone")]
