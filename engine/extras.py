"""The packages that the program uses, and the line that installs each.

``pyproject.toml`` has the same packages with their versions; ``tests/engine/test_extras.py`` compares both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package by the name in an index, the module that it gives, and the extra that brings it.

    ``extra`` is "" for a package that every installation has.
    """

    name: str
    module: str
    extra: str
    purpose: str


PACKAGES = (
    Package("numpy", "numpy", "", "reading logs, queues and the index"),
    Package("numba", "numba", "", "machine code: scans and puts at full speed"),
    Package("llvmlite", "llvmlite", "", "machine code: loads what numba made"),
    Package("crcmod", "crcmod", "", "the search for flipped bits"),
    Package("platformdirs", "platformdirs", "", "the folders for settings and caches"),
    Package("PySide6-Essentials", "PySide6", "", "the window"),
    Package("pyqtgraph", "pyqtgraph", "", "the plots of the window"),
    Package("qasync", "qasync", "", "the loop of the window"),
    Package("lz4", "lz4", "codecs", "bodies compressed with lz4"),
    Package("zstandard", "zstandard", "codecs", "bodies compressed with zstd"),
    Package("isal", "isal", "codecs", "a faster CRC"),
    Package("pyspark", "pyspark", "spark", "jobs on Spark"),
    Package("pandas", "pandas", "spark", "jobs on Spark"),
    Package("pyarrow", "pyarrow", "sql", "questions in SQL, jobs on Spark"),
    Package("duckdb", "duckdb", "sql", "questions in SQL"),
    Package("prometheus-client", "prometheus_client", "metrics", "figures of a served broker"),
    Package("rocksdict", "rocksdict", "rocksdb", "queues and tables in a RocksDB"),
    Package("msgpack", "msgpack", "decoders", "bodies in MessagePack"),
    Package("cbor2", "cbor2", "decoders", "bodies in CBOR"),
    Package("protobuf", "google.protobuf", "decoders", "bodies in Protobuf"),
    Package("fastavro", "fastavro", "decoders", "bodies in Avro"),
    Package("mcp", "mcp", "mcp", "questions of agents"),
)


def install_line(module: str) -> str:
    """Return the line that installs what ``module`` belongs to, a module or one below it."""
    for package in PACKAGES:
        if module == package.module or module.startswith(f"{package.module}."):
            return line_of(package.extra)
    return line_of("")


def is_archive() -> bool:
    """Return True in a self-contained archive: packages that it lacks were left out, and pip is not there either."""
    folder = Path(sys.prefix)
    return folder.name == "python" and (folder.parent / "MANIFEST.txt").is_file()


def line_of(extra: str) -> str:
    """Return the line that installs the program with ``extra``; "" is the program alone."""
    if extra not in {"spark", "mcp"} and is_archive():
        return "the archive with the window has it"
    return f"pip install 'storescope[{extra}]'" if extra else "pip install storescope"
