"""``rocketmq-commitlog``: a row for each unit of the logs of one store, or of many (see :mod:`engine.pipeline.schema`).

Options: ``path`` (a store, or a pattern of stores), ``broker`` (the name for all of them), ``splitBytes`` (what a task
reads, 256 MiB), ``crc`` (false leaves bodies unchecked), ``body`` (true adds it), ``blanks`` (true gives them rows),
``columns`` (names with commas between: only these are decoded, as with a schema that is given), ``queues`` and
``times`` (what is believed to spare reading, see below), ``unreadable`` (``row``: a store, a folder or a file that
cannot be read is a row of the type ``damage`` with the reason, and the others are read; ``fail``: the read fails).

Conditions leave parts of the logs unread (:mod:`engine.pipeline.pruning`) and rows undecoded, and change nothing in
what comes: those on physicalOffset, store and broker by themselves, those on topic, queueId and queueOffset where the
entries of all queues tile a stretch of the log and each of its units says itself that it is another's (``queues`` is
``prove``). What a wrong entry, or a clock that was set back, would hide is behind options that say so. ``queues`` as
``trust``: entries that tile a stretch are believed. ``times`` as ``trust``: files are in the order of the clock, and
conditions on storeTimestamp pass over whole files. With ``queues`` as ``off`` no queue is looked at. Only columns that
a query needs are decoded, and bodies are held against their CRC only where it needs ``crc``
(:mod:`engine.pipeline.insides.one_read_each`). What is left unread is told in Spark's log and by ``explain()``.

Following live logs: ``spark.readStream.format("rocketmq-commitlog")``.

Spark's checkpoint holds, for each store, the absolute offset behind the last unit that was delivered, and marks by
which the log is known again (:mod:`engine.pipeline.stream_offsets`). A trigger takes what stands whole behind it: up to
the last unit in a row, seen from where the newest queue entries point, so that damage holds nothing up once later
messages are dispatched. Files that roll over, and stores that come to match the path, need nothing; a store that comes
under another path while its old one is gone goes on where it was. The same range of the log gives the same rows, so
what Spark asks for again after a restart is neither lost nor doubled.

A log that was cut back behind what was delivered, made anew or replaced, that is gone or empty, or whose files were
deleted before they were read, ends the query in one sentence. With ``failOnDataLoss=false`` each such store gives one
row of the type ``damage`` with the range and the reason, and the query goes on with what is there: of a log that was
cut back behind the newest unit that is known to stand there still (units up to the cut may come a second time, at the
same physicalOffset), of another log with its first.

Options beside those of reading: ``startingOffsets`` (``earliest``, ``latest``) or ``startingTimestamp`` (ms since the
epoch, or ISO 8601; the first unit stored then or later, of stores that come later too) for a query without a
checkpoint; ``failOnDataLoss`` (true); ``maxBytesPerTrigger``: bytes of logs in one batch, shared out among stores by
what they hold unread, at least a unit of each (Spark 4.2 and later; those before tell sources no limit). How far a
query is behind says :func:`engine.pipeline.lag`.
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
from engine.pipeline.insides.worker_process import in_one_line, settling
from engine.pipeline.options import LogOptions, Parts, grouped, partitions, tell, words
from engine.pipeline.part_source import NO_WRITER, unread_row
from engine.pipeline.pruning import needed
from engine.pipeline.queue_files import list_queues, log_end, newest
from engine.pipeline.schema import UNIT, given
from engine.pipeline.splits import Ranges, Split, SplitPlan, plan
from engine.pipeline.stream_offsets import Log, Lost, Position, Step, deleted, moved, positions, reached, step
from engine.pipeline.unit_rows import RowMaker, needs_crc, rows_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1 look once by themselves, and tell no limit

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark's word for a source that can be read up to what is there now."""

    ReadAllAvailable = ReadMaxBytes = None  # type: ignore[assignment,misc]


Kept = dict[str, Any]
"""What a checkpoint holds, by the path of the store."""
GONE = "the store is not there any more (is its disk mounted?)"
EMPTY = "its log is empty, and was not (is its disk mounted?)"
REPLACED = "the log was replaced between planning and reading"


@dataclass(frozen=True, slots=True)
class Told:
    """What was lost of a store, as a part that gives its row."""

    store: str
    broker: str | None
    start: int
    stop: int
    why: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """A log and where it ends now."""

    log: Log
    end: int


class CommitLogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells where the logs end, and reads what lies between two such ends."""

    def __init__(self, asked: LogOptions, names: Iterable[str]) -> None:
        self.asked = asked
        self.columns = schema.chosen(schema.UNIT, names)
        self._until: dict[str, int] | None = None
        self._given: Kept = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._unread: set[str] = set()

    # -- where the logs end

    @in_one_line
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Take note of what is there now: a query that is triggered once ends there."""
        self._until = {path: seen.end for path, seen in self._look().items()}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  Spark's name
        """``maxBytesPerTrigger``, where it is given."""
        most = self.asked.following.most
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    @in_one_line
    def initialOffset(self) -> Kept:  # noqa: N802  Spark's name
        """Where a query without a checkpoint begins."""
        if not self.asked.following.latest:
            return {}
        ends = self._look().items()
        return {path: reached(seen.log, seen.end, None).kept() for path, seen in ends if seen.end}

    @in_one_line
    def latestOffset(self, start: Kept | None = None, limit: Any = None) -> Kept:  # noqa: N802  Spark's name
        """How far each log can be read now, from ``start`` on; raises :class:`StoreError` where something was lost."""
        made = dict(self._given if start is None else start)
        before = positions(made)
        seen = self._look()
        self._follow_moved(made, before, seen)
        for path in before.keys() - seen.keys() - self._unread:
            made[path] = self._missing(path, before[path], GONE)
        if self._until is not None:
            until = self._until
            seen = {path: _Seen(one.log, until[path]) for path, one in seen.items() if path in until}
        steps: dict[str, Step] = {}
        for path, one in seen.items():
            at = before.get(path)
            if at is not None and at.offset and not one.end:
                made[path] = self._missing(path, at, EMPTY)
            else:
                steps[path] = self._step(one, at)
        for path, end in _shared_out(steps, seen, getattr(limit, "max_bytes", None)).items():
            at = reached(seen[path].log, end, before.get(path))
            if start is not None:  # otherwise it is looked at again when the batch is planned
                at = dataclasses.replace(at, begin=steps[path].begin, lost=steps[path].lost)
            made[path] = at.kept()
        self._given = made
        return made

    def reportLatestOffset(self) -> Kept | None:  # noqa: N802  Spark's name
        """Where each log began and ended at the last look, for the query's progress."""
        return {path: {"first": first, "offset": end} for path, (first, end) in self._ends.items()} or None

    def _follow_moved(self, made: Kept, before: dict[str, Position], seen: Mapping[str, _Seen]) -> None:
        lacking = {path: at for path, at in before.items() if path not in seen and path not in self._unread}
        for path, one in seen.items():
            old = moved(one.log, lacking) if lacking and path not in before else None
            if old is not None:
                at = lacking.pop(old)
                before[path] = dataclasses.replace(at, begin=at.offset, lost=None, gone=False)
                made[path] = before[path].kept()
                del made[old], before[old]

    def _missing(self, path: str, at: Position, why: str) -> Any:
        if self.asked.following.fail:
            raise _loss(path, Lost(at.offset, at.offset, why))
        return (at if at.gone else at.missing(why)).kept()

    def _step(self, seen: _Seen, at: Position | None) -> Step:
        log, following = seen.log, self.asked.following
        if at is None:
            begin = log.first if following.since is None else log.since(following.since, log.first, seen.end)
            return Step(begin, seen.end)
        found = step(log, seen.end, at)
        if found.lost is not None and following.fail:
            raise _loss(log.store.path, found.lost)
        return found

    def _look(self) -> dict[str, _Seen]:
        """The logs as they are now, by the paths of their stores."""
        found: dict[str, _Seen] = {}
        self._unread = set()
        for store in self._stores():
            try:
                log = Log(store)
                found[store.path] = _Seen(log, _end(store))
                self._ends[store.path] = (log.first, found[store.path].end)
            except CannotRead as error:
                if self.asked.following.fail:
                    raise
                self._unread.add(store.path)
                sys.stderr.write(f"{error}: nothing of this store comes until it can be read\n")
        return found

    def _stores(self) -> list[StorePlace]:
        try:
            return self.asked.stores()
        except NotAStore:
            return []  # none yet

    # -- what lies between two ends

    @in_one_line
    def partitions(self, start: Kept, end: Kept) -> Sequence[InputPartition]:
        """The splits between two ends; nothing where nothing came. Raises :class:`StoreError` where something was lost
        since they were told.
        """
        stores = {store.path: store for store in self._stores()}
        parts: list[Split] = []
        told: list[Told] = []
        for path, kept in end.items():
            to = Position.of(kept)
            if kept == start.get(path) or Position.of(start.get(path, 0)) == to:
                continue
            store = stores.get(path)
            broker = store.broker if store is not None else None
            if to.lost is not None:
                told.append(Told(path, broker, *dataclasses.astuple(to.lost)))
            if to.gone or to.begin == to.offset:
                continue
            low, losses = self._range(store, start.get(path), to)
            for lost in losses:
                if self.asked.following.fail:
                    raise _loss(path, lost)
                told.append(Told(path, broker, *dataclasses.astuple(lost)))
            if store is not None and low < to.offset:
                parts += self._splits(store, low, to.offset)
        return [*(Parts((one,)) for one in told), *grouped(parts, self.asked.split_bytes)]

    def _range(self, store: StorePlace | None, kept: Any, to: Position) -> tuple[int, list[Lost]]:
        """Where the batch that ends at ``to`` is read from, and what of it cannot be read any more."""
        at = Position.of(kept) if kept is not None else None
        if store is None:
            begin = to.begin if to.begin is not None else at.offset if at is not None else 0
            return to.offset, [Lost(begin, to.offset, GONE)]
        log = Log(store)
        if to.begin is not None:
            found = Step(to.begin, to.offset)
        elif at is None:
            found = self._step(_Seen(log, to.offset), None)
        else:
            found = step(log, to.offset, at)
        losses = [found.lost] if found.lost is not None else []
        if to.marks and log.holds(to.marks[-1]) is False:
            return to.offset, [*losses, Lost(found.begin, to.offset, REPLACED)]
        if found.begin < log.first:
            losses.append(deleted(found.begin, min(log.first, to.offset)))
        return max(found.begin, log.first), losses

    def _splits(self, store: StorePlace, low: int, high: int) -> Iterator[Split]:
        want = {store.path: Ranges(((low, high),), "read before")}
        for split in plan([store], self.asked.split_bytes, want).splits:
            begins = split.file_start + split.start == low
            yield dataclasses.replace(split, exact=True) if begins else split

    # -- rows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        return settling(batch for part in partition.parts for batch in self._rows(part))

    def _rows(self, part: Split | Told) -> Iterable[pa.RecordBatch]:
        return [self._told(part)] if isinstance(part, Told) else rows_of([part], self.columns, self.asked)

    def _told(self, told: Told) -> pa.RecordBatch:
        split = Split(told.store, told.broker, "", told.start, 0, 0, 0)
        what = Damage(told.start, told.stop - told.start, told.why)
        return RowMaker(self.columns, split, TopicTable()).damage(what)


def _shared_out(steps: Mapping[str, Step], seen: Mapping[str, _Seen], most: int | None) -> dict[str, int]:
    """Where the batch ends in each log that has something to tell: ``most`` bytes in all, at least a unit of each."""
    total = sum(max(one.end - one.begin, 0) for one in steps.values())
    ends: dict[str, int] = {}
    for path, one in steps.items():
        size = one.end - one.begin
        if size <= 0:
            if one.lost is not None:
                ends[path] = one.begin
        elif most is None or total <= most:
            ends[path] = one.end
        else:
            ends[path] = seen[path].log.cut(one.begin + max(most * size // total, 1), one.end)
    return ends


def _loss(path: str, lost: Lost) -> StoreError:
    go_on = "with failOnDataLoss=false the query tells it in a row of the type damage and goes on"
    return StoreError(f"something was lost to this query: {lost.why}; {go_on}", file=path)


def _end(store: StorePlace) -> int:
    hints = [entry for entry in map(newest, list_queues(store)) if entry is not None]
    return log_end(store, hints, live=True)


NAME = "rocketmq-commitlog"


class PlainLogReader(DataSourceReader):
    """Plans and reads the splits."""

    def __init__(self, asked: LogOptions, names: Iterable[str]) -> None:
        self.asked = asked
        self.columns = schema.chosen(schema.UNIT, names)
        self.conditions: list[filters.Condition] = []

    @in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        """One for each task; what is left unread goes to Spark's log."""
        plan = self.plan()
        tell(NAME, plan.skipped)
        crc = needs_crc(self.columns, self.asked, self.conditions)
        told = words(self.columns, self.conditions, plan.splits, plan.skipped, crc)
        return partitions([*plan.unread, *plan.splits], self.asked.split_bytes, told)

    def plan(self) -> SplitPlan:
        """The splits that can hold what is asked for."""
        stores = filters.of_stores(self.conditions, self.asked.stores())
        want = needed(stores, filters.want(self.conditions), self.asked.trust)
        return splits.plan(stores, self.asked.split_bytes, want, without_unread=not self.asked.fails)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as Arrow batches."""
        assert isinstance(partition, Parts)
        parts = [part for part in partition.parts if not isinstance(part, Unread)]
        unread = (unread_row(self.columns, part) for part in partition.parts if isinstance(part, Unread))
        return settling(itertools.chain(unread, rows_of(parts, self.columns, self.asked, self.conditions)))


class CommitLogReader(filters.Pushed, PlainLogReader):
    """Is handed conditions too."""


class CommitLogSource(DataSource):
    """The format ``rocketmq-commitlog``, to be read at once or followed."""

    READER: ClassVar[type[PlainLogReader]] = CommitLogReader

    @in_one_line
    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.asked = LogOptions(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        """The columns that are asked for, as Spark reads them."""
        return schema.ddl(self.asked.columns)

    @in_one_line
    def reader(self, schema: StructType) -> PlainLogReader:
        """A reader of the columns of ``schema``."""
        return self.READER(self.asked, given(UNIT, schema))

    @in_one_line
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002
        """Refuse: nothing is written by a source."""
        raise UsageError(NO_WRITER)

    @in_one_line
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """A reader that follows the logs."""
        return CommitLogStream(self.asked, given(UNIT, schema))


class PlainCommitLogSource(CommitLogSource):
    """The format where Spark has no place for :mod:`engine.pipeline.insides.one_read_each`."""

    READER = PlainLogReader
