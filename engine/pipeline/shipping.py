"""Give executors the engine as one zip from Spark.

Its code runs from that zip only (:mod:`engine.files.zip_import`), whatever is in the caches of a machine.
"""

from __future__ import annotations

import atexit
import hashlib
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.files.temporary_folders import hold_new
from engine.pipeline.java_session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SHIPPED = ("lab",)
"""Folders of the engine that no task imports."""
_DATE = (2000, 1, 1, 0, 0, 0)
_BEGIN = """

from engine.files.zip_import import import_from

import_from(__spec__.loader.archive, "{digest}")
"""
_shipped: set[str] = set()
"""Identifiers of the applications that have the engine."""


def ship_engine(spark: SparkSession) -> None:
    """Give executors the engine, once a session, so that they need not have the project; local ones have it."""
    if is_local(spark) or spark.sparkContext.applicationId in _shipped:
        return
    # Executors fetch the file when they start, and one that takes the place of a lost one starts late.
    scratch_holder = hold_new(Path(tempfile.gettempdir()), "storescope-engine-")
    atexit.register(scratch_holder.give_up)
    archive = scratch_holder.path / "storescope-engine.zip"
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
