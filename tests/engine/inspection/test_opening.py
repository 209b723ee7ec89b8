"""Opening a path: a store, a store below it, a log alone, one file; and the error for other paths.

The holder of a store's lock is read without taking the lock.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from handmade_stores import LOG_SIZE, HandmadeStore

from engine.errors import NotAStore
from engine.inspection.opening import guess_base, lock_state, recognise
from engine.mapped.reading import Reading


@pytest.fixture
def root(tmp_path):
    store = HandmadeStore()
    for _ in range(60):
        store.put()
    return store.write(tmp_path / "above" / "store")


def test_a_store_and_the_folder_above_it(root):
    assert (recognise(root).kind, recognise(root).path) == ("store", root)
    above = recognise(root.parent)
    assert (above.kind, above.path) == ("store", root)
    assert above.notes[0].startswith("The store was found below")


def test_a_log_by_itself_and_one_file_of_it(root):
    log = recognise(root / "commitlog")
    assert (log.kind, log.path) == ("commitlog", root / "commitlog")
    second = root / "commitlog" / f"{LOG_SIZE:020d}"
    assert (recognise(second).kind, recognise(second).start_offset) == ("file", LOG_SIZE)


def test_the_offset_of_a_renamed_piece_is_derived(root, tmp_path):
    piece = tmp_path / "tail.bin"
    piece.write_bytes((root / "commitlog" / f"{LOG_SIZE:020d}").read_bytes()[100:])
    assert guess_base(piece, Reading()) == LOG_SIZE + 100
    assert recognise(piece).start_offset == LOG_SIZE + 100
    wrong = tmp_path / f"{7 * LOG_SIZE:020d}"
    shutil.copy(root / "commitlog" / f"{LOG_SIZE:020d}", wrong)
    assert recognise(wrong).start_offset == LOG_SIZE
    assert "the units are believed" in recognise(wrong).notes[0]


def test_a_path_without_a_store_is_refused_with_its_contents(root, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello, no unit of a log")
    shutil.copytree(root, root.parent / "second")
    for path, words in (
        (tmp_path / "empty", "found an empty directory"),
        (tmp_path / "text", "found no message unit in it"),
        (tmp_path / "none", "found nothing of this name"),
        (root.parent, "found 2 below it: second, store"),
        (root / "consumequeue" / "Orders" / "0", "found queue files"),
    ):
        with pytest.raises(NotAStore, match=words):
            recognise(path)


HOLD = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1); print('held', flush=True); sys.stdin.read()"  # noqa: E501


def test_lock_states_free_held_and_absent(tmp_path):
    file = tmp_path / "lock"
    assert lock_state(Reading(), file) == "absent"
    file.write_bytes(b"lock")
    assert lock_state(Reading(), file) == "free"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as popen:
        assert popen.stdout is not None
        assert popen.stdout.readline() == b"held\n"
        assert lock_state(Reading(), file) == "held"
        popen.communicate(b"")
    assert lock_state(Reading(), file) == "free"


def test_reading_the_lock_does_not_take_it(tmp_path):
    """Another process gets the lock at once. A lock held by this process would not block itself."""
    file = tmp_path / "lock"
    file.write_bytes(b"lock")
    assert lock_state(Reading(), file) == "free"
    at_once = HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB")
    done = subprocess.run([sys.executable, "-c", at_once, str(file)], input=b"", capture_output=True)
    assert (done.stdout, done.returncode) == (b"held\n", 0), done.stderr
