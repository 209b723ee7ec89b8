"""The engine for executors that do not have it: one zip, which Spark hands to them.

Its code runs out of that zip and from nowhere else (:mod:`engine.shipped`), whatever lies in the caches of a machine.
"""

from __future__ import annotations

import atexit
import hashlib
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.scratch import hold_new

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SHIPPED = ("lab",)
"""Folders of the engine that no task imports."""
_DATE = (2000, 1, 1, 0, 0, 0)
_BEGIN = """

from engine.shipped import import_from

import_from(__spec__.loader.archive, "{digest}")
"""
_shipped: set[str] = set()
"""Identifiers of the applications that have the engine."""


def is_local(spark: SparkSession) -> bool:
    """Whether the executors are in this process's own Java, and so import what this process imports."""
    return names_this_process(str(spark.sparkContext.master))


def names_this_process(master: str) -> bool:
    """Whether ``master`` stands for threads beside this process, and not for workers elsewhere."""
    return master == "local" or master.startswith("local[")


def ship_engine(spark: SparkSession) -> None:
    """Give executors the engine, once a session, so that they need not have the project; local ones have it."""
    if is_local(spark) or spark.sparkContext.applicationId in _shipped:
        return
    # Executors fetch the file when they start, and one that takes the place of a lost one starts late.
    held = hold_new(Path(tempfile.gettempdir()), "storescope-engine-")
    atexit.register(held.give_up)
    archive = held.path / "storescope-engine.zip"
    pack_engine(archive)
    spark.sparkContext.addPyFile(str(archive))
    _shipped.add(spark.sparkContext.applicationId)


def pack_engine(archive: Path) -> None:
    """Write the zip of what executors import; the same engine gives the same bytes."""
    root = Path(__file__).parent.parent
    files = {
        f"engine/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in NOT_SHIPPED
    }
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    files["engine/__init__.py"] += _BEGIN.format(digest=digest).encode()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
