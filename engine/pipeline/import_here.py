"""A small export read back in this process: its units in the order of their offsets, as Spark reads and sorts them."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from engine.codec.unit_fields import NUMBERS
from engine.errors import CannotRead, StoreError
from engine.pipeline.imports import NEEDED, unit_bytes
from engine.pipeline.parquet_files import NOTHING

Unit = tuple[int, str, bytes]
"""Physical offset, what is known of the CRC, and the unit's bytes."""
_NUMBERS: Final = tuple(name for name in NEEDED if name in NUMBERS)
_BYTES: Final = ("body", "propertiesRaw")
_LONGEST_CELL: Final = 1 << 30
_BATCH_ROWS: Final = 4096


def size_of(folder: str, kind: str) -> int:
    """Bytes of an export's rows, of Parquet without its compression. Raises ``OSError``, Arrow's own exceptions."""
    files = _files(Path(folder), kind)
    if kind != "parquet":
        return sum(path.stat().st_size for path in files)
    from pyarrow.parquet import read_metadata

    found = (read_metadata(path) for path in files)
    return sum(one.row_group(number).total_byte_size for one in found for number in range(one.num_row_groups))


def units(folder: str, kind: str, store: str | None, check: Callable[[], None]) -> Iterator[Unit]:
    """All units of the export, or those of one store, sorted; ``check`` is called now and then, and may raise.

    Raises :class:`StoreError` for what is no row of a unit, :class:`CannotRead`.
    """
    found: list[Unit] = []
    for path in _files(Path(folder), kind):
        check()
        try:
            for row in _ROWS[kind](path):
                if store is None or row.get("store") == store:
                    found.append((row["physicalOffset"], row["crc"], unit_bytes(row)))
        except OSError as error:
            raise CannotRead(f"cannot be read: {error.strerror or error}", file=str(path)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"expected rows of 'pipeline export': {error}", file=str(path)) from error
    found.sort(key=lambda unit: unit[0])
    yield from found


def _files(folder: Path, kind: str) -> list[Path]:
    """The files with rows: as Spark does, names that begin with ``_`` or a dot are left out."""
    return sorted(folder.glob("topic=*/day=*/*.parquet" if kind == "parquet" else "part-*"))


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow.parquet import ParquetFile

    word = path.parent.parent.name.partition("=")[2]
    topic = None if word == NOTHING else unquote(word)
    with ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[*NEEDED, "store"]):
            for row in batch.to_pylist():
                yield row | {"topic": topic}


def _json(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            row = json.loads(line)
            yield row | {name: _raw(row[name]) for name in _BYTES}


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                numbers = {name: int(row[name]) for name in _NUMBERS}
                yield row | numbers | {name: _raw(row[name]) for name in _BYTES}
    finally:
        csv.field_size_limit(before)


def _raw(text: str | None) -> bytes | None:
    return base64.b64decode("".join(text.split()), validate=True) if text else None


_ROWS: Final[dict[str, Callable[[Path], Iterator[dict[str, Any]]]]] = {"parquet": _parquet, "json": _json, "csv": _csv}
