"""Following live logs: ``spark.readStream.format("rocketmq-commitlog")``.

Spark's checkpoint holds, for each store, the absolute offset behind the last unit that was delivered. A trigger takes
what stands whole behind it: up to the last unit in a row, seen from where the newest queue entries point, so that
damage holds nothing up once later messages are dispatched. Files that roll over, and stores that come to match the
path, need nothing. The same range of the log gives the same rows, so what Spark asks for again after a restart is
neither lost nor doubled. What was deleted before it was read is one row of the type ``damage``. A log that a recovery
cut back behind the checkpoint is waited for: rows that were delivered are not taken back.

Option beside those of reading: ``startingOffsets``, ``earliest`` (default) or ``latest``, for a query without a
checkpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import NotAStore
from engine.pipeline import schema
from engine.pipeline.files import StorePlace, log_files
from engine.pipeline.options import LogOptions, Parts, grouped
from engine.pipeline.queue_files import list_queues, log_end, newest
from engine.pipeline.rows import rows_of
from engine.pipeline.splits import Ranges, Split, plan
from engine.pipeline.unit_rows import RowMaker
from engine.pipeline.workers import settling

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1 look once by themselves

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark's word for a source that can be read up to what is there now."""


Offsets = dict[str, int]


@dataclass(frozen=True, slots=True)
class Gone:
    """Bytes [``start``, ``stop``) of a log, absolute, that no file holds any more."""

    store: str
    broker: str | None
    start: int
    stop: int


class CommitLogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells where the logs end, and reads what lies between two such ends."""

    def __init__(self, asked: LogOptions, names: Sequence[str]) -> None:
        self.asked = asked
        self.columns = schema.chosen(schema.UNIT, names)
        self._last: Offsets | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Take note of what is there now: a query that is triggered once ends there."""
        self._last = self._ends()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Where a query without a checkpoint begins."""
        return self._ends() if self.asked.latest else {}

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: ARG002, N802
        """How far each log can be read now, not less than ``start``."""
        before = start or {}
        ends = self._ends() if self._last is None else self._last
        return {**before, **{path: max(end, before.get(path, 0)) for path, end in ends.items()}}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The splits between two ends; nothing where nothing came."""
        parts: list[Split] = []
        gone: list[Gone] = []
        for store in self._stores():
            low, high = start.get(store.path, -1), end.get(store.path, 0)
            files = log_files(store)
            first = min((file.start for file in files), default=high)
            if 0 <= low < first:
                gone.append(Gone(store.path, store.broker, low, min(first, high)))
            low = max(low, first)
            if low < high:
                want = {store.path: Ranges(((low, high),), "read before")}
                for split in plan([store], self.asked.split_bytes, want).splits:
                    begins = split.file_start + split.start == low
                    parts.append(dataclasses.replace(split, exact=True) if begins else split)
        return [*(Parts((one,)) for one in gone), *grouped(parts, self.asked.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        return settling(batch for part in partition.parts for batch in self._rows(part))

    def _rows(self, part: Split | Gone) -> Iterable[pa.RecordBatch]:
        return [self._gone(part)] if isinstance(part, Gone) else rows_of([part], self.columns, self.asked)

    def _gone(self, gone: Gone) -> pa.RecordBatch:
        split = Split(gone.store, gone.broker, "", gone.start, 0, 0, 0)
        what = Damage(gone.start, gone.stop - gone.start, "the files were deleted before they were read")
        return RowMaker(self.columns, split, TopicTable()).damage(what)

    def _ends(self) -> Offsets:
        return {store.path: _end(store) for store in self._stores()}

    def _stores(self) -> list[StorePlace]:
        try:
            return self.asked.stores()
        except NotAStore:
            return []  # none yet


def _end(store: StorePlace) -> int:
    hints = [entry for entry in map(newest, list_queues(store)) if entry is not None]
    return log_end(store, hints, live=True)
