"""Folders for executable content: only those that no other user can write or has written."""

import os
from pathlib import Path

import pytest

from engine.files import own_folders
from engine.files.own_folders import find_own, holds_own_only, is_own, own_folder

NOBODY = 65534


@pytest.fixture
def place(tmp_path):
    """A folder that belongs to this user alone."""
    return Path(os.path.realpath(tmp_path))


def test_a_new_folder_is_closed_to_others_whatever_the_umask(place):
    old_umask = os.umask(0)
    try:
        folder = find_own(place / "a" / "b", "c", "d")
    finally:
        os.umask(old_umask)
    assert folder == place / "a" / "b" / "c" / "d"
    assert [path.stat().st_mode & 0o777 for path in (folder, *folder.parents[:3])] == [0o700] * 4
    assert find_own(place / "a" / "b", "c", "d") == folder


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused(place, mode):
    (place / "a").mkdir()
    (place / "a").chmod(mode)
    assert not is_own(place / "a")


@pytest.mark.parametrize(("mode", "is_safe"), [(0o755, True), (0o1777, True), (0o777, False), (0o770, False)])
def test_parent_folders_may_be_writable_only_with_the_sticky_bit(place, mode, is_safe):
    (place / "a" / "b" / "c").mkdir(parents=True)
    (place / "a").chmod(mode)
    assert is_own(place / "a" / "b" / "c") is is_safe


def test_a_link_on_the_way_is_followed_above_the_place_and_refused_below_it(place):
    (place / "real").mkdir()
    (place / "named").symlink_to("real")
    assert find_own(place / "named" / "cache", "x") == place / "real" / "cache" / "x"
    (place / "real" / "cache" / "link").symlink_to(place / "real")
    assert find_own(place / "named" / "cache", "link") is None
    assert not is_own(place / "named" / "cache")


def test_a_file_in_place_of_a_folder_is_skipped_and_a_new_folder_made(place, monkeypatch):
    monkeypatch.setattr(own_folders.tempfile, "mkdtemp", lambda prefix: _make_folder(place / f"{prefix}new"))
    (place / "file").touch()
    assert own_folder((place / "file", place / "good"), "x") == place / "good" / "x"
    assert own_folder((place / "file",), "x") == place / "storescope-new"


def _make_folder(folder):
    folder.mkdir()
    return str(folder)


def test_content_that_others_may_have_written_is_detected(place):
    inner = find_own(place, "cache")
    (inner / "deep").mkdir()
    (inner / "deep" / "file").touch()
    (inner / "deep" / "file").chmod(0o666)
    assert holds_own_only(inner)  # no other user can pass through the folder
    inner.chmod(0o755)
    assert not holds_own_only(inner)
    (inner / "deep" / "file").chmod(0o644)
    assert holds_own_only(inner)
    (inner / "deep" / "link").symlink_to("file")
    assert not holds_own_only(inner)


def test_folders_of_other_users_are_refused(place):
    """Root may give folders to other users. Without root, the test uses an existing folder of root's."""
    if os.geteuid() != 0:
        assert not is_own(Path("/usr"))
        return
    folder = find_own(place, "cache", "storescope")
    (folder / "file").touch()
    os.chown(folder / "file", NOBODY, NOBODY)
    assert find_own(place, "cache", "storescope") is None
    os.chown(folder / "file", 0, 0)
    assert find_own(place, "cache", "storescope") == folder
    os.chown(place / "cache", NOBODY, NOBODY)
    assert find_own(place, "cache", "storescope") is None
