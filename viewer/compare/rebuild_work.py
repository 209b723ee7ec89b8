"""Queues and index rebuilt from the log into a new directory and compared with the store's. No Qt.

Building and comparing happen while the new directory has a hidden name: a stop at any moment leaves nothing behind.
Memory is bounded: entries are compared in blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.inspection.index_steps import BLOCK_ENTRIES, IndexEntries, front_offset, skip_equal
from engine.inspection.store_differences import served_span
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words

if TYPE_CHECKING:
    import numpy as np

    from engine.config import MessageStoreConfig
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
    from engine.rebuilding import Rebuilt
    from viewer.runtime.control import Control


@dataclass(frozen=True, slots=True)
class Amounts:
    """Bytes and counts that a rebuild reads and writes.

    ``refusal`` says why the rebuild is not possible; empty if it is.
    """

    log: int = 0
    queues: int = 0
    queue_bytes: int = 0
    index_files: int = 0
    index_bytes: int = 0
    is_locked: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ComparedFile:
    """Result for one queue or index file: entry counts here and rebuilt, and the first entry that differs.

    ``difference`` is a queue offset, or the number of an entry of an index file; None where all are equal.
    ``offset`` is the physical offset that this entry points at; ``in_store`` says that the store has it (else only
    the rebuilt one has).
    """

    topic: str
    queue_id: int | None
    name: str
    here: int
    rebuilt: int
    difference: int | None = None
    offset: int | None = None
    in_store: bool = True

    @property
    def equal(self) -> bool:
        """Return True if nothing differs."""
        return self.difference is None


@dataclass(frozen=True, slots=True)
class RebuildComparison:
    """Summary of the build, and one row for each queue (by topic and number) and index file."""

    built: Rebuilt
    rows: tuple[ComparedFile, ...]


def amounts(store: StoreSnapshot) -> Amounts:
    """Measure what rebuilding ``store`` would read and write."""
    if store.kind != "store":
        return Amounts(refusal=tr("This is a part of a store: only a complete store has queues and an index."))
    if store.writing_refusal:
        return Amounts(refusal=engine_words(store.writing_refusal))
    queues = [queue for queues in store.topics().values() for queue in queues.values()]
    files = store.index_files()
    return Amounts(
        store.log.end_offset - max(store.log.min_offset, 0),
        len(queues),
        sum(file.size for queue in queues for file in queue.files),
        len(files),
        sum(file.size for file in files),
        store.lock_state == "held",
    )


def refusal(store: Path, target: Path) -> str:
    """Return why nothing can be built in ``target``; empty if it can. Raises ``OSError``."""
    folder = store.resolve()
    if target.resolve().is_relative_to(folder):
        return tr("Nothing is written into the store: choose another folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        return tr("There is something at {path}: choose a new or empty folder.", path=str(target))
    return ""


def rebuild(control: Control, path: Path, config: MessageStoreConfig | None, target: Path) -> RebuildComparison:
    """Build queues and index of the store at ``path`` in ``target`` and compare them.

    Raises StoreError, OSError, and what ``control.check`` raises.
    """
    from engine.files.temporary_folders import staged
    from engine.inspection.derived_config import derived_config
    from engine.inspection.snapshot import open_store
    from engine.mapped.disk import RealDisk
    from engine.rebuilding import STAGING, build

    with open_store(path, config) as store:
        length = store.log.end_offset - max(store.log.min_offset, 0)
        sizes = derived_config(store)

        def progress(done: int) -> None:
            control.check()
            control.report(done, length)

        control.check()
        with staged(target, STAGING) as folder:
            rebuilt = build(store, folder, sizes, RealDisk(), progress)
            control.check()
            rows = compare_queues(control, store, folder)
            if sizes.message_index_enable:
                rows += compare_index(control, store, folder, sizes)
            control.check()
    return RebuildComparison(rebuilt, tuple(rows))


# ---- queues ----------------------------------------------------------------------------------------------------------


def compare_queues(control: Control, store: StoreSnapshot, folder: Path) -> list[ComparedFile]:
    """Compare each queue of the store or below ``folder``, entry by entry."""
    from engine.mapped.read_only import DescriptorCache

    cache = DescriptorCache()
    try:
        built = _queues_below(store, folder, cache)
        store_queues = {
            (topic, number): queue for topic, queues in store.topics().items() for number, queue in queues.items()
        }
        names = sorted(store_queues.keys() | built.keys())
        rows = []
        for done_count, name in enumerate(names):
            control.report(done_count, len(names), tr("comparing"))
            rows.append(_compare_queue(control, name, store_queues.get(name), built.get(name)))
        return rows
    finally:
        cache.close()


def _queues_below(store: StoreSnapshot, folder: Path, cache: Any) -> dict[tuple[str, int], QueueReader]:
    from engine.files.layout import StorePaths
    from engine.inspection.queue_reader import Kind, QueueReader
    from engine.mapped.read_only import FileSequence

    paths, queues = StorePaths(folder), {}
    trees: tuple[tuple[Kind, Path], ...] = (("simple", paths.consumequeue), ("batch", paths.batchconsumequeue))
    for kind, tree in trees:
        for queue_folder in sorted(tree.glob("*/*")):
            if queue_folder.is_dir() and queue_folder.name.isdigit():
                key = (queue_folder.parent.name, int(queue_folder.name))
                queues[key] = QueueReader(*key, kind, FileSequence((queue_folder,), cache), store.log)
    return queues


def _compare_queue(
    control: Control, name: tuple[str, int], store_queue: QueueReader | None, built_queue: QueueReader | None
) -> ComparedFile:
    store_span, built_span = served_span(store_queue), served_span(built_queue)
    counts = (store_span[1] - store_span[0], built_span[1] - built_span[0])
    entry_number = _first_difference(control, store_queue, built_queue, store_span, built_span)
    if entry_number is None:
        return ComparedFile(*name, "", *counts)
    in_store = store_queue is not None and store_span[0] <= entry_number < store_span[1]
    queue = store_queue if in_store else built_queue
    assert queue is not None
    entry = queue.batch(entry_number) if queue.kind == "batch" else queue.entry(entry_number)
    number = entry.queue_offset if entry is not None else entry_number
    return ComparedFile(*name, "", *counts, number, entry.physical_offset if entry is not None else None, in_store)


def _first_difference(
    control: Control,
    store_queue: QueueReader | None,
    built_queue: QueueReader | None,
    store_span: tuple[int, int],
    built_span: tuple[int, int],
) -> int | None:
    if store_span[0] == store_span[1] or built_span[0] == built_span[1]:
        return (
            None
            if store_span[0] == store_span[1] and built_span[0] == built_span[1]
            else (store_span if store_span[0] < store_span[1] else built_span)[0]
        )
    if store_span[0] != built_span[0]:
        return min(store_span[0], built_span[0])
    assert store_queue is not None
    assert built_queue is not None
    block_start, end = store_span[0], min(store_span[1], built_span[1])
    while block_start < end:
        control.check()
        block_end = min(end, block_start + BLOCK_ENTRIES)
        store_bytes, built_bytes = (
            store_queue.array(block_start, block_end).tobytes(),
            built_queue.array(block_start, block_end).tobytes(),
        )
        if store_bytes != built_bytes or len(store_bytes) < (block_end - block_start) * store_queue.unit_size:
            differing_byte = next(
                (n for n, (a, b) in enumerate(zip(store_bytes, built_bytes, strict=False)) if a != b), None
            )
            return (
                block_start
                + (min(len(store_bytes), len(built_bytes)) if differing_byte is None else differing_byte)
                // store_queue.unit_size
            )
        block_start = block_end
    return None if store_span[1] == built_span[1] else end


# ---- index -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tally:
    """Counts of one index file while it is compared."""

    name: str
    is_tag: Callable[[np.void], bool]
    here: int = 0
    rebuilt: int = 0
    number: int | None = None
    offset: int | None = None
    in_store: bool = True

    def note_difference(self, entries: IndexEntries, in_store: bool) -> None:
        """Record the entry in front of ``entries`` if it is the first that only one side has and is not a tag's."""
        assert entries.block is not None
        if self.number is None and not self.is_tag(entries.block[0]):
            self.number, self.offset, self.in_store = entries.number, front_offset(entries), in_store


def compare_index(
    control: Control, store: StoreSnapshot, folder: Path, config: MessageStoreConfig
) -> list[ComparedFile]:
    """Compare the index files of the store with those below ``folder``, entry by entry in their order.

    The file an entry is in does not matter: entries are equal if key hash and physical offset are. Entries of tags
    may be on one side only: releases from 5.4 on write them. One row for each file of the store.
    """
    from engine.codec.index import Geometry
    from engine.codec.index_keys import TAG, find_key_of_hash
    from engine.codec.message import Unit
    from engine.inspection.index_reader import IndexReader
    from engine.mapped.read_only import DescriptorCache, ReadOnlyFile

    cache, geometry = DescriptorCache(), Geometry(config.max_hash_slot_num, config.max_index_num)
    try:
        files = sorted(path for path in (folder / "index").glob("*") if path.name.isdigit())
        built_files = [IndexReader(ReadOnlyFile(str(p), 0, p.stat().st_size, cache), geometry, "") for p in files]
        min_offset = max(store.log.min_offset, 0)

        def is_tag(entry: np.void) -> bool:
            unit = store.log.unit_at(int(entry["phy_offset"]), crc=False)
            key = None
            if isinstance(unit, Unit):
                key = find_key_of_hash(unit.topic, unit.properties, int(entry["key_hash"]))
            return key is not None and key.index_type == TAG

        return _count_entries(
            control,
            store.index_files(),
            IndexEntries(store.index_files(), min_offset),
            IndexEntries(built_files, min_offset),
            is_tag,
        )
    finally:
        cache.close()


def _count_entries(
    control: Control,
    files: list[IndexReader],
    store_entries: IndexEntries,
    built_entries: IndexEntries,
    is_tag: Callable[[np.void], bool],
) -> list[ComparedFile]:
    tallies = {file.name: _Tally(file.name, is_tag) for file in files}
    while True:
        control.check()
        has_store_entry, has_built_entry = store_entries.fill(), built_entries.fill()
        if not has_store_entry and not has_built_entry:
            return [
                ComparedFile(
                    "", None, merged.name, merged.here, merged.rebuilt, merged.number, merged.offset, merged.in_store
                )
                for merged in tallies.values()
            ]
        tally = tallies.setdefault(store_entries.name, _Tally(store_entries.name, is_tag))
        if has_store_entry and has_built_entry:
            _compare_front(tally, store_entries, built_entries)
        elif has_store_entry:
            tally.here += 1
            tally.note_difference(store_entries, True)
            store_entries.skip()
        else:
            tally.rebuilt += 1
            tally.note_difference(built_entries, False)
            built_entries.skip()


def _compare_front(tally: _Tally, store_entries: IndexEntries, built_entries: IndexEntries) -> None:
    """Skip the entries that are equal, then count the one that is not."""
    equal_count, differs = skip_equal(store_entries, built_entries)
    tally.here, tally.rebuilt = tally.here + equal_count, tally.rebuilt + equal_count
    if not differs:
        return
    store_offset, built_offset = front_offset(store_entries), front_offset(built_entries)
    if store_offset <= built_offset:
        tally.here += 1
        tally.note_difference(store_entries, True)
        store_entries.skip()
    if built_offset <= store_offset:
        tally.rebuilt += 1
        tally.note_difference(built_entries, False)
        built_entries.skip()
