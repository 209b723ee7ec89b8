"""What concerns the Python processes that Spark starts: which Python they are, what they do once, how they fail."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from engine.errors import StoreError
from engine.pipeline.java import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Item = TypeVar("_Item")
_Given = ParamSpec("_Given")
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


def in_one_line(do: Callable[_Given, _Item]) -> Callable[_Given, _Item]:
    """``do``, whose errors that tell their cause in a sentence go to Spark without the stack of Spark's own process."""

    @functools.wraps(do)
    def done(*words: _Given.args, **named: _Given.kwargs) -> _Item:
        try:
            return do(*words, **named)
        except StoreError:
            main = sys.modules["__main__"].__spec__
            if main is not None and main.name.startswith("pyspark."):  # it ends with this error
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise

    return done


MANY_MODULES = 50
"""Modules that are worth another look at what is loaded."""


def settling(items: Iterable[_Item]) -> Iterator[_Item]:
    """What a task gives; behind the last of it, in a process of Spark's, what is loaded is taken from garbage's way.

    ``pyspark`` collects garbage after every task, and with numpy, pyarrow and the engine loaded that took 45 ms each.
    What was loaded is looked at no more (:func:`gc.freeze`): 1 ms. A process that serves other queries in between loads
    more; from :data:`MANY_MODULES` on that is taken away, too.
    """
    yield from items
    if len(sys.modules) - _settled.modules >= MANY_MODULES and _in_a_task():
        gc.collect()
        gc.freeze()
        _settled.modules = len(sys.modules)


class _Settled:
    """How many modules were loaded when garbage was last taken out of the way."""

    modules = 0


_settled = _Settled()


def _in_a_task() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None
