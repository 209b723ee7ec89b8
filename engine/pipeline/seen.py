"""Whether executors see the stores that the driver listed: a log that they do not see would be damage all over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.errors import CannotRead
from engine.pipeline.files import StorePlace
from engine.pipeline.storage import storage_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOKED_AT = 16
"""Folders that each task looks for: those of a fleet lie on one disk, as a rule."""
MOST_TASKS = 64
_seen: set[tuple[str, str]] = set()
"""Applications, each with a folder that its executors see."""


def must_be_seen(spark: SparkSession, stores: Iterable[StorePlace]) -> None:
    """Raise :class:`CannotRead` with the first log that a task on some executor does not see; asked once a session."""
    context = spark.sparkContext
    application = str(context.applicationId)
    folders = [folder for store in stores for folder in store.log_folders][:LOOKED_AT]
    folders = [folder for folder in folders if (application, folder) not in _seen]
    if not folders:
        return
    tasks = max(1, min(context.defaultParallelism, MOST_TASKS))
    found = context.parallelize(range(tasks), tasks).mapPartitions(partial(_unseen, folders)).collect()
    missing = set(found)
    for folder in folders:
        if folder in missing:
            raise CannotRead("executors do not see it: stores lie where all machines see them", file=folder)
        _seen.add((application, folder))


def _unseen(folders: Sequence[str], _: Iterable[int]) -> Iterator[str]:
    for folder in folders:
        storage, local = storage_of(folder)
        try:
            if not storage.is_folder(local):
                yield folder
        except CannotRead:
            yield folder
