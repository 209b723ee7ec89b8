"""Write the rows of an export as JSON lines or CSV in this process: the same texts as those of Spark's own writers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.errors import CannotRead, StoreError
from engine.pipeline import tasks
from engine.pipeline.export import COLUMNS, ExportOptions, rows_of
from engine.pipeline.export_parquet import SUCCESS_FILE
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.pipeline.progress import Counter
    from engine.pipeline.splits import Split
    from engine.pipeline.tasks import LocalRunner

_NAMES: Final = tuple(name for name, _ in COLUMNS)
_BASE64_LINE_CHARS: Final = 76
_QUOTED: Final = frozenset(',"\r\n')


def write_texts(
    runner: LocalRunner, splits: Sequence[Split], options: ExportOptions, folder: Path, kind: str, counter: Counter
) -> None:
    """Write the rows of ``splits`` below ``folder``, a file of ``json`` or ``csv`` for each share of them.

    Raises :class:`StoreError` if something cannot be written.
    """
    shares = tasks.share_out(splits, runner.defaultParallelism)
    runner.over(shares, partial(_text_files_task, options, folder, kind, counter))
    (folder / SUCCESS_FILE).touch()


def _text_files_task(
    options: ExportOptions, folder: Path, kind: str, counter: Counter, splits: Sequence[Split]
) -> Iterable[pa.RecordBatch]:
    units = 0
    path = folder / f"part-{sum(1 for _ in folder.iterdir()):05d}.{kind}"
    line = LINES[kind]
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            if kind == "csv":
                file.write(",".join(_NAMES) + "\n")
            for batch in rows_of(splits, options, counter):
                units += batch.num_rows
                file.writelines(map(line, batch.to_pylist()))
    except CannotRead:
        raise
    except OSError as error:
        raise StoreError(sentence("cannot be written: {strerror}", strerror=error.strerror), file=str(path)) from error
    tasks.count_splits(counter, splits, units)
    return ()


def _json(row: dict[str, Any]) -> str:
    fields: dict[str, Any] = {
        name: _base64(value) if isinstance(value, bytes) else value for name, value in row.items()
    }
    if fields["properties"] is not None:
        fields["properties"] = dict(fields["properties"])
    return _text(fields) + "\n"


def _csv(row: dict[str, Any]) -> str:
    return ",".join(_cell(row[name]) for name in _NAMES) + "\n"


def _cell(value: Any) -> str:
    """Return a CSV cell: properties as JSON, keys with spaces between, bytes in base64 with Spark's line breaks, and an
    empty cell for null.
    """
    match value:
        case None:
            return ""
        case bytes():
            encoded = _base64(value)
            text = "\r\n".join(
                encoded[position : position + _BASE64_LINE_CHARS]
                for position in range(0, len(encoded), _BASE64_LINE_CHARS)
            )
        case list():
            is_map = bool(value) and isinstance(value[0], tuple)
            text = _text(dict(value)) if is_map else " ".join(value)
        case _:
            text = str(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED & set(text) else text


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


LINES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {"json": _json, "csv": _csv}
