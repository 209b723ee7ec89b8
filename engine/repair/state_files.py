"""Mend the small files of a store: the checkpoint, JSON tables, and files under wrong names or without content
(docs/formats/repair.md#state).
"""

from __future__ import annotations

import contextlib
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from engine.codec import checkpoint as checkpoint_codec
from engine.codec.checkpoint import CHECKPOINT_SIZE, Checkpoint
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.config_tables import BACKUP, TABLES, load_table
from engine.codec.consume_queue import CQ_UNIT_SIZE, decode
from engine.codec.cut_tables import whole_rows
from engine.codec.message import MIN_UNIT_SIZE, Unit
from engine.codec.queue_mappings import MAPPINGS_FILE
from engine.errors import CannotRead, CorruptUnit
from engine.files.layout import MOVED_FOLDER, parse_file_name, queue_file_name
from engine.inspection.block_scan import scan_log
from engine.inspection.check.static_topics import is_consistent
from engine.inspection.check.tables import file_in_other_case
from engine.inspection.epochs import read_epochs
from engine.inspection.misnamed_files import misnamed_log_files, own_offset
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import release_of
from engine.mapped.read_only import ReadOnlyFile
from engine.patching.patches import MoveFile, Patch, RemoveFile, WriteFile, sample_digest
from engine.releases import Release, rules_of
from engine.repair.queue_entries import PlainQueue, plain_queues, queue_file_size
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import join, plural, sentence

_COMPARED_BYTES = 1 << 20
CHECKPOINT, TABLES_NAME, FILES, START = "checkpoint", "tables", "files", "start-of-dispatch"


def repair_checkpoint(store: StoreSnapshot, findings: Collection[Finding], release: Release) -> Repair | None:
    """Return the repair of a checkpoint that is cut, holds other numbers, or is ahead of the log; None if it is sound.

    Raises :class:`CannotRead` if the log or the checkpoint cannot be read.
    """
    if store.paths is None or not _has(findings, mendable.CHECKPOINT) or store.queues.rocksdb is not None:
        return None
    raw = store.small_file(store.paths.checkpoint)
    try:
        stored = checkpoint_codec.decode((raw or b"").ljust(CHECKPOINT_SIZE, b"\0"))
    except CorruptUnit:
        return None
    newest_time, last_unit = _newest_unit(store)
    if newest_time == 0:
        return None
    fitting = _fitting(store, stored, findings, newest_time, last_unit)
    last_used = max((place for place, number in enumerate(stored.numbers, 1) if number), default=0)
    numbers = max(rules_of(release).checkpoint_numbers, last_used)
    new = checkpoint_codec.encode(fitting, numbers, b"" if raw is None or stored.impossible else raw)
    if new == raw:
        return None
    named = [
        f"{part.name} {old:,} → {number:,}"
        for part, old, number in zip(checkpoint_codec.PARTS, stored.numbers, fitting.numbers, strict=True)
        if old != number
    ]
    why = sentence("the checkpoint says what the log holds: {numbers}", numbers=", ".join(named) or f"{len(new):,}")
    gains = sentence("a start after a crash begins where the log and the queues need it")
    patch = WriteFile(file="checkpoint", old=raw, new=new, why=why, name=CHECKPOINT)
    return Repair(CHECKPOINT, mendable.CHECKPOINT, sentence("Correct the checkpoint"), (patch,), gains)


def repair_start_of_dispatch(store: StoreSnapshot, findings: Collection[Finding], release: Release) -> Repair | None:
    """Return the repair with which the next start reads the log from its first file, and fills all queues again; None
    if the queues are there, or the length of their files is known (then :mod:`engine.repair.queue_entries` makes them).

    Raises :class:`CannotRead` if the checkpoint cannot be read.
    """
    is_lost = _has(findings, mendable.LOST_QUEUES) and store.kind == "store" and not store.queues.used_files()
    if store.paths is None or store.commit_log.dledger is not None or store.queues.rocksdb is not None or not is_lost:
        return None
    raw = store.small_file(store.paths.checkpoint)
    if raw is None or len(raw) < CHECKPOINT_SIZE or queue_file_size(store):
        return None
    stored = checkpoint_codec.decode(raw)
    last_used = max((place for place, number in enumerate(stored.numbers, 1) if number), default=0)
    reached = None if stored.logics_physical_offset is None else 0
    new = checkpoint_codec.encode(
        replace(stored, logics_msg_timestamp=0, logics_physical_offset=reached), max(last_used, 3), raw
    )
    why = sentence("a start after a crash reads the log from its first file if logicsMsgTimestamp is 0")
    patches: list[Patch] = []
    if new != raw:
        patches.append(WriteFile(file="checkpoint", old=raw, new=new, why=why, name=START))
    if not store.abort:
        because = sentence("a start takes its absence for a clean stop, and reads only the last files of the log")
        patches.append(WriteFile(file="abort", old=None, new=b"0", why=because, name=START))
    if not patches:
        return None
    gains = sentence("the next start fills all queues again")
    costs: str = sentence("this start takes longer: it reads the whole log")
    if not rules_of(release).knows_delays_in_recovery:
        at_once = sentence(
            "{release} delivers all waiting messages of the delay levels at once; to keep their times, give the "
            "broker's configuration (--config), and the queues are made here",
            release=rules_of(release).title,
        )
        costs = join("; ", [costs, at_once])
    if store.config is None and store.log.min_offset == 0 and rules_of(release).recovers_rocksdb_queues:
        without_first = sentence(
            "if the queues were in a RocksDB, a new one of the broker leaves out the message at offset 0 of the log: "
            "give the broker's configuration (--config), and the database is built here"
        )
        costs = join("; ", [costs, without_first])
    title = sentence("Let the next start read the log from its first file")
    return Repair(START, mendable.LOST_QUEUES, title, tuple(patches), gains, costs)


def _fitting(
    store: StoreSnapshot, stored: Checkpoint, findings: Collection[Finding], newest_time: int, last_unit: int
) -> Checkpoint:
    """Return the checkpoint with every number that cannot be true replaced by one that is."""
    undispatched = [
        finding.evidence["firstUnit"]
        for finding in findings
        if finding.id in ("CQ10", "RP01") and isinstance(finding.evidence.get("firstUnit"), int)
    ]
    dispatched_time = min(
        (_time_at(store, offset) - 1 for offset in undispatched if _time_at(store, offset)), default=newest_time
    )

    def time(number: int, limit: int) -> int:
        return number if 0 < number <= newest_time else limit

    def offset(number: int | None) -> int | None:
        return number if number is None or -1 <= number <= last_unit else last_unit

    index_end = max(_index_ends(store), default=0)
    return replace(
        stored,
        physic_msg_timestamp=time(stored.physic_msg_timestamp, newest_time),
        logics_msg_timestamp=time(stored.logics_msg_timestamp, dispatched_time),
        index_msg_timestamp=stored.index_msg_timestamp
        if 0 <= stored.index_msg_timestamp <= newest_time
        else min(index_end, newest_time),
        master_flushed_offset=None if "masterFlushedOffset" in stored.impossible else stored.master_flushed_offset,
        confirm_phy_offset=offset(stored.confirm_phy_offset),
        logics_physical_offset=offset(stored.logics_physical_offset),
    )


def _index_ends(store: StoreSnapshot) -> Iterator[int]:
    for file in store.index_files():
        with contextlib.suppress(CorruptUnit):
            yield file.header.end_timestamp


def _time_at(store: StoreSnapshot, offset: int) -> int:
    item = store.log.unit_at(offset, crc=False)
    return getattr(item, "store_timestamp", 0)


def _newest_unit(store: StoreSnapshot) -> tuple[int, int]:
    """Return store time (ms) and offset of the last unit; zeros if the log has none."""
    for file in reversed(store.log.files):
        time = offset = 0
        for block in scan_log(store.log, file.start_offset, file.end_offset, crc=False, with_tags=False):
            if isinstance(block, UnitColumns):
                units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
                if units:
                    time, offset = int(block.store_timestamp[units - 1]), int(block.offset[units - 1])
        if time:
            return time, offset
    return 0, 0


# -- tables


def repair_tables(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of JSON tables that a broker cannot load, from the table itself or its ``.bak``."""
    if store.paths is None or not _has(findings, mendable.TABLES):
        return None
    reported = {Path(finding.file).name for finding in findings if finding.id in mendable.TABLES and finding.file}
    patches: list[Patch] = []
    costs = []
    for name in TABLES:
        if name not in reported:
            continue
        patch = _mended_table(store, name)
        if patch is not None:
            patches.append(patch)
            costs += [patch.costs] if patch.costs else []
    patch = _mappings_of_backup(store, findings)
    if patch is not None:
        patches.append(patch)
        costs.append(patch.costs)
    patch = _epochs_of_backup(store, findings)
    if patch is not None:
        patches.append(patch)
        costs.append(patch.costs)
    if not patches:
        return None
    gains = plural("{n:,} table can be loaded again", "{n:,} tables can be loaded again", n=len(patches))
    title = sentence("Mend the tables in config/")
    return Repair(TABLES_NAME, mendable.TABLES, title, tuple(patches), gains, join("; ", costs), "certain")


def _epochs_of_backup(store: StoreSnapshot, findings: Collection[Finding]) -> Patch | None:
    """Return the patch after which the epoch table is that of its ``.bak``."""
    table = read_epochs(store) if any(finding.id == "CK06" for finding in findings) else None
    if table is None or not table.main.problem or table.backup is None or table.backup.problem:
        return None
    path = table.path
    content = store.small_file(path.with_name(path.name + BACKUP))
    if content is None or not path.is_relative_to(store.path):
        return None
    why = sentence("the table becomes that of {backup}", backup=path.name + BACKUP)
    costs = sentence("{table}: what was changed after its .bak was written is not in it", table=path.name)
    name = path.relative_to(store.path).as_posix()
    return WriteFile(file=name, old=store.small_file(path), new=content, why=why, costs=costs, name=TABLES_NAME)


def _mappings_of_backup(store: StoreSnapshot, findings: Collection[Finding]) -> Patch | None:
    """Return the patch after which the mappings of static topics are those of their ``.bak``, if these contradict
    nothing.
    """
    if (
        not any(finding.id == "CF19" and finding.kind not in ("queues", "behind") for finding in findings)
        or store.paths is None
    ):
        return None
    path = store.paths.config / MAPPINGS_FILE
    content = store.small_file(path.with_name(path.name + BACKUP))
    if content is None or not is_consistent(content, release_of(store)):
        return None
    why = sentence("the table becomes that of {backup}", backup=path.name + BACKUP)
    costs = sentence("{table}: what was changed after its .bak was written is not in it", table=path.name)
    name = path.relative_to(store.path).as_posix()
    return WriteFile(file=name, old=store.small_file(path), new=content, why=why, costs=costs, name=TABLES_NAME)


def _mended_table(store: StoreSnapshot, name: str) -> Patch | None:
    assert store.paths is not None
    folder, release = store.paths.config, release_of(store)

    def read(file: str) -> bytes | None:
        return store.small_file(folder / file)

    try:
        table = load_table(name, read, release)
        raw = read(name)
    except (CannotRead, CorruptUnit):
        return None
    misnamed = file_in_other_case(store, name) if raw is None else None
    if misnamed is not None:
        return _move(store, folder / misnamed, f"config/{name}", sentence("a broker reads only this name"), TABLES_NAME)
    parsed = table.main.parsed
    if table.main.state == "bad" and parsed is not None and parsed.fault is None and parsed.tail is not None:
        assert raw is not None
        cut = raw[: parsed.tail.place.offset]
        if load_table(name, {name: cut}.get, release).used == "main":
            why = sentence("the text after the closing brace is left out")
            return WriteFile(file=f"config/{name}", old=raw, new=cut, why=why, name=TABLES_NAME)
    if table.used in ("defaults", "nothing") and raw and parsed is not None and parsed.fault is not None:
        rows = whole_rows(raw, parsed.fault.place.offset)
        if rows is not None and load_table(name, {name: rows}.get, release).used == "main":
            why = sentence("the rows in front of the damage stay, and the table ends behind them")
            costs = sentence("{table}: the rows behind the damage are lost", table=name)
            return WriteFile(file=f"config/{name}", old=raw, new=rows, why=why, costs=costs, name=TABLES_NAME)
    if table.used != "bak" or table.bak is None:
        return None
    content = read(name + BACKUP)
    if content is None:
        return None
    why = sentence("the table becomes that of {backup}", backup=name + BACKUP)
    costs = sentence("{table}: what was changed after its .bak was written is not in it", table=name)
    return WriteFile(file=f"config/{name}", old=raw, new=content, why=why, costs=costs, name=TABLES_NAME)


# -- names and empty files


def repair_files(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of log files under other names and of last files without content; None if there is none."""
    if store.paths is None or not _has(findings, mendable.FILES):
        return None
    patches: list[Patch] = []
    for file in misnamed_log_files(store):
        if not file.is_packed and store.log.sequence.find(file.offset) is None:
            why = sentence("its first unit says that it begins at {offset:,}", offset=file.offset)
            target = f"{Path(file.path).parent.relative_to(store.path).as_posix()}/{file.own_name}"
            patch = _move(store, Path(file.path), target, why, FILES)
            patches += [patch] if patch is not None else []
    patches += _renumbered(store)
    patches += _moved_copy(store, findings)
    if _has(findings, frozenset({"CQ01"})):
        patches += _renumbered_queue_files(store)
    costs = ""
    for finding in findings:
        if finding.id == "CL12" and finding.kind == "deeper":
            raised = list(_raised(store, finding))
            patches += raised
            if raised:
                costs = sentence(
                    "{folder} stays, empty: RocketMQ 4.9 does not start before it is removed",
                    folder=finding.evidence["deeper"],
                )
    for finding in findings:
        patches += _renamed_index(store, finding) if finding.id == "IX11" and finding.kind == "single" else ()
    for finding in findings:
        if finding.id == "DK01" and finding.severity == "error" and finding.file:
            patches += _moved_out(store, Path(finding.file))
    log_files = store.log.sequence.files
    queues = [queue for by_id in store.queues.used_files().values() for queue in by_id.values()]
    for files in (log_files, *(queue.files for queue in queues)):
        if len(files) > 1 and files[-1].size == 0 and Path(files[-1].path).is_relative_to(store.path):
            why = sentence("the broker died between creating the file and filling it")
            name = Path(files[-1].path).relative_to(store.path).as_posix()
            digest = sample_digest(b"", b"")
            patches.append(RemoveFile(file=name, size=0, sample=digest, why=why, name=FILES))
    if not patches:
        return None
    gains = sentence("a broker finds these files, and starts with them")
    renamed_bytes = sum(
        patch.size
        for patch in patches
        if isinstance(patch, MoveFile) and not patch.target.startswith((MOVED_FOLDER, "index/", "consumequeue/"))
    )
    return Repair(
        FILES,
        mendable.FILES,
        sentence("Rename, move or remove files that a broker does not expect"),
        tuple(patches),
        gains,
        costs,
        new_units=renamed_bytes // MIN_UNIT_SIZE,  # at most
    )


def _raised(store: StoreSnapshot, finding: Finding) -> Iterator[Patch]:
    """Yield the patches that move the files of a log that stands one folder too deep into the log's folder."""
    folder = Path(finding.file or "")
    deeper = folder.parent / str(finding.evidence["deeper"])
    why = sentence("the files of the log stand one folder too deep")
    if not folder.is_relative_to(store.path):
        return
    for entry in sorted(store.reading.entries(deeper, listed=True), key=lambda entry: entry.name):
        info = store.reading.status(deeper / entry.name)
        if parse_file_name(entry.name) is None or info is None or not stat.S_ISREG(info.st_mode):
            continue
        target = (folder / entry.name).relative_to(store.path).as_posix()
        patch = _move(store, deeper / entry.name, target, why, FILES)
        if patch is not None:
            yield patch


def _renumbered(store: StoreSnapshot) -> Iterator[Patch]:
    """Yield a patch for each file of the log whose name is another number than its first unit says, or lacks zeros.

    Such a file goes only where the others leave room for it: the content may be that of another file. Files that have
    each other's names make room for each other.
    """
    files = store.log.sequence.files
    starts = {file.start_offset for file in files}
    ends = {file.end_offset for file in files}
    targets: dict[int, int] = {}
    for file in files:
        offset = own_offset(store, Path(file.path))
        if offset is None or not Path(file.path).is_relative_to(store.path):
            continue
        if offset != file.start_offset:
            has_room = offset in starts or offset in ends or offset + file.size in starts or len(files) == 1
            targets |= {file.start_offset: offset} if has_room else {}
        elif file.name != queue_file_name(offset):
            why = sentence("a broker sorts files by their names, and makes names of 20 digits")
            patch = _move(store, Path(file.path), _log_file_name(store, file.path, offset), why, FILES)
            yield from [patch] if patch is not None else []
    paths = {file.start_offset: Path(file.path) for file in files}
    for chain in _chains(targets, starts):
        parked: Patch | None = None
        if targets[chain[-1]] == chain[0]:  # a ring of files: the first one waits beside until its place is free
            why = sentence("it makes room for the file that has its name")
            parked = _move(store, paths[chain[0]], f"{MOVED_FOLDER}/{paths[chain[0]].name}", why, FILES)
        for start in reversed(chain):
            why = sentence("its first unit says that it begins at {offset:,}", offset=targets[start])
            name = _log_file_name(store, paths[start], targets[start])
            patch = _move(store, paths[start], name, why, FILES)
            if patch is None:
                continue
            if isinstance(parked, MoveFile) and start == chain[0]:
                patch = replace(patch, file=parked.target)
            elif isinstance(parked, MoveFile) and start == chain[-1]:
                yield parked
            yield patch


def _renumbered_queue_files(store: StoreSnapshot) -> Iterator[Patch]:
    """Yield a patch for each queue file whose name is another number than its first message says, if the place of that
    number is free. A file whose number none of the broker's files can have, and whose messages give it none, is moved
    out of the queue: its entries are those of the log.
    """
    file_size = queue_file_size(store)
    for queue in plain_queues(store):
        starts = {file.start_offset for file in queue.files}
        for file in queue.files:
            if file_size <= 0 or file.size != file_size or not Path(file.path).is_relative_to(store.path):
                continue
            start = _own_start(store, queue, file)
            if start is not None and start % file_size == 0 and start not in starts:
                why = sentence("its first message says that it begins at {offset:,}", offset=start)
                target = Path(file.path).with_name(queue_file_name(start)).relative_to(store.path).as_posix()
                starts.add(start)
            elif file.start_offset % file_size:
                why = sentence("queue files of {size:,} bytes never begin here", size=file_size)
                target = f"{MOVED_FOLDER}/{Path(file.path).relative_to(store.path).as_posix()}"
            else:
                continue
            patch = _move(store, Path(file.path), target, why, FILES)
            yield from [patch] if patch is not None else []


def _own_start(store: StoreSnapshot, queue: PlainQueue, file: ReadOnlyFile) -> int | None:
    """Return where a queue file begins by its first entry that leads to a message of the queue; None without one."""
    content = file.read(0, file.size)
    for position in range(0, len(content) - CQ_UNIT_SIZE + 1, CQ_UNIT_SIZE):
        entry = decode(content, position)
        if entry.size <= 0:
            return None
        unit = store.log.unit_at(entry.physical_offset, crc=False) if entry.physical_offset >= 0 else None
        if isinstance(unit, Unit) and (unit.topic, unit.queue_id) == queue.key:
            return unit.queue_offset * CQ_UNIT_SIZE - position
    return None


def _chains(targets: dict[int, int], starts: set[int]) -> Iterator[list[int]]:
    """Yield files in the order in which each takes the place of the next one: up to a free place, or in a ring.

    ``targets`` has for files by their start the start that they should have. A file is left out if two claim its
    place, or if its place stays taken.
    """
    rivals = {target for target, count in Counter(targets.values()).items() if count > 1}
    moving = {start: target for start, target in targets.items() if target not in rivals}
    while blocked := [start for start, target in moving.items() if target in starts and target not in moving]:
        for start in blocked:
            del moving[start]
    while moving:
        start = next((start for start in moving if start not in moving.values()), min(moving))
        chain = []
        while start in moving:
            chain.append(start)
            start = moving.pop(start)
        yield chain


def _log_file_name(store: StoreSnapshot, path: str | Path, offset: int) -> str:
    return Path(path).with_name(queue_file_name(offset)).relative_to(store.path).as_posix()


def _renamed_index(store: StoreSnapshot, finding: Finding) -> Iterator[Patch]:
    """Yield the patch that gives an index file the name that its first message says."""
    path = Path(finding.file or "")
    if path.is_relative_to(store.path):
        target = path.with_name(str(finding.evidence["expected"])).relative_to(store.path).as_posix()
        patch = _move(store, path, target, sentence("its first message says this time"), FILES)
        if patch is not None:
            yield patch


def _moved_out(store: StoreSnapshot, path: Path) -> Iterator[Patch]:
    """Yield the patch that moves a file that is none of RocketMQ's out of the folders of log and queues."""
    info = store.reading.status(path)
    if info is None or not stat.S_ISREG(info.st_mode) or not path.is_relative_to(store.path):
        return
    why = sentence("the file is none of RocketMQ's, and a broker does not start with it")
    patch = _move(store, path, f"{MOVED_FOLDER}/{path.relative_to(store.path).as_posix()}", why, FILES)
    if patch is not None:
        yield patch


def _moved_copy(store: StoreSnapshot, findings: Collection[Finding]) -> Iterator[Patch]:
    """Yield the patch that moves the last file of the log out of it, if it is a copy of another one: a start would read
    its messages a second time.
    """
    files = store.log.sequence.files
    if len(files) < 2 or not any(finding.id == "CL05" and finding.file == files[-1].path for finding in findings):
        return
    offset = own_offset(store, Path(files[-1].path))
    original = store.log.sequence.find(offset) if offset is not None else None
    if original is None or original is files[-1] or original.size != files[-1].size:
        return
    steps = range(0, original.size, _COMPARED_BYTES)
    if any(original.read(step, _COMPARED_BYTES) != files[-1].read(step, _COMPARED_BYTES) for step in steps):
        return
    path = Path(files[-1].path)
    if path.is_relative_to(store.path):
        why = sentence("the file is a copy of {file}", file=original.name)
        patch = _move(store, path, f"{MOVED_FOLDER}/{path.relative_to(store.path).as_posix()}", why, FILES)
        yield from [patch] if patch is not None else []


def _move(store: StoreSnapshot, path: Path, target: str, why: str, name: str) -> MoveFile | None:
    if not path.is_relative_to(store.path):
        return None
    size, sample = sample_of(store, path)
    source = path.relative_to(store.path).as_posix()
    return MoveFile(file=source, target=target, size=size, sample=sample, why=why, name=name)


def _has(findings: Collection[Finding], rules: frozenset[str]) -> bool:
    return any(finding.id in rules and at_least(finding.severity, "warn") for finding in findings)
