"""What a Python process that Spark keeps for its tasks does once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")


def settling(items: Iterable[_Item]) -> Iterator[_Item]:
    """What a task gives; behind the last of it, in a process of Spark's, what is loaded is taken from garbage's way.

    ``pyspark`` collects garbage after every task, and with numpy, pyarrow and the engine loaded that took 45 ms each.
    What was loaded for the first task is looked at no more (:func:`gc.freeze`): 1 ms.
    """
    yield from items
    if not gc.get_freeze_count() and _in_a_task():
        gc.collect()
        gc.freeze()


def _in_a_task() -> bool:
    from pyspark import TaskContext

    return TaskContext.get() is not None
