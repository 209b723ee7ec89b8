"""Folders that grow beside their place: whose run is dead goes at the next one, whose run lives stays."""

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
from engine.files.temporary_folders import KEPT_DAYS, growing, hold_new, staged, take_old_logs

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
    """A run in another process that has begun to write ``out``."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_what_a_killed_run_left_goes_at_the_next_into_the_same_place(running, tmp_path):
    """Each export that was killed left a hidden folder of random name, as large as it had become, for ever."""
    process, remaining = running
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert remaining.parent == tmp_path
    assert remaining.is_dir()
    with staged_output(str(tmp_path / "other"), "export"):
        assert remaining.is_dir()  # that is another place
    with staged_output(str(tmp_path / "out"), "export") as folder:
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [folder.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_a_new_folder_is_held_even_where_somebody_looks_whether_it_is_dead(tmp_path, monkeypatch):
    """Between making a folder and locking it another run may have found it unlocked, and taken it away."""
    paths, make, opened = [], temporary_folders.tempfile.mkdtemp, os.open

    def noted(**how):
        paths.append(Path(make(**how)))
        return str(paths[-1])

    def open_while_it_is_removed(name, *how):
        descriptor = opened(name, *how)
        if len(paths) == 1:
            paths[0].rmdir()
        return descriptor

    monkeypatch.setattr(temporary_folders.tempfile, "mkdtemp", noted)
    monkeypatch.setattr(os, "open", open_while_it_is_removed)
    held = hold_new(tmp_path, ".a.")
    assert len(paths) == 2
    assert held.path == paths[-1]
    monkeypatch.undo()
    held.give_up()
    held.give_up()
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
    before = sorted(tmp_path.iterdir())
    with growing(tmp_path, ".out.", ".export"):
        pass
    assert sorted(tmp_path.iterdir()) == before


def test_logs_of_runs_long_past_go_and_others_stay(tmp_path):
    names = ("storescope-stats-abcdefgh.log", "storescope-spark-0123_xyz.log", "storescope-other.log", "mine.log")
    long_ago = time.time() - (KEPT_DAYS + 1) * 86_400
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
    _, held = running
    with staged_output(str(tmp_path / "out"), "export"):
        assert (held / "rows").read_text() == "half of them"
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "out2", ".part"):
        raise ZeroDivisionError
    assert (held / "rows").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([held.name, "out"])
