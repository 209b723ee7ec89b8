"""Folders in which something is made ready."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.pipeline_jobs import staged_output
from engine.staging import staged

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


def test_the_folder_of_a_living_run_is_never_touched(running, tmp_path):
    _, held = running
    with staged_output(str(tmp_path / "out"), "export"):
        assert (held / "rows").read_text() == "half of them"
    with pytest.raises(ZeroDivisionError), staged(tmp_path / "out2", ".part"):
        raise ZeroDivisionError
    assert (held / "rows").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([held.name, "out"])
