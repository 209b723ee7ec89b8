"""``rocketmq-commitlog``: a row for each unit of the logs of one store, or of many (see :mod:`engine.pipeline.schema`).

Options:

- ``path``: a store, or a pattern of stores. ``broker``: the name for all of them.
- ``splitBytes``: bytes that one task reads (256 MiB).
- ``crc``: ``false`` leaves bodies unchecked. ``body``: ``true`` adds the body. ``blanks``: ``true`` gives blanks rows.
- ``columns``: names with commas between. Only these are decoded, as with a schema that the user gives.
- ``queues`` and ``times``: facts that may be trusted in order to read less, see below.
- ``unreadable``: with ``row``, a store, a folder or a file that cannot be read is a row of the type ``damage`` with the
  reason, and the others are read; with ``fail`` the read fails.

Conditions of a query leave parts of the logs unread (:mod:`engine.pipeline.pruning`) and rows undecoded. They never
change the result. Conditions on physicalOffset, store and broker always do that. Conditions on topic, queueId and
queueOffset do it where the entries of all queues tile a range of the log, and each of its units itself belongs to
another topic or queue (``queues`` is ``prove``). Other ways could hide rows if an entry is wrong, or if a clock was set
back, so they need an option. ``queues`` = ``trust``: entries that tile a range are believed. ``times`` = ``trust``:
files are in the order of the clock, and conditions on storeTimestamp skip whole files. ``queues`` = ``off``: no queue
is read. Only the columns that a query needs are decoded, and bodies are checked against their CRC only if the query
needs ``crc`` (:mod:`engine.pipeline.spark_internals.one_read_each`). Spark's log and ``explain()`` report what is left
unread.

Following live logs: ``spark.readStream.format("rocketmq-commitlog")``.

Spark's checkpoint holds, for each store, the absolute offset behind the last unit that was delivered, and marks by
which the log is recognised (:mod:`engine.pipeline.stream_offsets`). A trigger takes the complete units behind that
offset: up to the last unit in a row, looking from where the newest queue entries point. So damage does not block the
query once later messages are dispatched. Files that roll over, and new stores that match the path, need no action. A
store that appears under another path while its old path is gone continues at its old position. The same range of the
log gives the same rows, so a range that Spark requests again after a restart is neither lost nor doubled.

The query ends with an error in one sentence if a log was cut back behind what was delivered, was replaced,
is gone or empty, or if its files were deleted before they were read. With ``failOnDataLoss=false`` each such store
gives one row of the type ``damage`` with the range and the reason, and the query continues: in a log that was cut back,
behind the newest unit that is still there (units up to the cut may come a second time, with the same physicalOffset);
in another log, with its first unit.

Options of following, besides those of reading: ``startingOffsets`` (``earliest``, ``latest``) or ``startingTimestamp``
(ms since the epoch, or ISO 8601: the first unit stored then or later, also in stores that appear later) for a query
without a checkpoint; ``failOnDataLoss`` (true); ``maxBytesPerTrigger``: bytes of logs in one batch, shared out among
the stores by their unread bytes, at least a unit of each (Spark 4.2 and later; earlier ones pass no limit to a source).
:func:`engine.pipeline.lag` returns how far a query is behind.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)

from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead, NotAStore, StoreError, UsageError
from engine.pipeline import filters, schema, splits
from engine.pipeline.files import StorePlace, Unread
from engine.pipeline.options import LogOptions, Parts, describe_read, group_parts, make_partitions, report_skipped
from engine.pipeline.part_source import NO_WRITER, unread_row
from engine.pipeline.pruning import needed_ranges
from engine.pipeline.queue_files import list_queues, log_end, newest_entry
from engine.pipeline.schema import UNIT, user_columns
from engine.pipeline.spark_internals.worker_process import in_one_line, settling
from engine.pipeline.splits import Ranges, Split, SplitPlan, plan
from engine.pipeline.stream_offsets import (
    Log,
    LostRange,
    NextRange,
    Position,
    deleted_range,
    find_moved_store,
    plan_step,
    position_at,
    positions,
)
from engine.pipeline.unit_batches import RowMaker
from engine.pipeline.unit_rows import needs_crc, rows_of
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1 look once by themselves, and tell no limit

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark's word for a source that can be read up to what is there now."""

    ReadAllAvailable = ReadMaxBytes = None  # type: ignore[assignment,misc]


CheckpointOffsets = dict[str, Any]
"""What a checkpoint holds, by the path of the store."""
GONE = "the store is not there any more (is its disk mounted?)"
EMPTY = "its log is empty, and was not (is its disk mounted?)"
REPLACED = "the log was replaced between planning and reading"


@dataclass(frozen=True, slots=True)
class LossPart:
    """A loss of a store's bytes, as a part that gives its row."""

    store: str
    broker: str | None
    start: int
    stop: int
    why: str


@dataclass(frozen=True, slots=True)
class _FollowedLog:
    """A log and its end now."""

    log: Log
    end: int


class CommitLogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reports the ends of the logs, and reads the bytes between two such ends."""

    def __init__(self, options: LogOptions, names: Iterable[str]) -> None:
        self.read_options = options
        self.columns = schema.select_columns(schema.UNIT, names)
        self._until: dict[str, int] | None = None
        self._reported_offsets: CheckpointOffsets = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._unread: set[str] = set()

    # -- where the logs end

    @in_one_line
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Note the present ends of the logs: a query that is triggered once ends there."""
        self._until = {path: followed.end for path, followed in self._look().items()}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """Return ``maxBytesPerTrigger``, where it is given."""
        limit_bytes = self.read_options.following.limit_bytes
        return ReadAllAvailable() if limit_bytes is None else ReadMaxBytes(limit_bytes)

    @in_one_line
    def initialOffset(self) -> CheckpointOffsets:  # noqa: N802  Spark's name
        """Return the offsets at which a query without a checkpoint begins."""
        if not self.read_options.following.latest:
            return {}
        ends = self._look().items()
        return {
            path: position_at(followed.log, followed.end, None).to_checkpoint()
            for path, followed in ends
            if followed.end
        }

    @in_one_line
    def latestOffset(self, start: CheckpointOffsets | None = None, limit: Any = None) -> CheckpointOffsets:  # noqa: N802  Spark's name
        """Return the end up to which each log can be read now, from ``start`` on; raises :class:`StoreError` where
        something was lost.
        """
        new_offsets = dict(self._reported_offsets if start is None else start)
        old_positions = positions(new_offsets)
        followed_logs = self._look()
        self._follow_moved(new_offsets, old_positions, followed_logs)
        for path in old_positions.keys() - followed_logs.keys() - self._unread:
            new_offsets[path] = self._missing(path, old_positions[path], GONE)
        if self._until is not None:
            until = self._until
            followed_logs = {
                path: _FollowedLog(followed.log, until[path])
                for path, followed in followed_logs.items()
                if path in until
            }
        steps: dict[str, NextRange] = {}
        for path, followed in followed_logs.items():
            position = old_positions.get(path)
            if position is not None and position.offset and not followed.end:
                new_offsets[path] = self._missing(path, position, EMPTY)
            else:
                steps[path] = self._step(followed, position)
        for path, end in _limit_batch(steps, followed_logs, getattr(limit, "max_bytes", None)).items():
            position = position_at(followed_logs[path].log, end, old_positions.get(path))
            if start is not None:  # otherwise it is looked at again when the batch is planned
                position = dataclasses.replace(position, begin=steps[path].begin, lost=steps[path].lost)
            new_offsets[path] = position.to_checkpoint()
        self._reported_offsets = new_offsets
        return new_offsets

    def reportLatestOffset(self) -> CheckpointOffsets | None:  # noqa: N802  Spark's name
        """Return the begin and end of each log at the last look, for the query's progress."""
        return {
            path: {"first": first_offset, "offset": end} for path, (first_offset, end) in self._ends.items()
        } or None

    def _follow_moved(
        self,
        new_offsets: CheckpointOffsets,
        old_positions: dict[str, Position],
        followed_logs: Mapping[str, _FollowedLog],
    ) -> None:
        lacking = {
            path: position
            for path, position in old_positions.items()
            if path not in followed_logs and path not in self._unread
        }
        for path, followed in followed_logs.items():
            old_path = find_moved_store(followed.log, lacking) if lacking and path not in old_positions else None
            if old_path is not None:
                position = lacking.pop(old_path)
                old_positions[path] = dataclasses.replace(position, begin=position.offset, lost=None, is_missing=False)
                new_offsets[path] = old_positions[path].to_checkpoint()
                del new_offsets[old_path], old_positions[old_path]

    def _missing(self, path: str, position: Position, why: str) -> Any:
        if self.read_options.following.fail:
            raise _loss_error(path, LostRange(position.offset, position.offset, why))
        return (position if position.is_missing else position.as_missing(why)).to_checkpoint()

    def _step(self, followed: _FollowedLog, position: Position | None) -> NextRange:
        log, following = followed.log, self.read_options.following
        if position is None:
            begin = log.first if following.since is None else log.since(following.since, log.first, followed.end)
            return NextRange(begin, followed.end)
        next_step = plan_step(log, followed.end, position)
        if next_step.lost is not None and following.fail:
            raise _loss_error(log.store.path, next_step.lost)
        return next_step

    def _look(self) -> dict[str, _FollowedLog]:
        """Return the logs as they are now, by the paths of their stores."""
        followed_logs: dict[str, _FollowedLog] = {}
        self._unread = set()
        for store in self._stores():
            try:
                log = Log(store)
                followed_logs[store.path] = _FollowedLog(log, _current_end(store))
                self._ends[store.path] = (log.first, followed_logs[store.path].end)
            except CannotRead as error:
                if self.read_options.following.fail:
                    raise
                self._unread.add(store.path)
                sys.stderr.write(f"{error}: nothing of this store comes until it can be read\n")
        return followed_logs

    def _stores(self) -> list[StorePlace]:
        try:
            return self.read_options.stores()
        except NotAStore:
            return []  # none yet

    # -- what lies between two ends

    @in_one_line
    def partitions(self, start: CheckpointOffsets, end: CheckpointOffsets) -> Sequence[InputPartition]:
        """Return the splits between two ends; nothing if no bytes were added. Raises :class:`StoreError` where
        something was lost since the ends were reported.
        """
        stores = {store.path: store for store in self._stores()}
        parts: list[Split] = []
        loss_parts: list[LossPart] = []
        for path, end_offset in end.items():
            position = Position.from_checkpoint(end_offset)
            if end_offset == start.get(path) or Position.from_checkpoint(start.get(path, 0)) == position:
                continue
            store = stores.get(path)
            broker = store.broker if store is not None else None
            if position.lost is not None:
                loss_parts.append(LossPart(path, broker, *dataclasses.astuple(position.lost)))
            if position.is_missing or position.begin == position.offset:
                continue
            start_offset, losses = self._range(store, start.get(path), position)
            for lost in losses:
                if self.read_options.following.fail:
                    raise _loss_error(path, lost)
                loss_parts.append(LossPart(path, broker, *dataclasses.astuple(lost)))
            if store is not None and start_offset < position.offset:
                parts += self._splits(store, start_offset, position.offset)
        return [*(Parts((loss,)) for loss in loss_parts), *group_parts(parts, self.read_options.split_bytes)]

    def _range(
        self, store: StorePlace | None, start_offset: Any, end_position: Position
    ) -> tuple[int, list[LostRange]]:
        """Return the start of the batch that ends at ``end_position``, and the ranges of it that cannot be read any
        more.
        """
        start_position = Position.from_checkpoint(start_offset) if start_offset is not None else None
        if store is None:
            begin = (
                end_position.begin
                if end_position.begin is not None
                else start_position.offset
                if start_position is not None
                else 0
            )
            return end_position.offset, [LostRange(begin, end_position.offset, GONE)]
        log = Log(store)
        if end_position.begin is not None:
            next_step = NextRange(end_position.begin, end_position.offset)
        elif start_position is None:
            next_step = self._step(_FollowedLog(log, end_position.offset), None)
        else:
            next_step = plan_step(log, end_position.offset, start_position)
        losses = [next_step.lost] if next_step.lost is not None else []
        if end_position.marks and log.holds(end_position.marks[-1]) is False:
            return end_position.offset, [*losses, LostRange(next_step.begin, end_position.offset, REPLACED)]
        if next_step.begin < log.first:
            losses.append(deleted_range(next_step.begin, min(log.first, end_position.offset)))
        return max(next_step.begin, log.first), losses

    def _splits(self, store: StorePlace, start_offset: int, stop_offset: int) -> Iterator[Split]:
        wanted_ranges = {store.path: Ranges(((start_offset, stop_offset),), "read before")}
        for split in plan([store], self.read_options.split_bytes, wanted_ranges).splits:
            begins = split.file_start + split.start == start_offset
            yield dataclasses.replace(split, exact=True) if begins else split

    # -- rows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        return settling(batch for part in partition.parts for batch in self._rows(part))

    def _rows(self, part: Split | LossPart) -> Iterable[pa.RecordBatch]:
        return (
            [self._loss_batch(part)] if isinstance(part, LossPart) else rows_of([part], self.columns, self.read_options)
        )

    def _loss_batch(self, loss: LossPart) -> pa.RecordBatch:
        split = Split(loss.store, loss.broker, "", loss.start, 0, 0, 0)
        damage = Damage(loss.start, loss.stop - loss.start, loss.why)
        return RowMaker(self.columns, split, TopicTable()).damage(damage)


def _limit_batch(
    steps: Mapping[str, NextRange], followed_logs: Mapping[str, _FollowedLog], limit_bytes: int | None
) -> dict[str, int]:
    """Return the end of the batch in each log with new bytes or a loss: ``limit_bytes`` bytes in all, at least a unit
    of each log.
    """
    total = sum(max(next_step.end - next_step.begin, 0) for next_step in steps.values())
    ends: dict[str, int] = {}
    for path, next_step in steps.items():
        size = next_step.end - next_step.begin
        if size <= 0:
            if next_step.lost is not None:
                ends[path] = next_step.begin
        elif limit_bytes is None or total <= limit_bytes:
            ends[path] = next_step.end
        else:
            ends[path] = followed_logs[path].log.cut(
                next_step.begin + max(limit_bytes * size // total, 1), next_step.end
            )
    return ends


def _loss_error(path: str, lost: LostRange) -> StoreError:
    go_on = "with failOnDataLoss=false the query tells it in a row of the type damage and goes on"
    return StoreError(sentence("this query missed data: {why}; {go_on}", why=lost.why, go_on=go_on), file=path)


def _current_end(store: StorePlace) -> int:
    hints = [entry for entry in map(newest_entry, list_queues(store)) if entry is not None]
    return log_end(store, hints, live=True)


NAME = "rocketmq-commitlog"


class PlainLogReader(DataSourceReader):
    """Plans and reads the splits."""

    def __init__(self, options: LogOptions, names: Iterable[str]) -> None:
        self.read_options = options
        self.columns = schema.select_columns(schema.UNIT, names)
        self.conditions: list[filters.Condition] = []

    @in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each task; bytes that are left unread are reported in Spark's log."""
        plan = self.plan()
        report_skipped(NAME, plan.skipped)
        crc = needs_crc(self.columns, self.read_options, self.conditions)
        description = describe_read(self.columns, self.conditions, plan.splits, plan.skipped, crc)
        return make_partitions([*plan.unread, *plan.splits], self.read_options.split_bytes, description)

    def plan(self) -> SplitPlan:
        """Plan the splits that can hold rows the query asks for."""
        stores = filters.select_stores(self.conditions, self.read_options.stores())
        ranges = needed_ranges(stores, filters.plan_limits(self.conditions), self.read_options.trust)
        return splits.plan(stores, self.read_options.split_bytes, ranges, without_unread=not self.read_options.fails)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        parts = [part for part in partition.parts if not isinstance(part, Unread)]
        unread = (unread_row(self.columns, part) for part in partition.parts if isinstance(part, Unread))
        return settling(itertools.chain(unread, rows_of(parts, self.columns, self.read_options, self.conditions)))


class CommitLogReader(filters.PushdownReader, PlainLogReader):
    """A reader that also gets the query's conditions."""


class CommitLogSource(DataSource):
    """The format ``rocketmq-commitlog``, to be read at once or followed."""

    READER: ClassVar[type[PlainLogReader]] = CommitLogReader

    @in_one_line
    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.read_options = LogOptions(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        """Return the requested columns as Spark's schema."""
        return schema.ddl(self.read_options.columns)

    @in_one_line
    def reader(self, schema: StructType) -> PlainLogReader:
        """Return a reader of the columns of ``schema``."""
        return self.READER(self.read_options, user_columns(UNIT, schema))

    @in_one_line
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Refuse: these formats are only read."""
        raise UsageError(NO_WRITER)

    @in_one_line
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Return a reader that follows the logs."""
        return CommitLogStream(self.read_options, user_columns(UNIT, schema))


class PlainCommitLogSource(CommitLogSource):
    """The format for a Spark that does not support :mod:`engine.pipeline.spark_internals.one_read_each`."""

    READER = PlainLogReader
