"""Check that the Python of the processes that Spark starts beside this one can run tasks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.pipeline.java import CannotStart
from engine.sentences import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Needed = ("engine.pipeline", "numpy", "pyarrow", "platformdirs")
_ASK = """
import importlib.util, sys

def lacking(name):
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:
        return True

print(*sys.version_info[:2], sep=".")
print(*filter(lacking, sys.argv[1:]), sep=", ")
"""
_PYTHON_TIMEOUT_S = 30


def check_workers_python(spark: SparkSession) -> None:
    """Raise :class:`CannotStart` if the workers beside this process would use a Python that cannot run their tasks.

    Workers of a cluster are not checked: they run on other machines.
    """
    context = spark.sparkContext
    named = str(context.pythonExec)
    executable = shutil.which(named)
    remedy = sentence("set PYSPARK_PYTHON={python} before the session begins", python=sys.executable)
    if executable is None:
        raise CannotStart(
            sentence("Spark's workers would use {python}, which does not exist: {remedy}", python=named, remedy=remedy)
        )
    if _is_same_python(executable, sys.executable):
        return
    try:
        answer = subprocess.run(  # noqa: S603  the program that Spark would start
            [executable, "-c", _ASK, *_Needed], capture_output=True, text=True, check=True, timeout=_PYTHON_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotStart(
            sentence(
                "Spark's workers would use {python}, which does not run: {remedy}", python=executable, remedy=remedy
            )
        ) from error
    version, lacking = answer.stdout.split("\n")[:2]
    if version != str(context.pythonVer):
        raise CannotStart(
            sentence(
                "Spark's workers would use {python}, a Python {version}, and this is {own}: {remedy}",
                python=executable,
                version=version,
                own=str(context.pythonVer),
                remedy=remedy,
            )
        )
    if lacking:
        raise CannotStart(
            sentence(
                "Spark's workers would use {python}, which lacks {packages}: {remedy}",
                python=executable,
                packages=lacking,
                remedy=remedy,
            )
        )


def _is_same_python(executable: str, other_executable: str) -> bool:
    """Return True if two paths are one Python with one set of packages."""
    path, other_path = Path(executable), Path(other_executable)
    return path == other_path or (path.parent == other_path.parent and path.resolve() == other_path.resolve())
