"""RocksDB folders that a test makes with the binding itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


def binding():
    """The binding; the test is left out where the extra is not installed."""
    return pytest.importorskip("rocksdict")


def make_database(folder: Path, families: dict[str, dict[bytes, bytes]], *, flush: bool = True) -> Path:
    """Write a database with the given rows; with ``flush`` into table files, else the write-ahead log has them. One
    that is in ``folder`` is replaced.
    """
    rocks = binding()
    shutil.rmtree(folder, ignore_errors=True)
    options = rocks.Options(raw_mode=True)
    options.create_if_missing(True)
    database = rocks.Rdict(str(folder), options)
    for name, rows in families.items():
        handle = database
        if name != "default":
            handle = database.create_column_family(name, rocks.Options(raw_mode=True))
        for key, value in rows.items():
            handle[key] = value
        if flush:
            handle.flush()
    if flush:
        database.close()
        return folder
    copy = folder.with_name(folder.name + "-copy")  # closing would flush: the files are taken as a crash leaves them
    shutil.copytree(folder, copy)
    database.close()
    shutil.rmtree(folder)
    copy.rename(folder)
    return folder
