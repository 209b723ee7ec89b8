"""A rebuild that is killed, or has no room or no rights: nothing incomplete has the output's name."""

import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from dispatching import stored
from golden_stores import names
from rebuilt_stores import InProcessRunner, dispatched, rebuilt

from engine.cli.main import main
from engine.pipeline import rebuild as module

ROOT = Path(__file__).resolve().parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path

sys.path[:0] = sys.argv[1:3]
from rebuilt_stores import InProcessRunner, rebuilt

store, out, tasks_before_kill = Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5])
finished_tasks = 0


class Dying(InProcessRunner):
    def __call__(self, shares, work, schema):
        global finished_tasks
        rows = []
        for share in shares:
            for task in share:
                if finished_tasks == tasks_before_kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                finished_tasks += 1
                rows += super().__call__([[task]], work, schema)
        return rows


rebuilt(store, out, 200_000, Dying())
"""


@pytest.mark.parametrize("tasks_before_kill", [3, 14])
def test_a_driver_that_is_killed_leaves_its_work_and_the_next_run_completes_it(golden, tmp_path, tasks_before_kill):
    store = golden("clean-5.3.3")
    words = [
        sys.executable,
        "-c",
        KILLED,
        ROOT,
        ROOT / "tests/support",
        store,
        tmp_path / "new",
        str(tasks_before_kill),
    ]
    ended = subprocess.run(list(map(str, words)), cwd=tmp_path, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".new.rebuild"]
    second = InProcessRunner()
    done = rebuilt(store, tmp_path / "new", 200_000, second)
    assert done.reused >= min(tasks_before_kill, 11)
    theirs = dispatched(store, tmp_path / "engine")
    assert stored(tmp_path / "new") == stored(tmp_path / "engine")
    assert done.units == theirs.units
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine", "new"]


def test_a_piece_that_a_kill_left_half_written_is_written_anew(golden, tmp_path, monkeypatch):
    store = golden("multi-queue-ext-5.3.3")
    rebuilt(store, tmp_path / "whole", 200_000)

    class StoppingRunner(InProcessRunner):
        def __call__(self, shares, work, schema):
            rows = super().__call__(shares, work, schema)
            if any(isinstance(task, module.QueueTask) for share in shares for task in share):
                raise KeyboardInterrupt
            return rows

    with monkeypatch.context() as patched:
        patched.setattr("engine.pipeline.rebuild.remove_folder_tree", lambda _staging: None)
        with pytest.raises(KeyboardInterrupt):
            rebuilt(store, tmp_path / "new", 200_000, StoppingRunner())
    remaining_path = tmp_path / ".new.rebuild"
    for marker in (remaining_path / "done").iterdir():
        marker.unlink()
    for path in (remaining_path / "tree").rglob("*"):
        if path.is_file():
            os.truncate(path, path.stat().st_size // 3)
            with path.open("r+b") as file:
                file.write(b"\xff" * 50)
    rebuilt(store, tmp_path / "new", 200_000)
    assert stored(tmp_path / "new") == stored(tmp_path / "whole")


@pytest.mark.parametrize("name", [name for name in names() if name in ("clean-5.3.3", "batchcq-5.3.3")])
def test_a_full_disk_ends_it_with_the_error_of_the_system(golden, tmp_path, name):
    """A limit on the length of files replaces a full disk: both end a write with an error."""
    limit_before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler_before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit_before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            rebuilt(golden(name), tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit_before)
        signal.signal(signal.SIGXFSZ, handler_before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_used_places_and_places_without_rights_are_reported_in_a_line(golden, tmp_path, capsys, spark):
    def error_line(out, code):
        options = ("--master", "local[2]", "--log-file", str(tmp_path / "spark.log"))
        assert main(["pipeline", "rebuild", str(golden("lmq-5.3.3")), "--out", str(out), *options]) == code
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        return err

    used = tmp_path / "used"
    used.mkdir()
    (used / "mine").write_text("x")
    assert "new or empty folder" in error_line(used, 2)
    assert "new or empty folder" in error_line(used / "mine", 2)
    (tmp_path / "file").write_text("x")
    assert f"{tmp_path / 'file'}: " in error_line(tmp_path / "file" / "new", 3)
    if os.geteuid():
        locked = tmp_path / "locked"
        locked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
        assert "Permission denied" in error_line(locked / "new", 3)
        assert list(locked.iterdir()) == []
    assert [path.name for path in used.iterdir()] == ["mine"]
