"""The engine for executors that do not have it: one zip, which Spark hands to them, unpacked once on each machine.

Machine code is kept for files, by path and time: read out of a zip that lies elsewhere in every session it would be
made again each time, for seconds of every core. So the package in the zip begins by laying itself into the user's
cache, in a folder named after what it holds, or beside the zip where that cannot be written.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SHIPPED = ("lab",)
"""Folders of the engine that no task imports."""
_DATE = (2000, 1, 1, 0, 0, 0)
_BEGIN = """

def _unpacked():
    import os, shutil, tempfile, zipfile

    archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    for place in (os.path.join(cache, "storescope", "engine"), os.path.dirname(archive)):
        folder = os.path.join(place, "{digest}")
        growing = None
        try:
            if not os.path.isdir(folder):
                os.makedirs(place, exist_ok=True)
                growing = tempfile.mkdtemp(prefix=".growing-", dir=place)
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(growing)
                os.rename(growing, folder)
        except OSError:  # another worker was first, or nothing can be written here
            if growing is not None:
                shutil.rmtree(growing, ignore_errors=True)
        if os.path.isdir(folder):
            return [os.path.join(folder, "engine")]
    return list(__path__)


__path__[:] = _unpacked()
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
    folder = tempfile.mkdtemp(prefix="storescope-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = Path(folder, "storescope-engine.zip")
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
