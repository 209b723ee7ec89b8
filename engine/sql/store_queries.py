"""Runs questions in SQL over one store: only questions, and no other file of the machine is reached."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine.errors import StoreError, UsageError
from engine.sentences import sentence
from engine.sql.decoded_units import DECODED_UNITS, decoded_unit_batches
from engine.sql.relations import RELATIONS, WITH_BODIES, Relation, RelationReader, as_dataset

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.decoding.rules import DecodingRule
    from engine.inspection.snapshot import StoreSnapshot
    from engine.sql.unit_relations import Progress

BATCH_ROWS = 1 << 16
"""Rows of a batch of the result."""
MEMORY = "2GB"
"""What sorting and grouping hold in memory before they write to a temporary folder."""


class MissingPackages(StoreError):
    """DuckDB or pyarrow is not installed."""


class StoreQueries:
    """Answers questions about a store. ``store`` stays the caller's; one question at a time.

    ``with_bodies`` gives ``units`` the column ``body``, ``decoding_rules`` also ``decoded`` and ``decodeError``.
    ``on_progress`` is told the bytes of the log that were read.
    """

    def __init__(
        self,
        store: StoreSnapshot,
        *,
        with_bodies: bool = False,
        decoding_rules: Sequence[DecodingRule] | None = None,
        on_progress: Progress = lambda _done: None,
    ) -> None:
        relations = WITH_BODIES if with_bodies else RELATIONS
        if decoding_rules is not None:
            relations = relations | {"units": Relation(DECODED_UNITS, decoded_unit_batches(decoding_rules))}
        duck = _duckdb()
        self._spill = tempfile.TemporaryDirectory(prefix="storescope-sql-", ignore_cleanup_errors=True)
        self._connection = duck.connect(
            ":memory:",
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "memory_limit": MEMORY,
                "temp_directory": str(Path(self._spill.name) / "spill"),
            },
        )
        self._readers: dict[str, RelationReader] = {}
        turn = threading.Lock()
        for name, relation in relations.items():
            reader = RelationReader(store, relation, on_progress, turn)
            self._readers[name] = reader
            self._connection.register(name, as_dataset(reader, relation.columns))
        self._connection.execute("SET TimeZone = 'UTC'; SET lock_configuration = true")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the relations, and remove what was written to the temporary folder."""
        self._connection.close()
        self._spill.cleanup()

    def interrupt(self) -> None:
        """Stop a question that runs in another thread; it ends with :class:`UsageError`."""
        self._connection.interrupt()

    def ask(self, text: str) -> Answer:
        """Begin to answer one SELECT (or DESCRIBE, SHOW, EXPLAIN, VALUES).

        Raises :class:`UsageError` for anything else and for a mistake in the text, :class:`StoreError` where the store
        cannot be read.
        """
        duck = _duckdb()
        try:
            statements = self._connection.extract_statements(text)
        except duck.Error as error:
            raise UsageError(_sentence_of(error)) from error
        if len(statements) != 1:
            raise UsageError(sentence("expected one question in SQL, found {n}", n=len(statements)))
        kind = statements[0].type
        if kind not in (duck.StatementType.SELECT, duck.StatementType.EXPLAIN):
            raise UsageError(
                sentence("expected a question (SELECT …), found {kind}: a store is only read", kind=kind.name)
            )
        return Answer(self, self._guarded(lambda: self._connection.sql(statements[0]).to_arrow_reader(BATCH_ROWS)))

    def _guarded(self, step: Any) -> Any:
        """Run a step of DuckDB, and raise what ended it as an error of this program."""
        for reader in self._readers.values():
            reader.error = None
        try:
            return step()
        except (_duckdb().Error, OSError, ValueError) as error:
            for reader in self._readers.values():
                if reader.error is not None:
                    raise reader.error from error
            raise UsageError(_sentence_of(error)) from error


class Answer:
    """The rows of an answer: read once, in their order."""

    def __init__(self, queries: StoreQueries, reader: pa.RecordBatchReader) -> None:
        self._queries = queries
        self._reader = reader
        self.schema: pa.Schema = reader.schema

    def __iter__(self) -> Answer:
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next rows. Raises :class:`StoreError` where the store cannot be read."""
        batch = self._queries._guarded(lambda: next(self._reader, None))  # noqa: SLF001
        if batch is None:
            raise StopIteration
        return batch


def _duckdb() -> Any:
    try:
        import duckdb
        import pyarrow.dataset  # noqa: F401
    except ImportError as error:
        raise MissingPackages(
            sentence("SQL needs the package {name}: pip install 'storescope[sql]'", name=error.name or "duckdb")
        ) from error
    return duckdb


def _sentence_of(error: BaseException) -> str:
    """Return the first paragraph of an error of DuckDB, without the kind of error in front."""
    return " ".join(str(error).split("\n\n", 1)[0].split())
