"""Proving splits of a log: units against themselves and their queue entries, and what the index holds
(docs/formats/commit-log.md, docs/formats/index-file.md).

A split in which anything is out of the ordinary gives no proof. What is wrong there is found by the check of
the whole store, which passes over what was proven (:mod:`engine.rules.log_rules`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UnitColumns
from engine.codec.dtypes import CQ_UNIT
from engine.codec.index_builder import key_hashes
from engine.codec.message import ROLLBACK, TRANSACTION_MASK
from engine.codec.queue_builder import EntryRows, build_runs
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.files.layout import StorePaths, is_folder_name
from engine.pipeline import tasks
from engine.pipeline.rebuild_compare import QueueEntries
from engine.pipeline.splits import Split, SplitEnd, read_split
from engine.rules import log_rules
from engine.rules.dispatch_rules import units_of
from engine.rules.proofs import KeyDigest, KeySum, Proof, ProvenRun

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.pipeline.progress import Watch
    from engine.pipeline.rebuild import TaskRunner

BUFFER_ROWS = 1 << 17
"""Rows that are held against queue entries together."""
SCHEMA = "store int, first bigint, proof binary"
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class VerifyFacts:
    """Facts of a store that are needed to prove its splits: delays of the delay levels (ms), and whether it has an
    index.
    """

    path: str
    levels: tuple[int, ...]
    index: bool


@dataclass(frozen=True, slots=True)
class ProveTask:
    """A split of the store with this number."""

    store: int
    facts: VerifyFacts
    split: Split


class _Unproven(Exception):
    """A range cannot be proven and must be checked."""


@dataclass(frozen=True, slots=True)
class PackedProof:
    """A proof as it is sent to the driver: the offset at which its range begins, and its bytes."""

    first: int
    data: bytes

    @classmethod
    def of(cls, proof: Proof) -> PackedProof:
        """``proof`` in few bytes: a split of a store with a thousand queues has a thousand runs."""
        values = [getattr(proof, name) for name in Proof.__slots__]
        return cls(proof.start_offset, zlib.compress(json.dumps(values).encode(), 1))

    def unpacked(self) -> Proof:
        """Unpack the proof."""
        first_offset, next_offset, units, size, first_time, last_time, blank_pair, runs, keys, tags = json.loads(
            zlib.decompress(self.data)
        )
        proven = tuple(ProvenRun(*run) for run in runs)
        last_blank = (blank_pair[0], blank_pair[1]) if blank_pair else None
        return Proof(
            first_offset,
            next_offset,
            units,
            size,
            first_time,
            last_time,
            last_blank,
            proven,
            KeySum(*keys),
            KeySum(*tags),
        )


def prove_stores(
    run: TaskRunner, stores: Sequence[VerifyFacts], splits: Sequence[Split], watch: Watch | None = None
) -> list[list[PackedProof]]:
    """Return the proofs of each store's splits in the order of its log. A log's last split is left to the check: the
    log's end is judged there.
    """
    grouped = tasks.splits_by_store(splits, [facts.path for facts in stores])
    waiting = [
        ProveTask(number, stores[number], split)
        for number, store_splits in enumerate(grouped)
        for split in store_splits[:-1]
    ]
    proofs_of_stores: list[list[PackedProof]] = [[] for _ in stores]
    if watch is not None:
        watch.step("holding units against their entries", sum(tasks.size_of(task.split) for task in waiting))
    if waiting:
        work = partial(prove_all, watch.counter if watch is not None else None)
        shares, position = [], 0
        for share in tasks.share_out([task.split for task in waiting], run.cores):
            shares.append(waiting[position : position + len(share)])
            position += len(share)
        for row in run(shares, work, SCHEMA):
            proofs_of_stores[row["store"]].append(PackedProof(row["first"], row["proof"]))
    for proofs in proofs_of_stores:
        proofs.sort(key=attrgetter("first"))
    return proofs_of_stores


def prove_all(counter: Any, share: Sequence[ProveTask]) -> Iterator[pa.RecordBatch]:
    """Return a row of :data:`SCHEMA` for each split that could be proven."""
    import pyarrow as pa

    schema = pa.schema([("store", pa.int32()), ("first", pa.int64()), ("proof", pa.binary())])
    for task in share:
        proof = prove(task.split, task.facts)
        tasks.count_splits(counter, [task.split], proof.units if proof is not None else 0)
        if proof is not None:
            columns = {"store": [task.store], "first": [proof.start_offset], "proof": [PackedProof.of(proof).data]}
            yield pa.RecordBatch.from_pydict(columns, schema)


def prove(split: Split, facts: VerifyFacts) -> Proof | None:
    """Return the proof of a split, None if anything in it is not as it should be."""
    topics = TopicTable()
    prover = _Prover(facts, topics)
    try:
        for block in read_split(split, topics=topics, levels=facts.levels):
            if isinstance(block, Damage):
                return None
            if isinstance(block, SplitEnd):
                next_offset = block.next_offset if block.next_offset >= 0 else split.file_start + split.file_size
                return None if block.why else prover.finish(block.first_offset, next_offset)
            prover.take(block)
    except (_Unproven, OSError):
        return None
    return None


class _Prover:
    def __init__(self, facts: VerifyFacts, topics: TopicTable) -> None:
        self._topics = topics
        self._paths = StorePaths(Path(facts.path))
        self._rows = EntryRows(BUFFER_ROWS)
        self._runs: dict[Key, list[int]] = {}
        self._entries: dict[Key, QueueEntries] = {}
        self._has_index = facts.index
        self._keys, self._keys_and_tags = KeyDigest(), KeyDigest()
        self._units = 0
        self._first_size = self._first_time = self._last_time = -1
        self._blank: tuple[int, int] | None = None

    def take(self, columns: UnitColumns) -> None:
        rows = len(units_of(columns))
        if rows:
            self._take_units(columns, rows)
        if rows < columns.count:
            self._blank = int(columns.offset[rows]), int(columns.size[rows])

    def _take_units(self, columns: UnitColumns, rows: int) -> None:
        times = columns.store_timestamp[:rows]
        previous = log_rules.PrecedingUnits(self._last_time, self._last_time)
        if log_rules.first_broken(columns, rows, previous) is not None or int(columns.topic_id[:rows].min()) < 0:
            raise _Unproven
        if not self._units:
            self._first_size, self._first_time = int(columns.size[0]), int(times[0])
        self._units += rows
        self._last_time = int(times[-1])
        if self._has_index:
            self._take_keys(columns, rows)
        if self._rows.count + rows > self._rows.capacity:
            self._flush()
        self._rows.add(columns, 0, rows)

    def _take_keys(self, columns: UnitColumns, rows: int) -> None:
        keys = key_hashes(columns, self._topics)
        indexed = columns.sys_flag[:rows][keys.row] & TRANSACTION_MASK != ROLLBACK
        if not indexed.all():
            keys = keys.choose(indexed)
        self._keys_and_tags.add(columns.offset[keys.row], keys.key_hash)
        if keys.is_tag.any():
            keys = keys.choose(~keys.is_tag)
        self._keys.add(columns.offset[keys.row], keys.key_hash)

    def _flush(self) -> None:
        """Compare the rows with the entries at their queue offsets."""
        runs = build_runs(self._rows, 0, self._rows.count)
        names = self._topics.names
        if not runs.follows.all():
            raise _Unproven
        starts = runs.start.tolist()
        for group, (topic, queue_id) in enumerate(zip(runs.topic_id.tolist(), runs.queue_id.tolist(), strict=True)):
            key = names[topic], queue_id
            if not is_folder_name(key[0]):
                raise _Unproven
            group_start, group_stop = starts[group], starts[group + 1]
            first_offset = int(runs.queue_offset[group_start])
            self._compare(key, first_offset, runs.entries[group_start:group_stop])
            last_physical = int(runs.entries["physical_offset"][group_stop - 1])
            run = self._runs.setdefault(key, [first_offset, 0, last_physical])
            if run[0] + run[1] != first_offset:
                raise _Unproven
            run[1] += group_stop - group_start
            run[2] = last_physical
        self._rows.count = 0

    def _compare(self, key: Key, first_offset: int, expected: npt.NDArray[np.void]) -> None:
        queue_entries = self._entries.get(key)
        if queue_entries is None:
            queue_entries = self._entries[key] = QueueEntries(self._paths.queue_folder(*key), CQ_UNIT)
        if first_offset < queue_entries.first or first_offset + len(expected) > queue_entries.stop:
            raise _Unproven
        stored = queue_entries.read(first_offset, first_offset + len(expected))
        if not np.array_equal(stored.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)):
            raise _Unproven

    def finish(self, first_offset: int, next_offset: int) -> Proof | None:
        """Return what was proven of the items from ``first_offset`` up to ``next_offset``."""
        if self._rows.count:
            self._flush()
        if first_offset < 0 or not self._units:
            return None
        keys = (self._keys.sum, self._keys_and_tags.sum) if self._has_index else (KeySum(), KeySum())
        runs = tuple(ProvenRun(*key, *values) for key, values in self._runs.items())
        times = self._first_time, self._last_time
        return Proof(first_offset, next_offset, self._units, self._first_size, *times, self._blank, runs, *keys)
