"""Every minor version of Spark that is promised answers alike, in a plain session that nobody prepared.

With the Spark of these tests, and those of other Pythons: ``STORESCOPE_SPARKS`` names these, with colons between.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.spark_full, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "support" / "plain_session.py"
PYTHONS = [sys.executable, *filter(None, os.environ.get("STORESCOPE_SPARKS", "").split(":"))]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_plain_session_answers_as_its_rows_do(golden, tmp_path, python):
    """Spark 4.0 and 4.1 were promised, and no test had ever asked them."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    done = subprocess.run(
        [python, SCRIPT, golden("clean-5.3.3")], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "agrees 4." in done.stdout
