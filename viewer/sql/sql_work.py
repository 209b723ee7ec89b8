"""Worker functions of the view SQL. No Qt."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewer.sql.answers import Answer, Question, Refusal, ResultColumn, Values, Vocabulary, kind_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.config import MessageStoreConfig
    from engine.inspection.snapshot import StoreSnapshot
    from engine.sql import store_queries
    from viewer.runtime.worker import WorkerControl

STOP_POLL_S = 0.05
SHORT_ROWS, SHORT_VALUES = 20_000, 200_000
"""An answer of at most so many rows and values comes as a whole; it can be sorted in the window."""
MAX_FILE_BYTES = 512 << 20
"""Bytes of an answer's file, then further rows are left out."""


def vocabulary(control: WorkerControl) -> Vocabulary:
    """Return relations, columns, functions and keywords."""
    from engine.errors import StoreError
    from engine.sql.decoded_units import DECODED_UNITS
    from engine.sql.relations import WITH_BODIES, sql_type
    from engine.sql.store_queries import duckdb_words

    relations = {
        name: tuple((column, sql_type(kind)) for column, kind in columns.items())
        for name, columns in (
            {name: relation.columns for name, relation in WITH_BODIES.items()} | {"units": DECODED_UNITS}
        ).items()
    }
    control.check()
    try:
        functions, keywords = duckdb_words()
    except StoreError as error:
        return Vocabulary(relations, missing=error.what)
    return Vocabulary(relations, tuple(functions), tuple(keywords))


def ask(
    control: WorkerControl, path: Path, config: MessageStoreConfig | None, question: Question, file: Path
) -> Answer | Refusal:
    """Answer a question; the rows of a long answer are written to ``file``, which is new.

    Raises StoreError, OSError, and Cancelled if the user stopped it.
    """
    from engine.errors import UsageError
    from engine.inspection import open_store
    from engine.sql.store_queries import BadQuestion

    begin, now_ms = time.monotonic(), time.time_ns() // 1_000_000
    with open_store(path, config) as store:
        log_end = store.log.end_offset
        try:
            with _queries(control, store, question) as queries:
                answer = queries.ask(question.text)
                rows = _Rows(answer.schema, file)
                try:
                    is_cut = rows.take(control, answer, question.row_limit)
                finally:
                    rows.close()
        except UsageError as error:
            control.check()  # a question that was stopped ends as a wrong one
            if isinstance(error, BadQuestion):
                return Refusal(error.what, error.start, error.length)
            return Refusal(error.what)
        is_complete = not store.unread and not store.reading.undecoded
    return Answer(
        question,
        rows.columns,
        rows.count,
        rows.short_rows(),
        file if rows.is_long else None,
        tuple(rows.starts),
        is_cut,
        is_complete,
        time.monotonic() - begin,
        log_end,
        now_ms,
    )


def export(
    control: WorkerControl, path: Path, config: MessageStoreConfig | None, question: Question, target: Path
) -> int:
    """Ask again, and write all rows to ``target``, outside of the store, as its suffix says; return how many.

    Raises StoreError, OSError, and Cancelled if the user stopped it.
    """
    from engine.errors import UsageError
    from engine.files.atomic_file import atomic_file, check_new_file
    from engine.inspection import open_store
    from engine.sql import answer_text

    check_new_file(path, target, overwrite=True)
    with open_store(path, config) as store:
        try:
            with _queries(control, store, question) as queries, atomic_file(target) as out:
                answer = queries.ask(question.text)
                if target.suffix == ".parquet":
                    return answer_text.write_parquet(answer, out)
                text = io.TextIOWrapper(out, encoding="utf-8", newline="")
                writer = answer_text.write_csv if target.suffix == ".csv" else answer_text.write_json
                try:
                    count = writer(answer, text)
                    text.flush()
                finally:
                    text.detach()
                return count
        except UsageError:
            control.check()
            raise


@contextlib.contextmanager
def _queries(control: WorkerControl, store: StoreSnapshot, question: Question) -> Iterator[store_queries.StoreQueries]:
    """Yield a connection that stops when the user wants it."""
    from engine.decoding.bodies import decoders_in_force
    from engine.sql.store_queries import StoreQueries

    decoders = decoders_in_force() if question.is_decoded else None
    rules = decoders.rules if decoders is not None else None
    total = store.log.sequence.total_size
    ended = threading.Event()

    def on_progress(done: int) -> None:
        control.check()
        control.report(done, total)

    with StoreQueries(
        store, with_bodies=question.with_bodies, decoding_rules=rules, on_progress=on_progress
    ) as queries:

        def watch() -> None:
            while not ended.wait(STOP_POLL_S):
                if control.cancelled:
                    queries.interrupt()

        watcher = threading.Thread(target=watch, name="sql-stop", daemon=True)
        watcher.start()
        try:
            yield queries
        finally:
            ended.set()
            watcher.join()


class _Rows:
    """The rows of an answer: in memory as long as they are few, then in a file."""

    def __init__(self, schema: pa.Schema, file: Path) -> None:
        import pyarrow as pa

        from engine.sql.answer_text import unique_names

        names = unique_names(schema.names)
        self._schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        self.columns = tuple(ResultColumn(field.name, kind_of(field.type)) for field in self._schema)
        self._file = file
        self._batches: list[pa.RecordBatch] = []
        self._sink: Any = None
        self._writer: Any = None
        self.count = 0
        self.starts: list[int] = []

    @property
    def is_long(self) -> bool:
        """Return True if the rows are in the file."""
        return self._writer is not None

    def take(self, control: WorkerControl, answer: store_queries.Answer, row_limit: int) -> bool:
        """Take up to ``row_limit`` rows; return True if there are further ones."""
        for batch in answer:
            control.check()
            wanted = batch.slice(0, row_limit - self.count)
            if wanted.num_rows:
                self._add(wanted)
            if wanted.num_rows < batch.num_rows:
                return True
            if self._sink is not None and self._sink.tell() > MAX_FILE_BYTES:
                return next(answer, None) is not None
        return False

    def _add(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        named_batch = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        self.starts.append(self.count)
        self.count += batch.num_rows
        if self._writer is None:
            self._batches.append(named_batch)
            if self.count <= SHORT_ROWS and self.count * len(self.columns) <= SHORT_VALUES:
                return
            self._sink = pa.OSFile(str(self._file), "wb")
            self._writer = pa.ipc.new_file(self._sink, self._schema)
            for waiting in self._batches:
                self._writer.write_batch(waiting)
            self._batches = []
        else:
            self._writer.write_batch(named_batch)

    def short_rows(self) -> tuple[Values, ...] | None:
        """Return the rows if they are few."""
        return None if self.is_long else tuple(values for batch in self._batches for values in values_of(batch))

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()
            self._sink.close()
