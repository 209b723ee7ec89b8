"""Who has a store open for writing."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

from engine.mapped.store_lock import StoreLock
from viewer.bridge.lock_holder import holder_of


def _hold(path: Path, pipe: Connection) -> None:
    """As a Java broker does: a record lock of the process."""
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        pipe.send(os.getpid())
        pipe.recv()


def test_nobody_holds_a_lock_that_is_not_there_or_free(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "lock") is None
    StoreLock(tmp_path / "lock").release()
    assert holder_of(tmp_path / "lock") is None


def test_a_lock_bound_to_a_file_is_named_by_the_abort_file(tmp_path: Path) -> None:
    with StoreLock(tmp_path / "lock"):
        found = holder_of(tmp_path / "lock")
        assert found is not None
        assert found.pid is None
        (tmp_path / "abort").write_text(str(os.getpid()))
        found = holder_of(tmp_path / "lock")
        assert found is not None
        assert found.pid == os.getpid()
        assert "python" in found.name or "pytest" in found.name


def test_a_record_lock_names_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"lock")
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_hold, args=(path, theirs), daemon=True)
    process.start()
    try:
        pid = ours.recv()
        found = holder_of(path)
        assert found is not None
        assert found.pid == pid
    finally:
        ours.send(None)
        process.join(10)
