"""Questions of the window in SQL, and the worker's answers. No Qt.

The rows of a short answer come with it. Those of a long one are in an Arrow file, of which the table reads what is on
the screen.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine.sql.answer_text import plain_value
from viewer.widgets.row_window import Page

if TYPE_CHECKING:
    import pyarrow as pa

ROW_LIMIT = 100_000
"""Rows of an answer that are fetched at first."""
MORE_ROWS = 10
"""Factor of the limit if the user wants to see more."""
Kind = Literal["integer", "number", "time", "text", "bytes", "boolean", "list"]
"""What a column holds. A ``time`` is µs since the epoch; a ``list`` also stands for maps and structures."""
Values = tuple[Any, ...]
PLAN_COLUMNS = ("explain_key", "explain_value")
"""The columns with which DuckDB answers EXPLAIN."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in SQL, and how much of its answer is wanted. ``is_decoded``: ``units`` have decoded bodies, by the
    rules in force.
    """

    text: str
    with_bodies: bool = False
    row_limit: int = ROW_LIMIT
    is_decoded: bool = False

    @property
    def command(self) -> list[str]:
        """The words of the command that asks the same."""
        options = ["--decoded"] if self.is_decoded else ["--body"] if self.with_bodies else []
        return ["storescope", "sql", "STORE", self.text.strip(), *options]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of an answer."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question. ``rows`` are all rows of a short one; those of a long one are in ``file``, and
    ``starts`` are the numbers of the first rows of its batches.
    """

    question: Question
    columns: tuple[ResultColumn, ...]
    row_count: int
    rows: tuple[Values, ...] | None
    file: Path | None
    starts: tuple[int, ...]
    is_cut: bool
    """There are further rows."""
    is_complete: bool
    """Everything that the question names was read."""
    seconds: float
    log_end: int
    """Offset at which the log ended when it was read."""
    read_at_ms: int

    @property
    def is_plan(self) -> bool:
        """True if the question was EXPLAIN."""
        return tuple(column.name for column in self.columns) == PLAN_COLUMNS


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a question has no answer; ``start`` and ``length`` are the characters of its text that are wrong."""

    reason: str
    start: int | None = None
    length: int = 0


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of questions. ``relations`` have (column, type) each; ``missing`` says what is not installed."""

    relations: dict[str, tuple[tuple[str, str], ...]]
    functions: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    missing: str = ""


def kind_of(arrow_type: Any) -> Kind:
    """Return the kind of an Arrow type."""
    import pyarrow as pa

    types = pa.types
    if types.is_integer(arrow_type) or (types.is_decimal(arrow_type) and arrow_type.scale == 0):
        return "integer"
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        return "time"
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type):
        return "bytes"
    return "list" if types.is_nested(arrow_type) else "text"


def values_of(batch: pa.RecordBatch) -> list[Values]:
    """Return the rows of a batch as plain values, see :data:`Kind`."""
    return list(zip(*(_plain_column(column) for column in batch.columns), strict=True))


def _plain_column(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    kind = kind_of(column.type)
    if kind == "time":
        return list(column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist())
    values: list[Any] = column.to_pylist()
    if kind in {"boolean", "bytes"} or pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return values
    return [plain_value(value, is_map=pa.types.is_map(column.type)) for value in values]


class SqlRow(dict[str, Any]):
    """A row of an answer: name → value. Rows are told apart by their number, not by their values."""

    __slots__ = ("number",)
    __hash__ = object.__hash__  # type: ignore[assignment]  # the table holds rows by identity

    def __init__(self, number: int, names: tuple[str, ...], values: Values) -> None:
        super().__init__(zip(names, values, strict=True))
        self.number = number

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


def rows_of(answer: Answer) -> list[SqlRow]:
    """Return the rows of a short answer."""
    names = tuple(column.name for column in answer.columns)
    return [SqlRow(number, names, values) for number, values in enumerate(answer.rows or ())]


def as_record(row: SqlRow, columns: tuple[ResultColumn, ...]) -> dict[str, Any]:
    """Return a row as ``storescope sql --format json`` prints it."""
    return {column.name: _as_json(row[column.name], column.kind) for column in columns}


def _as_json(value: Any, kind: Kind) -> Any:
    if kind == "time" and value is not None:
        return datetime.fromtimestamp(value / 1_000_000, UTC).isoformat()
    return plain_value(value)


def plan_text(answer: Answer) -> str:
    """Return the plan that EXPLAIN answers."""
    return "\n".join(str(values[1]).rstrip("\n") for values in answer.rows or ())


def cell_text(value: Any) -> str:
    """Return a list, a map or a structure as JSON."""
    return json.dumps(plain_value(value), ensure_ascii=False)


class AnswerFile:
    """The rows of a long answer, read from its file where they are needed. Positions are the numbers of rows."""

    start = 0

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._names = tuple(column.name for column in answer.columns)
        self._lock = threading.Lock()
        self._reader: pa.ipc.RecordBatchFileReader | None = None

    @property
    def end(self) -> int:
        return self._answer.row_count

    @property
    def total(self) -> int:
        return self._answer.row_count

    def read(self, position: int, rows_before: int, rows_after: int) -> Page[SqlRow]:
        """Read rows; see :class:`viewer.widgets.row_window.RowSource`. Raises ``OSError``."""
        start, end = max(0, position - rows_before), min(self.end, position + rows_after)
        return Page(self.rows(start, end), max(0, position - start), start == 0, end >= self.end)

    def rows(self, start: int, end: int) -> list[SqlRow]:
        """Return the rows from number ``start`` up to ``end``. Raises ``OSError``."""
        rows: list[SqlRow] = []
        starts = self._answer.starts
        with self._lock:
            reader = self._open()
            while start < end:
                number = bisect_right(starts, start) - 1
                batch = reader.get_batch(number)
                part = batch.slice(start - starts[number], end - start)
                rows += [SqlRow(start + n, self._names, values) for n, values in enumerate(values_of(part))]
                start += part.num_rows
        return rows

    def _open(self) -> pa.ipc.RecordBatchFileReader:
        if self._reader is None:
            import pyarrow as pa

            self._reader = pa.ipc.open_file(pa.memory_map(str(self._answer.file)))
        return self._reader

    def position(self, row: SqlRow) -> int:
        return row.number

    def behind(self, row: SqlRow) -> int:
        return row.number + 1

    def number(self, row: SqlRow) -> int:
        return row.number

    def position_of(self, number: int) -> int:
        return number
