"""The setup of a Python process that Spark has started, and its failures."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

from engine.errors import StoreError

_Item = TypeVar("_Item")
_Params = ParamSpec("_Params")


def in_one_line(do: Callable[_Params, _Item]) -> Callable[_Params, _Item]:
    """``do``, whose errors that tell their cause in a sentence go to Spark without the stack of Spark's own process."""

    @functools.wraps(do)
    def done(*words: _Params.args, **named: _Params.kwargs) -> _Item:
        try:
            return do(*words, **named)
        except StoreError:
            main = sys.modules["__main__"].__spec__
            if main is not None and main.name.startswith("pyspark."):  # it ends with this error
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise

    return done


MIN_NEW_MODULES = 50
"""Modules that are worth another look at what is loaded."""


def settling(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield a task's results; after the last one, in a process of Spark's, exclude all loaded objects from garbage
    collection.

    ``pyspark`` collects garbage after every task, and with numpy, pyarrow and the engine loaded that took 45 ms each.
    What was loaded is looked at no more (:func:`gc.freeze`): 1 ms. A process that serves other queries in between loads
    more; from :data:`MIN_NEW_MODULES` on that is taken away, too.
    """
    yield from items
    if len(sys.modules) - _settled.modules >= MIN_NEW_MODULES and _in_a_task():
        gc.collect()
        gc.freeze()
        _settled.modules = len(sys.modules)


class _Settled:
    """Number of modules that were loaded when objects were last excluded from garbage collection."""

    modules = 0


_settled = _Settled()


def _in_a_task() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None
