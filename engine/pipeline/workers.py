"""Which Python the processes are that Spark starts beside this one: they must be able to do the work."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.pipeline.java import CannotStart

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
_PATIENCE = 30


def must_serve(spark: SparkSession) -> None:
    """Raise :class:`CannotStart` where workers beside this process would be a Python that cannot do their work.

    Of a cluster's workers nothing is known here: they lie elsewhere.
    """
    context = spark.sparkContext
    named = str(context.pythonExec)
    found = shutil.which(named)
    what = f"Spark's workers would be {named}"
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    if found is None:
        raise CannotStart(f"{what}, and there is none that runs: {remedy}")
    if _same(found, sys.executable):
        return
    try:
        asked = subprocess.run(  # noqa: S603  the program that Spark would start
            [found, "-c", _ASK, *_Needed], capture_output=True, text=True, check=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotStart(f"{what} ({found}), which does not run: {remedy}") from error
    version, lacking = asked.stdout.split("\n")[:2]
    if version != str(context.pythonVer):
        raise CannotStart(f"{what} ({found}), a Python {version}, and this is {context.pythonVer}: {remedy}")
    if lacking:
        raise CannotStart(f"{what} ({found}), which does not have {lacking}: {remedy}")


def _same(one: str, other: str) -> bool:
    """Whether two paths are one Python with one set of packages."""
    first, second = Path(one), Path(other)
    return first == second or (first.parent == second.parent and first.resolve() == second.resolve())
