"""Queues and index built again from the log into a new directory, and compared with what the store has. No Qt.

Both are done while the new directory still grows under a hidden name: a stop at any moment leaves nothing behind.
Memory stays bounded: entries are held against each other in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewer.look.assets import tr

if TYPE_CHECKING:
    import numpy as np

    from engine.config import MessageStoreConfig
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
    from engine.rebuilding import Rebuilt
    from viewer.runtime.control import Control

BLOCK = 8192
"""Entries that are held against each other at once."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a rebuild reads and about what it writes: bytes of log; queues, index files and their bytes in the store;
    ``why`` it cannot be done, empty where it can.
    """

    log: int = 0
    queues: int = 0
    queue_bytes: int = 0
    index_files: int = 0
    index_bytes: int = 0
    held: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """One queue or index file: entries here and rebuilt, and the first entry that is not the same.

    ``difference`` is a queue offset, of an index file the number of an entry; None where all are equal. ``offset`` is
    the physical offset that this entry points at; ``there`` says that the store has it (else only the rebuilt one has).
    """

    topic: str
    queue_id: int | None
    name: str
    here: int
    rebuilt: int
    difference: int | None = None
    offset: int | None = None
    there: bool = True

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was built, and how it compares: queues by topic and number, then index files."""

    built: Rebuilt
    rows: tuple[Compared, ...]


def amounts(store: StoreSnapshot) -> Amounts:
    """What rebuilding ``store`` would read and write."""
    from engine.inspection.foreign import rocksdb_queues

    if store.kind != "store":
        return Amounts(why=tr("This is a part of a store: only a whole store has queues and an index."))
    if rocksdb_queues(store):
        return Amounts(why=tr("The consume queues of this store are a RocksDB, which is not built here."))
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
    """Why nothing is built in ``target``; empty where it may be. Raises ``OSError``."""
    folder = store.resolve()
    if target.resolve().is_relative_to(folder):
        return tr("Nothing is written into the store: choose another folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        return tr("There is something at {path}: choose a directory that is absent or empty.", path=str(target))
    return ""


def rebuild(control: Control, path: Path, config: MessageStoreConfig | None, target: Path) -> Answer:
    """Build queues and index of the store at ``path`` in ``target`` and compare them. Raises StoreError, OSError, and
    what ``control.check`` raises.
    """
    from engine.inspection.derived_config import derived_config
    from engine.inspection.snapshot import open_store
    from engine.mapped.disk import RealDisk
    from engine.rebuilding import STAGING, build
    from engine.scratch import staged

    with open_store(path, config) as store:
        length = store.log.end_offset - max(store.log.min_offset, 0)
        sizes = derived_config(store)

        def progress(done: int) -> None:
            control.check()
            control.report(done, length)

        control.check()
        with staged(target, STAGING) as folder:
            built = build(store, folder, sizes, RealDisk(), progress)
            control.check()
            rows = compare_queues(control, store, folder)
            if sizes.message_index_enable:
                rows += compare_index(control, store, folder, sizes)
            control.check()
    return Answer(built, tuple(rows))


# ---- queues ----------------------------------------------------------------------------------------------------------


def compare_queues(control: Control, store: StoreSnapshot, folder: Path) -> list[Compared]:
    """Every queue of the store or below ``folder``, entry by entry."""
    from engine.mapped.read_only import DescriptorCache

    cache = DescriptorCache()
    try:
        built = _queues_below(store, folder, cache)
        here = {(topic, number): queue for topic, queues in store.topics().items() for number, queue in queues.items()}
        names = sorted(here.keys() | built.keys())
        rows = []
        for done, name in enumerate(names):
            control.report(done, len(names), tr("comparing"))
            rows.append(_compare(control, name, here.get(name), built.get(name)))
        return rows
    finally:
        cache.close()


def _queues_below(store: StoreSnapshot, folder: Path, cache: Any) -> dict[tuple[str, int], QueueReader]:
    from engine.inspection.queue_reader import Kind, QueueReader
    from engine.layout import StorePaths
    from engine.mapped.read_only import FileSequence

    paths, found = StorePaths(folder), {}
    trees: tuple[tuple[Kind, Path], ...] = (("simple", paths.consumequeue), ("batch", paths.batchconsumequeue))
    for kind, tree in trees:
        for place in sorted(tree.glob("*/*")):
            if place.is_dir() and place.name.isdigit():
                key = (place.parent.name, int(place.name))
                found[key] = QueueReader(*key, kind, FileSequence((place,), cache), store.log)
    return found


def span(queue: QueueReader | None) -> tuple[int, int]:
    """[first, end) of the entries a broker would serve, of a batch queue of its units by number."""
    if queue is None:
        return 0, 0
    if queue.kind == "batch":
        first = max(queue.sequence.min_offset, 0) // queue.unit_size
        return first, max(first, queue.valid_end // queue.unit_size)
    first = max(queue.min_offset, 0)
    return first, max(first, queue.max_offset)


def _compare(control: Control, name: tuple[str, int], here: QueueReader | None, built: QueueReader | None) -> Compared:
    ours, theirs = span(here), span(built)
    counts = (ours[1] - ours[0], theirs[1] - theirs[0])
    at = _first_difference(control, here, built, ours, theirs)
    if at is None:
        return Compared(*name, "", *counts)
    there = here is not None and ours[0] <= at < ours[1]
    queue = here if there else built
    assert queue is not None
    entry = queue.batch(at) if queue.kind == "batch" else queue.entry(at)
    number = entry.queue_offset if entry is not None else at
    return Compared(*name, "", *counts, number, entry.physical_offset if entry is not None else None, there)


def _first_difference(
    control: Control,
    here: QueueReader | None,
    built: QueueReader | None,
    ours: tuple[int, int],
    theirs: tuple[int, int],
) -> int | None:
    if ours[0] == ours[1] or theirs[0] == theirs[1]:
        return None if ours[0] == ours[1] and theirs[0] == theirs[1] else (ours if ours[0] < ours[1] else theirs)[0]
    if ours[0] != theirs[0]:
        return min(ours[0], theirs[0])
    assert here is not None
    assert built is not None
    at, end = ours[0], min(ours[1], theirs[1])
    while at < end:
        control.check()
        until = min(end, at + BLOCK)
        first, second = here.array(at, until).tobytes(), built.array(at, until).tobytes()
        if first != second or len(first) < (until - at) * here.unit_size:
            same = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
            return at + (min(len(first), len(second)) if same is None else same) // here.unit_size
        at = until
    return None if ours[1] == theirs[1] else end


# ---- index -----------------------------------------------------------------------------------------------------------


class _Keys:
    """The entries of index files one behind the other, from those on that point at ``least`` or behind it."""

    def __init__(self, files: list[IndexReader], least: int) -> None:
        self._files, self._least = files, least
        self._file, self._next = 0, 1
        self.number = 1
        self.block: np.ndarray | None = None

    @property
    def name(self) -> str:
        """The file of the entry in front."""
        return self._files[min(self._file, len(self._files) - 1)].name if self._files else ""

    def fill(self) -> bool:
        """Have an entry in front; False at the end."""
        import numpy as np

        from engine.codec.dtypes import INDEX_ENTRY

        while self.block is None or not len(self.block):
            if self._file >= len(self._files):
                return False
            file = self._files[self._file]
            known = file.geometry
            count = min(BLOCK, file.last_entry + 1 - self._next) if known is not None else 0
            if known is None or count <= 0:
                if self._file + 1 >= len(self._files):
                    return False
                self._file, self._next = self._file + 1, 1
                continue
            data = file.file.read(known.entry_position(self._next), count * INDEX_ENTRY.itemsize)
            block = np.frombuffer(data[: len(data) // INDEX_ENTRY.itemsize * INDEX_ENTRY.itemsize], INDEX_ENTRY)
            self.number, self._next = self._next, self._next + count
            late = np.flatnonzero(block["phy_offset"] >= self._least)
            skipped = int(late[0]) if len(late) else len(block)
            self.block, self.number = block[skipped:], self.number + skipped
        return True

    def take(self, count: int = 1) -> None:
        """The next entry comes to the front."""
        assert self.block is not None
        self.block, self.number = self.block[count:], self.number + count


@dataclass(slots=True)
class _Tally:
    """One index file while it is compared."""

    name: str
    is_tag: Callable[[np.void], bool]
    here: int = 0
    rebuilt: int = 0
    number: int | None = None
    offset: int | None = None
    there: bool = True

    def differs(self, keys: _Keys, there: bool) -> None:
        """Note the entry in front of ``keys``, if it is the first that only one side has and no entry of tags."""
        assert keys.block is not None
        if self.number is None and not self.is_tag(keys.block[0]):
            self.number, self.offset, self.there = keys.number, _offset(keys), there


def compare_index(control: Control, store: StoreSnapshot, folder: Path, config: MessageStoreConfig) -> list[Compared]:
    """The index files of the store against those below ``folder``: keys in their order, whatever file they are in.

    An entry is the same where hash and physical offset are. Entries of tags may be on one side only: releases from 5.4
    on write them. One row for each file of the store.
    """
    from engine.codec.index import Geometry
    from engine.codec.index_keys import TAG, find_key_of_hash
    from engine.codec.message import Unit
    from engine.inspection.index_reader import IndexReader
    from engine.mapped.read_only import DescriptorCache, ReadOnlyFile

    cache, geometry = DescriptorCache(), Geometry(config.max_hash_slot_num, config.max_index_num)
    try:
        files = sorted(path for path in (folder / "index").glob("*") if path.name.isdigit())
        built = [IndexReader(ReadOnlyFile(str(p), 0, p.stat().st_size, cache), geometry, "") for p in files]
        least = max(store.log.min_offset, 0)

        def is_tag(entry: np.void) -> bool:
            unit = store.log.unit_at(int(entry["phy_offset"]), crc=False)
            key = None
            if isinstance(unit, Unit):
                key = find_key_of_hash(unit.topic, unit.properties, int(entry["key_hash"]))
            return key is not None and key.index_type == TAG

        return _merge(control, store.index_files(), _Keys(store.index_files(), least), _Keys(built, least), is_tag)
    finally:
        cache.close()


def _merge(
    control: Control, files: list[IndexReader], ours: _Keys, theirs: _Keys, is_tag: Callable[[np.void], bool]
) -> list[Compared]:
    tallies = {file.name: _Tally(file.name, is_tag) for file in files}
    while True:
        control.check()
        more, others = ours.fill(), theirs.fill()
        if not more and not others:
            return [
                Compared("", None, one.name, one.here, one.rebuilt, one.number, one.offset, one.there)
                for one in tallies.values()
            ]
        tally = tallies.setdefault(ours.name, _Tally(ours.name, is_tag))
        if more and others:
            _same(tally, ours, theirs)
        elif more:
            tally.here += 1
            tally.differs(ours, True)
            ours.take()
        else:
            tally.rebuilt += 1
            tally.differs(theirs, False)
            theirs.take()


def _same(tally: _Tally, ours: _Keys, theirs: _Keys) -> None:
    """Take the entries that are the same, or the one that is not."""
    equal, apart = _take_equal(ours, theirs)
    tally.here, tally.rebuilt = tally.here + equal, tally.rebuilt + equal
    if not apart:
        return
    here, there = _offset(ours), _offset(theirs)
    if here <= there:
        tally.here += 1
        tally.differs(ours, True)
        ours.take()
    if there <= here:
        tally.rebuilt += 1
        tally.differs(theirs, False)
        theirs.take()


def _take_equal(ours: _Keys, theirs: _Keys) -> tuple[int, bool]:
    """Take the entries that are the same; their number, and whether the two in front then differ."""
    import numpy as np

    first, second = ours.block, theirs.block
    assert first is not None
    assert second is not None
    count = min(len(first), len(second))
    differ = np.flatnonzero(
        (first["phy_offset"][:count] != second["phy_offset"][:count])
        | (first["key_hash"][:count] != second["key_hash"][:count])
    )
    equal = int(differ[0]) if len(differ) else count
    ours.take(equal)
    theirs.take(equal)
    return equal, bool(len(differ))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an index file by its number, and the physical offset it points at."""

    file: str
    number: int
    offset: int


def step_index(
    control: Control, files: list[IndexReader], others: list[IndexReader], least: int
) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Entries behind ``least`` of two sets of index files that only one of them has, in the order of the keys; an
    entry is the same where hash and physical offset are, whatever file it is in.
    """
    ours, theirs = _Keys(files, least), _Keys(others, least)
    while True:
        control.check()
        more, there = ours.fill(), theirs.fill()
        if not more and not there:
            return
        if more and there:
            if not _take_equal(ours, theirs)[1]:
                continue
            more, there = _offset(ours) <= _offset(theirs), _offset(theirs) <= _offset(ours)
        yield (_take(ours) if more else None), (_take(theirs) if there else None)


def _take(keys: _Keys) -> Entry:
    found = Entry(keys.name, keys.number, _offset(keys))
    keys.take()
    return found


def _offset(keys: _Keys) -> int:
    assert keys.block is not None
    return int(keys.block["phy_offset"][0])
