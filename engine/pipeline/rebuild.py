"""Consume queues and index files of stores, built from their logs on Spark as the engine's own dispatch writes them.

There are two steps, and only small values pass through the JVM. First, each split of a log becomes a part
(:mod:`rebuild_parts`) in a staged folder beside the output, which all executors must see. Then ranges of queues and
single index files are built from the parts in parallel. At the end the staged folder is renamed to the output, so the
output is complete or absent.

A run that was killed leaves its staged folder, and the next run with the same plan reuses the complete pieces in it. A
run that is stopped, or fails with an error, removes it. Only one run at a time uses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine import __version__, system
from engine.callbacks import Clock, system_clock
from engine.codec.index import Geometry
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import StoreError, UsageError
from engine.files.atomic_file import remove_folder_tree, write_atomically
from engine.files.layout import StorePaths
from engine.pipeline import tasks
from engine.pipeline.progress import Counter, Watch
from engine.pipeline.rebuild_files import IndexPlan, build_index, build_queues, plan_index
from engine.pipeline.rebuild_parts import Key, PartWriter, StoreFacts, path_of, read_part
from engine.pipeline.splits import Split, SplitEnd, broken_seams, read_split
from engine.rules.dispatch_rules import KnownTopics
from engine.sentences import sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


PLAN, WORK, TREE, DONE = "plan.json", "work", "tree", "done"
"""Names in the staged folder: the plan, parts by store, the output by store, a marker for each complete piece."""
RANGE_BYTES = 64 << 20
"""Bytes of queue entries that one task builds, except for a single larger queue."""
_NO_TOPICS_KNOWN = KnownTopics(frozenset(), frozenset(), 0, are_known=False)
_SCHEMA = "store int, kind string, queues bigint, entries bigint"


@dataclass(slots=True)
class Rebuilt:
    """Result of rebuilding one store. ``damaged`` counts damaged ranges of the log (``damaged_bytes`` long), ``stale``
    units whose physical offset is not their position; neither has an entry. ``reused`` counts pieces of an earlier run.
    """

    path: str
    label: str
    units: int = 0
    queues: int = 0
    entries: int = 0
    index_files: int = 0
    index_entries: int = 0
    damaged: int = 0
    damaged_bytes: int = 0
    stale: int = 0
    reused: int = 0
    deleted_topics: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartTask:
    """A split to write as part ``number`` of its store in the folder ``work``. Without a split the part is empty."""

    work: str
    number: int
    facts: StoreFacts
    split: Split | None


@dataclass(frozen=True, slots=True)
class QueueTask:
    """Queues from ``start_key`` up to ``stop_key`` to be built below ``root``; ``marker`` is written when they are
    complete. ``weight`` is their approximate size in bytes.
    """

    store: int
    facts: StoreFacts
    root: str
    work: str
    parts: int
    start_key: Key
    stop_key: Key | None
    left_out: frozenset[str]
    marker: str
    weight: int


@dataclass(frozen=True, slots=True)
class IndexTask:
    """An index file to be built below ``root``."""

    store: int
    plan: IndexPlan
    geometry: Geometry
    root: str
    work: str
    counts: tuple[int, ...]
    marker: str

    @property
    def weight(self) -> int:
        """The bytes of slots and entries."""
        return self.geometry.entry_position(1 + self.plan.stop - self.plan.first)


class TaskRunner(Protocol):
    """Runs tasks. Each share is one task, for which ``work`` yields batches of rows."""

    @property
    def cores(self) -> int:
        """The number of tasks that run in parallel."""

    def __call__(self, shares: Sequence[Sequence[Any]], work: tasks.Work, schema: str) -> list[dict[str, Any]]:
        """Return the rows of all tasks, with the columns of ``schema``."""


@dataclass(frozen=True, slots=True)
class SparkTasks:
    """Runs tasks in a Spark session."""

    spark: SparkSession

    @property
    def cores(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def __call__(self, shares: Sequence[Sequence[Any]], work: tasks.Work, schema: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = tasks.run_tasks(self.spark, shares, work, schema).toArrow().to_pylist()
        return rows


def rebuild(
    run_tasks: TaskRunner,
    stores: Sequence[StoreFacts],
    splits: Sequence[Split],
    out: Path,
    watch: Watch | None = None,
    now: Clock = system_clock,
) -> list[Rebuilt]:
    """Build the queues and index files of ``stores`` below the new directory ``out`` (absent or empty), each in the
    folder of its label. ``splits`` are those of all logs, in the order of each log; ``run_tasks`` runs them, see
    :class:`SparkTasks`.

    Raises :class:`UsageError` if ``out`` is used, :class:`StoreError`, ``OSError``.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(sentence("expected a new or empty folder"), file=str(out))
    by_store = tasks.splits_by_store(splits, [facts.path for facts in stores])
    plan = _plan_text(stores, by_store)
    with staged(out, plan, now) as (staging, begun_ms):
        results = [Rebuilt(facts.path, facts.label) for facts in stores]
        _make_parts(run_tasks, stores, by_store, staging, results, watch)
        pieces = [
            piece
            for number, facts in enumerate(stores)
            for piece in _pieces(
                number, facts, staging, len(by_store[number]), results[number], begun_ms, run_tasks.cores
            )
        ]
        _build(run_tasks, pieces, results, watch)
        put_in_place(staging, out)
    return results


def _plan_text(stores: Sequence[StoreFacts], by_store: Sequence[Sequence[Split]]) -> str:
    """Return a text of everything that the output depends on: equal for equal input."""
    facts_of_plan: list[Any] = [__version__]
    for facts, splits in zip(stores, by_store, strict=True):
        sizes = {split.path: (split.file_size, Path(split.path).stat().st_mtime_ns) for split in splits}
        topics = facts.topics
        topic_facts = (sorted(topics.folders), sorted(topics.listed), topics.newest, topics.are_known)
        facts_of_plan.append(
            (facts.path, facts.label, facts.start_offset, facts.stop, repr(replace(facts.config, given=frozenset())))
        )
        facts_of_plan.append((sorted(facts.batch_topics), topic_facts, sorted(sizes.items())))
        facts_of_plan.append([(split.path, split.start, split.stop) for split in splits])
    return json.dumps(facts_of_plan)


# -- step one: parts


def _make_parts(
    run_tasks: TaskRunner,
    stores: Sequence[StoreFacts],
    by_store: Sequence[Sequence[Split]],
    staging: Path,
    results: Sequence[Rebuilt],
    watch: Watch | None,
) -> None:
    pending: list[PartTask] = []
    for number, (facts, splits) in enumerate(zip(stores, by_store, strict=True)):
        work = staging / WORK / str(number)
        work.mkdir(exist_ok=True)
        facts_without_topics = replace(facts, topics=_NO_TOPICS_KNOWN)
        for part_number, split in enumerate(splits):
            if path_of(work, part_number, "json").exists():
                results[number].reused += 1
            else:
                pending.append(PartTask(str(work), part_number, facts_without_topics, split))
    if watch is not None:
        watch.step("reading the logs", sum(tasks.size_of(task.split) for task in pending if task.split is not None))
    work_of = partial(_write_parts, watch.counter if watch is not None else None)
    if pending:
        run_tasks(_share_out(pending, run_tasks.cores), work_of, _SCHEMA)
    for number, (facts, splits) in enumerate(zip(stores, by_store, strict=True)):
        repeated = _unjoined_parts(staging / WORK / str(number), replace(facts, topics=_NO_TOPICS_KNOWN), splits)
        if repeated:
            run_tasks([[task] for task in repeated], work_of, _SCHEMA)


def _unjoined_parts(work: Path, facts: StoreFacts, splits: Sequence[Split]) -> list[PartTask]:
    """Return the parts that must be written again. If the splits of a file do not join, its first split takes the
    complete file.
    """
    ends = [
        SplitEnd(part.first_offset, part.next_offset)
        for part in (read_part(work, part_number) for part_number in range(len(splits)))
    ]
    paths = broken_seams(list(zip(splits, ends, strict=True)))
    tasks_again = []
    for path in paths:
        numbers = [part_number for part_number, split in enumerate(splits) if split.path == path]
        last_split = splits[numbers[-1]]
        whole_split = replace(splits[numbers[0]], stop=last_split.stop, gap_to=last_split.gap_to)
        tasks_again.append(PartTask(str(work), numbers[0], facts, whole_split))
        tasks_again += [PartTask(str(work), part_number, facts, None) for part_number in numbers[1:]]
    return tasks_again


def _share_out(pending: Sequence[PartTask], cores: int) -> list[list[PartTask]]:
    """Group tasks of about equal bytes, as :func:`tasks.share_out` makes them."""
    shares = tasks.share_out([task.split for task in pending if task.split is not None], cores)
    task_groups, position = [], 0
    for share in shares:
        task_groups.append(list(pending[position : position + len(share)]))
        position += len(share)
    return task_groups


def _write_parts(counter: Counter | None, share: Sequence[PartTask]) -> Iterator[pa.RecordBatch]:
    for task in share:
        units = write_part(task)
        tasks.count_splits(counter, [task.split] if task.split is not None else [], units)
    yield from ()


def write_part(task: PartTask) -> int:
    """Write one split as a part. Return its number of units. Raises ``OSError``."""
    topics, levels = TopicTable(), task.facts.config.delay_levels()
    with PartWriter(Path(task.work), task.number, task.facts, topics) as writer:
        blocks = read_split(task.split, crc=False, topics=topics, levels=levels) if task.split is not None else ()
        for block in blocks:
            if isinstance(block, SplitEnd):
                writer.end(block)
            elif isinstance(block, Damage):
                writer.damage(block)
            else:
                writer.take(block)
        return writer.finish().units


# -- step two: queues and index files


@dataclass(slots=True)
class _Count:
    units: int
    keys: int
    later_units: bool


def _pieces(
    number: int, facts: StoreFacts, staging: Path, parts: int, result: Rebuilt, begun_ms: int, cores: int
) -> list[QueueTask | IndexTask]:
    """List the queues and index files to build of one store, and add the counts of its parts to ``result``."""
    work, root = staging / WORK / str(number), staging / TREE / facts.label
    weights: dict[Key, int] = defaultdict(int)
    first_of: dict[str, int] = {}
    counts: list[_Count] = []
    for part_number in range(parts):
        part = read_part(work, part_number)
        counts.append(_Count(part.units, part.keys, part.later_units))
        result.units += part.units
        result.damaged += part.damaged
        result.damaged_bytes += part.damaged_bytes
        result.stale += part.stale
        for group in (group for chunk in part.chunks for group in chunk):
            weights[group.key] += group.size
            first_of[group.topic] = min(first_of.get(group.topic, group.physical), group.physical)
        if part.ends:
            break
    root.mkdir(parents=True, exist_ok=True)
    result.deleted_topics = facts.topics.deleted(first_of)
    left_out = frozenset(result.deleted_topics)
    facts_without_topics = replace(facts, topics=_NO_TOPICS_KNOWN)
    marks = staging / DONE
    pieces: list[QueueTask | IndexTask] = []
    if facts.config.message_index_enable:
        geometry = Geometry(facts.config.max_hash_slot_num, facts.config.max_index_num)
        keys = tuple(count.keys for count in counts)
        for plan in plan_index(counts, geometry, begun_ms):
            marker = str(marks / f"{number}.index.{plan.name}")
            pieces.append(IndexTask(number, plan, geometry, str(root), str(work), keys, marker))
    for first_key, last_key, weight in ranges(
        {key: size for key, size in weights.items() if key[0] not in left_out}, cores
    ):
        marker = str(marks / f"{number}.queues.{hashlib.sha256(repr((first_key, last_key)).encode()).hexdigest()}")
        pieces.append(
            QueueTask(
                number,
                facts_without_topics,
                str(root),
                str(work),
                len(counts),
                first_key,
                last_key,
                left_out,
                marker,
                weight,
            )
        )
    return pieces


def ranges(weights: dict[Key, int], cores: int) -> list[tuple[Key, Key | None, int]]:
    """Return ranges of queues (first key, end key or None, weight) of about equal weight, at most about
    :data:`RANGE_BYTES`. The last range has no end key.
    """
    total = sum(weights.values())
    goal = min(RANGE_BYTES, -(-total // max(cores, 1)))
    start_keys: list[Key] = []
    filled: list[int] = []
    for key in sorted(weights):
        if not start_keys or filled[-1] >= goal:
            start_keys.append(key)
            filled.append(0)
        filled[-1] += weights[key]
    return list(zip(start_keys, [*start_keys[1:], None], filled, strict=False))


def group_pieces(pieces: Sequence[QueueTask | IndexTask], cores: int) -> list[list[QueueTask | IndexTask]]:
    """Group pieces into tasks: the heaviest pieces first, small ones together."""
    goal = sum(piece.weight for piece in pieces) / max(cores * tasks.TASKS_PER_CORE * 2, 1)
    groups: list[list[QueueTask | IndexTask]] = []
    filled = goal
    for piece in sorted(pieces, key=lambda piece: -piece.weight):
        if filled + piece.weight / 2 > goal:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += piece.weight
    return groups


def _build(
    run_tasks: TaskRunner, pieces: Sequence[QueueTask | IndexTask], results: Sequence[Rebuilt], watch: Watch | None
) -> None:
    if watch is not None:
        watch.step("building queues and index")
    pending = []
    for piece in pieces:
        recorded = _read_marker(piece.marker)
        if recorded is None:
            pending.append(piece)
        else:
            results[piece.store].reused += 1
            _add(results[piece.store], *recorded)
    if pending:
        for row in run_tasks(group_pieces(pending, run_tasks.cores), build_pieces, _SCHEMA):
            _add(results[row["store"]], row["kind"], row["queues"], row["entries"])


def _add(result: Rebuilt, kind: str, queues: int, entries: int) -> None:
    if kind == "index":
        result.index_files += 1
        result.index_entries += entries
    else:
        result.queues += queues
        result.entries += entries


def _read_marker(marker: str) -> tuple[str, int, int] | None:
    try:
        kind, queues, entries = json.loads(Path(marker).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return str(kind), int(queues), int(entries)


def build_pieces(share: Sequence[QueueTask | IndexTask]) -> Iterator[pa.RecordBatch]:
    """Build the queues or index file of each task, and yield a row with their counts. Raises ``OSError``."""
    import pyarrow as pa

    for task in share:
        kind, queues, entries = (
            ("index", 0, _index(task)) if isinstance(task, IndexTask) else ("queues", *_queues(task))
        )
        write_atomically(Path(task.marker), json.dumps([kind, queues, entries]))
        columns = {
            "store": pa.array([task.store], pa.int32()),
            "kind": pa.array([kind]),
            "queues": pa.array([queues], pa.int64()),
            "entries": pa.array([entries], pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(columns)


def _index(task: IndexTask) -> int:
    folder = StorePaths(Path(task.root)).index
    folder.mkdir(exist_ok=True)
    header = build_index(task.plan, task.geometry, folder / task.plan.name, Path(task.work), task.counts)
    return header.entries


def _queues(task: QueueTask) -> tuple[int, int]:
    built = build_queues(
        task.facts, Path(task.root), Path(task.work), task.parts, task.start_key, task.stop_key, task.left_out
    )
    entries = [count for _, count in built]
    return len(entries), sum(entries)


# -- the staged folder


@contextmanager
def staged(out: Path, plan: str, now: Clock) -> Iterator[tuple[Path, int]]:
    """Yield the staged folder beside ``out``, and the time (ms) at which the run began whose work it contains.

    It is removed at the end of the block in any case. Raises :class:`StoreError` if another run uses it.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = out.parent / f".{out.name}.rebuild"
    staging.mkdir(exist_ok=True)
    try:
        holder = system.hold_folder(staging)
    except BlockingIOError:
        raise StoreError(sentence("another rebuild is writing there"), file=str(out)) from None
    try:
        try:
            yield staging, _begin(staging, plan, now)
        finally:
            remove_folder_tree(staging)
    finally:
        os.close(holder)


def _begin(staging: Path, plan: str, now: Clock) -> int:
    """Reuse the results of an earlier run of the same plan, or begin again. Return when that run began (ms)."""
    try:
        stored_plan = json.loads((staging / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stored_plan = {}
    if stored_plan.get("plan") == plan:
        return int(stored_plan["begun"])
    for place in (WORK, TREE, DONE):
        shutil.rmtree(staging / place, ignore_errors=True)
        (staging / place).mkdir()
    begun_ms = now()
    write_atomically(staging / PLAN, json.dumps({"plan": plan, "begun": begun_ms}))
    return begun_ms


def put_in_place(staging: Path, out: Path) -> None:
    """Rename the staged folder to ``out`` (absent or an empty directory), durably. Raises ``OSError``."""
    tree = staging / TREE
    if out.is_dir():
        out.rmdir()
    tree.rename(out)
    system.sync_folder(out.parent)
