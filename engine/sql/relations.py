"""The relations of a store, and how DuckDB reads them: a question names some columns of some rows, and only these
columns are decoded.

DuckDB asks an object of Arrow's class ``Dataset`` for a scan with the columns and the conditions of the question
(https://duckdb.org/docs/guides/python/sql_on_arrow). Each scan walks the store anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.pipeline import schema
from engine.sql.entry_relations import INDEX_ENTRIES, QUEUE_ENTRIES, index_batches, queue_batches
from engine.sql.record_relations import (
    FINDINGS,
    GROUPS,
    INDEX_FILES,
    QUEUES,
    TABLES,
    TOPICS,
    finding_batches,
    group_batches,
    index_file_batches,
    queue_list_batches,
    table_batches,
    topic_batches,
)
from engine.sql.unit_relations import DAMAGE, UNITS, UNITS_WITH_BODIES, Progress, damage_batches, unit_batches

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from engine.inspection.snapshot import StoreSnapshot

Batches = Callable[["StoreSnapshot", schema.Columns, Progress], Iterator["pa.RecordBatch"]]


@dataclass(frozen=True, slots=True)
class Relation:
    """The relations that SQL may name: their columns with types, and their readers."""

    columns: schema.Columns
    batches: Batches


RELATIONS: dict[str, Relation] = {
    "units": Relation(UNITS, unit_batches),
    "damage": Relation(DAMAGE, damage_batches),
    "topics": Relation(TOPICS, topic_batches),
    "queues": Relation(QUEUES, queue_list_batches),
    "queue_entries": Relation(QUEUE_ENTRIES, queue_batches),
    "index_files": Relation(INDEX_FILES, index_file_batches),
    "index_entries": Relation(INDEX_ENTRIES, index_batches),
    "groups": Relation(GROUPS, group_batches),
    "findings": Relation(FINDINGS, finding_batches),
    "tables": Relation(TABLES, table_batches),
}
_SQL_TYPES = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "map<string,string>": "MAP(VARCHAR, VARCHAR)",
    "array<string>": "VARCHAR[]",
}
WITH_BODIES = {**RELATIONS, "units": Relation(UNITS_WITH_BODIES, unit_batches)}


def sql_type(kind: str) -> str:
    """Return the type of a column as DuckDB names it."""
    return _SQL_TYPES[kind.removesuffix(" NOT NULL")]


class RelationReader:
    """Reads one relation of a store; ``error`` is what ended the last scan, if anything of this program did.

    DuckDB may scan several relations at once, each in a thread of its own: ``turn`` lets one of them read at a time.
    """

    def __init__(
        self, store: StoreSnapshot, relation: Relation, on_progress: Progress, turn: AbstractContextManager[object]
    ) -> None:
        self._store = store
        self._turn = turn
        self._relation = relation
        self._on_progress = on_progress
        self.error: BaseException | None = None

    def scan(self, names: list[str] | None, condition: Any) -> Scan:
        """Return a scan with the columns ``names``, in their order, of the rows that meet ``condition``."""
        return Scan(self, names or list(self._relation.columns), condition)

    def batches(self, names: list[str], condition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of :meth:`scan`."""
        import pyarrow as pa

        columns = needed_columns(self._relation.columns, names, condition)
        try:
            batches = self._relation.batches(self._store, columns, self._on_progress)
            while True:
                with self._turn:
                    batch = next(batches, None)
                if batch is None:
                    return
                if condition is None:
                    yield batch.select(names)
                else:
                    yield from pa.Table.from_batches([batch]).filter(condition).select(names).to_batches()
        except Exception as error:
            self.error = error
            raise

    def schema_of(self, names: list[str]) -> pa.Schema:
        """Return the columns ``names`` as Arrow knows them."""
        return schema.arrow_schema({name: self._relation.columns[name] for name in names})


class Scan:
    """A scan as DuckDB reads it: batch by batch in the thread that asks, so nothing goes on when it asks no more."""

    def __init__(self, reader: RelationReader, names: list[str], condition: Any) -> None:
        self._reader = reader
        self._names = names
        self._condition = condition

    def to_reader(self) -> pa.RecordBatchReader:
        """Arrow: the batches."""
        import pyarrow as pa

        batches = self._reader.batches(self._names, self._condition)
        return pa.RecordBatchReader.from_batches(self._reader.schema_of(self._names), batches)


def needed_columns(columns: schema.Columns, names: list[str], condition: Any) -> schema.Columns:
    """Return the columns that a scan reads: those in ``names``, and those that its condition names."""
    words = set(re.findall(r"\w+", str(condition))) if condition is not None else set()
    return {name: kind for name, kind in columns.items() if name in names or name in words}


def as_dataset(reader: RelationReader, columns: schema.Columns) -> ds.Dataset:
    """Return the relation as DuckDB knows it."""
    import pyarrow.dataset as ds

    class StoreDataset(ds.Dataset):  # type: ignore[misc]
        """The two things that DuckDB asks of a data set."""

        def __init__(self) -> None:
            pass

        @property
        def schema(self) -> pa.Schema:
            return schema.arrow_schema(columns)

        def scanner(
            self,
            columns: list[str] | None = None,
            filter: Any = None,  # noqa: A002  pyarrow's name
            **_options: Any,
        ) -> Scan:
            return reader.scan(columns, filter)

    return StoreDataset()
