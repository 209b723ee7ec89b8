"""Temporary folders beside their target: those of ended runs are removed by the next run, those of live runs stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.cli.pipeline_jobs import staged_output
from engine.files import temporary_folders
from engine.files.temporary_folders import LOG_RETENTION_DAYS, growing, hold_new, staged, take_old_logs

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from engine.cli.pipeline_jobs import staged_output
with staged_output(sys.argv[1], "export") as folder:
    (folder / "rows").write_text("half of them")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def running(tmp_path):
    """Start another process that has begun to write ``out``; yield it and its folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_the_folder_of_a_killed_run_is_removed_by_the_next_run(running, tmp_path):
    """Each killed export left a hidden folder with a random name, at its current size, forever."""
    process, remaining = running
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert remaining.parent == tmp_path
    assert remaining.is_dir()
    with staged_output(str(tmp_path / "other"), "export"):
        assert remaining.is_dir()  # that is another target
    with staged_output(str(tmp_path / "out"), "export") as folder:
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [folder.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_a_new_folder_is_created_again_if_another_run_removes_it(tmp_path, monkeypatch):
    """Between the creation and the locking of a folder, another run may find it unlocked and remove it."""
    paths, make, opened = [], temporary_folders.tempfile.mkdtemp, os.open

    def mkdtemp_noting_paths(**arguments):
        paths.append(Path(make(**arguments)))
        return str(paths[-1])

    def open_while_it_is_removed(name, *arguments):
        descriptor = opened(name, *arguments)
        if len(paths) == 1:
            paths[0].rmdir()
        return descriptor

    monkeypatch.setattr(temporary_folders.tempfile, "mkdtemp", mkdtemp_noting_paths)
    monkeypatch.setattr(os, "open", open_while_it_is_removed)
    new_folder = hold_new(tmp_path, ".a.")
    assert len(paths) == 2
    assert new_folder.path == paths[-1]
    monkeypatch.undo()
    new_folder.give_up()
    new_folder.give_up()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_process_takes_at_once_is_made_again(tmp_path, monkeypatch):
    """Beside another command a command ended with "No such file or directory": its folder was gone before it was
    locked.
    """
    make, made = temporary_folders.tempfile.mkdtemp, []

    def make_and_lose_the_first(**place):
        made.append(make(**place))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(temporary_folders.tempfile, "mkdtemp", make_and_lose_the_first)
    held = hold_new(tmp_path, ".a.")
    assert len(made) == 2
    assert held.path == Path(made[1])
    held.give_up()


def test_other_names_links_and_folders_of_others_stay(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".out.abcdefgh.export").symlink_to(tmp_path / "elsewhere")
    for name in (".out.short.export", ".out.abcdefgh.exported", ".outer.abcdefgh.export"):
        (tmp_path / name).mkdir()
    if os.geteuid() == 0:
        (tmp_path / ".out.zzzzzzzz.export").mkdir()
        os.chown(tmp_path / ".out.zzzzzzzz.export", 65534, 65534)
    entries_before = sorted(tmp_path.iterdir())
    with growing(tmp_path, ".out.", ".export"):
        pass
    assert sorted(tmp_path.iterdir()) == entries_before


def test_only_logs_of_old_runs_are_removed(tmp_path):
    names = ("storescope-stats-abcdefgh.log", "storescope-spark-0123_xyz.log", "storescope-other.log", "mine.log")
    long_ago = time.time() - (LOG_RETENTION_DAYS + 1) * 86_400
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago, long_ago))
    (tmp_path / "storescope-trace-abcdefgh.log").touch()
    take_old_logs(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine.log",
        "storescope-other.log",
        "storescope-trace-abcdefgh.log",
    ]


def test_the_folder_of_a_living_run_is_never_touched(running, tmp_path):
    _, live_folder = running
    with staged_output(str(tmp_path / "out"), "export"):
        assert (live_folder / "rows").read_text() == "half of them"
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "out2", ".part"):
        raise ZeroDivisionError
    assert (live_folder / "rows").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([live_folder.name, "out"])
