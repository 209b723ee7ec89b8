"""The lock allows one writer: a second engine, in this process or another, and a Java broker exclude each other."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from engine import system
from engine.errors import StoreError, StoreLocked
from engine.mapped.store_lock import StoreLock, holder_of
from engine.system import posix

# Takes a lock like Java's FileChannel.tryLock(0, 1, false) in another process, reports success, and holds the lock.
LIKE_JAVA = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        print("got it", flush=True)
    except OSError:
        print("refused", flush=True)
    sys.stdin.read()
"""


class JavaLock:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LIKE_JAVA, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.first_line = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store 仓" / "lock"


def test_the_text_is_written_and_stays(path):
    with StoreLock(path):
        assert path.read_bytes() == b"lock"
    assert path.read_bytes() == b"lock"


def test_a_broker_is_kept_out(path):
    with StoreLock(path), JavaLock(path) as broker:
        assert broker.first_line == "refused"
    with JavaLock(path) as broker:
        assert broker.first_line == "got it"


def test_a_broker_keeps_us_out_and_is_named(path):
    StoreLock(path).release()
    with JavaLock(path) as broker:
        with pytest.raises(StoreLocked, match=f"process {broker.process.pid} has the store open") as refused:
            StoreLock(path)
        assert refused.value.pid == broker.process.pid
        assert refused.value.file == str(path)
    StoreLock(path).release()


def test_a_second_engine_in_this_process_is_kept_out(path):
    with StoreLock(path):
        for _ in range(2):
            with pytest.raises(StoreLocked, match="this process"):
                StoreLock(path)
        with JavaLock(path) as broker:
            assert broker.first_line == "refused"
    StoreLock(path).release()


def test_a_copy_in_this_process_does_not_release_the_lock(path):
    """A plain record lock is released when any descriptor of the file is closed, so a copy would admit a broker."""
    with StoreLock(path):
        path.read_bytes()
        with JavaLock(path) as broker:
            assert broker.first_line == "refused"


def test_another_engine_is_named_by_its_abort_file(path):
    script = (
        "import sys,pathlib; from engine.mapped.store_lock import StoreLock; lock=StoreLock(pathlib.Path(sys.argv[1]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{script}; print(1, flush=True); sys.stdin.read()", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        with pytest.raises(StoreLocked, match="another process"):
            StoreLock(path)
        path.with_name("abort").write_text(str(process.pid))
        with pytest.raises(StoreLocked) as refused:
            StoreLock(path)
        assert refused.value.pid == process.pid
        process.communicate()


def test_a_plain_record_lock_is_used_without_open_file_locks(path, monkeypatch):
    monkeypatch.setattr(posix, "IS_LINUX", False)
    with StoreLock(path):
        with JavaLock(path) as broker:
            assert broker.first_line == "refused"
        with pytest.raises(StoreLocked, match="this process"):
            StoreLock(path)
        with JavaLock(path) as broker:
            assert broker.first_line == "refused"
    with JavaLock(path) as broker:
        assert broker.first_line == "got it"


def test_an_unwritable_lock_file_raises_the_original_error(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(system, "pwrite", refuse)
        with pytest.raises(OSError, match="Read-only file system"):
            StoreLock(path)
    StoreLock(path).release()


def test_a_locked_store_is_an_error_of_the_environment():
    assert issubclass(StoreLocked, StoreError)


def test_the_holder_is_read_without_taking_the_lock(path):
    assert holder_of(path) is None
    assert not path.exists()
    with StoreLock(path):
        path.with_name("abort").write_text("4711")
        assert holder_of(path) == 4711
    assert holder_of(path) is None
    with JavaLock(path) as broker:
        assert holder_of(path) == broker.process.pid
