"""Every promised minor version of Spark gives the same answers, in a plain session without any preparation.

The test uses the Spark of these tests, and the versions named with ``--sparks`` (``all``: each that the internals were
tried on), which ``pip`` installs into a folder of the tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.pipeline.spark_internals import RELEASES

pytestmark = [pytest.mark.spark, pytest.mark.spark_full, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "spark_session_check.py"
HERE = "here"


def pytest_generate_tests(metafunc):
    named = metafunc.config.getoption("--sparks")
    other_releases = RELEASES if named == "all" else [word for word in named.split(",") if word]
    metafunc.parametrize("release", [HERE, *other_releases])


def test_a_plain_session_answers_as_its_rows_do(golden, tmp_path, release):
    """Spark 4.0 and 4.1 were promised, but no test had ever used them."""
    folders = [str(ROOT)] if release == HERE else [str(fetched(release, tmp_path / "spark")), str(ROOT)]
    env = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    env |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    env["PYTHONPATH"] = os.pathsep.join(folders)
    done = subprocess.run(
        [sys.executable, SCRIPT, golden("clean-5.3.3")],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"agrees {'4.' if release == HERE else release}" in done.stdout


def fetched(release: str, folder: Path) -> Path:
    """Install ``pyspark`` of that release with its py4j into ``folder``, and return the folder."""
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder]
    subprocess.run([*words, f"pyspark=={release}"], check=True)
    return folder
